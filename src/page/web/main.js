// The page: what it shows is put together here, and the keys.

import {byId, count, el, visible} from "./dom.js";
import {Asks} from "./asks.js";
import {Home, isAlive, sessionWords, statusWords} from "./home.js";
import {List} from "./list.js";
import {Search} from "./search.js";
import {start, watch} from "./server.js";
import {Shell} from "./shell.js";

const home = new Home();
const shell = new Shell(home, say);
const list = new List(home, (id) => open(id));
const search = new Search(home, (id, offset) => open(id, offset), showSearch);
new Asks(home, say);

// -- What is said ---------------------------------------------------------------------------------

// To everybody for a while; to a screen reader only ends and questions, and answers to deeds.
function say(words, click) {
  const notice = el("div.notice", click ? {role: "button", tabindex: "0", onclick: () => (click(), notice.remove())} : null, words);
  byId("notices").append(notice);
  while (byId("notices").childElementCount > 4) byId("notices").firstChild.remove();
  setTimeout(() => notice.remove(), 8000);
  byId("said").textContent = words;
}

function tellOutside(words, id) {
  if (!byId("notify").checked || globalThis.Notification?.permission !== "granted" || document.visibilityState === "visible") return;
  const notice = new Notification("nacre", {body: words, tag: id});
  notice.onclick = () => {
    focus();
    if (home.shells.has(id)) open(id);
  };
}

byId("notify").checked = localStorage.getItem("nacre-notify") === "1" && globalThis.Notification?.permission === "granted";
byId("notify").addEventListener("change", async (event) => {
  if (event.target.checked && globalThis.Notification) event.target.checked = (await Notification.requestPermission()) === "granted";
  localStorage.setItem("nacre-notify", event.target.checked ? "1" : "0");
});

home.addEventListener("ended", ({detail: s}) => {
  if (!s.background && s.outcome !== "running") return; // whoever waited for it hears of it
  const words = `${visible(s.name || s.id.slice(0, 8))}: ${statusWords(s)}`;
  say(words, () => open(s.id));
  tellOutside(words, s.id);
});
home.addEventListener("asks", ({detail: fresh}) => {
  for (const ask of fresh) {
    const words = `${visible(sessionWords(home.sessions.get(ask.session)) || "somebody")} asks: ${visible(ask.command).slice(0, 200)}`;
    byId("said").textContent = words;
    tellOutside(words, ask.id);
  }
  drawTitle();
});

function drawTitle() {
  const alive = [...home.shells.values()].filter(isAlive).length;
  document.title = `${home.asks.length > 0 ? `(${home.asks.length}) ` : ""}nacre · ${alive} running`;
}

function drawBanner() {
  const banner = byId("banner");
  const words = link.refused ? "This page was not let in: its code was used or is too old. “nacre open” opens it."
    : !link.up && link.since && Date.now() - link.since > 1000 ? "The server does not answer. What is shown is how it was; this goes on by itself when it is back."
    : home.notes.slow ?? "";
  banner.hidden = words === "";
  if (banner.textContent !== words) banner.textContent = words;
}

const link = {up: false, since: 0, refused: false};
home.addEventListener("link", ({detail}) => {
  link.up = detail.up;
  link.refused = !!detail.refused;
  link.since = detail.up ? 0 : link.since || Date.now();
  const words = detail.refused ? "not let in" : detail.up ? "live" : "no server";
  const node = byId("link");
  if (node.textContent !== words) node.textContent = words;
  node.className = detail.up ? "up" : "down";
  document.body.classList.toggle("offline", !detail.up);
  drawBanner();
});
setInterval(drawBanner, 1000);

home.addEventListener("state", ({detail}) => {
  byId("host").textContent = home.host;
  document.body.classList.toggle("view-only", !home.acts);
  drawTitle();
  drawBanner();
  if (detail.first) chooseFirst();
  else if (shell.id) {
    watchShown();
    shell.output?.gap(0);
    if (shell.output?.follow) shell.output.toEnd();
  }
});
home.addEventListener("shell", drawTitle);
home.addEventListener("notes", drawBanner);

