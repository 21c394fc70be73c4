// The shell that is looked at: what it is, what it uses, what it printed, and what can be done.

import {byId, bytes, clock, count, duration, el, percent, setChildren, setText, visible, visibleNodes} from "./dom.js";
import {hasFailed, isAlive, proofWords, sessionWords, shortPath, statusWords} from "./home.js";
import {portLinks} from "./list.js";
import {Output} from "./output.js";
import {Plot} from "./plot.js";
import {getJson, post} from "./server.js";
import {Screen} from "./screen.js";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGUSR2", "SIGKILL"];

export class Shell {
  id = null;

  constructor(home, say) {
    this.home = home;
    this.say = say;
    this.node = byId("shell");
    home.addEventListener("state", () => this.changed());
    home.addEventListener("shell", ({detail}) => detail.id === this.id && this.changed());
    home.addEventListener("sessions", () => this.id && this.changed());
    home.addEventListener("usage", () => this.plot());
    home.addEventListener("gone", ({detail}) => detail === this.id && this.clear("This shell is not there any more."));
    home.addEventListener("output", ({detail}) => detail.id === this.id && this.output?.heard(detail));
    home.addEventListener("gap", ({detail}) => detail.id === this.id && this.output?.gap(detail.end));
    home.addEventListener("screen", ({detail}) => detail.id === this.id && this.screen?.heard(detail));
    setInterval(() => this.tick(), 1000);
  }

  get record() {
    return this.home.shells.get(this.id);
  }

  clear(words) {
    this.output?.close();
    this.output = this.screen = this.id = null;
    this.node.replaceChildren(el("p.empty", null, words));
  }

  // Its output, at an offset if one is given.
  open(id, offset) {
    if (id === this.id && this.output && offset != null) {
      this.output.toOffset(offset);
      return;
    }
    if (id === this.id && offset == null) return;
    this.output?.close();
    this.output = this.screen = null;
    this.id = id;
    this.log = offset != null; // of a terminal: what it printed, in place of its screen
    if (!this.record) {
      this.clear("This shell is not there any more.");
      return;
    }
    this.build();
    this.changed();
    this.loadSamples(id);
    if (offset != null) this.output?.toOffset(offset);
  }

  // -- Building

  build() {
    const s = this.record;
    this.title = el("h2");
    this.status = el("span.badge");
    this.facts = el("p.facts");
    this.command = el("pre.command", {tabindex: "0", "aria-label": "Command"});
    this.proof = el("p.proof");
    this.actions = el("div.actions", {role: "toolbar", "aria-label": "What can be done"});
    this.plots = {
      cpu: this.plotBox("cpu", "processor"),
      memory: this.plotBox("memory", "memory"),
      rate: this.plotBox("rate", "output"),
    };
    const head = el("header.shell-head", null,
      el("div.title", null, el("button.back", {type: "button", onclick: () => this.node.dispatchEvent(new Event("back"))}, "‹ shells"), this.title, this.status, this.actions),
      this.facts, this.command, this.proof,
      el("div.plots", null, ...Object.values(this.plots).map((p) => p.node)));
    this.plotsNode = head.lastChild;
    const parts = [head];
    if (this.hasScreen(s)) {
      this.screen = new Screen(this.id, this.home.acts ? (body) => this.type(body) : null);
      this.screen.hint.append(" ", el("button.link", {type: "button", onclick: () => this.showLog(true)}, "what it printed"));
      parts.push(this.screen.wrap);
    } else {
      this.output = new Output(this.id, (news) => this.outputSaid(news));
      parts.push(this.toolbar(), el("div.output-wrap", null, this.output.node, this.newer = el("button.newer", {type: "button", hidden: true, onclick: () => this.output.toEnd()})));
      if (this.home.acts && s.input === "pipe") parts.push(this.inputLine());
    }
    this.node.replaceChildren(...parts);
    this.built = {tty: !!this.screen, input: s.input, acts: this.home.acts};
  }

  hasScreen(s) {
    return s.input === "terminal" && isAlive(s) && !this.log;
  }

  showLog(on) {
    this.log = on;
    this.changed();
    this.node.dispatchEvent(new Event("rebuilt"));
  }

  plotBox(kind, words) {
    const number = el("b");
    const plot = new Plot(kind, {pick: (ms) => this.output?.toMoment(ms)});
    return {plot, number, words, node: el(`figure.plot-box.${kind}`, null, el("figcaption", null, words, " ", number), plot.node)};
  }

