// Kernels at addresses that only five levels of tables reach, further than 2^53 from 0: their stacks as gdb walks them, also from firmware.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { architectureOf } from '../../src/arch/index.js';
import { addr, hex } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { Stacks, StackWindow } from '../../src/target/unwind/index.js';
import { frozenQemu, rsptrace, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';
import { FAR_BASE, pagingKernel } from '../support/tiny-kernels.js';

interface Stop {
  readonly registers: Readonly<Record<string, string | null>>;
  readonly low: string;
  readonly stack: string;
  readonly frames: readonly string[];
}

const riscv = 'pc ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 sepc';
const x86 = 'rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip';

for (const name of usually(['riscv64', 'x86_64'] as const, (one) => one === 'x86_64')) {
  t.test(`${name}: 20 stacks beyond 2^53`, async (t) => {
    const { elf: path, command } = pagingKernel(t, name, 5, FAR_BASE);
    const folder = scratchFolder(t);
    const { socket } = frozenQemu(t, command);

    const out = join(folder, 'stops');
    const wanted = { TARGET: socket, OUT: out, STOPS: '20', SEED: '3', BREAKS: 'work outer inner' };
    const environment = { ...wanted, REGISTERS: name === 'riscv64' ? riscv : x86 };
    const assignments = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
    const script = join(import.meta.dirname, 'gdb-chains.py');
    const gdb = await start('env', [...assignments, 'gdb-multiarch', '-nx', '-batch', '-x', script, path]).ended;
    t.equal(gdb.status, 0, gdb.stderr.slice(-500));
    const stops = readFileSync(out, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Stop);
    t.equal(stops.length, 20);

    const elf = await ElfFile.open(path);
    const arch = architectureOf(elf.machine);
    if (arch === undefined) throw new Error('unknown architecture');
    await arch.prepare();
    // gdb goes on from the kernel's first function, which nobody called.
    const known = ({ frames }: Stop): string[] => {
      const last = frames.findIndex((pc) => elf.symbols.at(addr(BigInt(pc) - 1n))?.type !== 'function');
      return frames.slice(0, last + 1);
    };
    const stacks = new Stacks(elf, arch);
    for (const unwinder of ['auto', 'cfi', 'prologue'] as const) {
      const walked = stops.map(({ registers, low, stack }) => {
        const window = new StackWindow();
        window.add(addr(BigInt(low)), Uint8Array.from(Buffer.from(stack, 'hex')));
        const register = (each: string): bigint | undefined =>
          registers[each] == null ? undefined : BigInt(registers[each]);
        return stacks.walk({ register }, window, { unwinder }).frames.map(({ pc }) => hex(pc));
      });
      t.same(walked, stops.map(known), unwinder);
    }
    t.ok(Math.max(...stops.map((stop) => known(stop).length)) >= 4, 'some are deep');
    t.ok(stops.every(({ low }) => BigInt(low) >> 48n === 0xff10n));

    const [hart] = (
      await rsptrace('bt', '--json', '--remote', `unix:${socket}`, path).json<{
        harts: { frames: { pc: string }[]; end: object }[];
      }>()
    ).harts;
    t.same(
      hart?.frames.map(({ pc }) => pc),
      known(stops.at(-1) as Stop),
      'and so does the command',
    );
  });
}

t.test('a stack that the hart does not see where it stands is read through its page tables', async (t) => {
  const { elf: path, command } = pagingKernel(t, 'riscv64', 5, FAR_BASE, 'USER');
  // Older ones show it all the same.
  const newest = join(import.meta.dirname, '../../.cache/backports/usr/bin/qemu-system-riscv64');
  const { gdb, socket } = await atEcall(t, path, [newest, ...command.slice(1)], 'gdb-user-stack.py');
  t.match(gdb.stdout, /^UNREADABLE$/m);
  const [, chain = ''] = /^FRAMES (.*)$/m.exec(gdb.stdout) ?? [];
  const [hart] = (
    await rsptrace('bt', '--json', '--remote', `unix:${socket}`, path).json<{ harts: { frames: { pc: string }[] }[] }>()
  ).harts;
  t.same(
    hart?.frames.map(({ pc }) => pc),
    chain.split(' ').slice(0, 4),
  );
});

for (const [steps, frames] of [
  // Before the firmware has kept all registers, when those that it kept at the last trap still stand there.
  [20, 1],
  [120, 4],
] as const) {
  t.test(`a hart in firmware, ${steps} instructions from the kernel`, async (t) => {
    const { elf: path, command } = pagingKernel(t, 'riscv64', 5, FAR_BASE);
    const { gdb, socket } = await atEcall(t, path, command, 'gdb-firmware.py', `STEPS=${steps}`);
    const [, chain = ''] = /^FRAMES (.*)$/m.exec(gdb.stdout) ?? [];
    const [, pc] = /^FIRMWARE (.*)$/m.exec(gdb.stdout) ?? [];
    t.ok(pc && BigInt(pc) >> 20n === 0x800n, `${pc} is in OpenSBI: ${gdb.stderr}`);
    const bt = await rsptrace('bt', '--json', '--remote', `unix:${socket}`, path).ended;
    t.equal(bt.status, 0, bt.stderr);
    t.match(JSON.parse(bt.stdout), {
      harts: [
        {
          pc,
          firmware: true,
          frames: chain
            .split(' ')
            .slice(0, frames)
            .map((pc, level) => ({ pc, level, interrupted: level === 0 })),
        },
      ],
    });
    t.equal(JSON.parse(bt.stdout).harts[0].frames.length, frames);
  });
}

/** Boots a kernel and runs a script in gdb, which stops it at its call of the firmware, and leaves it there. */
async function atEcall(
  t: { teardown: (fn: () => void) => void },
  path: string,
  command: readonly string[],
  script: string,
  ...environment: readonly string[]
) {
  const [asks] = (await ElfFile.open(path)).symbols.named('asks');
  const { socket } = frozenQemu(t, command);
  const assignments = [`TARGET=${socket}`, `ASKS=${hex(asks?.address ?? 0n)}`, ...environment];
  const run = ['gdb-multiarch', '-nx', '-batch', '-x', join(import.meta.dirname, script), path];
  return { gdb: await start('env', [...assignments, ...run]).ended, socket };
}
