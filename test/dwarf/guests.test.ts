// Every DIE, range, location and line row of the committed guests against llvm-dwarfdump; sections and symbols against readelf
// and objcopy.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import {
  DebugInfo,
  type Die,
  DieCursor,
  DW_AT,
  DW_TAG,
  debugInfoMissing,
  linkageNameOf,
  locationsOf,
  rangesOf,
} from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { dumpInfo, dumpLines, run } from '../support/dwarfdump.js';
import { usually } from '../support/long.js';

const TAG_NAMES = new Map<number, string>(Object.entries(DW_TAG).map(([name, value]) => [value, name]));
const unsigned = (code: number): bigint => BigInt.asUintN(64, BigInt(code));

/** What the engine says of an attribute, in llvm-dwarfdump's words; the other attributes are compared elsewhere or not at all. */
function say(die: Die, attribute: string): string | undefined {
  const hex = (n: number | undefined, width = 0): string | undefined =>
    n === undefined ? undefined : `0x${n.toString(16).padStart(width, '0')}`;
  switch (attribute) {
    case 'name':
      return `"${die.name}"`;
    case 'linkage_name':
      return `"${die.linkageName}"`;
    case 'producer':
    case 'comp_dir':
      return `"${die.string(DW_AT[attribute])}"`;
    case 'type':
    case 'abstract_origin':
    case 'specification':
    case 'containing_type':
    case 'discr':
      return hex(die.reference(DW_AT[attribute]), 8);
    case 'low_pc':
      return `0x${unsigned(die.lowPc).toString(16).padStart(16, '0')}`;
    case 'high_pc':
      return `0x${unsigned(die.highPc).toString(16).padStart(16, '0')}`;
    case 'byte_size':
    case 'data_member_location':
    case 'discr_value':
      return String(die.big(DW_AT[attribute]));
    case 'decl_line':
    case 'call_line':
    case 'alignment':
      return String(die.number(DW_AT[attribute]));
    case 'decl_file':
    case 'call_file':
      return `"${die.unit.debug.fileName(die.unit, die.number(DW_AT[attribute]) ?? -1)?.path}"`;
    case 'declaration':
    case 'noreturn':
      return String(die.flag(DW_AT[attribute]));
    default:
      return undefined;
  }
}

function normal(attribute: string, text: string): string {
  switch (attribute) {
    case 'type':
    case 'abstract_origin':
    case 'specification':
    case 'containing_type':
    case 'discr':
      return text.split(' ')[0] as string;
    case 'byte_size':
    case 'data_member_location':
    case 'discr_value':
      return text.startsWith('<0x10>') ? littleEndian(text.slice(6)) : String(BigInt(text));
    default:
      return text.replaceAll('\\"', '"');
  }
}

/** `00 01 00 ...` as a number. */
function littleEndian(text: string): string {
  return String(BigInt(`0x${text.trim().split(' ').reverse().join('')}`));
}

