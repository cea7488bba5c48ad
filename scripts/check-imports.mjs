#!/usr/bin/env node
// Holds the direction of imports: a file may import from its own folder and from the index.ts of folders on floors below.
// Rooms inside a folder have floors of their own. The floors are those of ARCHITECTURE.md. Exits 1 and names each import that breaks the rule.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..', 'src');
const floors = {
  base: 1,
  arch: 2,
  elf: 2,
  rsp: 2,
  trace: 2,
  dwarf: 3,
  values: 4,
  futures: 5,
  unwind: 6,
  facts: 6,
  probes: 7,
  tasks: 7,
  stacks: 7,
  engines: 8,
  recorder: 9,
  doctor: 9,
  check: 9,
  api: 10,
  profile: 10,
  cli: 11,
  'index.ts': 11,
};
/** Rooms inside a folder: each imports only from those on lower floors; the folder's own files (index.ts) from all. */
const rooms = {
  'trace/events': 1,
  'trace/formats': 2,
  'trace/report': 3,
};
const externals = {
  // Only these folders may use these packages: the CLI's are kept out of the library.
  pino: ['cli'],
  yargs: ['cli'],
  'capstone-wasm': ['arch'],
  'gecko-profiler-demangle': ['dwarf'],
  fzstd: ['elf'],
  '@viz-js': ['futures'],
};

const room = (file) => relative(root, file).split('/')[0];
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
