// The page of `nacre serve` in a real Chromium: everything on it is clicked, with commands, names and
// output that would harm a page that trusted them. No dialog may open, no script of a stranger run,
// nothing may be asked for elsewhere; a deliberate fault against the policy must be seen, or else
// nothing would be.
// usage: NACRE=build/nacre [NACRE_PICTURES=folder] [NACRE_ONLY=name] node page.mjs
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';
import { HttpStage, removeStages, until } from './stage.mjs';

const CHROMIUM = '/usr/bin/chromium';
const nacre = process.env.NACRE;

// -- The server, and what runs in its home --------------------------------------------------------

class PageStage extends HttpStage {
  static async open(config, listen = '127.0.0.1:0') {
    const stage = new PageStage();
    mkdirSync(stage.env.NACRE_HOME);
    stage.env.NACRE_CONFIG = join(stage.cwd, 'config.json');
    writeFileSync(stage.env.NACRE_CONFIG, JSON.stringify(config ?? {}));
    await stage.serve(listen);
    return stage;
  }

  async serve(listen) {
    this.process = spawn(nacre, ['serve', '--listen', listen],
      { env: this.env, cwd: this.cwd, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(this.process.stdout, 'data');
    this.where = String(line).trim();
    this.token = readFileSync(join(this.env.NACRE_HOME, 'http-token'), 'utf8').trim();
  }

  async stop() {
    this.process.kill('SIGTERM');
    await once(this.process, 'exit');
  }

  nacre(...args) {
    return execFileSync(nacre, args, { env: this.env, cwd: this.cwd, encoding: 'utf8' }).trim();
  }

  start(name, command, ...options) {
    return this.nacre('start', '--name', name, ...options, command);
  }

  link(...options) {
    return this.nacre('open', '--print', ...options);
  }

  async pass(...options) {
    const answer = await this.login(this.link(...options));
    return (await answer.json()).token;
  }

  login(link) {
    return fetch(`${this.where}/api/login`, { method: 'POST', body: new URL(link).hash.slice(1) });
  }

  ask(path, pass, options = {}) {
    return fetch(this.where + path, { ...options,
      headers: { ...(pass ? { Authorization: `Bearer ${pass}` } : {}), ...options.headers } });
  }

  post(path, pass, body, headers) {
    return this.ask(path, pass, { method: 'POST', body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers } });
  }

  // One message of MCP, of a client with a name.
  async call(id, method, params, session) {
    const answer = await this.post('/mcp', this.token, { jsonrpc: '2.0', id, method, params },
      { Accept: 'application/json, text/event-stream', ...(session ? { 'Mcp-Session-Id': session } : {}) });
    this.session = answer.headers.get('Mcp-Session-Id') ?? session;
    return answer.text();
  }

  async client(name) {
    await this.call(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name, version: '1' } });
    return this.session;
  }

  bash(session, command, more) {
    return this.call(2, 'tools/call', { name: 'bash', arguments: { command, run_in_background: true, ...more } }, session);
  }
}

// -- The browser ----------------------------------------------------------------------------------

let browser;
const profile = mkdtempSync(join(tmpdir(), 'nacre-chromium-'));

async function openBrowser() {
  browser = await puppeteer.launch({
    executablePath: CHROMIUM,
    headless: true,
    userDataDir: profile,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
  });
}

