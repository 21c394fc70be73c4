// The terminals of a client in JavaScript: what an editor has. It keeps the end of the output at a
// character, and can be told to refuse.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { RequestError, methods } from '@agentclientprotocol/sdk';

class Terminal {
  constructor({ command, args = [], env = [], cwd, outputByteLimit }) {
    this.limit = outputByteLimit ?? 1 << 20;
    this.output = Buffer.alloc(0);
    this.truncated = false;
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    this.child = spawn(command, args,
      { cwd, env: { ...process.env, ...variables }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.started = new Promise((resolve, reject) => {
      this.child.once('spawn', resolve);
      this.child.once('error', reject);
    });
    this.exit = new Promise((resolve) => {
      this.child.once('close', (exitCode, signal) => resolve(this.status = { exitCode, signal }));
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.on('data', (chunk) => this.keep(chunk));
  }

  keep(chunk) {
    this.output = Buffer.concat([this.output, chunk]);
    if (this.output.length <= this.limit)
      return;
    let start = this.output.length - this.limit;
    while (start < this.output.length && (this.output[start] & 0xc0) === 0x80)
      start++;
    this.output = this.output.subarray(start);
    this.truncated = true;
  }

  kill() {
    if (this.status)
      return;
    try {
      process.kill(-this.child.pid, 'SIGTERM');
    } catch {
      // It has gone by itself.
    }
  }
}

// Adds the handlers to a client app; `seen` gets the names of the methods in their order.
export function serveTerminals(app, seen, refusals = {}) {
  const terminals = new Map();
  const find = (id) => {
    const terminal = terminals.get(id);
    if (!terminal)
      throw RequestError.resourceNotFound(id);
    return terminal;
  };
  const on = (method, handler) => app.onRequest(method, async ({ params }) => {
    const name = method.slice('terminal/'.length);
    seen.push(name);
    if (refusals[name])
      throw new RequestError(-32603, refusals[name]);
    return handler(params);
  });
  const { create, output, waitForExit, kill, release } = methods.client.terminal;
  on(create, async (params) => {
    const terminal = new Terminal(params), terminalId = randomUUID();
    await terminal.started;
    terminals.set(terminalId, terminal);
    return { terminalId };
  });
  on(output, ({ terminalId }) => {
    const { output: bytes, truncated, status } = find(terminalId);
    return { output: bytes.toString(), truncated, ...(status && { exitStatus: status }) };
  });
  on(waitForExit, ({ terminalId }) => find(terminalId).exit);
  on(kill, ({ terminalId }) => (find(terminalId).kill(), {}));
  on(release, async ({ terminalId }) => {
    const terminal = find(terminalId);
    terminals.delete(terminalId);
    terminal.kill();
    await terminal.exit;
    return {};
  });
  return terminals;
}
