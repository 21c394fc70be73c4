// Programs that speak ACP over pipes, with every line between them and their peer kept; and the
// check of what they said against the JSON schema that comes with the SDK.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Readable, Transform, Writable } from 'node:stream';
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
// Returns how many there were.
export function validateLines(ours, theirs) {
  const asked = new Map(theirs.filter((m) => m.method && m.id !== undefined)
    .map((m) => [JSON.stringify(m.id), m.method]));
  for (const message of ours) {
    assert.equal(message.jsonrpc, '2.0');
    if (message.method) {
      check(validator(message.method, message.id === undefined ? 'Notification' : 'Request'),
        message.params, message.method);
    } else if (message.error) {
      check(ajv.getSchema('acp#/$defs/Error'), message.error, 'an error');
      assert.equal(message.result, undefined);
    } else {
      const method = asked.get(JSON.stringify(message.id));
      assert.ok(method, `an answer to nobody: ${JSON.stringify(message).slice(0, 200)}`);
      check(validator(method, 'Response'), message.result, `the answer to ${method}`);
    }
  }
  return ours.length;
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
