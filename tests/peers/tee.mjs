// Stands between a client and a server on stdio and writes down every line of both, in the order in
// which it saw them: {"from":"client"|"server","line":"..."} in a file of its own in FOLDER.
// usage: node tee.mjs FOLDER PROGRAM [ARGUMENT...]
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const [folder, program, ...args] = process.argv.slice(2);
const record = openSync(join(folder, `${process.pid}.jsonl`), 'ax');
const server = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });

// A line is written down before it is passed on, so no answer comes before its request.
function pass(from, source, sink) {
  let parts = []; // of the line that is under way
  const note = () => {
    writeSync(record, JSON.stringify({ from, line: Buffer.concat(parts).toString() }) + '\n');
    parts = [];
  };
  source.on('data', (chunk) => {
    let start = 0;
    for (let end; (end = chunk.indexOf(10, start)) >= 0; start = end + 1) {
      parts.push(chunk.subarray(start, end));
      note();
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
    sink.write(chunk);
  });
  source.on('end', () => {
    if (parts.length > 0) note();
    sink.end();
  });
  sink.on('error', () => {});
}

pass('client', process.stdin, server.stdin);
pass('server', server.stdout, process.stdout);
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => server.kill(signal));
server.on('exit', (code) => { process.exitCode = code ?? 1; });
server.on('close', () => process.exit());
