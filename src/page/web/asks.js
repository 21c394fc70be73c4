// Questions of the rules: whether a command may start. What is shown is the whole command, with what
// cannot be seen in it. No answer has the focus by itself, none is the answer to Enter, and for half
// a second after one appears, or others move, nothing can be pressed: a click that was meant for
// something else answers nothing.

import {byId, clock, el, setChildren, visible, visibleNodes} from "./dom.js";
import {sessionWords} from "./home.js";
import {post} from "./server.js";

const DEAD_MS = 500;

const ANSWERS = [["no", "deny"], ["once", "allow once"], ["session", "allow for the session"], ["always", "allow always"]];

class Card {
  constructor(asks, ask) {
    const session = asks.home.sessions.get(ask.session);
    this.ask = ask;
    this.buttons = ANSWERS.filter(([answer]) => answer !== "always" || ask.always).map(([answer, words]) => el("button", {type: "button", disabled: true, "data-answer": answer,
      onclick: () => this.answer(asks, answer)}, words));
    const found = ask.commands && ask.commands !== ask.command ? el("details", null, el("summary", null, "what would run"), el("pre", null, ...visibleNodes(ask.commands))) : null;
    this.node = el("article.ask", {"aria-label": "A command waits for your answer"},
      el("p.who", null, el("b", null, visible(ask.asker || sessionWords(session) || "somebody")), " wants to run in ", el("code", null, visible(ask.cwd || session?.cwd || "")),
        ask.asked_ms ? ` · ${clock(ask.asked_ms)}` : null),
      el("pre.command", {tabindex: "0"}, ...visibleNodes(ask.command)), found,
      ask.description ? el("p.described", null, "It says: ", ...visibleNodes(ask.description)) : null,
      ask.wants ? el("p.reason", null, "It asks for ", ...visibleNodes(ask.wants), ".") : null,
      el("p.reason", null, visible(ask.reason)),
      ask.always ? el("details", null, el("summary", null, "what “always” writes into your configuration"), el("pre", null, ...visibleNodes(ask.always))) : null,
      asks.home.acts ? el("div.actions", null, ...this.buttons) : el("p.right", null, "This page may look only."));
    // Enter answers nothing, wherever the focus is; a key that is held down since before neither.
    this.node.addEventListener("keydown", (event) => {
      if (event.target.closest("button") && (event.key === "Enter" || event.repeat)) event.preventDefault();
    });
  }

  wake(at) {
    clearTimeout(this.timer);
    for (const button of this.buttons) button.disabled = true;
    this.timer = setTimeout(() => {
      for (const button of this.buttons) button.disabled = false;
    }, at);
  }

  async answer(asks, answer) {
    for (const button of this.buttons) button.disabled = true;
    try {
      await post(`/asks/${this.ask.id}`, {answer});
      asks.say(answer === "no" ? "Denied." : "Allowed.");
    } catch (error) {
      asks.say(error.message);
      this.wake(DEAD_MS);
    }
  }
}

export class Asks {
  cards = new Map();

  constructor(home, say) {
    this.home = home;
    this.say = say;
    this.node = byId("asks");
    for (const type of ["state", "asks", "sessions"]) home.addEventListener(type, () => this.draw());
  }

  draw() {
    const open = new Set(this.home.asks.map((ask) => ask.id));
    let moved = false;
    for (const id of this.cards.keys()) if (!open.has(id)) moved = this.cards.delete(id);
    for (const ask of this.home.asks)
      if (!this.cards.has(ask.id)) {
        this.cards.set(ask.id, new Card(this, ask));
        moved = true;
      }
    if (moved) for (const card of this.cards.values()) card.wake(DEAD_MS);
    setChildren(this.node, [...this.cards.values()].map((card) => card.node));
    this.node.hidden = this.cards.size === 0;
  }
}