// A tab in which nothing bad goes unnoticed.
async function openTab(link, { width = 1280, height = 800 } = {}) {
  const page = await browser.newPage();
  page.bad = [];
  page.on('dialog', (dialog) => { page.bad.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on('pageerror', (error) => page.bad.push(`error ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(link).origin) && !request.url().startsWith('data:')) page.bad.push(`request ${request.url()}`);
  });
  await page.evaluateOnNewDocument(() => {
    globalThis.reports = [];
    addEventListener('securitypolicyviolation', (event) => reports.push(`${event.violatedDirective} ${event.blockedURI}`));
    globalThis.copied = 0;
    const clipboard = navigator.clipboard;
    if (clipboard) clipboard.writeText = async () => { copied++; };
    document.execCommand = () => { copied++; };
  });
  page.setDefaultTimeout(Number(process.env.NACRE_PAGE_MS ?? 20000));
  await page.setViewport({ width, height });
  await page.goto(link);
  await page.waitForFunction(() => document.querySelector('#link').className === 'up');
  return page;
}

async function assertClean(page) {
  assert.deepEqual(page.bad, []);
  assert.deepEqual(await page.evaluate(() => [reports, copied, globalThis.owned ?? null]), [[], 0, null]);
}

const has = (page, text, where = '#shell') => page.waitForFunction(
  (text, where) => document.querySelector(where)?.textContent.includes(text), {}, text, where);
const choose = async (page, id) => {
  await page.waitForSelector(`#row-${id}`);
  await page.click(`#row-${id}`);
};
const pressWhenIdle = (page, key) => page.keyboard.press(key);
const textAt = (page, where) => page.$eval(where, (node) => node.textContent);

// -- Cases ----------------------------------------------------------------------------------------

const cases = {
  async 'who is let in'(stage) {
    const id = stage.start('kept', 'exec sleep 300');
    assert.equal((await stage.ask('/api/state')).status, 401);
    assert.equal((await stage.ask(`/api/state?token=${stage.token}`)).status, 401);
    const link = stage.link();
    assert.equal((await stage.login(link)).status, 200);
    assert.equal((await stage.login(link)).status, 401, 'a code is good once');
    const late = stage.link();
    const codes = join(stage.env.NACRE_HOME, 'http-codes');
    for (const name of readdirSync(codes)) utimesSync(join(codes, name), Date.now() / 1000 - 61, Date.now() / 1000 - 61);
    assert.equal((await stage.login(late)).status, 401, 'and for a minute');
    assert.equal((await stage.login(`${stage.where}/#../../http-token`)).status, 401);

    const view = await stage.pass('--view'), act = await stage.pass();
    assert.equal((await stage.ask('/api/state', view)).status, 200);
    for (const deed of ['kill', 'signal', 'input', 'keep'])
      assert.equal((await stage.post(`/api/shells/${id}/${deed}`, view, { signal: 'SIGKILL', text: 'x' })).status, 403);
    assert.equal((await stage.post(`/api/asks/${id}`, view, { answer: 'once' })).status, 403);
    assert.match(stage.nacre('list', '--quiet'), new RegExp(id));
    assert.equal((await stage.post('/mcp', act, { jsonrpc: '2.0', id: 1, method: 'ping' })).status, 401, 'a pass is for the page alone');

    const port = new URL(stage.where).port;
    for (const [headers, status] of [
      [{ Origin: 'http://127.0.0.1:1' }, 403], [{ Origin: 'null' }, 403], [{ Origin: 'https://evil.example' }, 403],
      [{ Origin: `http://127.0.0.1:${port}` }, 204], [{ 'Sec-Fetch-Site': 'cross-site' }, 403], [{ 'Sec-Fetch-Site': 'same-site' }, 403],
    ]) assert.equal((await stage.post(`/api/shells/${id}/signal`, act, { signal: 'SIGCONT' }, headers)).status, status, JSON.stringify(headers));
    assert.equal((await stage.ask(`/api/shells/${id}/kill`, act, { method: 'POST', body: '{}', headers: { 'Content-Type': 'text/plain' } })).status, 415);
    assert.equal((await stage.ask('/', null, { headers: { Origin: 'http://evil.example' } })).status, 403);
    const root = await stage.ask('/');
    assert.match(root.headers.get('Content-Security-Policy'), /frame-ancestors 'none'; require-trusted-types-for 'script'$/);
    assert.ok(!(await root.text()).includes(id));
    assert.equal((await stage.ask('/app/main.js', null, { headers: { 'If-None-Match': (await stage.ask('/app/main.js')).headers.get('ETag') } })).status, 304);
    for (const path of ['/app/', '/app/none.js', '/app/../page.c', '/api/none', '/api/shells/x/output', `/api/shells/${id}/none`])
      assert.ok([400, 401, 404].includes((await stage.ask(path, act)).status), path);
    assert.equal((await stage.ask(`/api/shells/${'0'.repeat(32)}/output`, act)).status, 404);
    assert.equal((await stage.post('/api/watch', act, { stream: 1e15, shells: ['x'] })).status, 404);
    assert.equal((await stage.ask('/api/recall?q=%zz', act)).status, 400);
  },

  async 'shells and what they print'(stage) {
    const lines = stage.start('lines', 'i=0; while [ $i -lt 9000 ]; do echo "line $i of many words to fill a log"; i=$((i+1)); done; sleep 300');
    const live = stage.start('live', "printf '\\033[31mred\\033[0m plain\\n'; echo wrong >&2; while read -r x; do echo \"got $x\"; done", '--keep-stdin');
    const page = await openTab(stage.link());
    assert.equal(new URL(page.url()).hash, '', 'no code stays in the address');
    await choose(page, live);
    await has(page, 'red plain', '.lines');
    assert.equal(await page.$eval('.lines .coloured', (node) => node.textContent), 'red');
    assert.equal(await textAt(page, '.line.error'), 'wrong');
    await page.type('.input input', 'hello');
    await page.keyboard.press('Enter');
    await has(page, 'got hello', '.lines');
    assert.match(await page.$eval('.plot.cpu', (node) => node.getAttribute('aria-label') ?? ''), /^$|processor/);

    await choose(page, lines);
    await has(page, 'line 8999 of', '.lines');
    await page.focus('#list');
    await pressWhenIdle(page, 'g');
    await has(page, 'line 0 of', '.lines');
    await page.waitForFunction(() => document.querySelector('.newer').textContent.includes('more'));
    await pressWhenIdle(page, 'G');
    await has(page, 'line 8999 of', '.lines');
    // Scrolled up to byte 0, by hand.
    await page.waitForFunction(() => {
      document.querySelector('.output').scrollTop = 0;
      return document.querySelector('.lines').textContent.startsWith('line 0 of');
    }, { polling: 50 });
    assert.equal(await page.$$eval('.line', (all) => all.some((line, i) => i > 0 && line.textContent.startsWith('line 0 of'))), false);
    await page.type('.moment input', '1h');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('.line').textContent.startsWith('line 0 of'));

    await page.focus('#list');
    await pressWhenIdle(page, '/');
    await page.type('#query', 'LINE 4321 of');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.hit');
    await has(page, '1 line of 1', '#found');
    await page.click('.hit');
    await page.waitForFunction(() => document.querySelector('.line.marked')?.textContent.startsWith('line 4321 of'));
    await assertClean(page);
    await page.close();
  },

  async 'kill, signal, keep'(stage) {
    const session = await stage.client('agent one');
    await stage.bash(session, 'trap "echo heard" USR1; sleep 300 & while :; do wait; done', { name: 'worker' });
    const page = await openTab(stage.link());
    await page.waitForSelector('.row.alive');
    await has(page, 'agent one', '#sessions');
    await page.click('.row.alive');
    await page.select('select[aria-label="Send a signal"]', 'SIGUSR1');
    await has(page, 'heard', '.lines');
    await page.evaluate(() => [...document.querySelectorAll('#shell .actions button')].find((b) => b.textContent === 'keep').click());
    await has(page, 'kept', '.facts');
    // Enter leaves it alone.
    await page.focus('#list');
    await page.keyboard.press('x');
    await page.waitForSelector('#sure[open]');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => !document.querySelector('#sure').open);
    assert.equal(await textAt(page, '.badge'), 'running');
    await page.click('#shell .actions .danger');
    await page.waitForSelector('#sure[open]');
    await page.click('#sure .danger');
    await has(page, 'got the signal, 0 needed SIGKILL, 0 left', '#notices');
    await has(page, 'killed', '.badge');
    await assertClean(page);
    await page.close();

    // Who may look only has nothing to press.
    const viewer = await openTab(stage.link('--view'));
    await viewer.waitForSelector('.row');
    await viewer.click('.row');
    await has(viewer, 'worker');
    assert.equal(await viewer.$('#shell .danger'), null);
    await viewer.close();
  },

  async 'a terminal is shown and typed into'(stage) {
    const id = stage.nacre('start', '--tty', '--name', 'shell', "printf '\\033[7mtop\\033[0m\\n'; PS1='> ' exec sh");
    const page = await openTab(stage.link());
    await choose(page, id);
    await page.waitForFunction(() => document.querySelector('.screen-row .reverse')?.textContent === 'top');
    await page.click('.terminal');
    await page.keyboard.type("echo $((40+2)) 'x'");
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => [...document.querySelectorAll('.screen-row')].some((row) => row.textContent.startsWith('42 x')));
    // Keys of the page are keys of the shell there: an x ends nothing.
    await page.keyboard.type('x');
    assert.equal(await page.$('#sure[open]'), null);
    await page.keyboard.down('Control');
    await page.keyboard.press('c');
    await page.keyboard.up('Control');
    await page.waitForFunction(() => [...document.querySelectorAll('.screen-row')].some((row) => row.textContent.includes('> x')));
    await assertClean(page);
    await page.close();
  },

  async 'questions are answered, and never by accident'(stage) {
    const session = await stage.client('careful agent');
    const page = await openTab(stage.link());
    await page.focus('#list');
    await stage.call(3, 'tools/call', { name: 'bash', arguments: { command: "mkdir '<b>made\u202e'" } }, session);
    await page.waitForSelector('.ask');
    assert.match(await textAt(page, '.ask'), /careful agent/);
    assert.match(await textAt(page, '.ask .command'), /^mkdir '<b>made\\u/);
    assert.equal(await page.evaluate(() => document.activeElement.closest('.ask')), null, 'the focus stays');
    // At once nothing can be pressed; Enter answers nothing at any time.
    const states = await page.$$eval('.ask button', (all) => all.map((button) => button.disabled));
    assert.ok(states.length >= 3 && states.every((off) => off) || states.every((off) => !off));
    await page.waitForSelector('.ask button[data-answer="once"]:not(:disabled)');
    await page.focus('.ask button[data-answer="once"]');
    await page.keyboard.press('Enter');
    await sleep(100);
    assert.ok(await page.$('.ask'), 'Enter allows nothing');
    await page.click('.ask button[data-answer="no"]');
    await page.waitForFunction(() => !document.querySelector('.ask'));
    await stage.call(4, 'tools/call', { name: 'bash', arguments: { command: 'mkdir second' } }, session);
    await page.waitForSelector('.ask button[data-answer="once"]:not(:disabled)');
    await page.click('.ask button[data-answer="once"]');
    await page.waitForFunction(() => !document.querySelector('.ask'));
    await stage.call(5, 'tools/call', { name: 'bash', arguments: { command: 'mkdir second' } }, session);
    assert.ok(existsSync(join(stage.cwd, 'second')));
    await assertClean(page);
    await page.close();
  },

  async 'hostile names and output stay text'(stage) {
    const evil = `<img src=x onerror="globalThis.owned=1;alert(1)"><script>globalThis.owned=1</script>"'\u202e\u2066javascript:alert(1)`;
    const session = await stage.client(evil.slice(0, 120));
    writeFileSync(join(stage.cwd, 'evil'), `\x1b]0;${evil}\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\x1b[2J\x1b[?1049h`
      + `\x1b[38;5;999mm\x1b[38;2;1;2mn\x1b[9999999999;m\x1b[\x1b\x1bP${evil}\x1b\\\n${evil}\n`);
    await stage.bash(session, `: ${evil.replaceAll("'", '').replaceAll('"', '').replaceAll('<', '\\<').replaceAll('>', '\\>').replaceAll('(', '\\(').replaceAll(')', '\\)').replaceAll(';', '\\;')}; cat evil; cat evil >&2; head -c 1000000 /dev/zero | tr '\\0' x; echo; printf 'end \\xff\\xfe\\n'; sleep 300`,
      { name: 'evil"><b>', description: evil });
    const tty = stage.nacre('start', '--tty', '--name', '<i>tty', 'cat evil; sleep 300');
    const page = await openTab(stage.link());
    await page.waitForSelector('.row.alive');
    for (const row of await page.$$('.row.alive')) {
      await row.click();
      await sleep(200);
    }
    await choose(page, tty);
    await page.waitForFunction(() => document.querySelector('.terminal')?.textContent.includes('onerror'));
    await page.type('#query', 'onerror');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.hit');
    await page.click('.hit');
    await has(page, 'onerror', '.lines');
    await page.evaluate(() => [...document.querySelectorAll('.row')].find((row) => row.textContent.includes('evil')).click());
    await page.focus('#list');
    await pressWhenIdle(page, 'G');
    await has(page, 'end \ufffd\ufffd', '.lines');
    await pressWhenIdle(page, 'g');
    await page.waitForFunction(() => {
      document.querySelector('.output').scrollTop = 1e9;
      return document.querySelector('.lines').textContent.includes('more characters in this line');
    }, { polling: 100 });
    assert.equal(await page.$$eval('#sessions img, #sessions script, #sessions b, main img, main b.made', (all) => all.length), 0);
    assert.deepEqual(await page.$$eval('a', (all) => all.map((a) => a.getAttribute('href')).filter((href) => !/^(#shell|http:\/\/127\.0\.0\.1:\d+\/)$/.test(href))), []);
    assert.equal(await page.$$eval('#sessions .name, #shell h2, .command, .terminal, .lines', (all) => all.some((node) => /[\u202e\u2066]/.test(node.textContent))), false);
    await assertClean(page);
    // The same by intention must be seen, or else nothing of the above means anything.
    const seen = await page.evaluate(async () => {
      let thrown = '';
      try { document.body.innerHTML = '<b>x</b>'; } catch (error) { thrown = error.name; }
      const image = document.createElement('img');
      image.src = 'http://127.0.0.1:1/x.png';
      document.body.append(image);
      let refused = '';
      const button = document.createElement('div');
      try { button.setAttribute('onclick', 'globalThis.owned = 1'); } catch (error) { refused = error.name; }
      button.click();
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { thrown, refused, reports: reports.map((report) => report.split(' ')[0]).sort(), owned: globalThis.owned };
    });
    assert.deepEqual([seen.thrown, seen.refused], ['TypeError', 'TypeError']);
    for (const directive of ['img-src', 'require-trusted-types-for']) assert.ok(seen.reports.includes(directive), `${directive} in ${seen.reports}`);
    assert.equal(seen.owned, undefined);
    await page.close();
  },

  async 'seven tabs'(stage) {
    const id = stage.start('shared', 'while read -r x; do echo "said $x"; done', '--keep-stdin');
    const tabs = [];
    for (let i = 0; i < 7; i++) tabs.push(await openTab(stage.link()));
    for (const tab of tabs) {
      await tab.bringToFront();
      await choose(tab, id);
      await has(tab, 'shared');
    }
    stage.nacre('input', id, 'to all\n');
    for (const tab of tabs) {
      await tab.bringToFront();
      await has(tab, 'said to all', '.lines');
    }
    // The one that has the stream goes; another one takes it.
    await tabs.shift().close();
    stage.nacre('input', id, 'to the rest\n');
    for (const tab of tabs) {
      await tab.bringToFront();
      await has(tab, 'said to the rest', '.lines');
      await assertClean(tab);
      await tab.close();
    }
  },

  async 'a server that is started again, and a line that is cut'(stage) {
    const id = stage.start('stays', 'while read -r x; do echo "still $x"; done', '--keep-stdin');
    const page = await openTab(stage.link());
    await choose(page, id);
    const listen = new URL(stage.where).host;
    await stage.stop();
    await page.waitForFunction(() => document.querySelector('#link').className === 'down');
    await page.waitForSelector('#banner:not([hidden])');
    stage.nacre('input', id, 'unseen\n');
    await stage.serve(listen);
    await page.waitForFunction(() => document.querySelector('#link').className === 'up');
    await has(page, 'still unseen', '.lines');
    stage.nacre('input', id, 'seen\n');
    await has(page, 'still seen', '.lines');
    await page.setOfflineMode(true);
    await page.waitForFunction(() => document.querySelector('#link').className === 'down');
    await page.setOfflineMode(false);
    await page.waitForFunction(() => document.querySelector('#link').className === 'up');
    stage.nacre('input', id, 'back\n');
    await has(page, 'still back', '.lines');
    await page.close();
  },

  async 'a flood'(stage) {
    const id = stage.start('flood', 'yes "a line of a flood that never ends"');
    const page = await openTab(stage.link());
    await choose(page, id);
    await has(page, 'a line of a flood', '.lines');
    await page.evaluate(() => {
      globalThis.longest = 0;
      new PerformanceObserver((list) => { for (const task of list.getEntries()) longest = Math.max(longest, task.duration); }).observe({ type: 'longtask' });
    });
    await sleep(3000);
    const { JSHeapUsedSize, Nodes } = await page.metrics();
    const longest = await page.evaluate(() => longest);
    const lines = await page.$$eval('.line', (all) => all.length);
    assert.ok(JSHeapUsedSize < 96e6, `heap ${JSHeapUsedSize}`);
    assert.ok(lines < 7000, `${lines} lines`);
    const began = performance.now();
    await page.click('#shell .actions .danger');
    await page.waitForSelector('#sure[open]');
    await page.click('#sure .danger');
    await has(page, '0 left', '#notices');
    measured.flood = { heapMB: Math.round(JSHeapUsedSize / 1e5) / 10, nodes: Nodes, lines, longestTaskMs: Math.round(longest), killMs: Math.round(performance.now() - began) };
    await assertClean(page);
    await page.close();
  },

  // Each has the output of the same shell, by one watch; one that takes nothing holds up nobody.
  async 'a hundred viewers'(stage) {
    const id = stage.start('watched', 'while read -r x; do echo "said $x"; done', '--keep-stdin');
    const flood = stage.start('flood', 'yes "a line of a flood"');
    const pass = await stage.pass('--view');
    const join = async (shell) => {
      const reader = (await stage.ask('/api/events', pass)).body.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      const hear = async (what) => {
        while (!what.test(text)) {
          const { value, done } = await reader.read();
          assert.ok(!done);
          text += value;
        }
        return what.exec(text);
      };
      const [, number] = await hear(/"stream":(\d+)/);
      assert.equal((await stage.post('/api/watch', pass, { stream: Number(number), shells: [shell] })).status, 204);
      return hear;
    };
    await join(flood); // and never reads again
    const viewers = [];
    for (let i = 0; i < 100; i++) viewers.push(await join(id));
    stage.nacre('input', id, 'to all\n');
    const said = Buffer.from('said to all\n').toString('base64');
    await Promise.all(viewers.map((hear) => hear(new RegExp(said))));
    const memory = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${stage.process.pid}/status`, 'utf8'))[1]);
    measured.viewers = { viewers: viewers.length + 1, rssKB: memory };
    assert.ok(memory < 65536 || process.env.ASAN_OPTIONS, `${memory} KiB`);
  },

  // For people to look at, light and dark, wide and narrow.
  async 'pictures'(stage) {
    const folder = process.env.NACRE_PICTURES;
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    const session = await stage.client('claude-code');
    const other = await stage.client('codex');
    await stage.bash(session, 'python3 -u -m http.server 0', { name: 'web' });
    await stage.bash(session, "printf '214 files\n'; sleep 0.2; printf '\\033[31;1merror:\\033[0m src/http/parse.c:218: unknown field\n' >&2; exit 1", { name: 'build' });
    await stage.bash(other, 'sleep 600', { name: 'watch', description: 'rebuild when a file changes' });
    writeFileSync(join(stage.cwd, 'test.sh'), String.raw`i=1
while [ $i -lt 999 ]; do
  printf '\033[32m✓\033[0m cart.test.ts \033[2m%d of 480\033[0m  \033[36mtakes %d items\033[0m \033[2m(%d ms)\033[0m\n' $i $((i%9)) $((i*37%80))
  [ $((i%6)) = 0 ] && echo 'warning: deprecated: use total() in place of sum()' >&2
  j=0; while [ $j -lt $((i%7*14000)) ]; do j=$((j+1)); done
  sleep 0.2; i=$((i+1))
done
`);
    await stage.bash(session, 'sh test.sh --watch', { name: 'tests' });
    const page = await openTab(stage.link());
    await page.waitForFunction(() => [...document.querySelectorAll('.row .name')].some((name) => name.textContent === 'tests'));
    await page.evaluate(() => [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name').textContent === 'tests').click());
    await page.waitForSelector('.port');
    await sleep(9000);
    // Where it was made is nobody's business.
    const tidy = () => page.evaluate((cwd) => {
      document.querySelector('#host').textContent = 'workshop';
      for (const node of document.querySelectorAll('.cwd, .facts')) for (const text of node.childNodes) text.data = text.data.replaceAll(cwd, '~/shop');
      document.querySelector('#notices').replaceChildren();
    }, stage.cwd);
    for (const theme of ['light', 'dark']) for (const [width, height] of [[1200, 700], [640, 900]]) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
      await page.setViewport({ width, height });
      await tidy();
      await page.screenshot({ path: join(folder, `page-${theme}-${width}.png`) });
    }
    await page.close();
  },

  // Numbers.
  async 'how fast'(stage) {
    const link = stage.link();
    const id = stage.start('clock', 'while :; do date +%s%N; sleep 0.03; done');
    const page = await openTab(link);
    await choose(page, id);
    await page.waitForSelector('.line');
    await page.evaluate(() => {
      globalThis.delays = [];
      new MutationObserver(() => {
        const now = performance.timeOrigin + performance.now();
        const line = [...document.querySelectorAll('.line')].at(-1)?.textContent;
        if (/^\d{19}/.test(line)) delays.push(now - Number(line.slice(0, 19)) / 1e6);
      }).observe(document.querySelector('.lines'), { childList: true });
    });
    await sleep(2500);
    const numbers = await page.evaluate(() => {
      const sorted = delays.sort((a, b) => a - b);
      const entries = performance.getEntriesByType('resource');
      return {
        lines: sorted.length, p50: sorted[Math.floor(sorted.length / 2)], p99: sorted[Math.floor(sorted.length * 0.99)],
        firstPaint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
        loaded: entries.filter((e) => e.name.includes('/app/')).reduce((sum, e) => sum + e.encodedBodySize, performance.getEntriesByType('navigation')[0].encodedBodySize),
        listVisible: Math.max(...entries.filter((e) => e.name.endsWith('/api/state')).map((e) => e.responseEnd)),
      };
    });
    measured.page = Object.fromEntries(Object.entries(numbers).map(([key, value]) => [key, Math.round(value * 10) / 10]));
    assert.ok(numbers.lines > 10);
    assert.ok(numbers.loaded < 102400);
    await page.close();
  },
};

const settings = {
  'questions are answered, and never by accident': { policy: [{ ask: ['mkdir'], because: 'new places are for people' }] },
};
const measured = {};

if (!existsSync(CHROMIUM)) {
  console.error('page: SKIPPED, there is no Chromium; `scripts/deps.sh test` installs it');
  process.exit(process.env.CI ? 1 : 0);
}
await openBrowser();
let failed = 0;
try {
  for (const [name, run] of Object.entries(cases)) {
    if (process.env.NACRE_ONLY && !name.includes(process.env.NACRE_ONLY)) continue;
    const began = performance.now();
    const stage = await PageStage.open(settings[name]);
    try {
      await run(stage);
      console.log(`ok   ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${name}: ${error.stack}`);
      for (const page of (await browser.pages()).slice(1)) {
        console.log(`     ${page.bad} ${JSON.stringify(await page.evaluate(() => document.body.innerText.slice(0, 600)).catch(() => ''))}`);
        await page.close().catch(() => {});
      }
    }
    try {
      stage.nacre('kill', '--all');
    } catch {}
    await stage.stop();
  }
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
console.log(JSON.stringify(measured));
await removeStages();
process.exit(failed ? 1 : 0);
