// An architecture that rsptrace does not come with: 32-bit RISC-V as QEMU emulates it, of which nothing is told but the bare minimum. It is
// registered, and a recording is made through the library. What is expected the guest has counted itself, in its own memory.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { planEngines } from '../../src/engines/index.js';
import {
  type Architecture,
  addr,
  architectures,
  connect,
  parseProbe,
  prepare,
  type RecordOptions,
  record,
  registerArchitecture,
  type Session,
  type TraceEvent,
  type TraceSink,
} from '../../src/index.js';
import { enginePlan } from '../../src/record/index.js';
import { Stacks } from '../../src/target/unwind/index.js';
import { scratchFolder, start } from '../support/command.js';
import { ByteWriter, writeElf } from '../support/elf-writer.js';

const calls = 20;
/** A number that no psABI has: ELFs of 32 bits are not read, so the code comes in one of 64. */
const machine = 0xfe32;
const base = 0x8000_0000;
const counters = 0x8000_8000;

const names =
  'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6'.split(' ');

/** No instruction is known: each under a breakpoint is stepped over. */
const rv32: Architecture = {
  name: 'riscv32',
  elfMachine: machine,
  gdbNames: ['riscv:rv32'],
  pc: 'pc',
  sp: 'sp',
  generalRegisters: names,
  dwarfRegister: (number) => names[number],
  arguments: names.slice(10, 18),
  results: ['a0', 'a1'],
  returnAddress: { in: 'register', name: 'ra' },
  stackPointerAfterReturn: (atEntry) => atEntry,
  codeAlignment: 4,
  breakpointKind: () => 4,
  isBreakpoint: (code) => code[0] === 0x73 && code[1] === 0x00 && code[2] === 0x10 && code[3] === 0x00,
  emulate: () => undefined,
  watchStops: 'before',
  prepare: async () => {},
};

/** `work` counts its calls and sums its argument up; it calls `leaf`, which gives 2 n + 1. */
const source = `
  .globl _start, work, leaf, done
_start:
  li sp, ${base + 0x10000}
  li s0, 0
  li s1, ${calls}
next:
  mv a0, s0
  call work
  addi s0, s0, 1
  bne s0, s1, next
done:
  j done
  .type work, @function
work:
  addi sp, sp, -16
  sw ra, 12(sp)
  li t0, ${counters}
  lw t1, 0(t0)
  addi t1, t1, 1
  sw t1, 0(t0)
  lw t1, 4(t0)
  add t1, t1, a0
  sw t1, 4(t0)
  call leaf
  lw ra, 12(sp)
  addi sp, sp, 16
  ret
  .size work, . - work
  .type leaf, @function
leaf:
  slli a0, a0, 1
  addi a0, a0, 1
  ret
  .size leaf, . - leaf
`;

interface Guest {
  readonly elf: string;
  readonly image: string;
  readonly done: bigint;
}

function assemble(t: Test): Guest {
  const folder = scratchFolder(t);
  const [text, object, linked, image] = ['s', 'o', 'linked', 'bin'].map((end) => join(folder, `guest.${end}`)) as [
    string,
    string,
    string,
    string,
  ];
  writeFileSync(text, source);
  const tool = (name: string, ...args: string[]): string => execFileSync(`riscv64-linux-gnu-${name}`, args).toString();
  tool('as', '-march=rv32i', '-mabi=ilp32', '-o', object, text);
  tool('ld', '-m', 'elf32lriscv', '--no-relax', `-Ttext=0x${base.toString(16)}`, '-o', linked, object);
  tool('objcopy', '-O', 'binary', '-j', '.text', linked, image);
  const symbols = [...tool('nm', '-S', linked).matchAll(/^([0-9a-f]{8})(?: ([0-9a-f]{8}))? [tT] (\w+)$/gm)].map(
    ([, address = '', size = '0', name = '']) => ({ name, address: BigInt(`0x${address}`), size: BigInt(`0x${size}`) }),
  );
  const elf = join(folder, 'guest.elf');
  writeFileSync(elf, wide(readFileSync(image), symbols));
  return { elf, image, done: symbols.find(({ name }) => name === 'done')?.address ?? 0n };
}

function wide(code: Uint8Array, symbols: readonly { name: string; address: bigint; size: bigint }[]): Uint8Array {
  const strings = new ByteWriter().u8(0);
  const table = new ByteWriter().raw(new Uint8Array(24));
  for (const { name, address, size } of symbols) {
    // st_name, st_info (global; function where it has a size), st_other, st_shndx, st_value, st_size
    table
      .uint(strings.length, 4)
      .u8(size === 0n ? 0x10 : 0x12)
      .u8(0)
      .uint(1, 2)
      .uint(address, 8)
      .uint(size, 8);
    strings.cstr(name);
  }
  return writeElf({
    machine,
    loads: [{ address: BigInt(base), bytes: code }],
    sections: [
      { name: '.text', bytes: code, flags: 6, address: BigInt(base) },
      { name: '.strtab', bytes: strings.bytes(), type: 3 },
      { name: '.symtab', bytes: table.bytes(), type: 2, link: 2, entrySize: 24 },
    ],
  });
}

