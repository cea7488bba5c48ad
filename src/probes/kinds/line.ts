import { basename } from 'node:path';
import { type Addr, hex } from '../../base/addr.js';
import { AddressMap } from '../../base/address-map.js';
import { RsptraceError } from '../../base/errors.js';
import { addTo, madeOnce } from '../../base/made-once.js';
import { nearestWords } from '../../base/search.js';
import { type DebugInfo, type LineTable, scopeAt, type Unit } from '../../dwarf/index.js';
import { textTable } from '../../text/index.js';
import {
  Fold,
  LEFT_OUT_NOTE,
  namesBound,
  type PlaceRef,
  type TableOptions,
  type TraceEvent,
  tableNotes,
} from '../../trace/index.js';
import { FunctionGraphs } from '../function-graphs.js';
import { type PlacePatch, patchesInside, planInside } from '../inner-windows.js';
import type { ReadPlan } from '../read-plan.js';
import { type AnyProbe, type Found, neededDebugInfo, type Outcome, type ProbeKind, type ProbeText } from './kind.js';

/** `line:src/work.rs:42`: a place inside a function. */
interface LineSpec extends AnyProbe {
  /** A tail of the file's path that begins at a folder or at the file's name. */
  readonly file: string;
  readonly line: number;
}

interface FoundLines extends Found {
  /** In order of probe, then of address. */
  readonly places: readonly PlaceRef[];
  /** Keys of those that are not the whole of the line in their block: the line is reached without them. */
  readonly partial: ReadonlySet<number>;
  /** By address. */
  readonly patches: ReadonlyMap<bigint, PlacePatch>;
}

/** The first instruction of a source line, in each function, inlined copy and block that has it. */
export const line: ProbeKind<LineSpec, FoundLines> = {
  name: 'line',
  help: "'line:FILE:LINE' a line of the source, in every copy that the compiler made of it",
  isPlain: true,
  parse: parseLine,
  resolve(program, specs) {
    const debug = neededDebugInfo(program);
    const graphs = new FunctionGraphs(debug, program.arch);
    const found = specs.flatMap((spec) => placesOf(debug, spec));
    const places = found.map(({ place }, key) => ({ ...place, key }));
    const addresses = places.map(({ address }) => address);
    const partial = new Set(found.flatMap((one, key) => (isWhole(debug, graphs, one) ? [] : [key])));
    return { places, partial, addresses, patches: patchesInside(addresses, debug, program.arch) };
  },
  plans: ({ places, patches }) => places.map((place) => planLine(place, patches.get(place.address))),
  tracer({ places }, { output }) {
    const at = new AddressMap<PlaceRef[]>();
    for (const place of places) addTo(at, place.address, place);
    const hit = (here: readonly PlaceRef[], hart: number): void => {
      for (const place of here) output.emit({ type: 'place', time: output.time, hart, place });
    };
    return {
      instants: {
        isAt: (pc) => at.get(pc) !== undefined,
        hit({ pc, hart }) {
          const here = at.get(pc);
          return here && (() => hit(here, hart));
        },
      },
    };
  },
  report(found) {
    if (!found) return { json: () => ({ lines: [] }), tables: () => [] };
    const sink = new PlaceCounts();
    return {
      sink,
      json: (outcome) => ({ lines: rowsOf(found, sink, outcome).map(rowJson) }),
      tables: (outcome, options) => [lineTable(rowsOf(found, sink, outcome), options)],
    };
  },
};

function parseLine({ text, rest }: ProbeText): LineSpec {
  const [, file = '', digits = ''] = /^(.*[^:\s])\s*:\s*(\d{1,9})$/s.exec(rest) ?? [];
  if (file === '' || Number(digits) === 0) {
    throw new RsptraceError('PROBE_SYNTAX', `'${text}' names no line of a file`, {
      hint: "write --probe 'line:src/work.rs:42'; of the path its last parts are enough",
    });
  }
  return { kind: 'line', text, file: file.replace(/^(?:\.?\/)+/, ''), line: Number(digits) };
}

