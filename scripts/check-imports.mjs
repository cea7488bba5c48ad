#!/usr/bin/env node
// Holds the direction of imports: a file may import from its own folder and from the index.ts of folders on floors below.
// Rooms inside a folder have floors of their own. The floors are those of ARCHITECTURE.md. Exits 1 and names each import that breaks the rule.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..', 'src');
const floors = {
  base: 1,
  text: 2,
  elf: 3,
  arch: 3,
  rsp: 3,
  trace: 3,
  dwarf: 4,
  values: 5,
  'async/futures': 6,
  target: 7,
  'target/unwind': 7,
  'target/stacks': 8,
  'async/tasks': 8,
  clock: 8,
  calls: 9,
  probes: 10,
  proof: 11,
  scratch: 11,
  stop: 12,
  inject: 13,
  engines: 14,
  record: 15,
  doctor: 16,
  check: 16,
  profile: 17,
  api: 17,
  cli: 18,
  'index.ts': 18,
};
/** Rooms inside a folder: each imports only from those on lower floors; the folder's own files (index.ts) from all. */
const rooms = {
  'trace/events': 1,
  'trace/formats': 2,
  'trace/report': 3,
  'trace/viewer': 4,
};
const externals = {
  // Only these folders may use these packages: the CLI's are kept out of the library.
  pino: ['cli'],
  yargs: ['cli'],
  'capstone-wasm': ['arch'],
  'gecko-profiler-demangle': ['dwarf'],
  fzstd: ['elf'],
  '@viz-js': ['async/futures'],
};

/** The room of a file: the longest name that it lies in. */
const room = (file) => {
  const name = relative(root, file);
  const names = Object.keys(floors).filter((one) => name === one || name.startsWith(`${one}/`));
  return names.sort((a, b) => b.length - a.length)[0] ?? name.split('/')[0];
};
const roomInside = (file) => relative(root, file).split('/').slice(0, 2).join('/');
const haveRooms = new Set(Object.keys(rooms).map((name) => name.split('/')[0]));
const problems = [];
let edges = 0;
for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
  const file = join(entry.parentPath, entry.name);
  const from = room(file);
  const name = relative(root, file);
  if (!(from in floors)) {
    problems.push(`${name}: the folder ${from} has no floor; give it one here and in ARCHITECTURE.md`);
    continue;
  }
  const inside = roomInside(file);
  if (haveRooms.has(from) && !(inside in rooms) && inside !== `${from}/index.ts`)
    problems.push(`${name}: it belongs into a room of ${from}/, which have floors`);
  for (const [, specifier] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)) {
    edges++;
    if (specifier.startsWith('.')) {
      const target = resolve(dirname(file), specifier.replace(/\.js$/, '.ts'));
      const to = room(target);
      if (to !== from && !(floors[to] < floors[from])) problems.push(`${name} (${from}) imports ${specifier} (${to})`);
      else if (to !== from && to !== 'base' && target !== join(root, to, 'index.ts'))
        problems.push(`${name} imports ${specifier}: of another folder only its index.ts is imported`);
      else if (to === from && inside in rooms) {
        const other = roomInside(target);
        if (other !== inside && !(rooms[other] < rooms[inside]))
          problems.push(`${name} (${inside}) imports ${specifier} (${other})`);
      }
    } else {
      const allowed = externals[specifier.split('/')[0]];
      if (allowed && !allowed.includes(from))
        problems.push(`${name} imports ${specifier}, which is for ${allowed} only`);
    }
  }
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`imports run one way (${edges} checked)`);
