// Peers of others with ACP's terminals: the SDK as an agent against the terminal host and behind
// the proxy, the SDK and acpx as clients of an agent that links the library. Every message of ours
// is checked against the schema that comes with the SDK.
// usage: NACRE=build/nacre node acp.mjs
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as acp from '@agentclientprotocol/sdk';
import { serveTerminals } from './acp_terminals.mjs';
import { checkAside, checkHosting, listenAt, sleep, start, until, validateLines } from './acp_wire.mjs';

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const nacre = resolve(process.env.NACRE ?? join(here, '../../build/nacre'));
const cAgent = join(dirname(nacre), 'tests/programs/acp-agent');
const sdkAgent = join(here, 'acp_sdk_agent.mjs');
const base = mkdtempSync(join(tmpdir(), 'nacre-acp-'));
const env = { ...process.env, HOME: base, NACRE_HOME: join(base, 'nacre'),
  NACRE_KEEPER: join(dirname(nacre), 'nacre-keeper') };
const where = { env, cwd: base };
const { agent: toAgent, client: toClient } = acp.methods;

const code = (wanted) => (error) => error.code === wanted;

// -- The SDK as an agent, against the host --------------------------------------------------------

async function host() {
  const program = start(nacre, ['acp-terminals'], where);
  const { client } = acp.agent({ name: 'agent' }).connect(program.stream);
  const create = (line, more = {}) => client.createTerminal(
    { sessionId: 'a', command: '/bin/sh', args: ['-c', line], cwd: base, ...more });

  const done = await create('echo out; echo $WHO; pwd; exec >&2; echo err; exit 7',
    { env: [{ name: 'WHO', value: 'me' }] });
  assert.deepEqual(await done.waitForExit(), { exitCode: 7, signal: null });
  assert.deepEqual(await done.currentOutput(),
    { output: `out\nme\n${base}\nerr\n`, truncated: false, exitStatus: { exitCode: 7, signal: null } });
  await done.release();
  await assert.rejects(done.currentOutput(), code(-32002));
  await assert.rejects(done.kill(), code(-32002));

  const killed = await create('echo before; exec sleep 300');
  let seen;
  await until(() => (killed.currentOutput().then((r) => { seen = r; }), seen?.output === 'before\n'), 'output');
  assert.equal(seen.exitStatus ?? null, null);
  await killed.kill();
  assert.deepEqual(await killed.waitForExit(), { exitCode: null, signal: 'SIGTERM' });
  assert.equal((await killed.currentOutput()).output, 'before\n');
  await killed.release();

  const waited = await create('exec sleep 300');
  const waiting = waited.waitForExit();
  await waited.release();
  assert.equal((await waiting).exitCode, null);

  const cancelled = await create('exec sleep 300');
  const abort = new AbortController();
  const wait = client.request(toClient.terminal.waitForExit,
    { sessionId: 'a', terminalId: cancelled.id }, { cancellationSignal: abort.signal });
  abort.abort();
  await assert.rejects(wait, code(-32800));
  await cancelled.release();

  // Over the limit at each byte of a character: never half of one, never more than asked for.
  for (let outputByteLimit = 0; outputByteLimit <= 9; outputByteLimit++) {
    const cut = await create("printf 'ab\\360\\237\\220\\232\\360\\237\\220\\232'", { outputByteLimit });
    await cut.waitForExit();
    const { output, truncated } = await cut.currentOutput();
    const size = Buffer.byteLength(output);
    assert.equal(truncated, true);
    assert.ok(size <= outputByteLimit && size > outputByteLimit - 4 && 'ab🐚🐚'.endsWith(output));
    await cut.release();
  }

  const line = await client.createTerminal({ sessionId: 'a', command: 'echo a | tr a b && exit 3' });
  assert.equal((await line.waitForExit()).exitCode, 3);
  assert.equal((await line.currentOutput()).output, 'b\n');
  await line.release();

  await assert.rejects(client.createTerminal({ sessionId: 'a', command: 'no-such-program' }), code(-32603));
  await assert.rejects(create('true', { cwd: '/no/such/directory' }), code(-32603));
  await assert.rejects(create('true', { cwd: 'relative' }), code(-32602));
  await assert.rejects(client.request('terminal/create', { sessionId: 'a' }), code(-32602));
  await assert.rejects(client.request('terminal/output', { sessionId: 'b', terminalId: line.id }), code(-32002));

  await Promise.all(Array.from({ length: 24 }, async (_, i) => {
    const many = await create(`head -c 1000000 /dev/zero | tr '\\0' ${i % 10}; exit ${i}`);
    assert.equal((await many.waitForExit()).exitCode, i);
    assert.equal((await many.currentOutput()).output, String(i % 10).repeat(1000000));
    await many.release();
  }));
  await program.end();
  assert.ok(validateLines(program.said, program.heard) > 100);
}