  toolbar() {
    const streams = el("div.choice", {role: "group", "aria-label": "Stream"},
      ...[["both", "all"], ["out", "stdout"], ["err", "stderr"]].map(([stream, words]) =>
        el("button", {type: "button", "data-stream": stream, "aria-pressed": String(stream === "both"), onclick: () => this.showStream(stream)}, words)));
    this.followButton = el("button", {type: "button", title: "f", "aria-pressed": "true", onclick: () => this.follow()}, "follow");
    const moment = el("input", {type: "text", size: "9", placeholder: "hh:mm:ss", "aria-label": "Jump to a time", title: "14:05, 14:05:30, or 5m ago"});
    const jump = el("form.moment", {onsubmit: (event) => { event.preventDefault(); this.jump(moment.value); }}, moment);
    const toggle = (words, name) => el("button", {type: "button", "aria-pressed": "false", onclick: (event) => {
      const on = this.output.node.classList.toggle(name);
      event.currentTarget.setAttribute("aria-pressed", String(on));
    }}, words);
    return el("div.toolbar", {role: "toolbar", "aria-label": "Output"}, streams, this.followButton,
      el("button", {type: "button", title: "g", onclick: () => this.top()}, "start"),
      el("button", {type: "button", title: "G", onclick: () => this.output.toEnd()}, "end"), jump,
      toggle("times", "times"), toggle("wrap", "wrap"),
      el("button", {type: "button", onclick: () => this.output.save(this.record.name.replace(/[^\w.-]/g, "_") || this.id.slice(0, 8)).catch((error) => this.say(error.message))}, "save"),
      this.record.input === "terminal" && isAlive(this.record) ? el("button", {type: "button", onclick: () => this.showLog(false)}, "screen") : null,
      this.size = el("span.size"));
  }

  inputLine() {
    const field = el("input", {type: "text", autocomplete: "off", spellcheck: "false", "aria-label": "Input", placeholder: "input: a line, with Enter"});
    return el("form.input", {onsubmit: (event) => {
      event.preventDefault();
      this.type({text: `${field.value}\n`});
      field.value = "";
    }}, el("span", {"aria-hidden": "true"}, "›"), field,
      el("button", {type: "button", onclick: () => this.type({eof: true})}, "end of input"));
  }

  // -- Showing

  changed() {
    const s = this.record;
    if (!s) return;
    const tty = this.hasScreen(s);
    if (!this.built || this.built.tty !== tty || this.built.input !== s.input || this.built.acts !== this.home.acts) {
      this.output?.close();
      this.output = this.screen = null;
      this.build();
    }
    const alive = isAlive(s);
    setText(this.title, visible(s.name || s.description || "shell ") + (s.name || s.description ? "" : s.id.slice(0, 8)));
    this.status.className = `badge ${alive ? "alive" : hasFailed(s) ? "failed" : "over"}`;
    setText(this.status, statusWords(s));
    this.command.replaceChildren(...visibleNodes(s.command));
    setText(this.proof, s.reason && !alive ? `Ended by ${s.reason === "kill" ? "a kill" : s.reason}: ${proofWords(s)}.` : "");
    this.proof.hidden = this.proof.textContent === "";
    this.act(s, alive);
    this.tick();
    this.plot();
  }

  act(s, alive) {
    const key = `${alive} ${this.home.acts} ${s.kept} ${s.outcome}`;
    if (this.acted === key && this.actions.hasChildNodes()) return;
    this.acted = key;
    const button = (words, title, f, kind) => el(`button${kind ? `.${kind}` : ""}`, {type: "button", title, onclick: f}, words);
    const signal = el("select", {"aria-label": "Send a signal", onchange: (event) => {
      const name = event.target.value;
      event.target.selectedIndex = 0;
      if (name) this.signal(name);
    }}, el("option", {value: ""}, "signal …"), ...SIGNALS.map((name) => el("option", {value: name}, name)));
    setChildren(this.actions, !this.home.acts ? [el("span.right", null, "view only")] : !alive ? [] : [
      s.outcome === "running" ? signal : null,
      s.kept ? null : button("keep", "let it outlive its session", () => this.keep()),
      button("kill", "x", () => this.kill(), "danger"),
    ].filter(Boolean));
  }

  tick() {
    const s = this.record;
    if (!s || !this.facts) return;
    const now = this.home.now(), alive = isAlive(s), session = this.home.sessions.get(s.session);
    const silent = now - Math.max(s.last_ms, s.started_ms);
    const parts = [
      session ? visible(sessionWords(session)) : null, visible(shortPath(s.cwd)), s.id.slice(0, 8),
      alive ? `${duration(now - s.started_ms)}, since ${clock(s.started_ms)}` : `${clock(s.started_ms)}, took ${duration((s.exited_ms ?? now) - s.started_ms)}`,
      alive && silent > 5000 ? `silent for ${duration(silent)}` : null,
      s.kept ? "kept" : null, s.sandbox ? visible(s.sandbox.policy ?? String(s.sandbox.words ?? "sandbox")) : null,
      s.omitted.stdout + s.omitted.stderr > 0 ? `${bytes(s.omitted.stdout + s.omitted.stderr)} dropped` : null,
    ].filter(Boolean);
    const words = parts.join(" · ");
    const key = `${words} ${s.ports.join()}`;
    if (this.factsKey === key && this.facts.hasChildNodes()) return;
    this.factsKey = key;
    this.facts.replaceChildren(words, ...(s.ports.length > 0 ? [" · ", ...portLinks(s.ports)] : []));
  }

