// Elements, and words for numbers. Text of strangers only ever becomes the text of a node: nothing
// here, or anywhere in these files, takes a string for markup.

export const byId = (id) => document.getElementById(id);

// el("button.quiet", {title: "..."}, "text", child, ...): classes behind dots, null children left out.
export function el(what, attributes, ...children) {
  const [name, ...classes] = what.split(".");
  const node = document.createElement(name);
  if (classes.length > 0) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// Sets what differs, so that nothing is laid out anew for nothing.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Makes the children of a node the ones given, in that order, and moves as few as it can.
export function setChildren(node, wanted) {
  let at = node.firstChild;
  for (const child of wanted) {
    if (child === at) at = at.nextSibling;
    else node.insertBefore(child, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// What cannot be seen, or makes the rest stand in another order, as escapes.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

export function visible(text) {
  return text.replace(unseen, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

// The same with each escape as something that stands out.
export function visibleNodes(text) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(unseen)) {
    nodes.push(text.slice(from, match.index), el("mark.unseen-character", null, visible(match[0])));
    from = match.index + match[0].length;
  }
  nodes.push(text.slice(from));
  return nodes;
}

// -- Numbers as words -----------------------------------------------------------------------------

export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, "0")}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${String(Math.floor(s / 60) % 60).padStart(2, "0")}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
}

export function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1024;
  return `${i > 0 && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export const percent = (tenths) => `${tenths < 100 ? (tenths / 10).toFixed(1) : Math.round(tenths / 10)}%`;

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export function clock(ms) {
  const date = new Date(ms);
  const time = date.toTimeString().slice(0, 8);
  return Date.now() - ms < 43200000 ? time : `${date.toISOString().slice(0, 10)} ${time}`;
}
