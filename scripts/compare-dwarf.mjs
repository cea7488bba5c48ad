// What rsptrace reads of a large file against what llvm-dwarfdump prints of it: units, DIEs with tag and depth, sizes of types and
// offsets of members, ranges of functions, rows of line tables. Takes minutes for a Linux kernel; prints the first differences.
//   node scripts/compare-dwarf.mjs FILE        (after npm run build)
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { DebugInfo, DieCursor, DW_AT, DW_TAG, rangesOf } from '../dist/dwarf/index.js';
import { ElfFile } from '../dist/elf/index.js';

const [path] = process.argv.slice(2);
if (path === undefined) {
  console.error('usage: node scripts/compare-dwarf.mjs FILE');
  process.exit(2);
}
const elf = await ElfFile.open(path);
const debug = DebugInfo.load(elf);
const tags = new Map(Object.entries(DW_TAG).map(([name, value]) => [`DW_TAG_${name}`, value]));
const counts = { units: 0, dies: 0, sizes: 0, members: 0, functions: 0, rows: 0, tables: 0, differences: 0 };

function differ(where, ours, theirs) {
  if (++counts.differences <= 20) console.log(`${where}: rsptrace ${ours}, llvm-dwarfdump ${theirs}`);
}

function lines(...args) {
  const child = spawn('llvm-dwarfdump', [...args, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  return createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY });
}

const unsigned = (code) => BigInt.asUintN(64, BigInt(code));
const text = (ranges) => ranges.map((r) => `${unsigned(r.low).toString(16)}-${unsigned(r.high).toString(16)}`).join();
const number = (value) => (value === undefined ? undefined : Number(value));

/** One DIE of the dump, once all its lines have been read, against the next one of the walk. */
const walk = (function* () {
  for (const unit of debug.units) {
    counts.units++;
    const cursor = DieCursor.of(unit);
    while (cursor.next()) yield cursor;
  }
})();

function compareDie(dumped) {
  const { done, value: cursor } = walk.next();
  const where = `DIE 0x${dumped.offset.toString(16)}`;
  if (done) {
    differ(where, 'has no more entries', dumped.tag);
    return;
  }
  counts.dies++;
  const tag = tags.get(dumped.tag);
  if (cursor.offset !== dumped.offset || (tag !== undefined && cursor.tag !== tag) || cursor.depth !== dumped.depth) {
    differ(
      where,
      `0x${cursor.offset.toString(16)} tag ${cursor.tag} depth ${cursor.depth}`,
      `${dumped.tag} ${dumped.depth}`,
    );
    return;
  }
  if (dumped.size !== undefined) {
    counts.sizes++;
    if (cursor.number(DW_AT.byte_size) !== dumped.size) differ(where, cursor.number(DW_AT.byte_size), dumped.size);
  }
  if (dumped.member !== undefined) {
    counts.members++;
    const ours = cursor.number(DW_AT.data_member_location);
    if (ours !== dumped.member) differ(where, ours, dumped.member);
  }
  if (cursor.tag === DW_TAG.subprogram && (dumped.low !== undefined || dumped.ranges.length > 0)) {
    counts.functions++;
    const theirs = dumped.ranges.length > 0 ? dumped.ranges : [{ low: dumped.low, high: dumped.high }];
    const wanted = theirs
      .filter((r) => r.high > r.low)
      .map((r) => `${r.low.toString(16)}-${r.high.toString(16)}`)
      .join();
    const ours = text(rangesOf(cursor));
    if (ours !== wanted) differ(where, ours, wanted);
  }
}

let die;
for await (const line of lines('--debug-info')) {
  if (line.startsWith('0x')) {
    const head = /^0x([0-9a-f]+):( +)(\w+)/.exec(line);
    if (head === null || head[3] === 'Compile' || head[3] === 'Type' || head[3] === 'Partial') continue;
    if (die !== undefined) compareDie(die);
    const depth = (head[2].length - 1) / 2;
    die = head[3] === 'NULL' ? undefined : { offset: Number.parseInt(head[1], 16), tag: head[3], depth, ranges: [] };
  } else if (die !== undefined) {
    const at = line.indexOf('DW_AT_');
    if (at < 0) {
      const range = /^ +\[0x([0-9a-f]+), 0x([0-9a-f]+)\)/.exec(line);
      if (range !== null && die.listed)
        die.ranges.push({ low: BigInt(`0x${range[1]}`), high: BigInt(`0x${range[2]}`) });
      continue;
    }
    const value = line.slice(line.indexOf('(', at) + 1, -1);
    die.listed = line.startsWith('DW_AT_ranges', at);
    if (line.startsWith('DW_AT_byte_size', at)) die.size = number(value);
    else if (line.startsWith('DW_AT_data_member_location', at)) die.member = number(value);
    else if (line.startsWith('DW_AT_low_pc', at)) die.low = BigInt(value);
    else if (line.startsWith('DW_AT_high_pc', at)) die.high = BigInt(value);
  }
}
if (die !== undefined) compareDie(die);
if (!walk.next().done) differ('the end', 'more entries', 'none');

const unitOf = new Map(debug.units.map((unit) => [unit.stmtList, unit]));
let table;
let row = 0;
const endTable = () => {
  if (table !== undefined && row !== table.count) differ(`line table ${table.header.offset}`, table.count, row);
};
for await (const line of lines('--debug-line')) {
  const head = /^debug_line\[0x([0-9a-f]+)\]/.exec(line);
  if (head !== null) {
    endTable();
    const unit = unitOf.get(Number.parseInt(head[1], 16));
    table = unit === undefined ? undefined : debug.lineTable(unit);
    if (table !== undefined) counts.tables++;
    row = 0;
    continue;
  }
  if (table === undefined || !line.startsWith('0x')) continue;
  const found = /^0x([0-9a-f]{16}) +(\d+) +(\d+) +(\d+) /.exec(line);
  if (found === null) continue;
  counts.rows++;
  if (row < table.count) {
    const ours = table.row(row);
    const said = `${unsigned(ours.address).toString(16).padStart(16, '0')} ${ours.line} ${ours.column} ${ours.file}`;
    const theirs = found.slice(1, 5).join(' ');
    if (said !== theirs) differ(`row ${row} of the line table at ${table.header.offset}`, said, theirs);
  }
  row++;
}
endTable();
console.log(JSON.stringify({ file: path, ...counts, warnings: debug.warnings.length }));
for (const warning of debug.warnings.slice(0, 10)) console.log(warning);
process.exitCode = counts.differences > 0 ? 1 : 0;
