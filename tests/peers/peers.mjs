// The clients of others against `nacre mcp`: each lists the tools, runs commands, follows a
// background shell, cancels, hears of progress, and is told of a completion. All of them check what
// they receive against their own schemas.
// usage: NACRE=build/nacre node peers.mjs
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const nacre = resolve(process.env.NACRE ?? join(here, '../../build/nacre'));
const inspector = join(here, 'node_modules/@modelcontextprotocol/inspector');
const tools = ['bash', 'bash_output', 'bash_input', 'kill_shell', 'list_shells', 'recall'];
const home = mkdtempSync(join(tmpdir(), 'nacre-peers-'));
const env = { ...process.env, NACRE_HOME: join(home, 'nacre') };
const server = { command: nacre, args: ['mcp'], env, cwd: home };

const textOf = (result) => result.content.map((item) => item.text).join('');
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// -- The SDKs -------------------------------------------------------------------------------------

// What both generations of the SDK do alike. call(name, args, options) is the only difference.
async function useAll(client, call) {
  const errors = [];
  client.onerror = (error) => errors.push(error);
  const listed = await client.listTools();
  assert.deepEqual(listed.tools.map((tool) => tool.name), tools);

  const result = await call('bash', { command: 'echo out; echo err >&2; exit 7' });
  assert.equal(result.isError, false);
  assert.match(textOf(result), /^Exit code: 7 \| stdout: 1 lines \| stderr: 1 lines\n/);
  assert.equal(result._meta['nacre/run'].exit_code, 7);

  const wrong = await call('bash', { command: 'true', timeout: 'abc' });
  assert.equal(wrong.isError, true);
  assert.match(textOf(wrong), /timeout/);
  await assert.rejects(call('no_such_tool', {}), (error) => error.code === -32602);

  await followShell(client, call);
  await hearProgress(call);
  await cancel(call);
  await hearCompletion(call);
  assert.deepEqual(errors, []);
}

async function followShell(client, call) {
  const started = await call('bash', { command: 'echo ready; read x; echo got $x; sleep 60',
    background: true, keep_stdin: true });
  const id = started._meta['nacre/run'].id;
  assert.match(textOf(started), /ready/);
  await call('bash_input', { id, input: 'word\n' });
  const news = await call('bash_output', { id, until: 'got word', wait: 10 });
  assert.match(textOf(news), /got word/);
  const resources = (await client.listResources()).resources.map((resource) => resource.uri);
  assert.ok(resources.includes(`nacre://run/${id}/log`));
  const log = await client.readResource({ uri: `nacre://run/${id}/log` });
  assert.equal(log.contents[0].text, 'ready\ngot word\n');
  const completed = await client.complete({
    ref: { type: 'ref/resource', uri: 'nacre://run/{id}/log' },
    argument: { name: 'id', value: id.slice(0, 4) },
  });
  assert.deepEqual(completed.completion.values, [id]);
  assert.match(textOf(await call('kill_shell', { id })), /^killed background shell/m);
}

async function hearProgress(call) {
  const heard = [];
  await call('bash', { command: 'echo compiling; sleep 1.4' },
    { onprogress: (progress) => heard.push(progress) });
  assert.equal(heard[0]?.message, 'compiling');
}

async function cancel(call) {
  const abort = new AbortController();
  const mark = join(home, `cancelled-${Math.random()}`);
  const waiting = call('bash', { command: `touch ${mark}; sleep 30; rm ${mark}` },
    { signal: abort.signal });
  while (!existsSync(mark)) await sleep(20);
  abort.abort();
  await assert.rejects(waiting);
  const after = await call('recall', { pattern: 'nothing-like-this' });
  assert.ok(after.content.length > 0);
}

async function hearCompletion(call) {
  const started = await call('bash', { command: 'sleep 0.5; echo ended', background: true });
  const id = started._meta['nacre/run'].id.slice(0, 8);
  const told = [];
  for (let i = 0; i < 100 && told.length === 0; i++) {
    const text = textOf(await call('list_shells', {}));
    told.push(...text.split('\n').filter((line) => line.startsWith(`[Background task ${id}`)));
    await sleep(30);
  }
  assert.equal(told.length, 1);
  assert.doesNotMatch(textOf(await call('list_shells', {})), /\[Background task/);
}

async function sdkV1() {
  const client = new ClientV1({ name: 'peers', version: '1' });
  await client.connect(new StdioV1({ ...server, stderr: 'inherit' }));
  assert.equal(client.getServerVersion().name, 'nacre');
  await client.ping();
  await client.setLoggingLevel('info');
  await useAll(client, (name, args, options) =>
    client.callTool({ name, arguments: args }, undefined, options));
  await client.close();
}

function sdkV2(mode, era) {
  return async () => {
    const client = new v2.Client({ name: 'peers', version: '1' },
      { versionNegotiation: { mode } });
    await client.connect(new StdioV2({ ...server, stderr: 'inherit' }));
    assert.equal(client.getNegotiatedProtocolVersion(), era);
    await useAll(client, (name, args, options) => client.callTool({ name, arguments: args }, options));
    await client.close();
  };
}

// -- The inspector --------------------------------------------------------------------------------

async function inspect(era, ...args) {
  const bin = JSON.parse(readFileSync(join(inspector, 'package.json'))).bin;
  const program = join(inspector, typeof bin === 'string' ? bin : Object.values(bin)[0]);
  const { stdout } = await run(process.execPath,
    [program, '--cli', nacre, 'mcp', '--transport', 'stdio', '--protocol-era', era, ...args],
    { env, cwd: home, timeout: 30000 });
  return JSON.parse(stdout);
}

function inspectorIn(era) {
  return async () => {
    const listed = await inspect(era, '--strict', '--method', 'tools/list');
    assert.deepEqual(listed.tools.map((tool) => tool.name), tools);
    const result = await inspect(era, '--method', 'tools/call', '--tool-name', 'bash',
      '--tool-arg', 'command=echo inspected; exit 4');
    assert.match(textOf(result), /^Exit code: 4 /);
    assert.match(textOf(result), /inspected/);
    const templates = await inspect(era, '--method', 'resources/templates/list');
    assert.equal(templates.resourceTemplates.length, 2);
  };
}

// -- All ------------------------------------------------------------------------------------------

const cases = {
  'sdk 1, legacy': sdkV1,
  'sdk 2, legacy': sdkV2('legacy', '2025-11-25'),
  'sdk 2, auto': sdkV2('auto', '2026-07-28'),
  'sdk 2, pinned to 2026-07-28': sdkV2({ pin: '2026-07-28' }, '2026-07-28'),
  'inspector, legacy': inspectorIn('legacy'),
  'inspector, modern': inspectorIn('modern'),
};

let failed = 0;
await Promise.all(Object.entries(cases).map(async ([name, test]) => {
  const began = performance.now();
  try {
    await test();
    console.log(`ok     ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}\n${error.stack ?? error}\n${error.stderr ?? ''}`);
  }
}));
rmSync(home, { recursive: true, force: true });
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