/** @throws RsptraceError `PROBE_NO_MATCH`, with the nearest files or lines */
function placesOf(debug: DebugInfo, spec: LineSpec): LinePlace[] {
  const lines = new Set<number>();
  /** Addresses of statements of the line. */
  const starts = new Map<bigint, string>();
  for (const { unit, table, files } of tablesWith(debug, spec.file)) {
    debug.elf.budget.spend(table.count, '.debug_line');
    for (let i = 0; i < table.count; i++) {
      const row = table.row(i);
      const file = row.isStmt && !row.endSequence && files.has(row.file) && debug.fileName(unit, row.file)?.path;
      if (!file || !debug.elf.isLoaded(row.address)) continue;
      lines.add(row.line);
      if (row.line === spec.line) starts.set(debug.elf.codes.fromCode(row.address), file);
    }
  }
  if (starts.size === 0) throw lines.size > 0 ? noSuchLine(spec, lines) : noSuchFile(debug, spec);
  return oneABlock(debug, spec, starts);
}

/** The first statement of a line in a block, and where all of them begin. */
interface LinePlace {
  readonly place: Omit<PlaceRef, 'key'>;
  readonly starts: Addr[];
}

/** Among the statements in one block, or in one inlined copy of it, the first represents the line, as in gdb. */
function oneABlock(debug: DebugInfo, spec: LineSpec, starts: ReadonlyMap<bigint, string>): LinePlace[] {
  const copies = new Map<string, LinePlace>();
  for (const [start, file] of [...starts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const address = start as Addr;
    const copy = `${scopeAt(debug, address)?.offset ?? hex(address)} ${file}`;
    const first = (): LinePlace => {
      const [innermost] = debug.frameAt(address).functions;
      const by = { function: innermost?.name, file, line: spec.line };
      return { place: { name: `${spec.file}:${spec.line}`, category: 'line', address, by }, starts: [] };
    };
    madeOnce(copies, copy, first).starts.push(address);
  }
  return [...copies.values()];
}

/** Whether each way to any of a line's statements comes by the first one. Else there are several ways to the line. */
function isWhole(debug: DebugInfo, graphs: FunctionGraphs, { place: { address }, starts }: LinePlace): boolean {
  if (starts.length === 1) return true;
  const host = debug.functionAt(address)?.die;
  const graph = host && graphs.of(host);
  const [first] = graph?.between(address, address + 1n) ?? [];
  if (!graph || first === undefined || !graphs.isClosed(graph)) return false;
  const past = graph.reachable(first === 0 ? [] : [0], graph.next, (node) => node === first);
  const isAgain = (node: number): boolean =>
    graph.reachable(graph.next[node] ?? [], graph.next, (one) => one === first || one === node).has(node);
  const nodes = starts.flatMap((at) => graph.between(at, at + 1n));
  return nodes.every((node) => node === first || !(past.has(node) || isAgain(node)));
}

interface FileTable {
  readonly unit: Unit;
  readonly table: LineTable;
  /** Numbers of the file in the table. */
  readonly files: ReadonlySet<number>;
}

/** The line tables that name a file, each once. */
function* tablesWith(debug: DebugInfo, wanted: string): Generator<FileTable> {
  const seen = new Set<number>();
  for (const unit of debug.units) {
    const header = debug.lineHeader(unit);
    if (!header || seen.has(header.offset)) continue;
    seen.add(header.offset);
    const named = [...header.files.keys()].filter((index) => isFile(debug.fileName(unit, index)?.path, wanted));
    const table = named.length > 0 ? debug.lineTable(unit) : undefined;
    if (table) yield { unit, table, files: new Set(named) };
  }
}

function isFile(path: string | undefined, wanted: string): boolean {
  return path !== undefined && (path === wanted || path.endsWith(`/${wanted}`));
}

function noSuchLine({ file, line: wanted }: LineSpec, lines: ReadonlySet<number>): RsptraceError {
  const sorted = [...lines].filter((each) => each > 0).sort((a, b) => a - b);
  const near = [sorted.findLast((each) => each < wanted), sorted.find((each) => each > wanted)];
  const known = near.flatMap((each) => each ?? []);
  return new RsptraceError('PROBE_NO_MATCH', `no statement of ${file} begins in line ${wanted}`, {
    ...(known.length > 0 && { hint: `nearest lines: ${known.join(', ')}` }),
  });
}

function noSuchFile(debug: DebugInfo, { file }: LineSpec): RsptraceError {
  const files = new Map<string, string>();
  for (const unit of debug.units) {
    for (const index of debug.lineHeader(unit)?.files.keys() ?? []) {
      const known = debug.fileName(unit, index);
      if (known) files.set(known.path, known.short);
    }
  }
  const near = new Set(
    nearestWords(
      basename(file),
      [...files.keys()].map((path) => basename(path)),
    ),
  );
  const named = [...files].filter(([path]) => near.has(basename(path))).map(([, short]) => short);
  return new RsptraceError('PROBE_NO_MATCH', `no line of code is in a file ${file}`, {
    hint:
      named.length > 0
        ? `nearest: ${named.slice(0, 4).join(', ')}`
        : 'give the path as the debug info has it, or its end',
  });
}

function nameOf({ name, by }: PlaceRef): string {
  return by.function === undefined ? name : `${name} in ${by.function}`;
}

function planLine(place: PlaceRef, patch: PlacePatch | undefined): ReadPlan {
  return { ...planInside(place.address, nameOf(place), patch), subject: place.name };
}

/** Counts hits by the place's key. */
class PlaceCounts extends Fold {
  readonly hits: number[] = [];

  event(event: TraceEvent): void {
    if (event.type === 'place' && event.place.category === line.name)
      this.hits[event.place.key] = (this.hits[event.place.key] ?? 0) + 1;
  }
}

interface LineRow {
  readonly place: PlaceRef;
  readonly hits: number;
  /** See {@link FoundLines.partial}. */
  readonly isPartial: boolean;
  /** There may have been more. */
  readonly isBound: boolean;
}

/** One row per place, without those that were left out from the begin because they would have stopped the target. */
function rowsOf({ places, partial }: FoundLines, { hits }: PlaceCounts, outcome: Outcome): LineRow[] {
  // All places of a line have one subject.
  const engines = outcome.engines.flatMap((fact) =>
    [fact, ...(fact.others ?? [])].map(({ name }) => ({ ...fact, name, subject: name, others: undefined })),
  );
  const out = new Set(engines.flatMap(({ name, engine }) => (engine === 'none' ? [name] : [])));
  const bound = namesBound(engines, outcome);
  const rows = places.map((place): LineRow => {
    const isPartial = partial.has(place.key);
    return { place, hits: hits[place.key] ?? 0, isPartial, isBound: isPartial || bound.has(nameOf(place)) };
  });
  return rows.filter(({ place, hits }) => hits > 0 || !out.has(nameOf(place)));
}

function rowJson({ place: { name, address, by }, hits, isBound }: LineRow): object {
  const where = { probe: name, file: by.file, line: by.line, function: by.function ?? null, address: hex(address) };
  return { ...where, hits, ...(isBound ? { at_least: true } : {}) };
}

const SPLIT_NOTE = 'a line in several blocks has a row each: one pass may reach several of them, so they do not add up';

const COPIED_NOTE =
  '>= at least so many: the code comes to the line in its block by several ways (unrolled turns, the head of a loop, an await), of which the first is counted';

function lineTable(rows: readonly LineRow[], options: TableOptions): string {
  const cells = rows.map(({ place, hits, isBound }) => [
    `${isBound ? '>=' : ''}${hits}`,
    hex(place.address),
    place.name,
    place.by.function ?? '',
  ]);
  const table = textTable(['hits>', 'address', 'line/', 'function~'], cells, options);
  const isSplit = new Set(rows.map(({ place }) => nameOf(place))).size < rows.length;
  const notes = [
    isSplit && SPLIT_NOTE,
    rows.some(({ isPartial }) => isPartial) && COPIED_NOTE,
    rows.some(({ isPartial, isBound }) => isBound && !isPartial) && LEFT_OUT_NOTE,
  ];
  return table + tableNotes(notes, options);
}
