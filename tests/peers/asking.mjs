// Clients of the official SDKs whose person is asked: in both eras, over stdio and over HTTP. What
// they were shown is a form; what came of it is the result of the call.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { textOf } from './stage.mjs';

export const rules = JSON.stringify([{ ask: ['mkdir'] }]);
const capabilities = { elicitation: {} };

const answers = [
  [{ action: 'accept', content: { decision: 'once' } }, /Exit code: 0/],
  [{ action: 'accept', content: { decision: 'no' } }, /said no/],
  [{ action: 'decline' }, /said no/],
  [{ action: 'cancel' }, /did not answer/],
];

// One after the other, and then two at once whose answers come in the other order.
async function answerAll(stage, person, call) {
  for (const [n, [answer, says]] of answers.entries()) {
    const name = `${stage.next}-${n}`;
    person.answer = async ({ message, requestedSchema }) => {
      assert.match(message, new RegExp(`^May this command run\\?\n\nmkdir ${name}\n`));
      assert.deepEqual(requestedSchema.properties.decision.enum, ['once', 'session', 'no']);
      return answer;
    };
    assert.match(textOf(await call(`mkdir ${name}`)), says);
    assert.equal(existsSync(join(stage.cwd, name)), n === 0);
  }
  const waiting = {};
  person.answer = ({ message }) => new Promise((resolve) => {
    waiting[/mkdir (\w+)/.exec(message)[1]] = resolve;
    if (!waiting.wanted || !waiting.unwanted) return;
    waiting.unwanted({ action: 'decline' });
    waiting.wanted({ action: 'accept', content: { decision: 'once' } });
  });
  const [wanted, unwanted] = await Promise.all([call('mkdir wanted'), call('mkdir unwanted')]);
  assert.match(textOf(wanted), /Exit code: 0/);
  assert.match(textOf(unwanted), /said no/);
  assert.ok(existsSync(join(stage.cwd, 'wanted')) && !existsSync(join(stage.cwd, 'unwanted')));
}

export async function askedV1(stage) {
  const person = {};
  const client = new ClientV1({ name: 'peers', version: '1' }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => person.answer(params));
  await client.connect(stage.where
    ? new HttpV1(stage.url('asked-v1'), { requestInit: { headers: stage.headers } })
    : new StdioV1(stage.server));
  stage.next = 'v1';
  await answerAll(stage, person, (command) =>
    client.callTool({ name: 'bash', arguments: { command } }));
  await client.close();
}

export function askedV2(mode, revision) {
  return async (stage) => {
    const person = {};
    const client = new v2.Client({ name: 'peers', version: '1' }, { capabilities,
      versionNegotiation: { mode }, ...revision && { supportedProtocolVersions: [revision] } });
    client.setRequestHandler('elicitation/create', ({ params }) => person.answer(params));
    await client.connect(stage.where
      ? new v2.StreamableHTTPClientTransport(stage.url(`asked-${revision ?? 'modern'}`),
        { requestInit: { headers: stage.headers } })
      : new StdioV2(stage.server));
    stage.next = revision ?? 'modern';
    await answerAll(stage, person, (command) =>
      client.callTool({ name: 'bash', arguments: { command } }));
    await client.close();
  };
}