// -- The SDK on both sides of the proxy -----------------------------------------------------------

function connectClient(program, { terminals, refusals, permission } = {}) {
  const seen = [], updates = [], shouts = [];
  const app = acp.client({ name: 'client' })
    .onNotification(toClient.session.update, ({ params }) => { updates.push(params); })
    .onNotification('_shout', (value) => value, ({ params }) => { shouts.push(params); })
    .onRequest('_echo_back', (value) => value, ({ params }) => params);
  if (terminals)
    serveTerminals(app, seen, refusals);
  if (permission)
    app.onRequest(toClient.session.requestPermission, ({ params }) => permission(params));
  const { agent } = app.connect(program.stream);
  const said = (sessionId) => updates.filter((u) => u.sessionId === sessionId
    && u.update.sessionUpdate === 'agent_message_chunk').map((u) => u.update.content.text).join('');
  return {
    agent, seen, updates, shouts, said,
    async open(more = {}) {
      const greeting = await agent.request(toAgent.initialize, { protocolVersion: 1,
        clientCapabilities: { ...(terminals && { terminal: true }) } });
      const { sessionId } = await agent.request(toAgent.session.new, { cwd: base, mcpServers: [], ...more });
      return { greeting, sessionId };
    },
    prompt: (sessionId, text) => agent.request(toAgent.session.prompt,
      { sessionId, prompt: [{ type: 'text', text }] }),
  };
}

// A program with what it says and hears written down; `command` are it and its arguments.
function startAt(place) {
  const [command, ...args] = place.command;
  return start(command, args, where);
}

// The proxy with an ear on either side of it.
function betweenEars(agent, options = []) {
  const inner = listenAt(base, agent);
  const outer = listenAt(base, [nacre, 'acp-proxy', ...options, '--', ...inner.command]);
  return { inner, outer };
}

async function proxy() {
  const { inner, outer } = betweenEars([process.execPath, sdkAgent]);
  const program = startAt(outer);
  const client = connectClient(program);
  const { greeting } = await client.open();
  assert.deepEqual(greeting._meta, { terminals: true });
  const newSession = async () =>
    (await client.agent.request(toAgent.session.new, { cwd: base, mcpServers: [] })).sessionId;

  await Promise.all(Array.from({ length: 12 }, async (_, i) => {
    const sessionId = await newSession();
    const big = i % 3 === 0;
    const text = big ? `head -c 1048576 /dev/zero | tr '\\0' x; exit ${i}` : `echo ${i}; exit ${i}`;
    assert.deepEqual(await client.prompt(sessionId, text), { stopReason: 'end_turn' });
    const result = JSON.parse(client.said(sessionId));
    assert.equal(result.exitCode, i);
    assert.equal(result.output, big ? 'x'.repeat(1048576) : `${i}\n`);
    assert.equal(result.truncated, false);
  }));
  await Promise.all(Array.from({ length: 8 }, async (_, i) => {
    const sessionId = await newSession();
    const text = `say ${i}${'ü'.repeat(600000)}`;
    await client.prompt(sessionId, text);
    assert.equal(client.said(sessionId), text);
    const value = { i, text: 'y'.repeat(1 << 20), nested: [null, 1.5, { a: true }] };
    assert.deepEqual(await client.agent.request('_echo', value), value);
  }));
  assert.equal(client.shouts.length, 8);
  const sessionId = await newSession();
  await client.prompt(sessionId, 'refusals');
  assert.deepEqual(JSON.parse(client.said(sessionId)), { codes: { program: -32603, cwd: -32602,
    params: -32602, unknown: -32002, method: -32601, cancelled: -32800, released: -32002 },
    exitStatus: { exitCode: null, signal: 'SIGTERM' } });
  assert.deepEqual(program.terminalRequests(), [], 'the client was asked for a terminal');
  await program.end();
  const answers = checkHosting(outer, inner);
  assert.equal(answers.filter((answer) => answer.error).length, 7);
  assert.ok(answers.length > 50);
}

