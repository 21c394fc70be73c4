// Programs that speak ACP over pipes, with every line between them and their peer kept; the check of
// what they said against the JSON schema that comes with the SDK, and of what a proxy let through.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Readable, Transform, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as acp from '@agentclientprotocol/sdk';

const require = createRequire(import.meta.url);
const Ajv = require('ajv/dist/2020.js').default;
const addFormats = require('ajv-formats').default;

// -- The schema -----------------------------------------------------------------------------------

const schemaFile = new URL('node_modules/@agentclientprotocol/sdk/schema/v1/schema.json',
  import.meta.url);
const schema = JSON.parse(readFileSync(schemaFile));
const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
for (const [name, bits] of [['uint16', 16], ['uint32', 32], ['uint64', 64]])
  ajv.addFormat(name, { type: 'number', validate: (n) => Number.isInteger(n) && n >= 0 && n < 2 ** bits });
ajv.addSchema(schema, 'acp');

function validator(method, kind) {
  const name = Object.keys(schema.$defs).find((key) =>
    schema.$defs[key]['x-method'] === method && key.endsWith(kind));
  assert.ok(name, `the schema has no ${kind} of ${method}`);
  return ajv.getSchema(`acp#/$defs/${name}`);
}

function check(validate, value, what) {
  assert.ok(validate(value),
    `${what}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value).slice(0, 500)}`);
}

// Checks all messages of `ours`; `theirs` are those of the other side, to which some are answers.
// Every answer is to a request, and the only one. Returns how many there were.
export function validateLines(ours, theirs) {
  const asked = new Map(theirs.filter((m) => m.method && m.id !== undefined)
    .map((m) => [JSON.stringify(m.id), m.method]));
  const answered = new Set();
  for (const message of ours) {
    assert.equal(message.jsonrpc, '2.0');
    if (message.method) {
      check(validator(message.method, message.id === undefined ? 'Notification' : 'Request'),
        message.params, message.method);
      continue;
    }
    const id = JSON.stringify(message.id), method = asked.get(id);
    assert.ok(method, `an answer to nobody: ${JSON.stringify(message).slice(0, 200)}`);
    assert.ok(!answered.has(id), `a second answer to ${method}`);
    answered.add(id);
    assert.notEqual('result' in message, 'error' in message, 'an answer is a result or an error');
    if (message.error)
      check(ajv.getSchema('acp#/$defs/Error'), message.error, `the error of ${method}`);
    else
      check(validator(method, 'Response'), message.result, `the answer to ${method}`);
  }
  return ours.length;
}

// -- What tee.mjs wrote down ----------------------------------------------------------------------

const teeProgram = fileURLToPath(new URL('tee.mjs', import.meta.url));

// A place to listen: `command` is what is started in the place of `program`.
export function listenAt(base, program) {
  const folder = mkdtempSync(join(base, 'wire-'));
  return {
    command: [process.execPath, teeProgram, folder, ...program],
    // The lines that a side wrote, "client" or "server".
    lines(side) {
      const names = readdirSync(folder);
      assert.equal(names.length, 1, 'one connection was written down');
      return readFileSync(join(folder, names[0]), 'utf8').split('\n').slice(0, -1)
        .map((entry) => JSON.parse(entry)).filter(({ from }) => from === side).map(({ line }) => line);
    },
    messages(side) { return this.lines(side).map((line) => JSON.parse(line)); },
  };
}

const asksForTerminal = ({ method }) => method?.startsWith('terminal/');

// What a proxy did between two places, of which the outer one is the client's: every line passed as
// it was written and in its order, but for `initialize`, which says one thing more, the requests for
// terminals, what cancels one of these, and the proxy's answers. What is the proxy's own word is
// valid. Returns the answers.
export function checkHosting(outer, inner) {
  const [greeting, ...sent] = outer.lines('client');
  const [rewritten, ...heard] = inner.lines('client');
  const expected = JSON.parse(greeting), first = JSON.parse(rewritten);
  assert.equal(expected.method, 'initialize');
  expected.params.clientCapabilities = { ...expected.params.clientCapabilities, terminal: true };
  assert.deepEqual(first, expected);
  const own = [];
  for (const line of heard) {
    if (line === sent[0])
      sent.shift();
    else
      own.push(JSON.parse(line));
  }
  assert.deepEqual(sent, [], 'lines of the client that did not pass');
  const requests = inner.messages('server').filter(asksForTerminal);
  const ids = new Set(requests.map(({ id }) => id));
  const cancelsOne = ({ method, params }) => method === '$/cancel_request' && ids.has(params.requestId);
  assert.deepEqual(outer.lines('server'), inner.lines('server').filter((line) => {
    const message = JSON.parse(line);
    return !asksForTerminal(message) && !cancelsOne(message);
  }));
  validateLines([first, ...own], requests);
  assert.equal(own.length, requests.length, 'each request for a terminal was answered');
  return own;
}

// The same of a proxy that stays out of the way: nothing was changed, and nothing said.
export function checkAside(outer, inner) {
  assert.deepEqual(inner.lines('client'), outer.lines('client'));
  assert.deepEqual(outer.lines('server'), inner.lines('server'));
}

// -- Programs -------------------------------------------------------------------------------------

// A stream that passes bytes on and keeps the messages in them.
function tee(messages) {
  let rest = '';
  const decoder = new TextDecoder();
  return new Transform({
    transform(chunk, encoding, done) {
      rest += decoder.decode(chunk, { stream: true });
      const lines = rest.split('\n');
      rest = lines.pop();
      messages.push(...lines.filter((line) => line.trim()).map((line) => JSON.parse(line)));
      done(null, chunk);
    },
  });
}

// A program whose peer is an SDK connection in this process. said: what it said; heard: what it
// was told.
export function start(command, args, options) {
  const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
  const said = [], heard = [];
  const input = tee(heard), output = tee(said);
  input.pipe(child.stdin);
  child.stdin.on('error', () => {});
  child.stdout.pipe(output);
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })));
  const stream = acp.ndJsonStream(Writable.toWeb(input), Readable.toWeb(output));
  return {
    child, said, heard, ended, stream,
    async end(code = 0) {
      input.end();
      assert.deepEqual(await ended, { code, signal: null });
    },
    terminalRequests: () => said.filter((m) => m.method?.startsWith('terminal/')).map((m) => m.method.slice(9)),
  };
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export async function until(condition, what, ms = 10000) {
  for (const end = Date.now() + ms; !condition(); await sleep(5))
    assert.ok(Date.now() < end, `${what} did not come true`);
}
