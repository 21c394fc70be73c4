// What is known of the home: sessions, shells, what they use, and the questions that are open.

const SAMPLES = 600;

export class Home extends EventTarget {
  shells = new Map();
  sessions = new Map();
  samples = new Map(); // id -> [[second, cpu, memory, rate, processes], ...]
  asks = [];
  notes = {};
  acts = false;
  host = "";
  older = 0;
  skew = 0; // of the server's clock
  loaded = false;

  now() {
    return Date.now() + this.skew;
  }

  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, {detail}));
  }

  takeState(state) {
    const before = this.shells;
    const kept = [...before.values()].filter((s) => s.outcome === "ended" && s.tree === "empty" && s.extra);
    this.skew = state.now_ms - Date.now();
    this.acts = state.acts;
    this.host = state.host;
    this.older = state.older;
    this.notes = state.notes;
    this.shells = new Map([...kept, ...state.shells].map((s) => [s.id, s]));
    this.sessions = new Map(state.sessions.map((s) => [s.id, s]));
    this.asks = state.asks ?? [];
    for (const [id, samples] of Object.entries(state.samples)) {
      const known = this.samples.get(id);
      if (!known || known.at(-1)?.[0] < samples[0]?.[0]) this.samples.set(id, samples);
    }
    const first = !this.loaded;
    this.loaded = true;
    this.tell("state", {first});
    // What ended while nobody was there to hear of it.
    if (!first) for (const s of state.shells) if (isAlive(before.get(s.id)) && !isAlive(s)) this.tell("ended", s);
  }

  takeShell(shell) {
    const before = this.shells.get(shell.id);
    this.shells.set(shell.id, shell);
    this.tell("shell", shell);
    if (before?.outcome === "running" && shell.outcome !== "running") this.tell("ended", shell);
  }

  takeUsage(usage) {
    for (const [id, [sample]] of Object.entries(usage)) {
      const all = this.samples.get(id) ?? [];
      if (all.at(-1)?.[0] === sample[0]) continue;
      all.push(sample);
      if (all.length > SAMPLES) all.shift();
      this.samples.set(id, all);
    }
    this.tell("usage", usage);
  }

  take(name, data) {
    if (name === "state") this.takeState(data);
    else if (name === "shell") this.takeShell(data);
    else if (name === "gone") {
      this.shells.delete(data.id);
      this.samples.delete(data.id);
      this.tell("gone", data.id);
    } else if (name === "sessions") {
      this.sessions = new Map(data.map((s) => [s.id, s]));
      this.tell("sessions");
    } else if (name === "notes") {
      this.notes = data;
      this.tell("notes");
    } else if (name === "asks") {
      const known = new Set(this.asks.map((ask) => ask.id));
      this.asks = data;
      this.tell("asks", data.filter((ask) => !known.has(ask.id)));
    } else if (name === "usage") this.takeUsage(data);
    else this.tell(name, data);
  }

  lastSample(id) {
    return this.samples.get(id)?.at(-1);
  }
}

export const isAlive = (s) => !!s && (s.outcome === "running" || s.tree === "alive");

export const hasFailed = (s) => s.outcome !== "running" && /^(exited\((?!0\))|signaled|timed_out|lost|killed\()/.test(s.status);

// How it stands, in the words of a person.
export function statusWords(s) {
  const code = /^exited\((\d+)\)/.exec(s.status);
  if (code) return (code[1] === "0" ? "done" : `exit ${code[1]}`) + (s.tree === "alive" ? ", left processes" : "");
  return s.status.replaceAll("_", " ").replace(/signaled\((\w+)\)/, "$1");
}

export function sessionWords(session) {
  return session?.client || session?.name || (session ? session.id.slice(0, 8) : "");
}

export const firstLine = (s) => s.command.trimStart().split("\n", 1)[0];

export const shortPath = (path) => path.replace(/^\/(?:home\/[^/]+|root)(?=\/|$)/, "~");

// The proof of a kill.
export function proofWords(k) {
  const processes = k.signalled === 1 ? "1 process" : `${k.signalled} processes`;
  return `${processes} got the signal, ${k.force_killed} needed SIGKILL, ${k.survivors} left`;
}
