// Small plots: a line over time, with its number as text beside it for who cannot see it.

import {clock} from "./dom.js";

const NS = "http://www.w3.org/2000/svg";

function svg(name, attributes) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

export class Plot {
  constructor(kind, {width = 240, height = 36, pick} = {}) {
    this.width = width;
    this.height = height;
    this.area = svg("path", {class: "area"});
    this.line = svg("path", {class: "stroke"});
    this.node = svg("svg", {class: `plot ${kind}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img"});
    this.title = svg("title", {});
    this.node.append(this.title, this.area, this.line);
    if (!pick) return;
    const moment = (event) => {
      const box = this.node.getBoundingClientRect();
      return (this.from + (this.to - this.from) * ((event.clientX - box.left) / box.width)) * 1000;
    };
    this.node.classList.add("picks");
    this.node.addEventListener("click", (event) => this.to > this.from && pick(moment(event)));
    this.node.addEventListener("mousemove", (event) => {
      if (this.to > this.from) this.title.textContent = `${this.words}; click for the output at ${clock(moment(event))}`;
    });
  }

  // points: [second, value], oldest first; least: what the top of the plot stands for at least.
  show(points, least, words) {
    this.words = words;
    if (this.node.getAttribute("aria-label") !== words) this.node.setAttribute("aria-label", words);
    if (points.length < 2) {
      this.line.setAttribute("d", "");
      this.area.setAttribute("d", "");
      return;
    }
    this.from = points[0][0];
    this.to = Math.max(points.at(-1)[0], this.from + 1);
    const top = Math.max(least, ...points.map((p) => p[1]));
    const x = (t) => ((t - this.from) / (this.to - this.from)) * this.width;
    const y = (v) => this.height - 1 - (v / top) * (this.height - 3);
    let d = "";
    for (const [t, v] of points) d += `${d ? "L" : "M"}${x(t).toFixed(1)} ${y(v).toFixed(1)}`;
    this.line.setAttribute("d", d);
    this.area.setAttribute("d", `${d}L${this.width} ${this.height}L0 ${this.height}Z`);
  }
}
