import { execFileSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import { type Architecture, architectureOf } from '../../../src/arch/index.js';
import { decode } from '../../../src/arch/riscv64/decode.js';
import { type Addr, addOffset, addr, hex } from '../../../src/base/addr.js';
import type { MemoryReader, RegisterReader } from '../../../src/base/memory-reader.js';
import { CallFrames, DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { SourceFrames, Stacks, StackWindow } from '../../../src/target/unwind/index.js';
import { elfPath } from '../../qemu/guests/guests.js';
import { usually } from '../../support/long.js';

async function open(name: string): Promise<{ elf: ElfFile; arch: Architecture; stacks: Stacks }> {
  const elf = await ElfFile.open(elfPath(name));
  const arch = architectureOf(elf.machine);
  if (arch === undefined) throw new Error('unknown architecture');
  await arch.prepare();
  return { elf, arch, stacks: new Stacks(elf, arch) };
}

function registersOf(values: Readonly<Record<string, bigint>>): RegisterReader {
  return { register: (name) => values[name] };
}

/** Memory whose words are worked out when they are read; undefined where it is unmapped. */
function memoryOf(word: (address: bigint) => bigint | undefined): MemoryReader & { reads: number } {
  return {
    reads: 0,
    async read(address, length) {
      this.reads++;
      const bytes = new DataView(new ArrayBuffer(length + 16));
      const start = address - (address % 8n);
      for (let at = start; at < address + BigInt(length); at += 8n) {
        const value = word(at);
        if (value === undefined) return undefined;
        bytes.setBigUint64(Number(at - start), value, true);
      }
      const skip = Number(address - start);
      return new Uint8Array(bytes.buffer, skip, length);
    },
  };
}

/** Behind the call in a function that calls once. */
function callSite(elf: ElfFile, name: string): Addr {
  const [symbol] = elf.symbols.named(name);
  const code = symbol && elf.bytesAt(symbol.address, symbol.size);
  if (symbol === undefined || code === undefined) throw new Error(`no ${name}`);
  for (let offset = 0; offset < code.length; ) {
    const instruction = decode(code, offset);
    if (instruction === undefined) break;
    offset += instruction.length;
    if (instruction.form === 'jump-register' && instruction.rd === 1) return addOffset(symbol.address, offset);
  }
  throw new Error(`${name} calls nothing`);
}

const sp = 0x9000_0000n;

t.test('a stack of 100,000 frames is walked to its end, or to the depth that was asked for', async (t) => {
  const { elf, stacks } = await open('rv-o2');
  const pc = callSite(elf, 'deep6');
  const row = CallFrames.load(elf).rowAt(addr(pc - 1n));
  if (row?.cfa.kind !== 'register') throw new Error('no row');
  const size = BigInt(row.cfa.offset);
  const deep = 100_000n;
  // Every frame calls the same function again; the outermost was called by nobody.
  const memory = memoryOf((address) => {
    const frame = (address - sp) / size;
    if (address < sp - 4096n || frame > deep + 2000n) return undefined;
    return (address + 8n - sp) % size === 0n && frame < deep ? pc : 0n;
  });
  // The innermost frame stands at a function's first instruction, so that ra is its caller.
  const [leaf] = elf.symbols.named('deep7');
  const registers = registersOf({ pc: leaf?.address ?? 0n, sp, ra: pc });
  const whole = await stacks.unwind(registers, memory, { depth: 200_000 });
  t.equal(whole.frames.length, 100_002);
  t.same(whole.end, { reason: 'zero-return-address', complete: true });
  t.equal(whole.frames.at(-1)?.cfa, addr(sp + (deep + 1n) * size));
  const cut = await stacks.unwind(registers, memory, { depth: 50 });
  t.equal(cut.frames.length, 50);
  t.same(cut.end, { reason: 'depth', complete: false });
});

t.test('one read of the stack is enough for most stacks', async (t) => {
  const { elf, stacks } = await open('rv-o2');
  const pc = callSite(elf, 'deep6');
  const row = CallFrames.load(elf).rowAt(addr(pc - 1n));
  const size = row?.cfa.kind === 'register' ? BigInt(row.cfa.offset) : 0n;
  const memory = memoryOf((address) => ((address + 8n - sp) % size === 0n && address < sp + 16n * size ? pc : 0n));
  const [leaf] = elf.symbols.named('deep7');
  const { frames } = await stacks.unwind(registersOf({ pc: leaf?.address ?? 0n, sp, ra: pc }), memory);
  t.equal(frames.length, 18);
  t.equal(memory.reads, 1);
});

t.test('an architecture whose code is not read: stacks are walked by call frame information alone', async (t) => {
  const { elf, arch, stacks } = await open('rv-o2');
  if (!arch.frames) throw new Error('no frames');
  const alone = new Stacks(elf, { ...arch, frames: { ...arch.frames, code: undefined } });
  const pc = callSite(elf, 'deep6');
  const row = CallFrames.load(elf).rowAt(addr(pc - 1n));
  const size = row?.cfa.kind === 'register' ? BigInt(row.cfa.offset) : 0n;
  const memory = memoryOf((address) => ((address + 8n - sp) % size === 0n && address < sp + 16n * size ? pc : 0n));
  const [leaf] = elf.symbols.named('deep7');
  const registers = registersOf({ pc: leaf?.address ?? 0n, sp, ra: pc });
  const read = await stacks.unwind(registers, memory);
  const { frames } = await alone.unwind(registers, memory);
  t.equal(frames.length, 18);
  t.strictSame(
    frames.slice(0, -1).map(({ pc, cfa, unwinder }) => [pc, cfa, unwinder]),
    read.frames.slice(0, -1).map(({ pc, cfa }) => [pc, cfa, 'cfi']),
  );
});

t.test('where a stack ended once is no more read beyond', async (t) => {
  const { elf, stacks } = await open('rv-o2');
  const pc = callSite(elf, 'deep6');
  const row = CallFrames.load(elf).rowAt(addr(pc - 1n));
  const size = row?.cfa.kind === 'register' ? BigInt(row.cfa.offset) : 0n;
  const top = sp + 4096n;
  const memory = memoryOf((address) => {
    if (address >= top) return undefined;
    return (address + 8n - sp) % size === 0n && address < sp + 16n * size ? pc : 0n;
  });
  const [leaf] = elf.symbols.named('deep7');
  const registers = registersOf({ pc: leaf?.address ?? 0n, sp, ra: pc });
  const first = await stacks.unwind(registers, memory);
  t.ok(memory.reads > 1, `${memory.reads} reads`);
  memory.reads = 0;
  t.same(await stacks.unwind(registers, memory), first);
  t.equal(memory.reads, 1);
  // A hart that has no stack yet.
  for (const start of [0n, 8n, 0x80n, 0xffff_ffff_ffff_ff00n]) {
    const { frames } = await stacks.unwind(registersOf({ pc: leaf?.address ?? 0n, sp: start, ra: pc }), memory);
    t.equal(frames[0]?.pc, leaf?.address, hex(start));
  }
});

t.test('a stack that is cyclic, unmapped, overwritten or not there ends with its reason', async (t) => {
  const { elf, stacks } = await open('rv-o2-fp');
  const pc = callSite(elf, 'deep6');
  const fp = sp + 64n;
  const registers = registersOf({ pc, sp, ra: 0n, fp });
  const one = async (word: (address: bigint) => bigint | undefined) =>
    stacks.unwind(registers, memoryOf(word), { unwinder: 'fp' });

  const cyclic = await one((address) => (address === fp - 16n ? fp : address === fp - 8n ? pc : 0n));
  t.same(cyclic.end, { reason: 'loop', complete: false });
  t.equal(cyclic.frames.length, 2);
  const inwards = await one((address) => (address === fp - 16n ? fp - 32n : pc));
  t.equal(inwards.end.reason, 'loop');
  const unmapped = await one(() => undefined);
  t.same(unmapped.end, { reason: 'unreadable-stack', complete: false });
  t.equal(unmapped.frames.length, 1);
  const overwritten = await one(() => 0x4141_4141_4141_4141n);
  t.equal(overwritten.end.reason, 'outside-code');
  const halfMapped = await one((address) => (address < fp - 4096n ? undefined : address === fp - 8n ? pc : 0n));
  t.equal(halfMapped.frames.length, 2, 'what lies below the stack pointer may be unmapped');
  t.equal(
    (
      await stacks.unwind(
        registersOf({}),
        memoryOf(() => 0n),
      )
    ).end.reason,
    'no-unwinder',
  );
});

// Where user stacks, kernels under Sv57 and five-level paging, physical memory and nothing at all begin.
const shifts = [0n, 1n << 53n, 0x00ff_ffff_8000_0000n, 1n << 63n, 0xff10_0000_0000_0000n, 0xff20_0123_4567_8000n];

for (const name of usually(['rv-o2', 'rv-o2-fp', 'x86-o2'], (one) => one !== 'rv-o2-fp')) {
  t.test(`${name}: a stack is the same wherever in 64 bits the program and its memory lie`, async (t) => {
    const { elf, arch } = await open(name);
    const pcs = [...CallFrames.load(elf).ranges()].map(({ low, high }) =>
      addr(BigInt(low) + BigInt((high - low) >>> 2) * 2n),
    );
    const walks = shifts.map((shift) => {
      const there = new Stacks(elf.loadedAt(shift), arch);
      return (pc: bigint, words: readonly bigint[], unwinder: 'auto' | 'cfi' | 'fp' | 'prologue') => {
        // What lies on the stack points into the stack or the code: it moves along.
        const moved = words.map((word) => BigInt.asUintN(64, word + (word > 4096n ? shift : 0n)));
        const window = new StackWindow();
        window.add(addr(sp + shift), new Uint8Array(BigUint64Array.from(moved).buffer));
        const values: Record<string, bigint> = { [arch.pc]: pc, ra: ra ?? pc };
        const registers = { register: (r: string) => addr((values[r] ?? sp + 64n) + shift) };
        const { frames, end } = there.walk(registers, window, { unwinder, depth: 40 });
        return {
          end: end.reason,
          frames: frames.map(({ pc: at, cfa, unwinder: by, confidence }) => ({
            pc: addr(at - shift),
            cfa: cfa && addr(cfa - shift),
            by,
            confidence,
          })),
        };
      };
    });
    const ra = pcs.find((pc) => pc > elf.entry);
    const word = fc.oneof(
      { arbitrary: fc.constantFrom(...pcs), weight: 20 },
      fc.nat(480).map((slot) => sp + BigInt(slot * 8)),
      fc.constant(0n),
    );
    let deep = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...pcs),
        fc.array(word, { minLength: 512, maxLength: 512 }),
        fc.constantFrom('auto' as const, 'cfi' as const, 'fp' as const, 'prologue' as const),
        (pc, words, unwinder) => {
          const [first, ...others] = walks.map((walk) => walk(pc, words, unwinder));
          if ((first?.frames.length ?? 0) > 2) deep++;
          // A word that straddles two of those on the stack does not move along.
          if (first?.frames.some(({ cfa = 0n }) => cfa % 8n !== 0n)) return true;
          return others.every((other) => isDeepStrictEqual(other, first));
        },
      ),
      { seed: 3, numRuns: 300 },
    );
    t.ok(deep > 5, `${deep} of 150 stacks had several frames`);
  });
}

