// The clients of the official SDKs, each in the revisions that it speaks: all that a client can do
// with the server, through the client's own methods.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2024 } from 'sdk-2024-11-05/client/index.js';
import { StdioClientTransport as Stdio2024 } from 'sdk-2024-11-05/client/stdio.js';
import { CallToolResultSchema } from 'sdk-2024-11-05/types.js';
import { textOf, tools, until } from './stage.mjs';

const modern = '2026-07-28';

// One client at work. call(name, args, options) is what the SDKs have each in its own way; `watch`
// subscribes to a resource, which the eras have each in its own way.
class Work {
  constructor(stage, client, call, watch) {
    Object.assign(this, { stage, client, call, watch });
    this.errors = [];
    this.heard = [];
    client.onerror = (error) => this.errors.push(error);
    client.fallbackNotificationHandler = async (notification) => { this.heard.push(notification); };
  }

  async doAll() {
    await this.listTools();
    await this.runCommands();
    await this.followShell();
    await this.hearProgress();
    await this.cancel();
    await this.hearCompletion();
    assert.deepEqual(this.errors, []);
  }

  async listTools() {
    const listed = await this.client.listTools();
    assert.deepEqual(listed.tools.map((tool) => tool.name), tools);
  }

  async runCommands() {
    const result = await this.call('bash', { command: 'echo out; echo err >&2; exit 7' });
    assert.equal(result.isError, false);
    assert.match(textOf(result), /^Exit code: 7\n--- stderr \(1 line\) ---\n/);
    assert.equal(result._meta['nacre/run'].exit_code, 7);
    const wrong = await this.call('bash', { command: 'true', timeout: 'abc' });
    assert.equal(wrong.isError, true);
    assert.match(textOf(wrong), /timeout/);
    await assert.rejects(this.call('no_such_tool', {}), (error) => error.code === -32602);
    await assert.rejects(this.client.readResource({ uri: 'nacre://run/none/log' }));
  }

  async followShell() {
    const started = await this.call('bash', { background: true, keep_stdin: true,
      command: 'echo ready; read x; echo got $x; sleep 60' });
    const { id } = started._meta['nacre/run'];
    await this.call('bash_input', { id, input: 'word\n' });
    const news = await this.call('bash_output', { id, until: 'got word', wait: 30 });
    assert.match(textOf(news), /got word/);
    await this.useResources(id);
    assert.match(textOf(await this.call('kill_shell', { id })), /^killed background shell/m);
  }

  async useResources(id) {
    const uri = `nacre://run/${id}/log`;
    const { resources } = await this.client.listResources();
    assert.ok(resources.some((resource) => resource.uri === uri));
    const { resourceTemplates } = await this.client.listResourceTemplates();
    assert.equal(resourceTemplates.length, 2);
    const log = await this.client.readResource({ uri });
    assert.equal(log.contents[0].text, 'ready\ngot word\n');
    const completed = await this.client.complete({
      ref: { type: 'ref/resource', uri: 'nacre://run/{id}/log' },
      argument: { name: 'id', value: id.slice(0, 4) },
    });
    assert.deepEqual(completed.completion.values, [id]);
  }

  async hearProgress() {
    const heard = [];
    const enough = join(this.stage.cwd, 'enough');
    const command = `echo compiling; until [ -e ${enough} ]; do sleep 0.05; done`;
    await this.call('bash', { command },
      { onprogress: (progress) => { heard.push(progress); writeFileSync(enough, ''); } });
    assert.ok(heard.length > 0);
    assert.ok(heard[0].progress > 0);
    // The SDK of 2024 drops what its revision did not have.
    assert.equal(heard[0].message ?? 'compiling', 'compiling');
  }

  async cancel() {
    const abort = new AbortController();
    const mark = join(this.stage.cwd, 'cancelled');
    const command = `echo $$ >${mark}.new; mv ${mark}.new ${mark}; sleep 30`;
    const waiting = this.call('bash', { command }, { signal: abort.signal });
    await until(() => existsSync(mark));
    abort.abort();
    await assert.rejects(waiting);
    await this.stage.assertDies(mark);
    const after = await this.call('recall', { pattern: 'nothing-like-this' });
    assert.ok(after.content.length > 0);
  }

