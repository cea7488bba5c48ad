import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { Budget } from '../../src/base/budget.js';
import type { RegisterRule, UnwindRow } from '../../src/base/unwind-row.js';
import { CallFrames, evaluateCfi } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';

const dwarfNames = {
  riscv: (name: string): number => (name === 's0' ? 8 : numberOf(riscv64.dwarfRegister, name)),
  x86: (name: string): number => numberOf(x86_64.dwarfRegister, name),
};

function numberOf(nameOf: (number: number) => string | undefined, name: string): number {
  for (let number = 0; number < 128; number++) if (nameOf(number) === name) return number;
  throw new Error(`no register ${name}`);
}

/** A row as `readelf --debug-dump=frames-interp` prints it. */
interface Printed {
  readonly address: bigint;
  readonly cfa: string;
  readonly registers: ReadonlyMap<number, string>;
}

/**
 * All rows of all FDEs. One FDE is a head line and a table whose columns are named; an FDE without a program has no table, and its row is that of
 * its CIE.
 */
function readelfRows(file: string, returnAddress: number, number: (name: string) => number): Printed[] {
  const text = execFileSync('readelf', ['-W', '--debug-dump=frames-interp', file], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const rows: Printed[] = [];
  let columns: string[] = [];
  let live = false;
  for (const line of text.split('\n')) {
    const head = /^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(?:.*pc=([0-9a-f]+)\.\.)?/.exec(line);
    if (head !== null) live = head[1] === 'FDE' && BigInt(`0x${head[2]}`) !== 0n;
    else if (/^ +LOC/.test(line)) columns = line.trim().split(/ +/).slice(2);
    else if (live && /^[0-9a-f]{16} /.test(line)) {
      const [address = '', cfa = '', ...cells] = line.trim().split(/ +/);
      const registers = new Map<number, string>();
      columns.forEach((name, index) => {
        registers.set(name === 'ra' ? returnAddress : number(name), cells[index] ?? '?');
      });
      rows.push({ address: BigInt(`0x${address}`), cfa, registers });
    }
  }
  return rows;
}

function print(row: UnwindRow, name: (number: number) => string): { cfa: string; rule: (register: number) => string } {
  const { cfa } = row;
  const text = (rule: RegisterRule | undefined): string => {
    switch (rule?.kind) {
      case undefined:
      case 'undefined':
        return 'u';
      case 'same':
        return 's';
      case 'saved':
        return `c${rule.offset < 0 ? '' : '+'}${rule.offset}`;
      case 'cfa':
        return `v${rule.offset < 0 ? '' : '+'}${rule.offset}`;
      case 'register':
        return name(rule.register);
      case 'saved-expression':
        return 'exp';
      case 'expression':
        return 'vexp';
    }
  };
  return {
    cfa: cfa.kind === 'expression' ? 'exp' : `${name(cfa.register)}${cfa.offset < 0 ? '' : '+'}${cfa.offset}`,
    rule: (register) => text(row.registers.get(register)),
  };
}

const files: readonly { file: string; arch: 'riscv' | 'x86'; least: number }[] = [
  { file: elfPath('rv-o0'), arch: 'riscv', least: 2000 },
  { file: elfPath('rv-o2-eh'), arch: 'riscv', least: 500 },
  { file: elfPath('rv-o2-fp'), arch: 'riscv', least: 500 },
  { file: elfPath('x86-o0'), arch: 'x86', least: 1500 },
  { file: elfPath('x86-o2'), arch: 'x86', least: 700 },
];

t.test('an expression gives the same place wherever in 64 bits the registers point', async (t) => {
  // What .plt has: breg7(rsp)+8; breg16(rip)+0; lit15; and; lit11; ge; lit3; shl; plus.
  const plt = Uint8Array.of(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
  // breg7+16; deref; plus_uconst 32.
  const saved = Uint8Array.of(0x77, 16, 0x06, 0x23, 32);
  const shifts = [0n, 1n << 53n, 1n << 63n, 0xff10_0000_0000_0000n, 0xffff_ffff_ffff_ff00n];
  fc.assert(
    fc.property(fc.bigInt(0n, 1n << 40n), fc.bigInt(0n, 1n << 40n), (sp, pc) => {
      const at = (expression: Uint8Array): boolean => {
        const [first, ...others] = shifts.map((shift) => {
          const moved = (value: bigint): bigint => BigInt.asUintN(64, value + shift);
          const found = evaluateCfi(expression, undefined, {
            register: (number) => moved(number === 7 ? sp : pc),
            memory: (address) => (address === moved(sp + 16n) ? moved(sp + 64n) : undefined),
          });
          return found === undefined ? undefined : BigInt.asUintN(64, found - shift);
        });
        return first !== undefined && others.every((other) => other === first);
      };
      return at(plt) && at(saved);
    }),
    { seed: 2 },
  );
  t.pass('as many as fast-check tries');
});

for (const { file, arch, least } of files) {
  t.test(`${file.replace(/.*\//, '')}: every row is the one that readelf works out`, async (t) => {
    const frames = CallFrames.load(await ElfFile.open(file));
    t.same(frames.warnings, []);
    const returnAddress = arch === 'riscv' ? 1 : 16;
    const rows = readelfRows(file, returnAddress, dwarfNames[arch]);
    const nameOf = arch === 'riscv' ? riscv64.dwarfRegister : x86_64.dwarfRegister;
    const different: string[] = [];
    for (const { address, cfa, registers } of rows) {
      const row = frames.rowAt(addr(address));
      const printed =
        row && print(row, (number) => (number === 8 && arch === 'riscv' ? 's0' : (nameOf(number) ?? '?')));
      if (printed?.cfa !== cfa) different.push(`${address.toString(16)}: CFA ${printed?.cfa}, readelf ${cfa}`);
      for (const [register, rule] of registers) {
        const mine = printed?.rule(register);
        if (mine !== rule) different.push(`${address.toString(16)}: r${register} ${mine}, readelf ${rule}`);
      }
    }
    t.same(different.slice(0, 10), []);
    t.ok(rows.length >= least, `${rows.length} rows`);
  });
}

t.test('versions, augmentations and instructions that no guest has, as GNU as writes them', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-cfi-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const object = join(folder, 'a.o');
  const linked = join(folder, 'a.elf');
  // Each nop is one byte; the directives say what holds from the next one on.
  const source = `
    .text
    .globl _start
_start:
    .cfi_startproc
    .cfi_signal_frame
    nop
    .cfi_def_cfa 6, 16
    .cfi_undefined 3
    nop
    .cfi_remember_state
    .cfi_same_value 12
    .cfi_register 13, 14
    .cfi_val_offset 15, -24
    .cfi_offset 200, -4096
    nop
    .cfi_restore_state
    .cfi_def_cfa_register 7
    .cfi_adjust_cfa_offset 8
    nop
    # DW_CFA_def_cfa_expression: breg7 + 8, deref
    .cfi_escape 0x0f, 3, 0x77, 8, 0x06
    # DW_CFA_expression and val_expression of rbx and rbp: plus_uconst 16
    .cfi_escape 0x10, 3, 2, 0x23, 16
    .cfi_escape 0x16, 6, 2, 0x23, 32
    # DW_CFA_def_cfa_sf, offset_extended_sf, val_offset_sf, GNU_args_size
    nop
    .cfi_escape 0x12, 7, 0x7e
    .cfi_escape 0x11, 12, 2
    .cfi_escape 0x15, 13, 0x7f
    .cfi_escape 0x2e, 0x90, 0x01
    # DW_CFA_AARCH64_negate_ra_state
    .cfi_escape 0x2d
    nop
    .cfi_endproc
`;
  for (const [section, version] of [
    ['.eh_frame', 1],
    ['.debug_frame', 1],
    ['.debug_frame', 3],
    ['.debug_frame', 4],
  ] as const) {
    execFileSync('as', ['-o', object, `--gdwarf-cie-version=${version}`, '-'], {
      input: `.cfi_sections ${section}\n${source}`,
    });
    execFileSync('ld', ['--no-eh-frame-hdr', '-Ttext=0x401000', '-o', linked, object]);
    const elf = await ElfFile.open(linked);
    const frames = CallFrames.load(elf);
    const at = (offset: number): UnwindRow => {
      const row = frames.rowAt(addr(0x401000 + offset));
      if (row === undefined) throw new Error(`no row at ${offset}`);
      return row;
    };
    const rules = (offset: number): [number, RegisterRule][] => [...at(offset).registers];
    const back: [number, RegisterRule] = [16, { kind: 'saved', offset: -8 }];
    t.ok(at(0).interrupted, `${section}, version ${version}`);
    t.same(at(0).cfa, { kind: 'register', register: 7, offset: 8 });
    t.same(at(1).cfa, { kind: 'register', register: 6, offset: 16 });
    t.same(rules(1), [back, [3, { kind: 'undefined' }]]);
    t.same(rules(2), [
      back,
      [3, { kind: 'undefined' }],
      [12, { kind: 'same' }],
      [13, { kind: 'register', register: 14 }],
      [15, { kind: 'cfa', offset: -24 }],
      [200, { kind: 'saved', offset: -4096 }],
    ]);
    t.same(at(3).cfa, { kind: 'register', register: 7, offset: 24 });
    t.same(rules(3), [back, [3, { kind: 'undefined' }]]);
    const { cfa } = at(4);
    t.equal(cfa.kind, 'expression');
    const memory = new Map([[0x108n, 0x5000n]]);
    const operands = { register: () => 0x100n, memory: (address: bigint) => memory.get(address) };
    if (cfa.kind === 'expression') t.equal(evaluateCfi(cfa.expression, undefined, operands), 0x5000n);
    const saved = at(4).registers.get(3);
    t.equal(saved?.kind, 'saved-expression');
    if (saved?.kind === 'saved-expression') t.equal(evaluateCfi(saved.expression, 0x5000n, operands), 0x5010n);
    const value = at(4).registers.get(6);
    t.equal(value?.kind, 'expression');
    if (value?.kind === 'expression') t.equal(evaluateCfi(value.expression, 0x5000n, operands), 0x5020n);
    t.same(at(5).cfa, { kind: 'register', register: 7, offset: 16 });
    t.same(at(5).registers.get(12), { kind: 'saved', offset: -16 });
    t.same(at(5).registers.get(13), { kind: 'cfa', offset: 8 });
    t.equal(frames.rowAt(addr(0x401006)), undefined, 'nothing behind the last instruction');
    t.same(
      [...frames.ranges()].map(({ low, high }) => [low, high]),
      [[0x401000, 0x401006]],
    );
  }
});

t.test('damaged call frame information becomes warnings, never more', async (t) => {
  const elf = await ElfFile.open(elfPath('rv-o2-eh'));
  const original = elf.section('.eh_frame');
  if (original === undefined) throw new Error('no .eh_frame');
  const damage = fc.array(fc.tuple(fc.nat(original.length - 1), fc.nat(255)), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(damage, (changes) => {
      const bytes = original.slice();
      for (const [at, value] of changes) bytes[at] = value;
      const damaged: Pick<ElfFile, 'sections' | 'section' | 'isLoaded' | 'bytesAt' | 'codes' | 'budget'> = {
        budget: new Budget('damaged', original.length),
        codes: elf.codes,
        sections: elf.sections,
        section: (name) => (name === '.eh_frame' ? bytes : undefined),
        isLoaded: (code) => elf.isLoaded(code),
        bytesAt: (address, length) => elf.bytesAt(address, length),
      };
      const frames = CallFrames.load(damaged as ElfFile);
      let tried = 0;
      for (const { low, high } of frames.ranges()) {
        frames.rowAt(elf.codes.fromCode(low));
        frames.rowAt(elf.codes.fromCode(high - 1));
        if (++tried > 300) break;
      }
      return frames.warnings.length <= 1000;
    }),
    { seed: 1, numRuns: 150 },
  );
  t.pass('150 damaged sections');
});

t.test('an expression that loops or runs dry is refused', (t) => {
  const operands = { register: () => 1n, memory: () => 1n };
  // DW_OP_skip to itself; DW_OP_deref on an empty stack; DW_OP_call2.
  for (const bytes of [[0x2f, 0xfd, 0xff], [0x06], [0x98, 0, 0]]) {
    t.throws(() => evaluateCfi(Uint8Array.from(bytes), undefined, operands), { code: 'DWARF_DAMAGED' });
  }
  const register = Uint8Array.from([0x77, 0]);
  t.equal(evaluateCfi(register, undefined, { ...operands, register: () => undefined }), undefined);
  t.end();
});
