// Search over everything that any shell printed. Hits come as they are found; a new question ends
// the one before.

import {byId, clock, count, el, visible} from "./dom.js";
import {firstLine, sessionWords} from "./home.js";
import {events, get} from "./server.js";

export class Search {
  abort = null;

  constructor(home, open, show) {
    this.home = home;
    this.openAt = open;
    this.show = show;
    this.node = byId("found");
    this.query = byId("query");
    this.summary = el("p.summary", {role: "status"});
    this.hits = el("div.hits");
    const option = (words, name) => el("label", null, this[name] = el("input", {type: "checkbox", onchange: () => this.ask()}), ` ${words}`);
    this.node.append(el("header", null, this.summary, option("regular expression", "regex"), option("case matters", "exact"),
      el("button", {type: "button", onclick: () => this.close()}, "close")), this.hits);
    byId("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
    });
    this.query.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.close();
      this.query.blur();
    });
  }

  close() {
    this.abort?.abort();
    this.query.value = "";
    this.show(false);
  }

  async ask() {
    this.abort?.abort();
    const text = this.query.value;
    if (text === "") {
      this.show(false);
      return;
    }
    const abort = this.abort = new AbortController();
    this.show(true);
    this.hits.replaceChildren();
    this.last = null;
    this.total = 0;
    this.summary.textContent = "searching …";
    try {
      const query = new URLSearchParams({q: text, regex: this.regex.checked ? 1 : 0, case: this.exact.checked ? 1 : 0});
      const answer = await get(`/recall?${query}`, {signal: abort.signal});
      for await (const [name, data] of events(answer)) {
        if (abort.signal.aborted) return;
        if (name === "hit") this.add(JSON.parse(data));
        else this.done(JSON.parse(data));
      }
    } catch (error) {
      if (!abort.signal.aborted) this.summary.textContent = error.message;
    }
  }

  // Under a heading for each shell.
  add(hit) {
    this.total++;
    if (this.last !== hit.id) {
      this.last = hit.id;
      const shell = this.home.shells.get(hit.id), session = this.home.sessions.get(shell?.session);
      const words = shell ? visible(shell.name || firstLine(shell)) : hit.id.slice(0, 8);
      this.group = el("section", null, el("h3", null, words, el("span.quiet", null, ` ${session ? visible(sessionWords(session)) : ""} ${clock(hit.ms)}`)));
      this.hits.append(this.group);
    }
    const [before, match, after] = hit.text;
    this.group.append(el("button.hit", {type: "button", onclick: () => this.openAt(hit.id, hit.offset)},
      el("span.number", null, `${hit.stream === 1 ? "err" : "out"} ${hit.line}`),
      el("span.words", null, visible(before), el("mark", null, visible(match)), visible(after))));
    if (this.total % 20 === 1) this.summary.textContent = `${count(this.total, "line")} so far`;
  }

  done(totals) {
    const parts = [totals.shown === 0 && !totals.why ? "Nothing was found." : `${count(totals.shown, "line")} of ${totals.matches.toLocaleString("en")} that match`];
    if (totals.left > 0) parts.push(`${count(totals.left, "shell")} not searched`);
    if (totals.unfinished > 0) parts.push(`${count(totals.unfinished, "shell")} not searched to the end`);
    if (totals.dropped > 0) parts.push(`${totals.dropped.toLocaleString("en")} bytes are no longer in the logs`);
    if (totals.why) parts.push(totals.why);
    this.summary.textContent = parts.join(" · ");
  }
}
