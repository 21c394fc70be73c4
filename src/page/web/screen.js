// The screen of a shell with a terminal. The server draws it, and says which rows changed; keys go
// back one by one, if this page may act.

import {el} from "./dom.js";
import {drawn, screenStyle} from "./text.js";

const NAMED = {
  Enter: "enter", Backspace: "backspace", Tab: "tab", Escape: "esc", Delete: "del", Insert: "ins",
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
  Home: "home", End: "end", PageUp: "pgup", PageDown: "pgdn",
};

export function keyName(event) {
  const name = NAMED[event.key] ?? (/^F\d\d?$/.test(event.key) ? event.key.toLowerCase() : null);
  const base = name ?? ([...event.key].length === 1 ? event.key : null);
  if (!base || event.metaKey) return null;
  return (event.ctrlKey ? "C-" : "") + (event.altKey ? "M-" : "") + (event.shiftKey && name ? "S-" : "") + base;
}

export class Screen {
  lines = [];
  cursorKeys = false;

  constructor(id, type) {
    this.id = id;
    this.body = el("div.rows");
    this.node = el("div.terminal", {tabindex: "0", role: "textbox", "aria-multiline": "true", "aria-label": "Terminal",
      "aria-readonly": String(!type)}, this.body);
    this.hint = el("p.hint", null, type ? "Click into the screen to type. Ctrl+Shift+Escape leaves it." : "This page may look only.");
    this.wrap = el("div.screen", null, this.node, this.hint);
    if (!type) return;
    this.node.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key === "Escape" && event.ctrlKey && event.shiftKey)) {
        if (event.key === "Escape") this.node.blur();
        return;
      }
      const copies = event.ctrlKey && (event.shiftKey || !getSelection().isCollapsed) && event.key.toLowerCase() === "c";
      const pastes = event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "v";
      const key = keyName(event);
      if (!key || copies || pastes) return;
      event.preventDefault();
      event.stopPropagation();
      type(key === event.key ? {text: key} : {keys: [key], cursor_keys: this.cursorKeys});
    });
    this.node.addEventListener("paste", (event) => {
      event.preventDefault();
      const text = event.clipboardData.getData("text/plain").replaceAll("\x1b", "").replaceAll("\r\n", "\n").replaceAll("\n", "\r");
      if (text) type({text: this.paste ? `\x1b[200~${text}\x1b[201~` : text});
    });
  }

  heard(screen) {
    this.cursorKeys = screen.cursor_keys;
    this.paste = screen.paste;
    this.node.style.setProperty("--columns", screen.columns);
    while (this.lines.length > screen.rows) this.lines.pop().remove();
    while (this.lines.length < screen.rows) {
      const line = el("div.screen-row", null, " ");
      this.lines.push(line);
      this.body.append(line);
    }
    for (const [at, stretches] of Object.entries(screen.lines)) this.put(Number(at), stretches);
    this.cursor(screen.row, screen.column);
  }

  put(at, stretches) {
    const line = this.lines[at];
    if (!line) return;
    line.stretches = stretches;
    line.replaceChildren(...stretches.map(([text, attributes, front, back]) => drawn(text, screenStyle(attributes, front, back))));
    if (stretches.length === 0) line.append(" ");
  }

  // The cell under the cursor, as a mark of its own.
  cursor(row, column) {
    if (this.marked != null && this.lines[this.marked]?.stretches) this.put(this.marked, this.lines[this.marked].stretches);
    this.marked = null;
    const line = this.lines[row];
    if (!line) return;
    this.marked = row;
    line.stretches ??= [];
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    let left = column;
    if (line.stretches.length === 0) line.replaceChildren();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const characters = [...node.data];
      if (left < characters.length) {
        const range = document.createRange();
        const from = characters.slice(0, left).join("").length;
        range.setStart(node, from);
        range.setEnd(node, from + characters[left].length);
        range.surroundContents(el("span.cursor"));
        return;
      }
      left -= characters.length;
    }
    line.append(" ".repeat(Math.max(0, left)), el("span.cursor", null, " "));
  }
}