t.test('a pc that no code can have is told, and its caller found', async (t) => {
  const { elf, stacks } = await open('rv-o2');
  const ra = callSite(elf, 'deep6');
  for (const pc of [0x4141_4141_4141_4141n, 1n << 53n, (1n << 63n) - 1n, 1n << 63n]) {
    const { frames } = await stacks.unwind(
      registersOf({ pc, sp, ra }),
      memoryOf(() => 0n),
    );
    t.same(
      frames.map((frame) => frame.pc),
      [pc, ra],
    );
  }
});

t.test('a call through a null pointer is left by the return address, as a guess', async (t) => {
  const { elf, stacks } = await open('rv-o2');
  const ra = callSite(elf, 'deep6');
  const { frames } = await stacks.unwind(
    registersOf({ pc: 0n, sp, ra }),
    memoryOf(() => 0n),
  );
  t.same(
    frames.map(({ pc, unwinder, confidence }) => [pc, unwinder, confidence]),
    [
      [0n, 'prologue', 'sure'],
      [ra, 'cfi', 'guess'],
    ],
  );
});

for (const name of ['rv-o2', 'x86-o2']) {
  t.test(`${name}: whatever registers and stack hold, a walk ends`, async (t) => {
    const { elf, arch, stacks } = await open(name);
    const text = elf.sections.find((section) => section.name === '.text');
    if (text === undefined) throw new Error('no .text');
    const code = fc.nat(text.size).map((offset) => text.address + BigInt(offset));
    const near = fc.nat(4096).map((offset) => sp + BigInt(offset & ~7));
    const word = fc.oneof(code, near, fc.bigInt(0n, 2n ** 64n - 1n));
    const names = Array.from({ length: 33 }, (_, number) => arch.dwarfRegister(number) ?? '').filter(Boolean);
    fc.assert(
      fc.property(
        code,
        fc.array(word, { minLength: 512, maxLength: 512 }),
        fc.array(word, { minLength: 33, maxLength: 33 }),
        fc.constantFrom('auto', 'cfi', 'fp', 'prologue'),
        (pc, words, values, unwinder) => {
          const window = new StackWindow();
          window.add(addr(sp), new Uint8Array(BigUint64Array.from(words).buffer));
          const registers = new Map(names.map((name, index) => [name, values[index] ?? 0n]));
          registers.set(arch.pc, pc).set(arch.sp, sp);
          const stack = stacks.walk({ register: (name) => registers.get(name) }, window, { unwinder, depth: 600 });
          let inner: bigint | undefined;
          for (const { cfa, exact, level } of stack.frames) {
            if (exact && level > 0) inner = undefined;
            if (cfa === undefined) continue;
            if (inner !== undefined && BigInt.asIntN(64, cfa - inner) <= 0n) return false;
            inner = cfa;
          }
          return stack.frames.length >= 1 && stack.frames.length <= 600;
        },
      ),
      { seed: 4, numRuns: 400 },
    );
    t.pass('400 stacks of noise');
  });
}

