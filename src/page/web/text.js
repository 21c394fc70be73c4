// What a command printed, as stretches of text with how each is drawn. Escape sequences that set
// colours and attributes are obeyed; all others are swallowed, whatever they ask for.

const ESCAPE = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]{0,65536}(?:\x07|\x1b\\|$)|[ -/]*[0-~])/y;
const OPEN_ESCAPE = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,65536}\x1b?|[ -/]*)?$/;

export const plain = Object.freeze({classes: "", front: 0, back: 0});

const BITS = {1: "bold", 2: "faint", 3: "italic", 4: "under", 5: "blink", 7: "reverse", 8: "hidden", 9: "struck"};
const RGB = 0x02000000, INDEX = 0x01000000;

// One colour of 38 or 48, from its numbers: [colour, how many were taken].
function readColour(numbers, at) {
  if (numbers[at] === 5) return [INDEX | (numbers[at + 1] & 255), 2];
  if (numbers[at] === 2) {
    const [r, g, b] = numbers.slice(at + 1, at + 4).map((n) => (n ?? 0) & 255);
    return [RGB | (r << 16) | (g << 8) | (b ?? 0), 4];
  }
  return [0, 1];
}

class Pen {
  attributes = new Set();
  front = 0;
  back = 0;

  take(numbers) {
    for (let i = 0; i < numbers.length; i++) {
      const n = numbers[i];
      if (n === 0) {
        this.attributes.clear();
        this.front = this.back = 0;
      } else if (BITS[n]) this.attributes.add(BITS[n]);
      else if (n === 22) this.attributes.delete("bold"), this.attributes.delete("faint");
      else if (n > 22 && n < 30) this.attributes.delete(BITS[n - 20]);
      else if (n >= 30 && n <= 37) this.front = INDEX | (n - 30);
      else if (n >= 90 && n <= 97) this.front = INDEX | (n - 82);
      else if (n >= 40 && n <= 47) this.back = INDEX | (n - 40);
      else if (n >= 100 && n <= 107) this.back = INDEX | (n - 92);
      else if (n === 39) this.front = 0;
      else if (n === 49) this.back = 0;
      else if (n === 38 || n === 48) {
        const [colour, taken] = readColour(numbers, i + 1);
        if (n === 38) this.front = colour;
        else this.back = colour;
        i += taken;
      }
    }
  }

  // The same object for as long as nothing changes.
  style() {
    if (this.attributes.size === 0 && !this.front && !this.back) return plain;
    return {classes: [...this.attributes].join(" "), front: this.front, back: this.back};
  }
}

// One of 256: the first sixteen are the theme's, the others a cube and greys.
function colourText(colour) {
  if (colour & RGB) return `rgb(${(colour >> 16) & 255} ${(colour >> 8) & 255} ${colour & 255})`;
  const n = colour & 255;
  if (n < 16) return `var(--c${n})`;
  if (n >= 232) return `rgb(${[0, 0, 0].map(() => 8 + (n - 232) * 10).join(" ")})`;
  const level = (v) => (v === 0 ? 0 : 55 + v * 40);
  const i = n - 16;
  return `rgb(${level(Math.floor(i / 36))} ${level(Math.floor(i / 6) % 6)} ${level(i % 6)})`;
}

// Text as a node, drawn so. Styles are set by property, which no policy takes for a stranger's.
export function drawn(stretch, style) {
  const text = stretch.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd"); // no line is turned around
  if (!style.classes && !style.front && !style.back) return document.createTextNode(text);
  const node = document.createElement("span");
  node.textContent = text;
  if (style.classes) node.className = style.classes;
  if (style.front) node.style.setProperty("--front", colourText(style.front));
  if (style.back) node.style.setProperty("--back", colourText(style.back));
  if (style.front) node.classList.add("coloured");
  if (style.back) node.classList.add("backed");
  return node;
}

const SCREEN_BITS = ["bold", "faint", "italic", "under", "blink", "reverse", "hidden", "struck"];

// The style of a stretch of a screen, as the server tells it.
export function screenStyle(attributes, front, back) {
  if (!attributes && !front && !back) return plain;
  return {classes: SCREEN_BITS.filter((_, i) => attributes & (1 << i)).join(" "), front, back};
}

// The lines of one stream, in pieces as they come.
export class Reader {
  decoder = new TextDecoder();
  pen = new Pen();
  style = plain;
  rest = "";

  // Calls put(text, style), back() for a carriage return, erase() for what draws over a line, and
  // end() for a newline.
  read(bytes, out) {
    const text = this.rest + this.decoder.decode(bytes, {stream: true});
    this.rest = "";
    let from = 0;
    const special = /[\x00-\x08\x0a-\x1f\x7f]/g;
    for (;;) {
      special.lastIndex = from;
      const found = special.exec(text);
      const at = found ? found.index : text.length;
      if (at > from) out.put(text.slice(from, at), this.style);
      if (!found) return;
      from = this.obey(text, at, out);
      if (from < 0) return;
    }
  }

  obey(text, at, out) {
    const c = text[at];
    if (c === "\n") out.end();
    else if (c === "\r") out.back();
    else if (c === "\b") out.rub();
    if (c !== "\x1b") return at + 1;
    ESCAPE.lastIndex = at;
    const found = ESCAPE.exec(text);
    if (!found) {
      if (!OPEN_ESCAPE.test(text.slice(at))) return at + 1;
      this.rest = text.slice(at);
      return -1;
    }
    const sequence = found[0];
    if (sequence.startsWith("\x1b[")) this.control(sequence, out);
    return at + sequence.length;
  }

  control(sequence, out) {
    const final = sequence.at(-1), body = sequence.slice(2, -1);
    if (final === "K" && (body === "" || body === "0" || body === "2")) out.erase(body === "2");
    if (final !== "m" || !/^[\d;:]*$/.test(body)) return;
    this.pen.take(body.split(/[;:]/).map(Number));
    this.style = this.pen.style();
  }
}