// A client that has terminals keeps them, and gets what the agent asks for as it was asked.
async function proxyAside() {
  const { inner, outer } = betweenEars([process.execPath, sdkAgent]);
  const program = startAt(outer);
  const client = connectClient(program, { terminals: true });
  const { sessionId } = await client.open();
  await client.prompt(sessionId, 'echo mine; exit 2');
  assert.deepEqual(JSON.parse(client.said(sessionId)),
    { exitCode: 2, signal: null, output: 'mine\n', truncated: false });
  assert.deepEqual(client.seen, ['create', 'wait_for_exit', 'output', 'release']);
  await program.end();
  checkAside(outer, inner);
}

// Unless it is told to serve all the same: then the client's own are never asked for.
async function proxyAlways() {
  const { inner, outer } = betweenEars([process.execPath, sdkAgent], ['--always']);
  const program = startAt(outer);
  const client = connectClient(program, { terminals: true });
  const { sessionId } = await client.open();
  await client.prompt(sessionId, 'echo ours; exit 2');
  assert.equal(JSON.parse(client.said(sessionId)).output, 'ours\n');
  assert.deepEqual(client.seen, []);
  await program.end();
  assert.equal(checkHosting(outer, inner).length, 4);
}

// What the rules leave open the proxy asks for, and the agent hears only of what came of it.
async function proxyAsks() {
  const outer = listenAt(base, [nacre, 'acp-proxy', '--', process.execPath, sdkAgent]);
  const [command, ...args] = outer.command;
  const rules = JSON.stringify([{ ask: ['mkdir'] }]);
  const program = start(command, args, { ...where, env: { ...env, NACRE_POLICY: rules } });
  const outcomes = [{ outcome: 'selected', optionId: 'once' }, { outcome: 'selected', optionId: 'no' },
    { outcome: 'cancelled' }, { outcome: 'selected', optionId: 'session' }];
  const asked = [];
  const client = connectClient(program, { permission: (params) => {
    asked.push(params);
    return { outcome: outcomes[asked.length - 1] };
  } });
  const { sessionId } = await client.open();
  await client.prompt(sessionId, 'mkdir asked-1; echo made');
  assert.match(client.said(sessionId), /"output":"made/);
  await assert.rejects(client.prompt(sessionId, 'mkdir asked-2'));
  await assert.rejects(client.prompt(sessionId, 'mkdir asked-2'));
  await client.prompt(sessionId, 'mkdir -p asked-3');
  await client.prompt(sessionId, 'mkdir -p asked-3');
  assert.equal(asked.length, 4);
  assert.ok(asked.every((params) => params.sessionId === sessionId));
  assert.deepEqual(asked[0].options.map(({ kind }) => kind),
    ['allow_once', 'allow_always', 'reject_once', 'reject_always']);
  assert.match(asked[0].toolCall.content[0].content.text, /mkdir asked-1/);
  assert.ok(existsSync(join(base, 'asked-1')) && existsSync(join(base, 'asked-3')));
  assert.ok(!existsSync(join(base, 'asked-2')));
  await program.end();
  validateLines([], outer.messages('server').filter(({ id }) => `${id}`.startsWith('nacre-ask-')));
}

// -- The SDK as a client of an agent that links the library ---------------------------------------

// Its polls come when they come: of several in a row, one is left.
const order = (seen) => seen.filter((name, i) => name !== 'output' || seen[i - 1] !== 'output').join(' ');
const finish = (client, sessionId) => ({ sessionId, text: client.said(sessionId),
  run: client.updates.map((u) => u.update.rawOutput?.['nacre/run']).filter(Boolean).at(-1) });

async function backend() {
  const program = start(cAgent, [], where);
  const client = connectClient(program, { terminals: true });
  const { sessionId } = await client.open();
  const tool = (name, args) => client.prompt(sessionId, JSON.stringify({ tool: name, arguments: args }));

  assert.deepEqual(await client.prompt(sessionId, 'echo out; echo err >&2; exit 7'), { stopReason: 'end_turn' });
  let result = finish(client, sessionId);
  assert.equal(result.run.exit_code, 7);
  assert.equal(result.run.containment, 'client');
  assert.match(result.text, /out\nerr\n/);
  assert.equal(order(client.seen), 'create wait_for_exit output release');
  const embedded = program.said.findIndex((m) => m.params?.update?.content?.[0]?.type === 'terminal');
  const released = program.said.findIndex((m) => m.method === 'terminal/release');
  assert.ok(embedded >= 0 && embedded < released, 'the terminal is shown before its release');

  client.seen.length = 0;
  await tool('bash', { command: 'echo partly; exec sleep 300', timeout: 0.5 });
  result = finish(client, sessionId);
  assert.equal(result.run.timed_out, true);
  assert.match(result.text, /partly/);
  assert.match(order(client.seen), /^create wait_for_exit.* kill output release$/);

  client.seen.length = 0;
  const prompt = client.prompt(sessionId, 'exec sleep 300');
  await until(() => client.seen.includes('wait_for_exit'), 'wait_for_exit');
  await client.agent.notify(toAgent.session.cancel, { sessionId });
  assert.deepEqual(await prompt, { stopReason: 'cancelled' });
  assert.match(order(client.seen), / kill( output)?( release)?$/);

  await client.prompt(sessionId, 'kill -9 $$');
  assert.equal(finish(client, sessionId).run.signal, 'SIGKILL');
  await until(() => client.seen.filter((name) => name === 'release').length === 2, 'every release');

  client.seen.length = 0;
  await tool('bash', { command: 'true', cwd: '/' });
  assert.match(client.said(sessionId), /outside the workspace/);
  await tool('bash', { command: 'true', cwd: join(base, 'missing') });
  assert.match(client.said(sessionId), /the client refuses terminal\/create/);
  assert.deepEqual(client.seen, ['create']);

  await tool('bash', { command: "yes 'a line that repeats' | head -c 6000000" });
  assert.equal(finish(client, sessionId).run.exit_code, 0);
  await tool('recall', { pattern: '^err$' });
  assert.match(client.said(sessionId), /err\n/);
  await tool('bash', { command: 'echo later; exit 5', background: true });
  await until(() => client.said(sessionId).includes('later'), 'the background shell');
  await tool('list_shells', {});
  assert.match(client.said(sessionId), /exited\(5\)/);

  await client.prompt(sessionId, 'echo still connected');
  assert.match(client.said(sessionId), /still connected/);
  await program.end();
  assert.ok(validateLines(program.said, program.heard) > 30);
}

async function backendRefused() {
  const program = start(cAgent, [], where);
  const client = connectClient(program, { terminals: true,
    refusals: { create: 'the user said no' } });
  const { sessionId } = await client.open();
  await client.prompt(sessionId, 'true');
  assert.match(client.said(sessionId), /the user said no/);
  await program.end();
}

async function backendWithout() {
  const program = start(cAgent, [], where);
  const client = connectClient(program);
  const { sessionId } = await client.open();
  await client.prompt(sessionId, 'echo here; exit 4');
  const { run: record, text } = finish(client, sessionId);
  assert.equal(record.exit_code, 4);
  assert.notEqual(record.containment, 'client');
  assert.match(text, /here/);
  assert.deepEqual(program.terminalRequests(), []);
  await program.end();
  validateLines(program.said, program.heard);
}

async function backendAbandoned() {
  const program = start(cAgent, [], where);
  const client = connectClient(program, { terminals: true });
  const { sessionId } = await client.open();
  client.prompt(sessionId, 'exec sleep 5').catch(() => {});
  await until(() => client.seen.includes('wait_for_exit'), 'the command');
  program.child.stdin.destroy();
  assert.deepEqual(await program.ended, { code: 0, signal: null });
}

// -- acpx -----------------------------------------------------------------------------------------

// A prompt to the agent that is started in `place`. What the agent itself said is written down there.
async function acpx(place, options, prompt) {
  const { stdout } = await run(process.execPath,
    [join(here, 'node_modules/acpx/dist/cli.js'), '--agent', place.command.join(' '), '--cwd', base,
      '--approve-all', '--format', 'json', ...options, 'exec', prompt],
    { ...where, timeout: 60000, maxBuffer: 1 << 26 });
  const messages = stdout.trim().split('\n').map((line) => JSON.parse(line));
  const updates = messages.filter((m) => m.method === 'session/update').map((m) => m.params.update);
  return {
    asked: messages.filter((m) => m.method?.startsWith('terminal/')).map((m) => m.method.slice(9)),
    run: updates.map((u) => u.rawOutput?.['nacre/run']).find(Boolean),
    text: updates.filter((u) => u.sessionUpdate === 'agent_message_chunk').map((u) => u.content.text).join(''),
    stop: messages.at(-1).result?.stopReason,
  };
}

// What the C agent wrote, in a place where it is the server.
const validateAt = (place) => validateLines(place.messages('server'), place.messages('client'));

async function acpxWith() {
  const place = listenAt(base, [cAgent]);
  const result = await acpx(place, [], 'echo in a terminal; exit 3');
  assert.equal(order(result.asked), 'create wait_for_exit output release');
  assert.equal(result.run.containment, 'client');
  assert.equal(result.run.exit_code, 3);
  assert.match(result.text, /in a terminal/);
  assert.equal(result.stop, 'end_turn');
  assert.ok(validateAt(place) >= 11);
}

async function acpxTimeout() {
  const place = listenAt(base, [cAgent]);
  const result = await acpx(place, [], JSON.stringify({ tool: 'bash',
    arguments: { command: 'echo partly; exec sleep 300', timeout: 0.5 } }));
  assert.match(order(result.asked), /^create wait_for_exit.* kill output release$/);
  assert.equal(result.run.timed_out, true);
  assert.match(result.text, /partly/);
  assert.ok(validateAt(place) >= 12);
}

async function acpxWithout() {
  const place = listenAt(base, [cAgent]);
  const result = await acpx(place, ['--no-terminal'], 'echo at home; exit 3');
  assert.deepEqual(result.asked, []);
  assert.notEqual(result.run.containment, 'client');
  assert.equal(result.run.exit_code, 3);
  assert.match(result.text, /at home/);
  assert.ok(validateAt(place) >= 6);
}

// The terminals are the proxy's: acpx has none, and is not asked for any.
async function acpxProxied() {
  const { inner, outer } = betweenEars([cAgent]);
  const result = await acpx(outer, ['--no-terminal'], 'echo between; exit 6');
  assert.deepEqual(result.asked, []);
  assert.equal(result.run.containment, 'client');
  assert.equal(result.run.exit_code, 6);
  assert.match(result.text, /between/);
  assert.ok(checkHosting(outer, inner).length >= 4);
  assert.ok(validateAt(inner) >= 11);
}

// -- All ------------------------------------------------------------------------------------------

const cases = {
  'sdk agent, host': host,
  'sdk agent, proxy': proxy,
  'sdk agent, client with terminals': proxyAside,
  'sdk agent, proxy in any case': proxyAlways,
  'sdk agent, proxy, client is asked': proxyAsks,
  'sdk client, backend': backend,
  'sdk client, refused': backendRefused,
  'sdk client, no terminals': backendWithout,
  'sdk client, goes away': backendAbandoned,
  'acpx, terminals': acpxWith,
  'acpx, timeout': acpxTimeout,
  'acpx, no terminals': acpxWithout,
  'acpx, proxy': acpxProxied,
};

mkdirSync(env.NACRE_HOME, { recursive: true });
const wanted = process.argv[2];
let failed = 0, passed = 0;
for (const [name, test] of Object.entries(cases).filter(([name]) => !wanted || name.includes(wanted))) {
  const began = performance.now();
  const limit = sleep(60000).then(() => { throw new Error('it takes more than a minute'); });
  limit.catch(() => {});
  try {
    await Promise.race([test(), limit]);
    passed++;
    console.log(`ok     ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}\n${error.stack ?? error}\n${error.stderr ?? ''}`);
  }
}
rmSync(base, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
