// Records a session between a client and an agent made with the SDK, as they wrote it: each line
// with who said it, "c" the client or "a" the agent, in front. The replay through the proxy uses it.
// usage: node acp_record.mjs > ../features/acp_session.jsonl
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Readable, Transform, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { serveTerminals } from './acp_terminals.mjs';
import { until } from './acp_wire.mjs';

const recorded = [];

function record(who) {
  let rest = '';
  return new Transform({
    transform(chunk, encoding, done) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      recorded.push(...lines.map((line) => `${who}${line}\n`));
      done(null, chunk);
    },
  });
}

const child = spawn(process.execPath, [fileURLToPath(new URL('acp_sdk_agent.mjs', import.meta.url))],
  { stdio: ['pipe', 'pipe', 'inherit'] });
const down = record('c'), up = record('a');
down.pipe(child.stdin);
child.stdout.pipe(up);

const app = acp.client({ name: 'recorder' })
  .onNotification(acp.methods.client.session.update, () => {})
  .onNotification('_shout', (value) => value, () => {})
  .onRequest('_echo_back', (value) => value, ({ params }) => params);
const seen = [];
serveTerminals(app, seen);
const { agent } = app.connect(acp.ndJsonStream(Writable.toWeb(down), Readable.toWeb(up)));
const { initialize, session } = acp.methods.agent;
await agent.request(initialize, { protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: true }, terminal: true } });
const open = async () => (await agent.request(session.new, { cwd: '/project', mcpServers: [] })).sessionId;
const prompt = (sessionId, text) => agent.request(session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
const one = await open(), two = await open();
await prompt(one, 'echo terminal/create in an output; exit 3');
await Promise.all([prompt(one, 'sleep 0.2; printf "tab\\there \\342\\202\\254\\n"'), prompt(two, 'no-such-program-at-all'),
  prompt(two, 'say terminal/create \u{1f41a} "quoted" \\ \u0001')]);
await agent.request('_echo', { method: 'terminal/output', 'terminal/kill': [1.50, -0, 1e21, null], text: '\u2028' });
const endless = prompt(two, 'exec sleep 2');
await until(() => seen.filter((name) => name === 'wait_for_exit').length === 4, 'the last command');
await agent.notify(session.cancel, { sessionId: two });
await endless;
await agent.request('session/unknown', {}).catch(() => {});
down.end();
await new Promise((done) => child.on('exit', done));
process.stdout.write(recorded.join(''));
