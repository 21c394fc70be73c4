// The list: sessions with their shells, those that run before those that ended.

import {byId, bytes, count, duration, el, percent, setChildren, setText, visible} from "./dom.js";
import {firstLine, hasFailed, isAlive, sessionWords, shortPath, statusWords} from "./home.js";
import {Plot} from "./plot.js";
import {getJson} from "./server.js";

const ENDED_SHOWN = 6; // of a session, unless all are asked for
const QUIET_MS = 5000; // silence that is worth a word

// Links only to where a port of this machine is.
export function portLinks(ports) {
  const host = location.hostname;
  return ports.map((port) => el("a.port", {href: `http://${host}:${port}/`, target: "_blank", rel: "noreferrer noopener", title: `open port ${port}`}, `:${port}`));
}

class Row {
  constructor(list, shell) {
    this.dot = el("span.dot");
    this.name = el("span.name");
    this.ports = el("span.ports");
    this.when = el("span.when");
    this.last = el("span.last");
    this.use = el("span.use");
    this.plot = new Plot("cpu", {width: 64, height: 16});
    this.node = el("div.row", {role: "option", id: `row-${shell.id}`, "data-id": shell.id, tabindex: "-1",
      onclick: (event) => event.target.closest("a") || list.choose(shell.id)},
      this.dot, el("span.top", null, this.name, this.ports, this.when),
      el("span.below", null, this.last, this.use, this.plot.node));
  }

  show(shell, home, chosen) {
    const alive = isAlive(shell), now = home.now();
    if (this.shell !== shell) {
      this.shell = shell;
      this.node.className = `row ${alive ? "alive" : hasFailed(shell) ? "failed" : "over"}${shell.unread > 0 ? " unread" : ""}`;
      setText(this.dot, alive ? "●" : hasFailed(shell) ? "✕" : "○");
      this.dot.setAttribute("aria-label", statusWords(shell));
      this.dot.setAttribute("role", "img");
      setText(this.name, visible(shell.name || shell.description || firstLine(shell)).slice(0, 200));
      this.name.classList.toggle("code", !shell.name && !shell.description);
      this.node.title = visible(shell.command).slice(0, 2000);
      setChildren(this.ports, portLinks(shell.ports));
      setText(this.last, visible(shell.last ?? (shell.input === "terminal" ? "a terminal" : "")));
      this.plot.node.classList.toggle("none", !alive);
    }
    this.node.setAttribute("aria-selected", String(chosen));
    this.tick(now, home);
  }

  tick(now, home) {
    const s = this.shell, alive = isAlive(s);
    const silent = now - Math.max(s.last_ms, s.started_ms);
    setText(this.when, alive ? duration(now - s.started_ms) : `${statusWords(s)} · ${duration(now - (s.exited_ms ?? now))} ago`);
    const sample = alive && home.lastSample(s.id);
    setText(this.use, !sample ? "" : silent > QUIET_MS && s.input !== "terminal" ? `silent for ${duration(silent)} · ${percent(sample[1])}` : percent(sample[1]));
    if (sample) this.plot.show(home.samples.get(s.id).slice(-60).map((p) => [p[0], p[1]]), 1000, `processor ${percent(sample[1])}, memory ${bytes(sample[2] * 1024)}`);
  }
}

class Group {
  all = false;

  constructor(list) {
    this.title = el("span.client");
    this.cwd = el("span.cwd");
    this.state = el("span.state");
    this.rows = el("div.rows", {role: "group"});
    this.more = el("button.link.more", {type: "button", onclick: () => { this.all = !this.all; list.draw(); }});
    this.node = el("section.group", null, el("h2", null, this.title, this.cwd, this.state), this.rows, this.more);
  }
}

export class List {
  rows = new Map();
  groups = new Map();
  order = []; // ids as they stand
  which = "all";
  text = "";
  chosen = null;
  drawing = 0;

  constructor(home, chosen) {
    this.home = home;
    this.onchoose = chosen;
    this.node = byId("sessions");
    this.node.setAttribute("role", "listbox");
    this.node.setAttribute("aria-label", "Shells");
    this.node.tabIndex = 0;
    this.nothing = el("p.nothing");
    this.older = el("button.link.older", {type: "button", onclick: () => this.loadOlder()});
    for (const button of document.querySelectorAll("[data-which]"))
      button.addEventListener("click", () => this.show(button.dataset.which));
    byId("filter").addEventListener("input", (event) => {
      this.text = event.target.value.toLowerCase();
      this.draw();
    });
    for (const type of ["state", "shell", "gone", "sessions"]) home.addEventListener(type, () => this.drawSoon());
    home.addEventListener("usage", () => this.tick());
    setInterval(() => this.tick(), 1000);
  }

  show(which) {
    this.which = which;
    for (const button of document.querySelectorAll("[data-which]"))
      button.setAttribute("aria-pressed", String(button.dataset.which === which));
    this.draw();
  }

  async loadOlder() {
    const oldest = Math.min(...[...this.home.shells.values()].map((s) => s.started_ms));
    this.older.disabled = true;
    try {
      const {shells} = await getJson(`/shells?before=${oldest}`);
      for (const shell of shells) if (!this.home.shells.has(shell.id)) this.home.shells.set(shell.id, {...shell, extra: true});
      this.home.older = Math.max(0, this.home.older - shells.length);
      if (shells.length === 0) this.home.older = 0;
    } catch {}
    this.older.disabled = false;
    this.draw();
  }

