// Memory from the program's own allocator: where the program calls it, and with nothing changed but what was asked for.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Architecture } from '../../src/arch/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/refusal.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { allocatorOf } from '../../src/scratch/allocators.js';
import { GuestAllocator } from '../../src/scratch/guest-allocator.js';
import { type Intercept, type PagingFacts, textSlack } from '../../src/scratch/index.js';
import { turnsPagingOn } from '../../src/target/index.js';
import { elfPath, guest, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { frozenGuest, type Running, rsptrace, scratchFolder } from '../support/command.js';
import { plainRun, programOf } from '../support/hidden.js';
import { compareCounts, type FutureRow } from '../support/lab.js';

const names = ['rv-o0', 'x86-o0'] as const;
const [asked, less] = [256 * 1024 + 4096, 64 * 1024 + 4096];

/** What a function must give back as it was, its arguments, and where it stands. */
const kept = {
  riscv64: 'pc sp ra gp tp a0 a1 fp s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11'.split(' '),
  x86_64: 'rip rsp rdi rsi rbx rbp r12 r13 r14 r15'.split(' '),
} as const;

interface Asked {
  readonly qemu: Running;
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
  readonly allocator: GuestAllocator;
  readonly facts: PagingFacts;
  readonly intercept: Intercept;
  /** Runs to where somebody waits, and has `before` look before he is told. */
  next(before?: () => Promise<void>): Promise<void>;
  registers(): Promise<readonly (bigint | undefined)[]>;
  waiting(): number;
}

async function guestOf(t: Test, name: string): Promise<Asked> {
  const qemu = frozenGuest(t, name);
  const session = await connect(qemu.socket, { waitMs: 10_000 });
  t.teardown(() => session.close());
  const { elf, arch } = await programOf(elfPath(name));
  const waiting: { address: Addr; then: Parameters<Intercept>[1] }[] = [];
  // As a recording: first it runs.
  const started = [...elf.symbols].find((symbol) => /9poll_task/.test(symbol.name))?.address ?? addr(0);
  await runTo(session, started);
  return {
    qemu,
    session,
    arch,
    elf,
    allocator: new GuestAllocator(session, arch, elf),
    facts: { text: started, pages: turnsPagingOn(elf, arch) === true },
    intercept: async ([address = addr(0)], then) => void waiting.push({ address, then }),
    next: async (before) => {
      const one = waiting.shift();
      if (one === undefined) throw new Error('nobody waits');
      const hart = await runTo(session, one.address);
      await before?.();
      await one.then(hart, one.address);
    },
    registers: async () => {
      const batch = session.batch();
      const block = batch.readRegisters();
      await batch.send();
      return (arch.name === 'riscv64' ? kept.riscv64 : kept.x86_64).map((register) => block.value.register(register));
    },
    waiting: () => waiting.length,
  };
}

async function runTo(session: Session, address: Addr): Promise<string | undefined> {
  const breakpoint = { type: 1, address, kind: 1 } as const;
  await session.insertBreakpoint(breakpoint);
  const stop = await session.resume();
  await session.removeBreakpoint(breakpoint);
  return stop.kind === 'signal' ? stop.hart : undefined;
}

/** The guest goes on by itself: what it computes, and how often it has allocated. */
async function endOf(t: Test, name: string, { session, qemu }: Asked): Promise<number | undefined> {
  await session.detach();
  const lab = parseLab((await qemu.ended).stdout);
  t.equal(lab.checksum, guest(name).checksum);
  return lab.heap?.allocs;
}

t.test('only a function that other objects may call', async (t) => {
  for (const name of names) {
    const file = elfPath(name);
    const { elf } = await programOf(file);
    const listed = execFileSync('readelf', ['-sW', file], { encoding: 'utf8', maxBuffer: 2 ** 26 });
    const row = listed.split('\n').find((line) => / FUNC +LOCAL +HIDDEN .*_7___rustc12___rust_alloc$/.test(line));
    const [index = '', value = ''] = row?.trim().split(/[\s:]+/) ?? [];
    t.equal(allocatorOf(elf)?.address, BigInt(`0x${value}`), name);

    // The same symbol as a compiler leaves it that knows all of the function's callers.
    const bytes = Uint8Array.from(readFileSync(file));
    const table = elf.section('.symtab') && elf.sections.find((one) => one.name === '.symtab');
    const other = (table?.offset ?? 0) + Number(index) * 24 + 5;
    t.equal(bytes[other], 2);
    bytes[other] = 0;
    t.equal(allocatorOf(ElfFile.parse(bytes, 'local')), undefined);
  }
  t.equal(allocatorOf((await programOf(elfPath('rv-o2'))).elf), undefined, 'inlined everywhere');
});

for (const name of names) {
  t.test(`${name}: our call comes before one of the program's`, async (t) => {
    const asking = await guestOf(t, name);
    const { session, arch, elf, allocator, facts, intercept } = asking;
    const untraced = parseLab(await plainRun(t, qemuArgv(name))).heap?.allocs ?? 0;
    t.match(await allocator.scratch(facts, undefined), { refused: /at its next call/, later: true });
    t.equal(asking.waiting(), 0, 'only looked at, nothing is asked');
    t.match(await allocator.scratch(facts, intercept), { later: true });

    let before: readonly (bigint | undefined)[] = [];
    await asking.next(async () => {
      before = await asking.registers();
    });
    const [first = '', second = ''] = arch.arguments;
    const batch = session.batch();
    const registers = batch.readRegisters();
    await batch.send();
    t.equal(registers.value.register(first), BigInt(asked));
    t.equal(registers.value.register(second), 16n);
    await asking.next();
    t.same(await asking.registers(), before, 'it stands at its own call again');
    t.notOk(isRefusal(await textSlack(session, arch, elf)), 'nothing is left behind the text');

    const scratch = await allocator.scratch(facts, intercept);
    if (scratch === undefined || isRefusal(scratch)) throw new Error(scratch?.refused);
    const arena = [...elf.symbols].find((symbol) => /5ARENA$/.test(symbol.name));
    const [low, high] = [arena?.address ?? 0n, (arena?.address ?? 0n) + BigInt(arena?.size ?? 0)];
    t.ok(scratch.code.address >= low && scratch.data.address + BigInt(scratch.data.size) <= high, 'in its heap');
    await scratch.release();
    t.equal(await endOf(t, name, asking), untraced + 1);
  });
}

t.test('an allocator that has nothing left is asked for less, and then no more', async (t) => {
  const asking = await guestOf(t, 'rv-o0');
  const { session, allocator, facts, intercept } = asking;
  for (const size of [asked, less]) {
    await allocator.scratch(facts, intercept);
    await asking.next();
    t.equal((await asking.registers())[5], BigInt(size));
    await asking.next(async () => {
      const batch = session.batch();
      batch.writeRegister('a0', 0n);
      await batch.send();
    });
  }
  t.match(await allocator.scratch(facts, intercept), {
    refused: new RegExp(`it has no ${less} bytes left`),
    later: false,
  });
  await endOf(t, 'rv-o0', asking);
});

for (const name of names) {
  t.test(`${name}: nobody is there any more when our call returns`, async (t) => {
    const asking = await guestOf(t, name);
    await asking.allocator.scratch(asking.facts, asking.intercept);
    await asking.next();
    t.ok(((await endOf(t, name, asking)) ?? 0) > 0, 'the program goes on with its own');
  });
}

t.test('a recording at a machine that somebody else has started', async (t) => {
  const name = 'x86-o0';
  const qemu = frozenGuest(t, name);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const until = ['--scratch', 'none', '--until', 'labkern::stats::report', '-o', trace];
  const { status, stdout, stderr } = await rsptrace('-r', qemu.socket, '--json', ...until, elfPath(name)).ended;
  t.equal(status, 0, stderr);
  const output = JSON.parse(stdout) as {
    readonly scratch: string;
    readonly records: number;
    readonly probes: readonly { readonly engine: string }[];
    readonly futures: readonly FutureRow[];
  };
  t.match(
    output.scratch,
    /^memory of the program's allocator \(__rust_alloc\) \(0x[0-9a-f]+, 266240 bytes\)(?:, read past the wire .*)?$/,
  );
  t.ok(output.records > 0, `${output.records} records without a stop`);
  t.ok(output.probes.every(({ engine }) => engine === 'target'));
  const lab = parseLab((await qemu.ended).stdout);
  t.equal(lab.checksum, guest(name).checksum);
  for (const { name: future, counted, polls, timing } of compareCounts(lab, output.futures)) {
    if (!timing) t.equal(polls, counted, future);
  }
});
