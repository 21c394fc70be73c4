// Where a client meets the server: a directory and a home of its own, and the folder in which
// everything that goes over the wire is written down.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const here = import.meta.dirname;
const nacre = resolve(process.env.NACRE ?? join(here, '../../build/nacre'));

const top = mkdtempSync(join(tmpdir(), 'nacre-peers-'));

export const tools = ['bash', 'bash_output', 'bash_input', 'kill_shell', 'list_shells', 'recall'];
export const textOf = (result) => result.content.map((item) => item.text).join('');

// Asks again until the answer is true.
export async function until(question) {
  for (let tries = 0; tries < 1500; tries++) {
    const answer = await question();
    if (answer) return answer;
    await sleep(20);
  }
  throw new Error(`never came true: ${question}`);
}

// What a server left to itself may still be at its last files.
export async function removeStages() {
  await until(() => {
    try {
      rmSync(top, { recursive: true, force: true });
      return true;
    } catch (error) {
      if (error.code !== 'ENOTEMPTY') throw error;
      return false;
    }
  });
}

export class Stage {
  constructor() {
    this.cwd = mkdtempSync(join(top, 'stage-'));
    this.wire = join(this.cwd, 'wire');
    mkdirSync(this.wire);
    this.env = { ...process.env, HOME: this.cwd, NACRE_HOME: join(this.cwd, 'nacre') };
    this.command = process.execPath;
    this.args = [join(here, 'tee.mjs'), this.wire, nacre, 'mcp'];
  }

  // What a client is told to start.
  get server() {
    return { command: this.command, args: this.args, env: this.env, cwd: this.cwd,
      stderr: 'inherit' };
  }

  // What went over the wire so far: of each connection, who said what.
  connections() {
    return readdirSync(this.wire).map((name) =>
      readFileSync(join(this.wire, name), 'utf8').split('\n').slice(0, -1).map((entry) => {
        const { from, line } = JSON.parse(entry);
        return { from, message: JSON.parse(line) };
      }));
  }

  // The messages of one side, of all connections.
  messages(from) {
    return this.connections().flat().filter((entry) => entry.from === from)
      .map((entry) => entry.message);
  }

  // Whether the process whose id a command wrote into this file is gone.
  async assertDies(file) {
    const pid = Number(readFileSync(file, 'utf8'));
    assert.ok(pid > 0);
    await until(() => {
      try {
        process.kill(pid, 0);
        return false;
      } catch (error) {
        return error.code === 'ESRCH';
      }
    });
  }
}

// The same with a server over HTTP, which many clients can share.
export class HttpStage extends Stage {
  static open(...options) {
    return HttpStage.openWith(nacre, 'serve', '--listen', 'localhost:0', ...options);
  }

  // Where the rules leave something to a person.
  static openRuled(rules) {
    return HttpStage.start({ NACRE_POLICY: rules }, nacre, 'serve', '--listen', 'localhost:0');
  }

  static openWith(program, ...args) {
    return HttpStage.start({}, program, ...args);
  }

  static async start(env, program, ...args) {
    const stage = new HttpStage();
    Object.assign(stage.env, env);
    stage.process = spawn(program, args,
      { env: stage.env, cwd: stage.cwd, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(stage.process.stdout, 'data');
    stage.where = String(line).trim();
    try {
      stage.token = readFileSync(join(stage.env.NACRE_HOME, 'http-token'), 'utf8').trim();
    } catch {
      stage.token = '';
    }
    return stage;
  }

  url(name) {
    return new URL(`/mcp/${name}`, this.where);
  }

  get headers() {
    return { Authorization: `Bearer ${this.token}` };
  }

  async close() {
    this.process.kill('SIGTERM');
    const [status] = await once(this.process, 'exit');
    assert.equal(status, 0);
  }
}
