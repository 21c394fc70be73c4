// The output of one shell: a window of its log that follows the end, or stands where somebody reads.
// The log has every byte under an offset that never changes, so whatever is not here, above, below
// or left out while too much came, is asked for when it is wanted.

import {bytes as inBytes, clock, count, el} from "./dom.js";
import {get, getJson} from "./server.js";
import {drawn, plain, Reader} from "./text.js";

const TAIL = 65536;
const STEP = 65536;
const LINES_MAX = 5000;       // that stand in the page
const FOLLOWED_MAX = 2000;    // while the end is followed
const LINE_MAX = 4000;        // characters of one
const FRAME_LINES = 400;      // that are laid out at once; a flood has a rest after so many
const REST_MS = 150;
const QUEUE_MAX = 65536;      // bytes that wait; of more the end is shown
const QUEUE_END = 16384;
const FETCH_MAX = 98304;

function fromBase64(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

class Line {
  parts = [];
  length = 0;
  left = 0; // characters that are not shown
  over = false; // what comes is drawn over what stands
  node = null;

  constructor(at, ms, stream) {
    this.at = at;
    this.ms = ms;
    this.stream = stream;
  }

  put(text, style) {
    if (this.over) this.clear();
    const room = LINE_MAX - this.length;
    if (text.length > room) {
      this.left += text.length - Math.max(room, 0);
      text = text.slice(0, Math.max(room, 0));
    }
    this.length += text.length;
    const last = this.parts.at(-1);
    if (text !== "" && last && last.style === style) last.text += text;
    else if (text !== "") this.parts.push({text, style});
  }

  clear() {
    this.parts = [];
    this.length = this.left = 0;
    this.over = false;
  }

  rub() {
    const last = this.parts.at(-1);
    if (last) last.text = last.text.slice(0, -1);
  }

  draw() {
    this.node ??= el(this.stream === 1 ? "div.line.error" : "div.line", {"data-time": clock(this.ms)});
    this.node.replaceChildren(...this.parts.map((part) => drawn(part.text, part.style)));
    if (this.left > 0) this.node.append(el("em.left", null, ` … ${count(this.left, "more character")} in this line`));
    if (this.parts.length === 0) this.node.append("\n");
    return this.node;
  }
}

// Pieces become lines: each stream has a line of its own that is open.
class Writer {
  readers = [new Reader(), new Reader()];
  open = [null, null];

  constructor(begin) {
    this.begin = begin;
  }

  // Line by line, since a line is known by the offset of its first byte.
  write(piece, dirty) {
    for (let from = 0; from < piece.bytes.length;) {
      const newline = piece.bytes.indexOf(10, from);
      const to = newline < 0 ? piece.bytes.length : newline + 1;
      this.writeLine({...piece, at: piece.at + from, bytes: piece.bytes.subarray(from, to)}, dirty);
      from = to;
    }
  }

  writeLine({at, ms, stream, bytes}, dirty) {
    const line = () => (this.open[stream] ??= this.begin(at, ms, stream));
    const change = (f) => {
      const l = line();
      f(l);
      dirty.add(l);
    };
    this.readers[stream].read(bytes, {
      put: (text, style) => change((l) => l.put(text, style)),
      back: () => { if (this.open[stream]) this.open[stream].over = true; },
      erase: (all) => { const l = this.open[stream]; if (l && (all || l.over)) change((x) => x.clear()); },
      rub: () => change((l) => l.rub()),
      end: () => {
        change(() => {});
        this.open[stream].over = false;
        this.open[stream] = null;
      },
    });
  }
}

// Where a line begins that is not the first: what stands before the first newline belongs to one
// that began further up.
function fromNewline(pieces) {
  for (let i = 0; i < pieces.length; i++) {
    const at = pieces[i].bytes.indexOf(10);
    if (at < 0) continue;
    const first = {...pieces[i], at: pieces[i].at + at + 1, bytes: pieces[i].bytes.subarray(at + 1)};
    return [first, ...pieces.slice(i + 1)];
  }
  return pieces;
}

// Up to behind the last newline.
function upToNewline(pieces) {
  for (let i = pieces.length - 1; i >= 0; i--) {
    const at = pieces[i].bytes.lastIndexOf(10);
    if (at < 0) continue;
    return [...pieces.slice(0, i), {...pieces[i], bytes: pieces[i].bytes.subarray(0, at + 1)}];
  }
  return pieces;
}

const endOf = (pieces, otherwise) => {
  const last = pieces.at(-1);
  return last ? last.at + last.bytes.length : otherwise;
};

export class Output {
  lines = [];       // as they stand
  start = 0;        // the window of the log: from here,
  next = 0;         // up to here
  end = 0;          // of the log, as far as is known
  follow = true;
  stream = "both";
  queue = [];       // pieces that came and are not laid out yet
  queued = 0;
  busy = null;      // one question at a time
  dirty = new Set();
  frame = 0;
  closed = false;

  constructor(id, tell) {
    this.id = id;
    this.tell = tell; // what the toolbar shows has changed
    this.body = el("div.lines", {role: "log", "aria-live": "off"});
    this.node = el("div.output", {tabindex: "0", "aria-label": "Output", onscroll: () => this.scrolled()}, this.body);
    this.writer = this.newWriter();
    this.toEnd();
  }

  newWriter() {
    return new Writer((at, ms, stream) => {
      const line = new Line(at, ms, stream);
      this.lines.push(line);
      return line;
    });
  }

  close() {
    this.closed = true;
    cancelAnimationFrame(this.frame);
  }

  // -- Asking for it

  async ask(query) {
    const only = this.stream === "both" ? "" : `&stream=${this.stream}`;
    const answer = await getJson(`/shells/${this.id}/output?as=pieces&${query}${only}`);
    this.end = Math.max(this.end, answer.end);
    for (const piece of answer.pieces) piece.bytes = fromBase64(piece.bytes);
    return answer;
  }

  // One after the other, so that two never move the window at once.
  async alone(f) {
    const before = this.busy;
    const now = (async () => {
      await before?.catch(() => {});
      if (!this.closed) await f();
    })();
    this.busy = now;
    try {
      await now;
    } catch (error) {
      this.tell({error: error.message});
    }
  }

  reset(start) {
    this.queue = [];
    this.queued = 0;
    this.lines = [];
    this.dirty.clear();
    this.body.replaceChildren();
    this.writer = this.newWriter();
    this.start = this.next = start;
  }

  put(pieces) {
    for (const piece of pieces) {
      if (piece.gap > 0) this.skipped(piece.gap, "are no longer in the log");
      this.writer.write(piece, this.dirty);
      this.next = piece.at + piece.bytes.length;
    }
    this.layOut();
  }

  // A line of ours among those of the command.
  skipped(size, why, again) {
    const line = new Line(this.next, Date.now(), 0);
    line.node = el("div.line.note", null, `${inBytes(size)} ${why}`,
      again ? el("button.link", {type: "button", onclick: again}, "show") : null);
    line.draw = () => line.node;
    this.lines.push(line);
    this.dirty.add(line);
  }

  toEnd() {
    this.follow = true;
    return this.alone(async () => {
      const answer = await this.ask(`back=${TAIL}`);
      const cut = answer.pieces.length > 0 && answer.pieces[0].at > 0;
      const pieces = cut ? fromNewline(answer.pieces) : answer.pieces;
      this.reset(pieces[0]?.at ?? answer.next);
      this.put(pieces);
      this.next = Math.max(this.next, answer.next);
      this.scrollToEnd();
      this.tell({});
    });
  }

  // The line that has an offset, with what stands around it.
  toOffset(offset) {
    this.follow = false;
    return this.alone(async () => {
      const from = Math.max(0, offset - STEP / 4);
      const answer = await this.ask(`offset=${from}&limit=${STEP}`);
      let pieces = answer.pieces;
      if (from > 0) pieces = fromNewline(pieces);
      if (answer.next < answer.end) pieces = upToNewline(pieces);
      this.reset(pieces[0]?.at ?? from);
      this.put(pieces);
      this.next = Math.max(this.next, endOf(pieces, answer.next));
      let line = this.lines[0];
      for (const l of this.lines) if (l.at <= offset) line = l;
      if (!line?.node) return;
      for (const marked of this.body.querySelectorAll(".marked")) marked.classList.remove("marked");
      if (offset > 0) line.node.classList.add("marked");
      line.node.scrollIntoView({block: offset > 0 ? "center" : "start"});
      this.tell({});
    }).then(() => this.scrolled());
  }

  async toMoment(ms) {
    const {offset} = await getJson(`/shells/${this.id}/moment?ms=${Math.floor(ms)}`);
    return this.toOffset(offset);
  }

  older() {
    if (this.start === 0 || this.asking) return;
    this.asking = true;
    this.alone(async () => {
      const from = Math.max(0, this.start - STEP);
      const answer = await this.ask(`offset=${from}&limit=${this.start - from}`);
      const pieces = from > 0 ? fromNewline(answer.pieces) : answer.pieces;
      const after = this.lines, writer = this.writer;
      this.lines = [];
      this.writer = this.newWriter();
      const dirty = new Set();
      for (const piece of pieces) {
        if (piece.gap > 0) this.skipped(piece.gap, "are no longer in the log");
        this.writer.write(piece, dirty);
      }
      const height = this.node.scrollHeight, top = this.node.scrollTop;
      this.body.prepend(...this.lines.map((line) => line.draw()));
      this.dirty.clear();
      const added = this.node.scrollHeight - height;
      this.node.scrollTop = top + added;
      this.lines = this.lines.concat(after);
      this.writer = writer;
      this.start = pieces[0]?.at ?? from;
      if (from === 0) this.start = 0;
      this.trimEnd();
      this.tell({});
    }).finally(() => (this.asking = false));
  }

  newer() {
    if (!this.isBehind() || this.asking) return;
    const before = this.next;
    this.asking = true;
    this.alone(async () => {
      const answer = await this.ask(`offset=${this.next}&limit=${STEP}`);
      this.put(answer.pieces);
      this.next = Math.max(this.next, answer.next);
      this.trimStart();
      this.tell({});
    }).finally(() => {
      this.asking = false;
      if (this.next > before) this.scrolled(); // there may be room for more still
    });
  }

  // More was printed than stands here, and is not on its way.
  isBehind() {
    return this.next < this.end && this.queued === 0;
  }

  // -- What comes

  heard(event) {
    if (this.closed) return;
    const piece = {...event, bytes: fromBase64(event.bytes)};
    const end = piece.at + piece.bytes.length;
    this.end = Math.max(this.end, end);
    if (!this.follow || !(this.stream === "both" || (this.stream === "err") === (piece.stream === 1))) {
      this.tell({});
      return;
    }
    this.queue.push(piece);
    this.queued += piece.bytes.length;
    this.layOutSoon();
  }

  // Output was left out, and it goes so far now.
  gap(end) {
    this.end = Math.max(this.end, end);
    if (this.follow) this.layOutSoon();
    else this.tell({});
  }

  layOutSoon() {
    if (this.frame || this.busyFilling || this.resting) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.takeQueue();
    });
  }

  takeQueue() {
    if (this.closed || !this.follow) return;
    this.leaveOut();
    let lines = 0;
    while (this.queue.length > 0 && lines < FRAME_LINES) {
      let piece = this.queue[0];
      if (piece.at > this.next) {
        this.fill(piece.at);
        return;
      }
      this.queue.shift();
      this.queued -= piece.bytes.length;
      if (piece.at < this.next) piece = {...piece, at: this.next, bytes: piece.bytes.subarray(this.next - piece.at)};
      if (piece.bytes.length === 0) continue;
      const before = this.lines.length;
      this.writer.write(piece, this.dirty);
      this.next = piece.at + piece.bytes.length;
      lines += this.lines.length - before;
    }
    this.trimStart();
    this.layOut();
    if (this.follow) this.scrollToEnd();
    this.tell({});
    if (lines >= FRAME_LINES / 2) this.rest();
    if (this.queue.length > 0) this.layOutSoon();
    else if (this.next < this.end && !this.resting) this.fill(this.end);
  }

  // During a flood the page has other things to do, too.
  rest() {
    this.resting = true;
    setTimeout(() => {
      this.resting = false;
      this.layOutSoon();
    }, REST_MS);
  }

  // Nobody reads so fast: the end is what is shown.
  leaveOut() {
    if (this.queued <= QUEUE_MAX) return;
    while (this.queued > QUEUE_END && this.queue.length > 1) this.queued -= this.queue.shift().bytes.length;
    this.skipTo(this.queue[0].at);
  }

  skipTo(to) {
    const from = this.next;
    if (to <= from) return;
    this.skipped(to - from, "left out, to keep up ", () => this.toOffset(from));
    this.next = to;
    this.writer = this.newWriter();
  }

  // What is missing before the next piece: asked for if it is little, else left out.
  fill(to) {
    const from = this.next;
    if (this.stream !== "both" || to - from > FETCH_MAX) {
      if (this.stream === "both") this.skipTo(to);
      this.next = to;
      if (this.queue.length === 0 && this.stream === "both") this.toEnd();
      else this.layOutSoon();
      return;
    }
    this.busyFilling = true;
    this.alone(async () => {
      const answer = await this.ask(`offset=${from}&limit=${to - from}`);
      if (this.next !== from) return;
      this.put(answer.pieces);
      this.next = Math.max(this.next, answer.next, answer.next < to && answer.pieces.length === 0 ? to : 0);
      this.trimStart();
      this.scrollToEnd();
    }).finally(() => {
      this.busyFilling = false;
      if (this.queue.length > 0) this.layOutSoon();
      this.tell({});
    });
  }

  // -- Laying out

  layOut() {
    const fresh = [];
    for (const line of this.dirty) {
      const isNew = !line.node?.isConnected;
      line.draw();
      if (isNew) fresh.push(line);
    }
    this.dirty.clear();
    if (fresh.length > 0) this.body.append(...fresh.map((line) => line.node));
  }

  trimStart() {
    const extra = this.lines.length - (this.follow ? FOLLOWED_MAX : LINES_MAX);
    if (extra < 300) return;
    for (const line of this.lines.splice(0, extra)) {
      this.dirty.delete(line);
      line.node?.remove();
    }
    this.start = this.lines[0]?.at ?? this.next;
  }

  trimEnd() {
    const extra = this.lines.length - LINES_MAX * 2;
    if (extra < 500) return;
    const gone = this.lines.splice(this.lines.length - extra, extra);
    for (const line of gone) line.node?.remove();
    this.next = gone[0].at;
    this.writer = this.newWriter();
  }

  scrollToEnd() {
    this.node.scrollTop = this.node.scrollHeight;
  }

  scrolled() {
    const {scrollTop, scrollHeight, clientHeight} = this.node;
    const below = scrollHeight - scrollTop - clientHeight;
    if (scrollTop < 600 && scrollHeight > clientHeight) this.older();
    if (this.follow && below > 24) {
      this.follow = false;
      this.queue = [];
      this.queued = 0;
      this.tell({});
    } else if (!this.follow && below < 4 && !this.isBehind() && this.next >= this.end) {
      this.follow = true;
      this.tell({});
    } else if (!this.follow && below < 600) {
      this.newer();
    }
  }

  // How much stands below what is shown.
  unseen() {
    return this.follow ? 0 : Math.max(0, this.end - this.next);
  }

  show(stream) {
    this.stream = stream;
    return this.toEnd();
  }

  // All of it, as it was printed.
  async save(name) {
    const parts = [];
    let at = 0;
    for (;;) {
      const answer = await get(`/shells/${this.id}/output?offset=${at}&limit=1048576`);
      parts.push(await answer.arrayBuffer());
      const next = Number(answer.headers.get("X-Nacre-Next"));
      if (next <= at || next >= Number(answer.headers.get("X-Nacre-End"))) break;
      at = next;
    }
    const link = el("a", {download: `${name}.log`});
    link.href = URL.createObjectURL(new Blob(parts, {type: "application/octet-stream"}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}
