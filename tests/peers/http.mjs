// The clients of others against `nacre serve`: the SDKs of both lines and the Inspector in both eras,
// and the official conformance suite. That tests tools, resources and prompts of fixed names, which
// a server of shells has no use for: a server made of the same objects, with another table
// (tests/programs/everything), passes all that is scored, and nacre fails what its file names. What
// passes and is named, or fails and is not, is a fault.
// usage: NACRE=build/nacre node http.mjs
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { askedV1, askedV2, rules } from './asking.mjs';
import { sdkV1, sdkV2Legacy, sdkV2Modern } from './sdk.mjs';
import { HttpStage, removeStages, textOf, tools } from './stage.mjs';

const run = promisify(execFile);
const here = import.meta.dirname;

const programOf = (name, command) => {
  const folder = join(here, 'node_modules', name);
  return join(folder, JSON.parse(readFileSync(join(folder, 'package.json'))).bin[command]);
};

function inspector(era) {
  return async (stage) => {
    const inspect = async (...args) => {
      const { stdout } = await run(process.execPath, [
        programOf('@modelcontextprotocol/inspector', 'mcp-inspector'), '--cli',
        String(stage.url(`inspector-${era}`)), '--transport', 'http', '--header',
        `Authorization: Bearer ${stage.token}`, '--connect-timeout', '60000', '--protocol-era', era,
        '--format', 'json', ...args], { env: stage.env, cwd: stage.cwd, timeout: 90000 });
      const answer = JSON.parse(stdout);
      return answer.result ?? answer;
    };
    const listed = await inspect('--strict', '--method', 'tools/list');
    assert.deepEqual(listed.tools.map((tool) => tool.name), tools);
    const result = await inspect('--method', 'tools/call', '--tool-name', 'bash', '--tool-arg',
      'command=echo inspected; exit 4');
    assert.match(textOf(result), /^Exit code: 4\b/);
    assert.match(textOf(result), /inspected/);
  };
}

// Its clients cannot show a token. Without a file of what fails nothing may.
function conformance(revision, failing, passing) {
  return async (stage) => {
    const { stdout } = await run(process.execPath, [
      programOf('@modelcontextprotocol/conformance', 'conformance'), 'server', '--url',
      String(new URL('/mcp', stage.where)), '--requirements', revision,
      ...(failing ? ['--expected-failures', join(here, failing)] : [])],
    { env: stage.env, cwd: stage.cwd, timeout: 120000, maxBuffer: 1 << 26 }).catch((error) => {
      const lines = String(error.stdout).split('\n');
      const from = lines.findIndex((line) => line.includes('=== SUMMARY'));
      throw new Error(`${lines.slice(Math.max(from, 0)).join('\n')}\n${error.stderr}`);
    });
    for (const name of passing) assert.match(stdout, new RegExp(`✓ ${name}: [1-9]`), name);
  };
}

const programs = join(process.env.NACRE, '..', 'tests', 'programs');
const everything = () => HttpStage.openWith(join(programs, 'mcp-everything'),
  join(here, '..', 'programs', 'everything', 'everything.json'));
const shells = () => HttpStage.open('--no-token');

const cases = {
  'sdk 1, 2025-11-25': sdkV1,
  'sdk 2, legacy, 2025-03-26': sdkV2Legacy('2025-03-26'),
  'sdk 2, legacy, 2025-06-18': sdkV2Legacy('2025-06-18'),
  'sdk 2, legacy, 2025-11-25': sdkV2Legacy('2025-11-25'),
  'sdk 2, auto': sdkV2Modern('auto'),
  'sdk 2, pinned to 2026-07-28': sdkV2Modern({ pin: '2026-07-28' }),
  'asked, sdk 1, 2025-11-25': askedV1,
  'asked, sdk 2, 2025-06-18': askedV2('legacy', '2025-06-18'),
  'asked, sdk 2, 2026-07-28': askedV2({ pin: '2026-07-28' }),
  'inspector, legacy': inspector('legacy'),
  'inspector, modern': inspector('modern'),
  'conformance, 2025-11-25': conformance('2025-11-25', 'conformance-2025-11-25.yml',
    ['server-initialize', 'ping', 'tools-list', 'server-sse-multiple-streams',
      'dns-rebinding-protection', 'server-session-lifecycle']),
  'conformance, 2026-07-28': conformance('2026-07-28', 'conformance-2026-07-28.yml',
    ['tools-list', 'caching', 'http-header-validation', 'dns-rebinding-protection',
      'sep-2164-resource-not-found']),
  'conformance of everything, 2025-11-25': conformance('2025-11-25', null,
    ['tools-call-sampling', 'elicitation-sep1330-enums', 'server-sse-polling']),
  'conformance of everything, 2026-07-28': conformance('2026-07-28', 'everything-2026-07-28.yml',
    ['server-stateless', 'input-required-result-tampered-state', 'prompts-get-with-args']),
};

// Who serves a case; the others have a server of shells that wants a token.
const serverOf = (name) => (name.startsWith('asked') ? () => HttpStage.openRuled(rules)
  : name.startsWith('conformance of everything') ? everything
  : name.startsWith('conformance') ? shells : HttpStage.open);

const left = Object.entries(cases);
let failed = 0;

// Each with a server of its own, some at a time: they mostly wait.
async function work() {
  for (let next = left.shift(); next; next = left.shift()) {
    const [name, test] = next;
    const began = performance.now();
    const stage = await serverOf(name)();
    let fault;
    try {
      await test(stage);
      await stage.close();
    } catch (error) {
      fault = error.stack ?? error;
      stage.process.kill('SIGKILL');
      failed++;
    }
    console.log(`${fault ? 'FAILED' : 'ok    '} over HTTP: ${name}, `
      + `${((performance.now() - began) / 1000).toFixed(1)} s`);
    if (fault) console.log(fault);
  }
}
await Promise.all(Array.from({ length: 3 }, work));
await removeStages();
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
