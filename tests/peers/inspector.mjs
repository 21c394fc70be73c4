// The Inspector without its window, in both eras: its one-shot client (inspector --cli), and the
// one that keeps connections (mcpdo). The first has no way to cancel a call but to leave; the second
// cancels it on the connection when whoever asked is interrupted. Neither shows anybody the progress
// it asked for; what came of that is looked up on the wire.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { textOf, tools, until } from './stage.mjs';

const run = promisify(execFile);
const folder = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/inspector');
const { bin } = JSON.parse(readFileSync(join(folder, 'package.json')));

// -- One call each --------------------------------------------------------------------------------

const oneShot = (stage, era, ...args) => [
  join(folder, bin.inspector), '--cli', stage.command, ...stage.args, '--transport', 'stdio',
  '--connect-timeout', '60000', '--protocol-era', era, '--format', 'json', ...args];

async function inspect(stage, era, ...args) {
  const { stdout } = await run(process.execPath, oneShot(stage, era, ...args),
    { env: stage.env, cwd: stage.cwd, timeout: 60000 });
  const answer = JSON.parse(stdout);
  return answer.result ?? answer;
}

async function callOnce(stage, era) {
  const listed = await inspect(stage, era, '--strict', '--method', 'tools/list');
  assert.deepEqual(listed.tools.map((tool) => tool.name), tools);
  const result = await inspect(stage, era, '--method', 'tools/call', '--tool-name', 'bash',
    '--tool-arg', 'command=echo inspected; exit 4');
  assert.match(textOf(result), /^Exit code: 4\n/);
  assert.match(textOf(result), /inspected/);
}

// Whoever leaves in the middle of a call leaves nothing running.
async function leave(stage, era) {
  const mark = join(stage.cwd, 'left');
  const client = spawn(process.execPath, oneShot(stage, era, '--method', 'tools/call',
    '--tool-name', 'bash', '--tool-arg',
    `command=echo $$ >${mark}.new; mv ${mark}.new ${mark}; sleep 30`),
  { env: stage.env, cwd: stage.cwd, stdio: 'ignore' });
  const gone = new Promise((done) => client.on('exit', done));
  await until(() => existsSync(mark));
  client.kill('SIGINT');
  await gone;
  await stage.assertDies(mark);
}

// -- One connection -------------------------------------------------------------------------------

class Connection {
  static async open(stage, era) {
    const connection = new Connection();
    connection.options = {
      env: { ...stage.env, MCP_INSPECTOR_SECRET_STORE: 'file', TMPDIR: stage.cwd },
      cwd: stage.cwd, timeout: 60000 };
    const { stdout } = await connection.run('private');
    for (const [, name, value] of stdout.matchAll(/^export (\w+)='(.*)'$/gm)) {
      connection.options.env[name] = value;
    }
    const made = await connection.ask('connect', '--connection', 'nacre', '--era', era, '--cwd',
      stage.cwd, '--connect-timeout', '60000', '--transport', 'stdio', '--', stage.command,
      ...stage.args);
    assert.equal(made.protocolEra, era);
    return connection;
  }

  run(...args) {
    return run(process.execPath, [join(folder, bin.mcpdo), ...args], this.options);
  }

  async ask(...args) {
    const { stdout } = await this.run('--format', 'json', ...args);
    return JSON.parse(stdout);
  }

  call(name, args, ...more) {
    return this.ask('@nacre', 'tools/call', ...more, '--', name, JSON.stringify(args));
  }

  // The same by somebody at a terminal: only those are taken to have left when they are interrupted.
  begin(name, args) {
    const seat = 'import os, pty, sys; master, slave = pty.openpty(); '
      + 'os.set_inheritable(master, True); os.dup2(slave, 0); os.execv(sys.argv[1], sys.argv[1:])';
    return spawn('python3', ['-c', seat, process.execPath, join(folder, bin.mcpdo), '--format',
      'text', '@nacre', 'tools/call', '--', name, JSON.stringify(args)],
    { ...this.options, stdio: 'ignore' });
  }

  async close() {
    await this.run('daemon', 'stop');
  }
}

async function followShell(connection) {
  const started = await connection.call('bash', { background: true, keep_stdin: true,
    command: 'echo ready; read x; echo got $x; sleep 60' });
  const { id } = started._meta['nacre/run'];
  await connection.call('bash_input', { id, input: 'word\n' });
  const news = await connection.call('bash_output', { id, until: 'got word', wait: 30 });
  assert.match(textOf(news), /got word/);
  const log = await connection.ask('@nacre', 'resources/read', `nacre://run/${id}/log`);
  assert.equal(log.contents[0].text, 'ready\ngot word\n');
  const completed = await connection.ask('@nacre', 'prompts/complete', '--complete-ref-type',
    'ref/resource', '--complete-ref', 'nacre://run/{id}/log', '--complete-arg-name', 'id',
    '--complete-arg-value', id.slice(0, 4));
  assert.deepEqual((completed.completion ?? completed).values, [id]);
  assert.match(textOf(await connection.call('kill_shell', { id })), /^killed background shell/m);
}

async function hearProgress(connection, stage) {
  await connection.call('bash', { command: 'echo compiling; sleep 1.4' },
    '--tool-metadata', 'progressToken=mine');
  const heard = stage.messages('server').filter(({ method, params }) =>
    method === 'notifications/progress' && params.progressToken === 'mine');
  assert.ok(heard.some(({ params }) => params.message === 'compiling'));
}

// Whoever asked is interrupted; the connection stays, and the call is cancelled on it.
async function cancelCall(connection, stage) {
  const mark = join(stage.cwd, 'cancelled');
  const caller = connection.begin('bash', { command:
    `echo $$ >${mark}.new; mv ${mark}.new ${mark}; sleep 20; touch ${mark}.finished` });
  const gone = new Promise((done) => caller.on('exit', done));
  await until(() => existsSync(mark));
  const isCall = ({ message: { method, params } }) =>
    method === 'tools/call' && params.arguments?.command?.includes(mark);
  const said = () => stage.connections().find((entries) => entries.some(isCall));
  const { id } = said().find(isCall).message;
  caller.kill('SIGINT');
  await gone;
  await until(() => said().some(({ message: { method, params } }) =>
    method === 'notifications/cancelled' && params.requestId === id));
  await stage.assertDies(mark);
  assert.match(textOf(await connection.call('bash', { command: 'echo next' })), /next/);
  assert.ok(!said().some(({ from, message }) => from === 'server' && message.id === id));
  assert.ok(!existsSync(`${mark}.finished`));
}

async function hearCompletion(connection, stage) {
  const mark = join(stage.cwd, 'ended');
  const started = await connection.call('bash', { background: true,
    command: `sleep 0.4; touch ${mark}` });
  await until(() => existsSync(mark));
  const announced = `[Background task ${started._meta['nacre/run'].id.slice(0, 8)}`;
  await until(async () =>
    textOf(await connection.call('list_shells', {})).includes(announced));
  assert.ok(!textOf(await connection.call('list_shells', {})).includes(announced));
}

export function inspector(era) {
  return async (stage) => {
    await callOnce(stage, era);
    await leave(stage, era);
    const connection = await Connection.open(stage, era);
    try {
      await followShell(connection);
      await hearProgress(connection, stage);
      await cancelCall(connection, stage);
      await hearCompletion(connection, stage);
    } finally {
      await connection.close();
    }
  };
}
