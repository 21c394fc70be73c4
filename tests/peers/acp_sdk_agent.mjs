// An agent made with the SDK, for the other side of the proxy. What it is prompted with it runs in
// a terminal, if it was told that there are any, and says what came of it; `refusals` makes it ask
// for what must be refused. Two extensions go both ways: _echo answers what it is given, _shout is a
// notification.
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

let terminals = false;
const any = (value) => value;

async function run(client, sessionId, line) {
  const terminal = await client.createTerminal(
    { sessionId, command: '/bin/sh', args: ['-c', line], outputByteLimit: 4 << 20 });
  await client.notify(acp.methods.client.session.update, {
    sessionId,
    update: { sessionUpdate: 'tool_call', toolCallId: terminal.id, title: line.slice(0, 40),
      kind: 'execute', status: 'in_progress', content: [{ type: 'terminal', terminalId: terminal.id }] },
  });
  const { exitCode, signal } = await terminal.waitForExit();
  const { output, truncated } = await terminal.currentOutput();
  await terminal.release();
  return JSON.stringify({ exitCode, signal, output, truncated });
}

// Everything that can go wrong with a terminal, and what the client says to it.
async function refusals(client, sessionId) {
  const { create, output, waitForExit } = acp.methods.client.terminal;
  const codes = {};
  const ask = async (name, method, params, options) => {
    codes[name] = await client.request(method, params, options).then(() => 'none', (error) => error.code);
  };
  await ask('program', create, { sessionId, command: 'no-such-program' });
  await ask('cwd', create, { sessionId, command: 'true', cwd: 'relative' });
  await ask('params', 'terminal/create', { sessionId });
  await ask('unknown', output, { sessionId, terminalId: 'nobody' });
  await ask('method', 'terminal/resize', { sessionId });
  const terminal = await client.createTerminal({ sessionId, command: 'echo before; exec sleep 300' });
  const abort = new AbortController();
  const waiting = ask('cancelled', waitForExit, { sessionId, terminalId: terminal.id },
    { cancellationSignal: abort.signal });
  abort.abort();
  await waiting;
  await terminal.kill();
  const { exitStatus } = await terminal.currentOutput();
  await terminal.release();
  await ask('released', output, { sessionId, terminalId: terminal.id });
  return JSON.stringify({ codes, exitStatus });
}

const app = acp.agent({ name: 'sdk-agent' })
  .onRequest(acp.methods.agent.initialize, ({ params }) => {
    terminals = params.clientCapabilities?.terminal === true;
    return { protocolVersion: 1, agentCapabilities: {}, authMethods: [], _meta: { terminals } };
  })
  .onRequest(acp.methods.agent.session.new, () => ({ sessionId: `s-${Math.random()}` }))
  .onRequest(acp.methods.agent.session.prompt, async ({ params, client }) => {
    const text = params.prompt[0].text;
    const answer = !terminals || text.startsWith('say ') ? text
      : text === 'refusals' ? await refusals(client, params.sessionId)
        : await run(client, params.sessionId, text);
    await client.notify(acp.methods.client.session.update, {
      sessionId: params.sessionId,
      update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: answer } },
    });
    return { stopReason: 'end_turn' };
  })
  .onRequest('_echo', any, async ({ params, client }) => {
    await client.notify('_shout', params);
    return client.request('_echo_back', params);
  });

const connection = app.connect(
  acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await connection.closed;