  plot() {
    const s = this.record;
    if (!s || !this.plots) return;
    const samples = this.home.samples.get(this.id) ?? [];
    this.plotsNode.hidden = samples.length === 0;
    const last = samples.at(-1);
    if (!last) return;
    const show = ({plot, number, words}, index, least, text) => {
      setText(number, text(last[index]));
      plot.show(samples.map((p) => [p[0], p[index]]), least, `${words} ${text(last[index])}`);
    };
    show(this.plots.cpu, 1, 1000, percent);
    show(this.plots.memory, 2, 1024, (n) => bytes(n * 1024));
    show(this.plots.rate, 3, 1024, (n) => `${bytes(n)}/s`);
  }

  async loadSamples(id) {
    try {
      const {samples} = await getJson(`/usage?id=${id}`);
      if (samples.length > (this.home.samples.get(id)?.length ?? 0)) this.home.samples.set(id, samples);
      if (id === this.id) this.plot();
    } catch {}
  }

  outputSaid({error}) {
    if (error) this.say(error);
    if (!this.output || !this.newer) return;
    const unseen = this.output.unseen();
    this.newer.hidden = unseen === 0;
    setText(this.newer, `↓ ${bytes(unseen)} more`);
    this.followButton.setAttribute("aria-pressed", String(this.output.follow));
    setText(this.size, bytes(this.output.end));
  }

  showStream(stream) {
    for (const button of this.node.querySelectorAll("[data-stream]"))
      button.setAttribute("aria-pressed", String(button.dataset.stream === stream));
    this.output.show(stream);
  }

  follow() {
    if (!this.output) return;
    if (!this.output.follow) this.output.toEnd();
    else {
      this.output.follow = false;
      this.outputSaid({});
    }
  }

  top() {
    this.output?.toOffset(0);
  }

  // "14:05:30" of the last day, or "5m".
  jump(text) {
    const ago = /^(\d+)\s*([smhd])(\s*ago)?$/.exec(text.trim());
    const time = /^(\d\d?):(\d\d)(?::(\d\d))?$/.exec(text.trim());
    if (!ago && !time) {
      this.say("A time is 14:05, 14:05:30, or 5m for five minutes ago.");
      return;
    }
    const now = this.home.now();
    let ms = now;
    if (ago) ms -= Number(ago[1]) * {s: 1000, m: 60000, h: 3600000, d: 86400000}[ago[2]];
    else {
      const date = new Date(now);
      date.setHours(Number(time[1]), Number(time[2]), Number(time[3] ?? 0), 0);
      ms = date.getTime() > now ? date.getTime() - 86400000 : date.getTime();
    }
    this.output?.toMoment(ms).catch((error) => this.say(error.message));
  }

  // -- Deeds

  async deed(f) {
    try {
      return await f();
    } catch (error) {
      this.say(error.message);
      return null;
    }
  }

  kill() {
    const s = this.record;
    if (!s || !isAlive(s) || !this.home.acts) return;
    const dialog = byId("sure");
    const id = this.id;
    const end = async () => {
      dialog.close();
      const result = await this.deed(() => post(`/shells/${id}/kill`));
      if (result) this.say(result.was_alive ? `${visible(s.name || id.slice(0, 8))}: ${proofWords(result)}` : "It had ended before.");
    };
    dialog.replaceChildren(
      el("h2", null, "End this shell, and all that it started?"),
      el("pre.command", null, ...visibleNodes(s.command.slice(0, 4000))),
      el("p", null, "It gets SIGTERM first, and SIGKILL if it does not end."),
      el("div.actions", null,
        el("button", {type: "button", autofocus: true, onclick: () => dialog.close()}, "leave it"),
        el("button.danger", {type: "button", onclick: end}, "end it")));
    dialog.showModal();
  }

  async signal(name) {
    if (await this.deed(async () => (await post(`/shells/${this.id}/signal`, {signal: name}), true))) this.say(`${name} was sent.`);
  }

  async keep() {
    if (await this.deed(async () => (await post(`/shells/${this.id}/keep`), true))) this.say("It is kept: it outlives its session.");
  }

  async type(body) {
    // In the order they were typed.
    const before = this.typing;
    this.typing = (async () => {
      await before;
      const result = await this.deed(() => post(`/shells/${this.id}/input`, body));
      if (result && result.taken < result.of) this.say(`Only ${count(result.taken, "byte")} of ${result.of} were taken: it does not read its input.`);
    })();
    return this.typing;
  }
}