  drawSoon() {
    this.drawing ||= requestAnimationFrame(() => {
      this.drawing = 0;
      this.draw();
    });
  }

  tick() {
    const now = this.home.now();
    for (const id of this.order) this.rows.get(id)?.tick(now, this.home);
    this.drawEnds();
  }

  passes(shell) {
    if (this.which === "alive" && !isAlive(shell)) return false;
    if (this.which === "failed" && !hasFailed(shell)) return false;
    if (!this.text) return true;
    const session = this.home.sessions.get(shell.session);
    return [shell.name, shell.command, shell.description, shell.status, shell.cwd, shell.id, session?.client, session?.name]
      .some((part) => part?.toLowerCase().includes(this.text));
  }

  // Sessions that are there, the one with the newest shell first; then what nobody has any more.
  sorted() {
    const bySession = new Map();
    for (const shell of this.home.shells.values()) {
      if (!this.passes(shell)) continue;
      const session = this.home.sessions.get(shell.session);
      const key = session?.alive ? shell.session : isAlive(shell) ? "kept" : "past";
      if (!bySession.has(key)) bySession.set(key, []);
      bySession.get(key).push(shell);
    }
    for (const session of this.home.sessions.values())
      if (session.alive && !bySession.has(session.id) && !this.text && this.which === "all") bySession.set(session.id, []);
    const weight = (key, shells) => (key === "past" ? -2 : key === "kept" ? -1 : Math.max(this.home.sessions.get(key)?.opened_ms ?? 0, ...shells.map((s) => s.started_ms)));
    for (const shells of bySession.values())
      shells.sort((a, b) => isAlive(b) - isAlive(a) || b.started_ms - a.started_ms);
    return [...bySession].sort(([a, x], [b, y]) => weight(b, y) - weight(a, x));
  }

  draw() {
    const groups = [];
    this.order = [];
    for (const [key, shells] of this.sorted()) {
      if (!this.groups.has(key)) this.groups.set(key, new Group(this));
      const group = this.groups.get(key);
      this.drawGroup(group, key, shells);
      groups.push(group.node);
    }
    const shown = new Set(this.order);
    for (const id of this.rows.keys()) if (!shown.has(id)) this.rows.delete(id);
    const nothing = this.order.length === 0;
    setText(this.nothing, !this.home.loaded ? "" : this.text || this.which !== "all" ? "No shells like that." : "Nothing has run yet. What agents start appears here.");
    setText(this.older, `${count(this.home.older, "older shell")}: show more`);
    setChildren(this.node, [...groups, ...(nothing ? [this.nothing] : []), ...(this.home.older > 0 ? [this.older] : [])]);
    this.drawEnds();
    if (this.chosen) this.node.setAttribute("aria-activedescendant", `row-${this.chosen}`);
  }

  drawGroup(group, key, shells) {
    const session = this.home.sessions.get(key);
    const title = key === "past" ? "ended sessions" : key === "kept" ? "kept, without a session" : sessionWords(session);
    setText(group.title, visible(title));
    setText(group.cwd, session ? visible(shortPath(session.cwd)) : "");
    group.cwd.title = session ? visible(session.cwd) : "";
    group.session = session;
    const ended = shells.filter((s) => !isAlive(s)).length, alive = shells.length - ended;
    const limit = key === "past" ? ENDED_SHOWN * 5 : ENDED_SHOWN;
    const most = group.all || this.text || this.which === "failed" ? shells.length : alive + limit;
    const visibleShells = shells.slice(0, most);
    const rows = visibleShells.map((shell) => {
      if (!this.rows.has(shell.id)) this.rows.set(shell.id, new Row(this, shell));
      const row = this.rows.get(shell.id);
      row.show(shell, this.home, shell.id === this.chosen);
      this.order.push(shell.id);
      return row.node;
    });
    group.rows.setAttribute("aria-label", visible(title));
    setChildren(group.rows, rows);
    const hidden = shells.length - visibleShells.length;
    group.more.hidden = hidden === 0 && !group.all;
    setText(group.more, hidden > 0 ? `${hidden} more that ended` : "fewer");
  }

  drawEnds() {
    const now = this.home.now();
    for (const group of this.groups.values()) {
      const s = group.session;
      const running = s ? [...this.home.shells.values()].filter((x) => x.session === s.id && isAlive(x)).length : 0;
      setText(group.state, !s ? "" : running > 0 ? `${running} running` : s.ends_ms ? `idle, ends in ${duration(s.ends_ms - now)}` : "idle");
    }
  }

  choose(id) {
    this.chosen = id;
    for (const [other, row] of this.rows) row.node.setAttribute("aria-selected", String(other === id));
    this.node.setAttribute("aria-activedescendant", `row-${id}`);
    this.rows.get(id)?.node.scrollIntoView({block: "nearest"});
    this.onchoose(id);
  }

  step(by) {
    if (this.order.length === 0) return;
    const at = this.order.indexOf(this.chosen);
    const to = at < 0 ? 0 : Math.min(this.order.length - 1, Math.max(0, at + by));
    this.choose(this.order[to]);
  }
}