const guests = ['rv-o0', 'rv-o2', 'rv-o2-dwarf5', 'x86-o2-legacy'];
// DWARF 5 and 4.
for (const name of usually(guests, (name) => name === 'rv-o2-dwarf5')) {
  t.test(name, async (t) => {
    const path = elfPath(name);
    const elf = await ElfFile.open(path);
    const debug = DebugInfo.load(elf);

    t.test('every DIE is where llvm-dwarfdump finds it, with the same attributes', async (t) => {
      const cursors = debug.units.map((unit) => DieCursor.of(unit));
      let at = 0;
      let dies = 0;
      let attributes = 0;
      let lists = 0;
      const wrong: string[] = [];
      for (const dumped of dumpInfo(path)) {
        let cursor = cursors[at];
        if (cursor !== undefined && !cursor.next()) {
          at++;
          cursor = cursors[at];
          cursor?.next();
        }
        if (cursor === undefined) {
          wrong.push('units end too early');
          break;
        }
        dies++;
        const where = `0x${dumped.offset.toString(16)}`;
        if (
          cursor.offset !== dumped.offset ||
          cursor.depth !== dumped.depth ||
          TAG_NAMES.get(cursor.tag) !== dumped.tag
        ) {
          wrong.push(`${where} ${dumped.tag}: found ${cursor.offset.toString(16)} ${TAG_NAMES.get(cursor.tag)}`);
          break;
        }
        const die = cursor.die();
        for (const [attribute, text] of dumped.attributes) {
          const said = say(die, attribute);
          if (said === undefined) continue;
          attributes++;
          if (said !== normal(attribute, text)) wrong.push(`${where} ${attribute}: ${said} is not ${text}`);
        }
        if (dumped.ranges.length > 0) {
          lists++;
          const isRanges = dumped.attributes.has('ranges');
          const found = isRanges ? rangesOf(die) : locationsOf(die, DW_AT.location);
          const said = found.map((r) => `${unsigned(r.low)}-${unsigned(r.high)}`).join();
          const wanted = dumped.ranges.filter((r) => !isRanges || r.low !== r.high);
          if (said !== wanted.map((r) => `${r.low}-${r.high}`).join()) wrong.push(`${where} list: ${said}`);
        }
        if (wrong.length > 20) break;
      }
      t.strictSame(wrong, []);
      t.notOk(cursors[at]?.next(), 'nothing is left over');
      t.equal(at, cursors.length - 1, 'all units were walked');
      t.ok(
        dies > 90_000 && attributes > 200_000 && lists > 5_000,
        `${dies} DIEs, ${attributes} attributes, ${lists} lists`,
      );
      t.strictSame(debug.warnings, []);
    });

    t.test('children() and skipping see the same tree as a full walk', async (t) => {
      const unit = debug.units[0];
      if (unit === undefined) throw new Error('no unit');
      const offsets: number[] = [];
      const visit = (die: Die, depth: number): void => {
        offsets.push(die.offset);
        if (depth < 6) for (const child of die.children()) visit(child, depth + 1);
      };
      visit(unit.root, 0);
      const walked: number[] = [];
      for (const cursor = DieCursor.of(unit); cursor.next(); ) if (cursor.depth <= 6) walked.push(cursor.offset);
      t.strictSame(offsets, walked);
    });

    t.test('line tables have the same rows, and lineAt finds them', async (t) => {
      const dumped = dumpLines(path);
      t.equal(dumped.size, debug.units.length);
      for (const unit of debug.units) {
        const table = debug.lineTable(unit);
        const wanted = dumped.get(unit.stmtList ?? -1);
        if (table === undefined || wanted === undefined) throw new Error('no line table');
        const rows = Array.from({ length: table.count }, (_, i) => table.row(i));
        const said = rows.map(({ address, ...row }) => ({ address: unsigned(address), ...row }));
        t.equal(JSON.stringify(said.map(flat)), JSON.stringify(wanted.map(flat)));
      }
      // Every 50th address of the code, asked of llvm-symbolizer.
      const text = elf.sections.find((s) => s.name === '.text');
      if (text === undefined) throw new Error('no .text');
      const asked: bigint[] = [];
      for (let a = text.address + 2n; a < text.address + BigInt(text.size); a += 50n) asked.push(a);
      const answers = run('llvm-addr2line', '-e', path, ...asked.map((a) => `0x${a.toString(16)}`))
        .trim()
        .split('\n');
      const said = asked.map((a) => {
        const found = debug.lineAt(addr(a));
        return found === undefined ? '??' : `${found.file}:${found.line}`;
      });
      const wanted = answers.map((answer) =>
        /^\?\?|:0$/.test(answer) ? '??' : answer.replace(/ \(discriminator \d+\)$/, ''),
      );
      t.strictSame(said, wanted);
    });

    t.test('functionAt agrees with the symbol table', async (t) => {
      let checked = 0;
      for (const symbol of elf.symbols) {
        if (symbol.type !== 'function' || symbol.size === 0) continue;
        for (const at of [symbol.address, addr(symbol.address + BigInt(symbol.size) - 1n)]) {
          const found = debug.functionAt(at);
          // Assembly has symbols without DWARF functions.
          if (found === undefined) continue;
          checked++;
          t.equal(found.low, symbol.address);
          t.equal(found.high, symbol.address + BigInt(symbol.size));
          // Of several names at an address (a linker alias), the symbol table answers with one.
          const names = elf.symbols.named(linkageNameOf(found.die) ?? found.name.split('::').at(-1) ?? '');
          const same = names.some((s) => s.address === symbol.address);
          t.ok(same, `${found.name} is ${symbol.name}`);
        }
      }
      t.ok(checked > 200, `${checked} checked`);
      t.equal(debug.functionAt(addr(0x10)), undefined);
      t.equal(debug.lineAt(addr(0xffff_ffff_ffff_fff0n)), undefined);
    });

    t.test('headers, sections and symbols are what readelf says', async (t) => {
      const header = run('readelf', '-hW', path);
      t.match(header, new RegExp(`Entry point address: +0x${elf.entry.toString(16)}\n`));
      t.match(header, elf.machine === 243 ? /RISC-V/ : /X86-64/);
      const sections = [
        ...run('readelf', '-SW', path).matchAll(/^ +\[ *(\d+)\] (\S+) +\w+ +([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+)/gm),
      ];
      t.strictSame(
        elf.sections.slice(1).map((s) => [s.index, s.name, s.address, s.offset, s.size]),
        sections.map((m) => [Number(m[1]), m[2], BigInt(`0x${m[3]}`), Number(`0x${m[4]}`), Number(`0x${m[5]}`)]),
      );
      const loads = [...run('readelf', '-lW', path).matchAll(/^ +LOAD +(\w+) (\w+) (\w+) (\w+) (\w+)/gm)];
      t.strictSame(
        elf.segments
          .filter((s) => s.type === 1)
          .map((s) => [s.offset, s.address, s.physical, s.fileSize, s.memorySize]),
        loads.map((m) => [Number(m[1]), BigInt(m[2] as string), BigInt(m[3] as string), Number(m[4]), Number(m[5])]),
      );
      const symbols = [
        ...run('readelf', '-sW', path).matchAll(/^ +\d+: ([0-9a-f]{16}) +(\w+) (\w+) +(\w+) +\w+ +(\w+) (\S+)$/gm),
      ]
        .filter(
          (m) =>
            !['SECTION', 'FILE', 'TLS'].includes(m[3] as string) &&
            m[5] !== 'UND' &&
            !/^(\.L|\$[xda])/.test(m[6] as string),
        )
        .map((m) => `${BigInt(`0x${m[1]}`)} ${Number(m[2])} ${m[6]}`);
      t.strictSame([...elf.symbols].map((s) => `${s.address} ${s.size} ${s.name}`).sort(), symbols.sort());
    });

    t.test('bytesAt reads what the segments load', async (t) => {
      const text = elf.sections.find((s) => s.name === '.text');
      const bss = elf.sections.find((s) => s.name === '.bss');
      if (text === undefined || bss === undefined) throw new Error('no .text or .bss');
      const file = readFileSync(path);
      t.strictSame(Buffer.from(elf.bytesAt(text.address, 64) ?? []), file.subarray(text.offset, text.offset + 64));
      t.equal(elf.bytesAt(addr(bss.address + 64n), 1), undefined, '.bss has no bytes in the file');
      t.equal(elf.bytesAt(addr(0x10), 1), undefined);
    });
  });
}

function flat(row: {
  address: bigint;
  file: number;
  line: number;
  column: number;
  isStmt: boolean;
  endSequence: boolean;
}): unknown {
  return [String(row.address), row.file, row.line, row.column, row.isStmt, row.endSequence];
}

t.test('compressed sections unpack to what objcopy unpacks them to', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'rsptrace-dwarf-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const plain = join(dir, 'none');
  run('objcopy', '--compress-debug-sections=none', elfPath('x86-o2'), plain);
  const wanted = await ElfFile.open(plain);
  const names = wanted.sections.map((s) => s.name).filter((n) => n.startsWith('.debug_'));
  t.ok(names.length > 6);
  for (const kind of ['zlib-gabi', 'zstd']) {
    const packed = join(dir, kind);
    run('objcopy', `--compress-debug-sections=${kind}`, plain, packed);
    const elf = await ElfFile.open(packed);
    t.ok(
      elf.sections.some((s) => (s.flags & 0x800) !== 0),
      kind,
    );
    for (const name of names) {
      const same =
        Buffer.compare(elf.section(name) ?? new Uint8Array(), wanted.section(name) ?? new Uint8Array()) === 0;
      t.ok(same, `${kind} ${name}`);
    }
  }
  const old = join(dir, 'zlib-gnu');
  run('objcopy', '--compress-debug-sections=zlib-gnu', plain, old);
  t.match(debugInfoMissing(await ElfFile.open(old)).hint, /zdebug/);
});