async function boot(t: Test, { image }: Guest): Promise<{ session: Session; socket: string }> {
  const socket = join(scratchFolder(t), 'gdb');
  const loader = `loader,file=${image},addr=${base},force-raw=on`;
  const args = ['-M', 'virt', '-nographic', '-bios', 'none', '-device', loader];
  const qemu = start('qemu-system-riscv32', [...args, '-S', '-gdb', `unix:${socket},server=on,wait=off`]);
  const session = await connect(socket, { waitMs: 60_000 });
  t.teardown(async () => {
    session.close();
    qemu.process.kill('SIGKILL');
    await qemu.ended;
  });
  return { session, socket };
}

class Events implements TraceSink {
  arch: string | undefined;
  clock: string | undefined;
  readonly all: TraceEvent[] = [];
  begin({ arch, clock }: Parameters<TraceSink['begin']>[0]): void {
    this.arch = arch;
    this.clock = clock.name;
  }
  event(event: TraceEvent): void {
    this.all.push(event);
  }
  hart(): void {}
  flush(): void {}
  end(): void {}
}

t.test('a program of an architecture that nobody has registered is refused', async (t) => {
  const { elf } = assemble(t);
  await t.rejects(prepare(elf, [parseProbe('fn:work')]), {
    code: 'ARCH_UNSUPPORTED',
    message: /e_machine 65074/,
    hint: 'supported are riscv64 (243), x86_64 (62), aarch64 (183)',
  });
});

t.test('with the bare minimum calls are recorded, one stop each', async (t) => {
  registerArchitecture(rv32);
  registerArchitecture(rv32);
  t.equal(architectures().filter(({ name }) => name === 'riscv32').length, 1, 'twice does no harm');
  const guest = assemble(t);
  const program = await prepare(guest.elf, [parseProbe('fn:work'), parseProbe('fn:leaf')]);
  t.equal(program.arch, rv32);
  const { session, socket } = await boot(t, guest);
  t.equal(session.target.architecture, 'riscv:rv32');
  const sink = new Events();
  const recording = await record({ session, program, sink, until: addr(guest.done) });
  t.match(recording, { end: 'until', error: undefined, missing: 0, records: 0 });
  t.same([sink.arch, sink.clock], ['riscv32', 'running-intervals'], 'no clock of the guest is known');

  await using again = await connect(socket);
  const counted = await again.memory().read(addr(counters), 8);
  const [count, sum] = new Uint32Array(Uint8Array.from(counted ?? []).buffer);
  t.same([count, sum], [calls, 190], 'as the guest has it, 0 + 1 + ... + 19');
  const begins = (name: string) =>
    sink.all.filter((event) => event.type === 'call-begin').filter((event) => event.function.name === name);
  const [works, leaves] = [begins('work'), begins('leaf')];
  t.equal(works.length, count);
  t.equal(leaves.length, count);
  const first = works.map((event) => Number(event.arguments[0]?.value));
  t.same(
    first.reduce((total, value) => total + value, 0),
    sum,
    'the arguments',
  );
  t.ok(
    leaves.every((leaf, index) => leaf.around !== undefined && leaf.around === works[index]),
    'each inside of its caller',
  );
  t.equal(sink.all.filter((event) => event.type === 'call-end').length, 2 * calls, 'and all have returned');
});

t.test('what is not supported is said', async (t) => {
  registerArchitecture(rv32);
  const guest = assemble(t);
  const program = await prepare(guest.elf, [parseProbe('fn:work')]);
  const { session } = await boot(t, guest);
  const refusal = async (options: Partial<RecordOptions>) => {
    const sink = new Events();
    const { end, error } = await record({ session, program, sink, until: addr(guest.done), ...options });
    if (end === 'failed') throw error;
  };
  await t.rejects(refusal({ engine: 'target' }), {
    code: 'ENGINE_UNAVAILABLE',
    message: /trampolines for riscv32 are not known/,
  });
  await t.rejects(refusal({ clock: 'time' }), { code: 'CLOCK_UNAVAILABLE', hint: /others here: intervals/ });
  t.throws(() => new Stacks(program.elf, rv32), { code: 'ARCH_UNSUPPORTED', message: /stacks on riscv32/ });
});

t.test('machine code alone is not enough for the engine without stops', async (t) => {
  const program = await prepare(assemble(t).elf, [parseProbe('fn:work')]);
  const why = (arch: Architecture, process = false): string | undefined =>
    planEngines({ ...enginePlan(program), arch, process }).refused.get(0);
  const { probeCode } = x86_64;
  t.match(why({ ...rv32, probeCode }), /user mode on riscv32 is not known/);
  t.match(why({ ...rv32, probeCode, privilege: x86_64.privilege }), /page tables on riscv32 are not known/);
  t.match(why({ ...rv32, probeCode }, true), /system calls on riscv32 are not known/);
});

t.test('what another one is called already is refused', async (t) => {
  for (const change of [{ name: 'x86_64' }, { elfMachine: 62 }, { gdbNames: ['x', 'i386:x86-64'] }]) {
    const other = { ...rv32, name: 'other', elfMachine: 0xfe33, gdbNames: ['other'], ...change };
    t.throws(() => registerArchitecture(other), { code: 'ARCH_KNOWN', message: /x86_64/ });
  }
});
