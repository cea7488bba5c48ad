interface Measures {
  readonly width: number;
  readonly side: number;
  readonly character: number;
  /** Nanoseconds of the whole picture. */
  readonly all: number;
}

/** What a flame graph does in a browser. It has no `]]>`, which would end the section that it stands in. */
export function flameScript({ width, side, character, all }: Measures): string {
  return `
"use strict";
var frames = Array.prototype.slice.call(document.querySelectorAll(".f"));
var details = document.getElementById("details"), matched = document.getElementById("matched");
var reset = document.getElementById("reset"), search = document.getElementById("search");
function of(g, name) { return Number(g.getAttribute("data-" + name)); }
function show(from, time, depth) {
  var scale = (${width} - 2 * ${side}) / Math.max(1, time);
  frames.forEach(function (g) {
    var x = of(g, "x"), w = of(g, "w"), rect = g.querySelector("rect"), text = g.querySelector("text");
    var isAround = x <= from && x + w >= from + time && of(g, "d") < depth;
    var begin = Math.max(x, from), end = Math.min(x + w, from + time);
    var wide = (end - begin) * scale;
    g.style.display = end > begin && wide > 0.05 ? "" : "none";
    g.classList.toggle("p", isAround);
    var left = ${side} + (begin - from) * scale, room = Math.floor((wide - 6) / ${character});
    var name = g.getAttribute("data-n");
    rect.setAttribute("x", left); rect.setAttribute("width", Math.max(0, wide - 0.4)); text.setAttribute("x", left + 3);
    text.textContent = room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 2) + "..";
  });
  reset.setAttribute("visibility", time < ${all} ? "visible" : "hidden");
}
function find(words) {
  var pattern = null, spans = [];
  if (words) { try { pattern = new RegExp(words); } catch (e) { return; } }
  frames.forEach(function (g) {
    var hit = pattern !== null && of(g, "d") > 0 && pattern.test(g.getAttribute("data-n"));
    g.classList.toggle("m", hit);
    if (hit) spans.push([of(g, "x"), of(g, "x") + of(g, "w")]);
  });
  spans.sort(function (a, b) { return a[0] - b[0]; });
  var sum = 0, upTo = 0;
  spans.forEach(function (s) { sum += Math.max(0, s[1] - Math.max(upTo, s[0])); upTo = Math.max(upTo, s[1]); });
  matched.textContent = pattern === null ? " " : "Matched: " + (100 * sum / Math.max(1, ${all})).toFixed(1) + " %";
}
frames.forEach(function (g) {
  g.addEventListener("click", function () { show(of(g, "x"), of(g, "w"), of(g, "d")); });
  g.addEventListener("mouseover", function () { details.textContent = g.querySelector("title").textContent; });
  g.addEventListener("mouseout", function () { details.textContent = " "; });
});
reset.addEventListener("click", function () { show(0, ${all}, 0); });
search.addEventListener("click", function () { find(prompt("Search for a regular expression:", "")); });
`;
}
