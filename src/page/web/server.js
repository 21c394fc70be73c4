// The way to the server: requests with the pass of this page, and the stream of events. Seven tabs
// would have seven streams, and a browser opens no more than six connections to one server: so one
// tab has the stream, and passes on what comes to the others.

const PASS = "nacre-pass";
const base = location.pathname.replace(/\/[^/]*$/, "");

// The code in the address is good once; nothing of it stays there.
async function takeCode() {
  const code = location.hash.slice(1);
  if (!/^[0-9a-f]{32}$/.test(code)) return;
  history.replaceState(null, "", location.pathname);
  const answer = await fetch(`${base}/api/login`, {method: "POST", body: code});
  if (answer.ok) sessionStorage.setItem(PASS, (await answer.json()).token);
}

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function fields(more) {
  const pass = sessionStorage.getItem(PASS);
  return pass ? {Authorization: `Bearer ${pass}`, ...more} : {...more};
}

async function check(answer) {
  if (answer.ok) return answer;
  let text = answer.statusText;
  try {
    text = (await answer.json()).error ?? text;
  } catch {}
  throw new Refused(answer.status, text);
}

export async function get(path, options) {
  return check(await fetch(`${base}/api${path}`, {headers: fields(), ...options}));
}

export async function getJson(path, options) {
  return (await get(path, options)).json();
}

export async function post(path, body) {
  const answer = await check(await fetch(`${base}/api${path}`, {
    method: "POST",
    headers: fields({"Content-Type": "application/json"}),
    body: JSON.stringify(body ?? {}),
  }));
  return answer.status === 204 ? null : answer.json();
}

// Events of an answer: [name, text] one after the other. Lines end with a newline, and an event with
// an empty one; the server writes no carriage returns.
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let name = "message", data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (data !== "") yield [name, data];
    }
  }
}

// -- The stream -----------------------------------------------------------------------------------

const RETRY_MS = [250, 500, 1000, 2000, 4000];
const SILENT_MS = 40000; // the server says something every 15 seconds

const me = crypto.randomUUID?.() ?? String(Math.random());
const channel = new BroadcastChannel("nacre");
const wanted = new Map(); // tab -> ids, of those that told
let handle = () => {};    // what comes, in this tab
let mine = [];
let stream = null; // of the leader: {number, abort}
let leads = false;
let seen = null;      // {boot, turn} of the last state
let acts = false;     // the right of this tab's pass

function pass(name, data) {
  channel.postMessage({kind: "event", name, data});
  handle(name, data);
}

async function tellWatched() {
  if (!stream?.number) return;
  const ids = [...new Set([...mine, ...[...wanted.values()].flat()])].slice(0, 16);
  const text = JSON.stringify(ids);
  if (text === stream.told) return;
  const asked = stream;
  asked.told = text;
  try {
    await post("/watch", {stream: asked.number, shells: ids});
  } catch {
    // While a line comes back one request may get through and the next one not.
    asked.told = "";
    setTimeout(tellWatched, 500);
  }
}

// Which shells this tab shows.
export function watch(ids) {
  mine = ids;
  if (leads) tellWatched();
  else channel.postMessage({kind: "watch", tab: me, ids});
}

async function readStream(abort) {
  const after = seen ? `?boot=${seen.boot}&after=${seen.turn}` : "";
  const answer = await get(`/events${after}`, {signal: abort.signal, cache: "no-store"});
  let timer = 0;
  const restart = () => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), SILENT_MS);
  };
  restart();
  const alive = new TransformStream({
    transform(chunk, controller) {
      restart();
      controller.enqueue(chunk);
    },
  });
  try {
    for await (const [name, text] of events({body: answer.body.pipeThrough(alive)})) {
      const data = JSON.parse(text);
      if (name === "hello") {
        stream.number = data.stream;
        stream.told = "";
        pass("link", {up: true});
        tellWatched();
        continue;
      }
      if (name === "state") seen = {boot: data.boot, turn: data.turn};
      pass(name, data);
    }
  } finally {
    clearTimeout(timer);
  }
}

// For ever: a server that is started again, or a line that is back, is found by asking again.
async function lead() {
  leads = true;
  channel.postMessage({kind: "who"});
  for (let tries = 0; ; tries++) {
    const abort = new AbortController();
    stream = {abort};
    try {
      await readStream(abort);
      tries = 0;
    } catch (error) {
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        handle("link", {up: false, refused: true});
        leads = false;
        return; // another tab may lead, whose pass is good
      }
    }
    const lost = stream.number;
    stream = null;
    // What was missed is not known: everything is told anew.
    seen = null;
    pass("link", {up: false});
    if (lost) tries = 0;
    const ms = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)];
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      addEventListener("online", () => (clearTimeout(timer), resolve()), {once: true});
    });
  }
}

channel.onmessage = ({data: message}) => {
  if (message.kind === "event" && !leads) handle(message.name, message.data);
  if (message.kind === "watch" && leads) {
    wanted.set(message.tab, message.ids);
    tellWatched();
  }
  if (message.kind === "bye" && leads) {
    wanted.delete(message.tab);
    tellWatched();
  }
  if (message.kind === "who" && !leads) channel.postMessage({kind: "watch", tab: me, ids: mine});
};
addEventListener("offline", () => stream?.abort.abort());
addEventListener("pagehide", () => channel.postMessage({kind: "bye", tab: me}));

// What this tab may do is its own, whoever has the stream.
async function askState() {
  try {
    const data = await getJson("/state");
    acts = data.acts;
    seen = {boot: data.boot, turn: data.turn};
    handle("link", {up: true});
    handle("state", data);
    return true;
  } catch (error) {
    const refused = error.status === 401 || error.status === 403;
    handle("link", {up: false, refused});
    return !refused;
  }
}

export async function start(handler) {
  handle = (name, data) => handler(name, name === "state" ? {...data, acts} : data);
  try {
    await takeCode();
  } catch {}
  if (!(await askState())) return;
  // Only where a browser trusts the address does it have locks; elsewhere each tab has a stream.
  if (!navigator.locks) {
    lead();
    return;
  }
  channel.postMessage({kind: "watch", tab: me, ids: mine});
  navigator.locks.request("nacre-stream", lead);
}