// -- What is shown --------------------------------------------------------------------------------

function watchShown() {
  const s = home.shells.get(shell.id);
  watch(s && isAlive(s) ? [s.id] : []);
}

function open(id, offset) {
  showSearch(false);
  if (list.chosen !== id) {
    list.chosen = id;
    list.draw();
  }
  shell.open(id, offset);
  document.body.classList.add("one");
  watchShown();
}

function chooseFirst() {
  const alive = [...home.shells.values()].filter(isAlive).sort((a, b) => b.started_ms - a.started_ms);
  list.draw();
  if (alive.length > 0 && matchMedia("(min-width: 801px)").matches) open(alive[0].id);
  else if (!shell.id) shell.clear(home.shells.size > 0 ? "Choose a shell." : "Nothing has run yet.");
}

function showSearch(on) {
  byId("found").hidden = !on;
  byId("shell").hidden = on;
  document.body.classList.toggle("searches", on);
}

// A stream that is asked for a shell anew begins with all of its screen.
shell.node.addEventListener("rebuilt", () => (watch([]), watchShown()));
shell.node.addEventListener("back", () => document.body.classList.remove("one"));

// -- The theme ------------------------------------------------------------------------------------

function drawTheme() {
  const theme = localStorage.getItem("nacre-theme") ?? "auto";
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = {auto: "◐", light: "☀", dark: "☾"}[theme];
  byId("theme").setAttribute("aria-label", `theme: ${theme}`);
}
byId("theme").addEventListener("click", () => {
  const order = ["auto", "light", "dark"];
  const theme = document.documentElement.dataset.theme;
  localStorage.setItem("nacre-theme", order[(order.indexOf(theme) + 1) % 3]);
  drawTheme();
});
drawTheme();

// -- Keys -----------------------------------------------------------------------------------------

const KEYS = [
  ["j k", "the next shell, the one before", {j: () => list.step(1), k: () => list.step(-1), ArrowDown: null, ArrowUp: null}],
  ["/", "search everything that was printed", {"/": () => byId("query").focus()}],
  ["f", "follow the output, or stay", {f: () => shell.follow()}],
  ["g G", "its start, its end", {g: () => shell.top(), G: () => shell.output?.toEnd()}],
  ["x", "end the shell; asks first", {x: () => shell.kill()}],
  ["i", "type into it", {i: () => (shell.node.querySelector(".input input") ?? shell.node.querySelector(".terminal"))?.focus()}],
  ["1 2 3", "all shells, those that run, those that failed", {1: () => list.show("all"), 2: () => list.show("alive"), 3: () => list.show("failed")}],
  ["Esc", "back", {Escape: () => (byId("found").hidden ? document.body.classList.remove("one") : search.close())}],
  ["?", "these keys", {"?": showKeys}],
];

function showKeys() {
  const help = byId("help");
  help.replaceChildren(el("h2", null, "Keys"),
    el("dl", null, ...KEYS.flatMap(([keys, words]) => [el("dt", null, ...keys.split(" ").map((key) => el("kbd", null, key))), el("dd", null, words)])),
    el("div.actions", null, el("button", {type: "button", onclick: () => help.close()}, "close")));
  if (!help.open) help.showModal();
}
byId("keys").addEventListener("click", showKeys);

addEventListener("keydown", (event) => {
  const types = event.target.closest?.("input:not([type=checkbox]), textarea, select, .terminal, dialog");
  if (types || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  for (const [, , keys] of KEYS) {
    const deed = keys[event.key];
    if (!deed || event.repeat && event.key === "x") continue;
    event.preventDefault();
    deed();
    return;
  }
});

list.node.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  list.step(event.key === "ArrowDown" ? 1 : -1);
});

start((name, data) => home.take(name, data));
