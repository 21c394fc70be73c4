// What no client library would send, in each revision: the answers are errors, and valid ones.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const prefix = 'io.modelcontextprotocol/';
const modernMeta = (revision) => ({
  [`${prefix}protocolVersion`]: revision, [`${prefix}clientCapabilities`]: {} });

class Line {
  constructor(stage) {
    this.server = spawn(stage.command, stage.args,
      { env: stage.env, cwd: stage.cwd, stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface({ input: this.server.stdout })[Symbol.asyncIterator]();
    this.id = 0;
  }

  async read() {
    return JSON.parse((await this.lines.next()).value);
  }

  // Sends what need not be JSON, and returns the next message.
  send(line) {
    this.server.stdin.write(`${line}\n`);
    return this.read();
  }

  async ask(method, params, id = ++this.id) {
    const answer = await this.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    assert.deepEqual(answer.id, id);
    return answer;
  }

  async close() {
    this.server.stdin.end();
    const status = await new Promise((done) => this.server.on('exit', done));
    assert.equal(status, 0);
  }
}

async function expect(code, answer) {
  assert.equal((await answer).error?.code, code);
}

// Requests that are wrong in any revision. `meta` makes them those of one.
async function askWrongly(line, meta, isModern) {
  const params = (own) => (meta ? { ...own, _meta: meta } : own);
  await expect(-32601, line.ask('no/such/method', params({})));
  await expect(-32602, line.ask('tools/list', params({ cursor: 'nowhere' })));
  await expect(-32602, line.ask('tools/call', params({ name: 5 })));
  await expect(-32602, line.ask('tools/call', params({ name: 'bash', arguments: [] })));
  await expect(isModern ? -32602 : -32002,
    line.ask('resources/read', params({ uri: 'nacre://run/none/log' })));
  await expect(-32602, line.ask('completion/complete', params({ ref: { type: 'ref/none' } })));
  const answer = await line.ask('tools/list', params({}), 'an id of text');
  assert.ok(answer.result.tools.length > 0);
}

// What is no request at all. Its answers have no id, or the null of JSON-RPC where errors need one.
async function sendGarbage(line, revision) {
  for (const [code, text] of [[-32700, '{"jsonrpc":'], [-32700, '[[[['], [-32600, '5'],
    [-32600, '[]'], [-32600, '{"jsonrpc":"1.0","method":"ping"}'],
    [-32600, '{"jsonrpc":"2.0","id":null,"method":"ping"}']]) {
    const answer = await line.send(text);
    assert.equal(answer.error?.code, code, text);
    assert.ok(revision < '2025-11-25' ? answer.id == null : !('id' in answer), text);
  }
}

// Its answers come together or one by one, in any order.
async function sendBatch(line) {
  const ping = (id) => ({ jsonrpc: '2.0', id, method: 'ping' });
  const answers = [await line.send(JSON.stringify([ping('b1'), ping('b2')]))].flat();
  if (answers.length < 2) answers.push(await line.read());
  assert.deepEqual(answers.map((answer) => answer.id).sort(), ['b1', 'b2']);
}

export function strangerOf(revision) {
  return async (stage) => {
    const line = new Line(stage);
    const { result } = await line.ask('initialize', { protocolVersion: revision, capabilities: {},
      clientInfo: { name: 'stranger', version: '1' } });
    assert.equal(result.protocolVersion, revision);
    await askWrongly(line, undefined, false);
    await expect(-32602, line.ask('logging/setLevel', { level: 'loud' }));
    await sendGarbage(line, revision);
    if (revision === '2025-03-26') await sendBatch(line);
    await line.close();
  };
}

export async function modernStranger(stage) {
  const line = new Line(stage);
  const meta = modernMeta('2026-07-28');
  await askWrongly(line, meta, true);
  await expect(-32601, line.ask('ping', { _meta: meta }));
  await expect(-32601, line.ask('initialize', { _meta: meta }));
  await expect(-32022, line.ask('tools/list', { _meta: modernMeta('2099-01-01') }));
  await expect(-32602, line.ask('tools/list',
    { _meta: { [`${prefix}protocolVersion`]: '2026-07-28' } }));
  await expect(-32602, line.ask('subscriptions/listen', { _meta: meta }));
  await sendGarbage(line, '2026-07-28');
  await line.close();
}
