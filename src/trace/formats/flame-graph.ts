/*
 * A flame graph as one SVG 1.1 file, after Brendan Gregg's (brendangregg.com/flamegraphs.html): the width of a frame is
 * the time inside it, callers below. It shows without scripts; with them a click zooms, and the search marks frames and
 * says their share. Nothing is loaded from elsewhere. Frames narrower than a tenth of a pixel are left out.
 */
import { startOf } from '../../base/file-bytes.js';
import { visible } from '../../text/index.js';
import { CallTree, type TreeNode, totals } from '../events/call-tree.js';
import { timeText } from '../events/text-table.js';
import type { Format } from './format.js';
import { textAtEnd } from './written-at-end.js';

const WIDTH = 1200;
const ROW = 17;
const HEAD = 60;
const FOOT = 24;
const SIDE = 10;
const CHARACTER = 6.8;
const NARROWEST = 0.1;

export const flameGraph: Format = {
  name: 'flame graph',
  extensions: ['.svg'],
  about: 'one picture to click and to search, for any browser',
  use: 'open it in a browser: click a frame to zoom, search at the top right',
  isAppended: false,
  holdsSamples: 'merged',
  recognizes: (head) => /<!-- rsptrace flame graph -->/.test(startOf(head)),
  open: textAtEnd(() => new CallTree(), picture),
};

interface Box {
  readonly node: TreeNode;
  readonly depth: number;
  /** Nanoseconds. */
  readonly from: number;
  readonly time: number;
}

function* picture(tree: CallTree): Generator<string> {
  const times = totals(tree);
  const all = [...tree.root.children.values()].reduce((sum, node) => sum + (times.get(node) ?? 0), 0);
  const found = boxes(tree, times, all);
  const deepest = found.reduce((most, { depth }) => Math.max(most, depth), 0);
  const height = HEAD + (deepest + 2) * ROW + FOOT;
  const of = tree.counts === 'waits' ? 'of waiting' : 'in calls and polls';
  const what = tree.counts === 'samples' ? `${tree.samples} samples` : `${timeText(all)} ${of}`;
  const title = `${tree.info?.program ?? ''}: ${what}`;
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<!-- rsptrace flame graph -->\n';
  yield `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">\n`;
  yield '<style>text{pointer-events:none}.f{cursor:pointer}.f:hover rect{stroke:#000}.b{pointer-events:all;cursor:pointer}.m rect{fill:#e600e6}.p rect{opacity:.5}</style>\n';
  yield `<rect width="100%" height="100%" fill="#f8f8f4"/>\n<text x="${WIDTH / 2}" y="22" text-anchor="middle" font-size="16">${xml(visible(title))}</text>\n`;
  yield `<text class="b" id="reset" x="${SIDE}" y="42" visibility="hidden">Reset zoom</text><text class="b" id="search" x="${WIDTH - SIDE}" y="42" text-anchor="end">Search</text>\n`;
  yield `<text id="details" x="${SIDE}" y="${height - 8}"> </text><text id="matched" x="${WIDTH - SIDE}" y="${height - 8}" text-anchor="end"> </text>\n`;
  const bottom = height - FOOT - ROW;
  const scale = (WIDTH - 2 * SIDE) / Math.max(1, all);
  yield frame({ name: 'all', from: 0, time: all, depth: 0, scale, bottom, color: '#d8d0c8', more: timeText(all) });
  for (const { node, depth, from, time } of found) {
    const name = node.frame?.name ?? '';
    const share = ((100 * time) / Math.max(1, all)).toFixed(2);
    const more =
      tree.counts === 'samples'
        ? `${share} % of the samples, ${node.samples} of them here`
        : `${numberOf(tree, node)}, ${timeText(time)}, ${share} %, self ${timeText(node.self)}`;
    yield frame({ name, from, time, depth: depth + 1, scale, bottom, color: colorOf(name), more });
  }
  yield `<script><![CDATA[${flameScript({ width: WIDTH, side: SIDE, character: CHARACTER, all })}]]></script>\n</svg>\n`;
}

function numberOf({ counts }: CallTree, { calls, samples }: TreeNode): string {
  return counts === 'waits' ? `${samples} waits` : samples > 0 ? `${samples} samples` : `${calls} calls`;
}

/** Those wide enough to be seen, callers before callees. */
function boxes(tree: CallTree, times: ReadonlyMap<TreeNode, number>, all: number): Box[] {
  const least = (NARROWEST * all) / (WIDTH - 2 * SIDE);
  const found: Box[] = [];
  const waiting: Box[] = [];
  const put = (children: TreeNode['children'], depth: number, start: number): void => {
    let from = start;
    const sorted = [...children.values()].sort((a, b) => ((a.frame?.name ?? '') < (b.frame?.name ?? '') ? -1 : 1));
    for (const node of sorted) {
      const time = times.get(node) ?? 0;
      if (time > 0 && time >= least) waiting.push({ node, depth, from, time });
      from += time;
    }
  };
  put(tree.root.children, 0, 0);
  for (let box = waiting.pop(); box !== undefined; box = waiting.pop()) {
    found.push(box);
    put(box.node.children, box.depth + 1, box.from);
  }
  return found;
}

interface Drawn {
  readonly name: string;
  readonly from: number;
  readonly time: number;
  readonly depth: number;
  readonly scale: number;
  readonly bottom: number;
  readonly color: string;
  readonly more: string;
}

function frame({ name, from, time, depth, scale, bottom, color, more }: Drawn): string {
  const x = SIDE + from * scale;
  const width = time * scale;
  const y = bottom - depth * ROW;
  const shown = visible(name);
  const room = Math.floor((width - 6) / CHARACTER);
  const label = room < 3 ? '' : shown.length <= room ? shown : `${shown.slice(0, room - 2)}..`;
  const rect = `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0, width - 0.4).toFixed(2)}" height="${ROW - 1}" fill="${color}" rx="1"/>`;
  const text = `<text x="${(x + 3).toFixed(2)}" y="${y + 12}">${xml(label)}</text>`;
  return `<g class="f" data-n="${xml(shown)}" data-x="${from}" data-w="${time}" data-d="${depth}"><title>${xml(`${shown} (${more})`)}</title>${rect}${text}</g>\n`;
}

/** The same for the same name: warm for functions, blue for polls. */
function colorOf(name: string): string {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) >>> 0;
  return name.startsWith('poll ')
    ? `hsl(${200 + (hash % 30)} 60% ${68 + ((hash >>> 8) % 10)}%)`
    : `hsl(${10 + (hash % 45)} 85% ${64 + ((hash >>> 8) % 10)}%)`;
}

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

interface Measures {
  readonly width: number;
  readonly side: number;
  readonly character: number;
  /** Nanoseconds of the whole picture. */
  readonly all: number;
}

/** What a flame graph does in a browser. It has no `]]>`, which would end the section that it stands in. */
function flameScript({ width, side, character, all }: Measures): string {
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
