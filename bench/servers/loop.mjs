// What a host in Node does without a server: a line is a command, its answer all that it printed.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const answer = (id, result) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method !== 'tools/call') return answer(id, {});
  const child = spawn('/bin/bash', ['-c', params.arguments.command],
    { stdio: ['ignore', 'pipe', 'pipe'] });
  const streams = [child.stdout, child.stderr].map((stream) => {
    const chunks = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    return chunks;
  });
  child.on('close', (code) =>
    answer(id, { code, text: streams.map((chunks) => Buffer.concat(chunks).toString()) }));
});