t.test('what is above the program has none of its names', async (t) => {
  const { elf } = await open('x86-o2');
  const sources = new SourceFrames(elf, undefined);
  const last = Math.max(...elf.segments.map(({ address, memorySize }) => Number(address) + memorySize));
  t.match(sources.of({ pc: addr(last + 0x10_0000), exact: true }), [{ function: undefined }]);
  t.match(sources.of({ pc: elf.entry, exact: true }), [{ function: /\w/ }]);
});

for (const name of usually(['rv-o2', 'rv-o2-dwarf5', 'x86-o2'], (one) => one === 'rv-o2-dwarf5')) {
  t.test(`${name}: inlined functions and lines are those of llvm-symbolizer`, async (t) => {
    const { elf } = await open(name);
    const sources = new SourceFrames(elf, DebugInfo.load(elf));
    const pcs = [...CallFrames.load(elf).ranges()].flatMap(({ low, high }) =>
      [0, 0.3, 0.6, 0.9].map((part) => addr(low + 2 * Math.floor(((high - low) * part) / 2))),
    );
    const output = execFileSync('llvm-symbolizer', ['--inlines', '--functions=none', `--obj=${elfPath(name)}`], {
      input: pcs.map(hex).join('\n'),
      encoding: 'utf8',
    });
    const expected = output.split('\n\n');
    let inlined = 0;
    const different: string[] = [];
    pcs.forEach((pc, index) => {
      const mine = sources.of({ pc, exact: true });
      inlined += mine.filter((frame) => frame.inlined).length;
      const lines = mine.map(({ file, line }) => (line === undefined ? '?' : `${file?.replace(/.*\//, '')}:${line}`));
      // Line 0 is code of no line.
      const theirs = (expected[index] ?? '')
        .trim()
        .split('\n')
        .map((line) => line.replace(/:\d+$/, '').replace(/.*\//, ''))
        .map((line) => (line.endsWith(':0') ? '?' : line));
      if (lines.join(' ') !== theirs.join(' '))
        different.push(`${hex(pc)}: ${lines.join(' ')}, not ${theirs.join(' ')}`);
    });
    t.same(different.slice(0, 10), []);
    t.ok(inlined > 150, `${inlined} inlined functions at ${pcs.length} addresses`);
  });
}

t.test('in the code that the entry jumps to, before it has a stack: the firmware is no caller', async (t) => {
  const { stacks } = await open('rv-o2');
  const memory = memoryOf(() => 0n);
  // By gdb: _start is `j _start2`; at _start2+28 it clears .bss; ra is still OpenSBI's.
  const [clearing, inFirmware] = [0x8020001en, 0x8000982an];
  const stack = await stacks.unwind(registersOf({ pc: clearing, sp, ra: inFirmware }), memory);
  t.match(stack, { frames: { length: 1 }, end: { reason: 'entry', complete: true } });
  const [deep7] = stacks.elf.symbols.named('deep7');
  const elsewhere = await stacks.unwind(registersOf({ pc: deep7?.address ?? 0n, sp, ra: inFirmware }), memory);
  t.match(elsewhere.end, { reason: 'outside-code', complete: false });
});