  // Once in front of an answer; and to who asked for it, by a notification.
  async hearCompletion() {
    const go = join(this.stage.cwd, 'go');
    const started = await this.call('bash', { background: true,
      command: `until [ -e ${go} ]; do sleep 0.05; done` });
    const { id } = started._meta['nacre/run'];
    const uri = `nacre://run/${id}/summary`;
    await this.watch(uri);
    writeFileSync(go, '');
    await until(() => this.heard.some(({ method, params }) =>
      method === 'notifications/resources/updated' && params.uri === uri));
    const announced = `[Background task ${id.slice(0, 8)}`;
    const told = await until(async () => {
      const text = textOf(await this.call('list_shells', {}));
      return text.includes(announced) && text;
    });
    assert.equal(told.split(announced).length, 2);
    assert.ok(!textOf(await this.call('list_shells', {})).includes(announced));
  }
}

// -- The SDKs -------------------------------------------------------------------------------------

async function useLegacy(work, revision) {
  const { client } = work;
  assert.equal(client.getServerVersion().name, 'nacre');
  await client.ping();
  await client.setLoggingLevel('info');
  await work.doAll();
  assert.ok(work.heard.some(({ method }) => method === 'notifications/message'));
  const said = work.stage.where ? client.transport.protocolVersion
    : work.stage.messages('server')[0].result.protocolVersion;
  assert.equal(said, revision);
  if (client.transport.terminateSession) await client.transport.terminateSession();
  await client.close();
}

const httpOptions = (stage) => ({ requestInit: { headers: stage.headers } });

const transportV2 = (stage) => (stage.where
  ? new v2.StreamableHTTPClientTransport(stage.url(`v2-${stage.next = (stage.next ?? 0) + 1}`),
    httpOptions(stage))
  : new StdioV2(stage.server));

export async function sdk2024(stage) {
  const client = new Client2024({ name: 'peers', version: '1' }, { capabilities: {} });
  const work = new Work(stage, client, (name, args, options) =>
    client.callTool({ name, arguments: args }, CallToolResultSchema, options),
  (uri) => client.subscribeResource({ uri }));
  await client.connect(new Stdio2024(stage.server));
  await useLegacy(work, '2024-11-05');
}

export async function sdkV1(stage) {
  const client = new ClientV1({ name: 'peers', version: '1' });
  const work = new Work(stage, client, (name, args, options) =>
    client.callTool({ name, arguments: args }, undefined, options),
  (uri) => client.subscribeResource({ uri }));
  await client.connect(stage.where ? new HttpV1(stage.url('v1'), httpOptions(stage))
    : new StdioV1(stage.server));
  await useLegacy(work, '2025-11-25');
}

function workOfV2(stage, options) {
  const client = new v2.Client({ name: 'peers', version: '1' }, options);
  return new Work(stage, client,
    (name, args, callOptions) => client.callTool({ name, arguments: args }, callOptions),
    (uri) => (client.getNegotiatedProtocolVersion() === modern
      ? client.listen({ resourceSubscriptions: [uri] }) : client.subscribeResource({ uri })));
}

export function sdkV2Legacy(revision) {
  return async (stage) => {
    const work = workOfV2(stage, { versionNegotiation: { mode: 'legacy' },
      supportedProtocolVersions: [revision] });
    await work.client.connect(transportV2(stage));
    assert.equal(work.client.getNegotiatedProtocolVersion(), revision);
    await useLegacy(work, revision);
  };
}

export function sdkV2Modern(mode) {
  return async (stage) => {
    const work = workOfV2(stage, { versionNegotiation: { mode } });
    await work.client.connect(transportV2(stage));
    assert.equal(work.client.getNegotiatedProtocolVersion(), modern);
    await work.doAll();
    await work.client.close();
  };
}
