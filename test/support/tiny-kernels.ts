import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { scratchFolder } from './command.js';

/** How often the kernel calls its `work`, which it prints. */
export const WORK_CALLS = 1000;
/** And its `inner`, which calls itself: twice from each of `outer`, which is called as often as `work`. */
export const INNER_CALLS = 4000;

/** Where the kernels' sources are, and what they include. */
const sources = join(import.meta.dirname, 'kernels');

const exit = ['-no-reboot', '-nic', 'none', '-device', 'isa-debug-exit,iobase=0xf4,iosize=4'];

export interface PagingKernel {
  readonly elf: string;
  /** argv that boots it. */
  readonly command: readonly string[];
}

/** Where the kernels lie: where all such kernels do, and where only five levels of tables reach. */
export const NEAR_BASE = 0xffff_ffff_8000_0000n;
export const FAR_BASE = 0xff10_ffff_8000_0000n;

/** Assembles `kernels/ARCH.S`, which turns on Sv39, Sv48, Sv57 or 4- or 5-level paging; `USER` puts its stack into a page of user mode. */
export function pagingKernel(
  t: { teardown: (fn: () => void) => void },
  arch: 'riscv64' | 'x86_64',
  levels: 3 | 4 | 5,
  base = NEAR_BASE,
  ...defined: readonly string[]
): PagingKernel {
  const folder = scratchFolder(t);
  const source = join(sources, arch);
  const elf = join(folder, 'kernel.elf');
  const object = join(folder, 'kernel.o');
  const prefix = arch === 'riscv64' ? 'riscv64-linux-gnu-' : '';
  const symbols = [`LEVELS=${levels}`, `BASE=${base}`, ...defined.map((name) => `${name}=1`)];
  const given = symbols.flatMap((symbol) => ['--defsym', symbol]);
  // The assembler's own debug info says that these functions take no arguments.
  execFileSync(`${prefix}as`, ['-g', ...given, '-o', object, `${source}.S`]);
  const options = ['--no-warn-mismatch', '--defsym', `BASE=${base}`, '-T', `${source}.ld`];
  execFileSync(`${prefix}ld`, [...options, '-o', elf, object], { stdio: 'pipe' });
  const command =
    arch === 'riscv64'
      ? ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-kernel', elf]
      : ['qemu-system-x86_64', '-cpu', 'max', '-nographic', ...exit, '-kernel', elf];
  return { elf, command };
}

/**
 * Assembles `kernels/bzimage.S` or `kernels/multiboot.S`, which print the memory map that they are given; argv that
 * boots one on `machine`.
 */
export function mapPrinter(
  t: { teardown: (fn: () => void) => void },
  protocol: 'bzimage' | 'multiboot',
  ...machine: string[]
): string[] {
  const folder = scratchFolder(t);
  const object = join(folder, 'kernel.o');
  const image = join(folder, 'kernel');
  execFileSync('as', ['--32', '-I', sources, '-o', object, join(sources, `${protocol}.S`)]);
  const places = {
    bzimage: ['-Ttext', '0', '--oformat', 'binary'],
    multiboot: ['--section-start', '.multiboot=0x100000', '-Ttext', '0x101000'],
  };
  execFileSync('ld', ['-m', 'elf_i386', ...places[protocol], '-o', image, object]);
  return ['qemu-system-x86_64', '-nographic', ...exit, ...machine, '-kernel', image];
}

export interface HartsOptions {
  readonly harts: number;
  /** How often each hart calls `outer`. */
  readonly calls: number;
  /** Ticks of the 10 MHz timer between two interrupts of a hart; 0: none. */
  readonly period: number;
  /** A hart that has called that often calls on until so many interrupts have come. */
  readonly ticks?: number;
  /** On x86_64: how often a triple fault resets the machine when all is printed. */
  readonly resets?: number;
}

/** What a hart of `kernels/harts-ARCH.s` says that it has done. */
export interface HartCounts {
  readonly outer: number;
  readonly inner: number;
  readonly ticks: number;
  readonly sum: number;
}

/** Assembles `kernels/harts-ARCH.s`, whose harts call the same functions at once. */
export function hartsKernel(
  t: { teardown: (fn: () => void) => void },
  arch: 'riscv64' | 'x86_64' | 'aarch64',
  options: HartsOptions,
): PagingKernel {
  const { harts, calls, period, ticks = 0, resets = 0 } = options;
  const values = { HARTS: harts, CALLS: calls, PERIOD: period, TICKS: ticks, RESETS: resets };
  const elf = bareKernel(t, arch, `harts-${arch}.s`, values);
  // On x86-64 two sockets of three cores, whose APICs are 0, 1, 2, 4, 5, 6.
  const smp = arch === 'x86_64' ? `${harts},maxcpus=6,sockets=2,cores=3` : `${harts}`;
  const pc = ['qemu-system-x86_64', ...exit.filter((word) => resets === 0 || word !== '-no-reboot'), '-nographic'];
  const machine = { x86_64: pc, riscv64: bareMachine, aarch64: armMachine }[arch];
  return { elf, command: [...machine, '-smp', smp, '-kernel', elf] };
}

const armMachine = 'qemu-system-aarch64 -M virt -cpu cortex-a72 -nographic -nic none'.split(' ');

/** Assembles `kernels/resets-aarch64.s`, whose second processor starts where the first one does; it says what a hart of {@link hartsKernel} says. */
export function armResetsKernel(
  t: { teardown: (fn: () => void) => void },
  calls: number,
  resets: number,
): PagingKernel {
  const elf = bareKernel(t, 'aarch64', 'resets-aarch64.s', { CALLS: calls, RESETS: resets }, ['-g']);
  return { elf, command: [...armMachine, '-smp', '2', '-kernel', elf] };
}

/** Assembles `kernels/guests-aarch64.s`, a hypervisor that calls `work` so often, and whose guest calls it again as often. */
export function guestsKernel(t: { teardown: (fn: () => void) => void }, calls: number): PagingKernel {
  const elf = bareKernel(t, 'aarch64', 'guests-aarch64.s', { CALLS: calls }, ['-g']);
  const [qemu = '', ...machine] = armMachine;
  return { elf, command: [qemu, ...machine, '-M', 'virtualization=on', '-kernel', elf] };
}

/** Assembles `kernels/tags-aarch64.s`, whose memory is checked by tags, and which has a program that can only be executed. */
export function tagsKernel(t: { teardown: (fn: () => void) => void }, calls: number): PagingKernel {
  const elf = bareKernel(
    t,
    'aarch64',
    'tags-aarch64.s',
    { CALLS: calls },
    ['-g'],
    ['--section-start=.user=0x40400000'],
  );
  const machine = 'qemu-system-aarch64 -M virt,mte=on -cpu max -nographic -nic none'.split(' ');
  return { elf, command: [...machine, '-kernel', elf] };
}

/** Assembles `kernels/hazards-riscv64.s`, which looks at its own code, and changes it. */
export function hazardsKernel(
  t: { teardown: (fn: () => void) => void },
  options: { readonly calls: number; readonly own?: number },
): PagingKernel {
  // The assembler's own debug info says that these functions take no arguments.
  const values = { CALLS: options.calls, OWN: options.own ?? 0 };
  const elf = bareKernel(t, 'riscv64', 'hazards-riscv64.s', values, ['-g']);
  return { elf, command: [...bareMachine, '-kernel', elf] };
}

/** Assembles `kernels/brief-ARCH.s`, with functions that last as long as they say. */
export function briefKernel(
  t: { teardown: (fn: () => void) => void },
  arch: 'riscv64' | 'x86_64',
  options: { readonly calls: number; readonly wait: number; readonly own?: number },
): PagingKernel {
  const values = { CALLS: options.calls, WAIT: options.wait, OWN: options.own ?? 0 };
  const elf = bareKernel(t, arch, `brief-${arch}.s`, values, ['-g']);
  const machine = arch === 'x86_64' ? ['qemu-system-x86_64', ...exit, '-nographic'] : bareMachine;
  return { elf, command: [...machine, '-kernel', elf] };
}

/** The kernel of {@link briefKernel} with a function of this code, which it never calls. */
export function kernelWith(t: { teardown: (fn: () => void) => void }, code: string, calls: number): PagingKernel {
  const object = join(scratchFolder(t), 'more.o');
  const input = `.globl more\n.type more, @function\nmore: ${code}\nret\n.size more, . - more\n.section .note.GNU-stack\n`;
  execFileSync('as', ['-g', '-o', object, '-'], { input });
  const elf = bareKernel(t, 'x86_64', 'brief-x86_64.s', { CALLS: calls, WAIT: 0, OWN: 0 }, ['-g'], [object]);
  return { elf, command: ['qemu-system-x86_64', ...exit, '-nographic', '-kernel', elf] };
}

/** Builds `kernels/floats-x86_64.s`, which calls a function with a number so many times, with its floating-point unit on and off. */
export function floatsKernel(t: { teardown: (fn: () => void) => void }, calls: number): PagingKernel {
  const take = join(scratchFolder(t), 'take.o');
  execFileSync('gcc', ['-g', '-O1', '-fno-pic', '-c', '-o', take, join(sources, 'floats-x86_64.c')]);
  const elf = bareKernel(t, 'x86_64', 'floats-x86_64.s', { CALLS: calls }, [], [take]);
  return { elf, command: ['qemu-system-x86_64', ...exit, '-nographic', '-kernel', elf] };
}

/**
 * Assembles `kernels/ends-riscv64.s`, whose functions are left in several ways; nothing says that they have no arguments on the stack. It resets
 * the machine so many times at its end, and prints each time what it has called.
 */
export function endsKernel(t: { teardown: (fn: () => void) => void }, calls: number, resets = 0): PagingKernel {
  const plain = join(scratchFolder(t), 'plain.o');
  const source = join(sources, 'ends-plain-riscv64.s');
  execFileSync('riscv64-linux-gnu-as', ['-march=rv64imac_zicsr_zifencei', '-g', '-o', plain, source]);
  const elf = bareKernel(t, 'riscv64', 'ends-riscv64.s', { CALLS: calls, RESETS: resets }, [], [plain]);
  return { elf, command: [...bareMachine, '-kernel', elf] };
}

/**
 * Assembles `kernels/late-riscv64.s`, which turns paging on after so many calls of `early`, and then calls `work`.
 * `isHigh`: it is linked at the top of the address space, and runs there once it pages.
 */
export function lateKernel(
  t: { teardown: (fn: () => void) => void },
  options: Record<'early' | 'work', number> & { isHigh?: boolean } & Partial<
      Record<'spin' | 'others' | 'returns', number>
    >,
): PagingKernel {
  const { early, work, isHigh = false, spin = 0, others = 0, returns = 0 } = options;
  const folder = scratchFolder(t);
  const [elf, object] = [join(folder, 'kernel.elf'), join(folder, 'kernel.o')];
  const high = isHigh ? NEAR_BASE - 0x8000_0000n : 0;
  const values = { EARLY: early, WORK: work, SPIN: spin, OTHERS: others, RETURNS: returns, HIGH: high };
  const symbols = Object.entries(values).flatMap(([name, value]) => ['--defsym', `${name}=${value}`]);
  const assembled = [
    '-g',
    '-march=rv64imac_zicsr',
    '-I',
    sources,
    ...symbols,
    '-o',
    object,
    join(sources, 'late-riscv64.s'),
  ];
  // The assembler's own debug info says that these functions take no arguments.
  execFileSync('riscv64-linux-gnu-as', assembled);
  const linked = ['--no-warn-mismatch', '--defsym', `BASE=${NEAR_BASE}`, '-T', join(sources, 'riscv64.ld')];
  const placed = isHigh ? linked : ['-N', '-Ttext=0x80200000', '-static'];
  execFileSync('riscv64-linux-gnu-ld', ['--no-warn-rwx-segments', ...placed, object, '-o', elf]);
  return { elf, command: ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-nic', 'none', '-kernel', elf] };
}

const secondHart = {
  riscv64: {
    tools: ['riscv64-linux-gnu-', '-march=rv64imac_zicsr'],
    script: 'riscv64.ld',
    machine: ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-nic', 'none'],
  },
  aarch64: { tools: ['aarch64-linux-gnu-'], script: 'aarch64.ld', machine: armMachine },
  x86_64: { tools: [''], script: 'tables-x86_64.ld', machine: ['qemu-system-x86_64', ...exit, '-nographic'] },
};

/**
 * Assembles `kernels/second-ARCH.s`, whose second hart starts when the first one has turned to its last table: where it is
 * loaded, on x86_64 with the first table. `isEarly`: it starts before, and waits.
 */
export function secondHartKernel(
  t: { teardown: (fn: () => void) => void },
  arch: keyof typeof secondHart,
  { calls, seen, isEarly = false }: { readonly calls: number; readonly seen: number; readonly isEarly?: boolean },
): PagingKernel {
  const folder = scratchFolder(t);
  const [elf, object] = [join(folder, 'kernel.elf'), join(folder, 'kernel.o')];
  const { tools, script, machine } = secondHart[arch];
  const [prefix, ...isa] = tools;
  const symbols = Object.entries({ CALLS: calls, SEEN: seen, EARLY: Number(isEarly), BASE: NEAR_BASE });
  const defined = symbols.flatMap(([name, value]) => ['--defsym', `${name}=${value}`]);
  // The assembler's own debug info says that these functions take no arguments.
  const source = ['-g', '-I', sources, ...isa, ...defined, join(sources, `second-${arch}.s`)];
  execFileSync(`${prefix}as`, [...source, '-o', object]);
  const quiet = ['--no-warn-rwx-segments', '--no-warn-mismatch', '--defsym', `BASE=${NEAR_BASE}`];
  execFileSync(`${prefix}ld`, [...quiet, '-T', join(sources, script), object, '-o', elf]);
  return { elf, command: [...machine, '-smp', '2', '-kernel', elf] };
}

/** Assembles `kernels/firmware-riscv64.s`, whose firmware is in the same ELF, and calls `served` as often as it calls `work`. */
export function firmwareKernel(t: { teardown: (fn: () => void) => void }, calls: number): PagingKernel {
  const elf = bareKernel(t, 'riscv64', 'firmware-riscv64.s', { CALLS: calls }, ['-g']);
  return { elf, command: [...bareMachine, '-kernel', elf] };
}

/** Assembles `kernels/portal-riscv64.s`, whose program sees nothing of it but a page where traps begin. */
export function portalKernel(
  t: { teardown: (fn: () => void) => void },
  { calls, spin }: { readonly calls: number; readonly spin: number },
): PagingKernel {
  const folder = scratchFolder(t);
  const [elf, object] = [join(folder, 'kernel.elf'), join(folder, 'kernel.o')];
  const source = join(sources, 'portal-riscv64.s');
  const symbols = ['--defsym', `CALLS=${calls}`, '--defsym', `SPIN=${spin}`];
  // The assembler's own debug info says that these functions take no arguments.
  execFileSync('riscv64-linux-gnu-as', [
    '-g',
    '-march=rv64imac_zicsr_zifencei',
    '-I',
    sources,
    ...symbols,
    '-o',
    object,
    source,
  ]);
  const placed = ['--no-warn-rwx-segments', '-N', '-Ttext=0x80200000', '-static'];
  execFileSync('riscv64-linux-gnu-ld', [...placed, object, '-o', elf]);
  return { elf, command: ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-nic', 'none', '-kernel', elf] };
}

/** Assembles `kernels/power-off-riscv64.s`, which ends its machine in the way of this number. */
export function powerOffKernel(t: { teardown: (fn: () => void) => void }, calls: number, way: number): PagingKernel {
  const folder = scratchFolder(t);
  const [elf, object] = [join(folder, 'kernel.elf'), join(folder, 'kernel.o')];
  const source = join(sources, 'power-off-riscv64.s');
  const symbols = ['--defsym', `CALLS=${calls}`, '--defsym', `WAY=${way}`];
  // The assembler's own debug info says that these functions take no arguments.
  execFileSync('riscv64-linux-gnu-as', ['-g', '-march=rv64imac', ...symbols, '-o', object, source]);
  const placed = ['--no-warn-rwx-segments', '-N', '-Ttext=0x80200000', '-static'];
  execFileSync('riscv64-linux-gnu-ld', [...placed, object, '-o', elf]);
  const machine = ['qemu-system-riscv64', '-M', 'virt', '-semihosting', '-nographic', '-nic', 'none'];
  return { elf, command: [...machine, '-kernel', elf] };
}

export interface TablesCalls {
  readonly early: number;
  readonly middle: number;
  readonly work: number;
  /** On riscv64: so many ticks of the 10 MHz clock it waits before `paging`. */
  readonly wait?: number;
  /** On riscv64: MiB of RAM that it maps in the end without asking how much there is. */
  readonly ram?: number;
}

/**
 * Assembles `kernels/tables-ARCH.s`, which calls `early` where it is loaded, jumps to the top of the address space, calls
 * `middle`, turns to another page table in `paging`, and calls `work`.
 */
export function tablesKernel(
  t: { teardown: (fn: () => void) => void },
  arch: 'riscv64' | 'x86_64',
  { early, middle, work, wait = 0, ram = 0 }: TablesCalls,
  memory = '128M',
): PagingKernel {
  const folder = scratchFolder(t);
  const [elf, object] = [join(folder, 'kernel.elf'), join(folder, 'kernel.o')];
  const source = join(sources, `tables-${arch}`);
  const [prefix, isa] = arch === 'riscv64' ? ['riscv64-linux-gnu-', ['-march=rv64imac_zicsr']] : ['', []];
  const values = { BASE: NEAR_BASE, EARLY: early, MIDDLE: middle, WORK: work, WAIT: wait, RAM: ram };
  const symbols = Object.entries(values).flatMap(([name, value]) => ['--defsym', `${name}=${value}`]);
  // The assembler's own debug info says that these functions take no arguments.
  execFileSync(`${prefix}as`, ['-g', '-I', sources, ...isa, ...symbols, '-o', object, `${source}.s`]);
  const quiet = ['--no-warn-rwx-segments', '--no-warn-mismatch'];
  execFileSync(`${prefix}ld`, [...quiet, '--defsym', `BASE=${NEAR_BASE}`, '-T', `${source}.ld`, '-o', elf, object]);
  const command =
    arch === 'riscv64'
      ? ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-nic', 'none']
      : ['qemu-system-x86_64', ...exit, '-nographic'];
  return { elf, command: [...command, '-m', memory, '-kernel', elf] };
}

/** Assembles `kernels/disk-x86_64.s`, which a PC's firmware loads from a disk. */
export function diskKernel(t: { teardown: (fn: () => void) => void }, calls: number): PagingKernel {
  const folder = scratchFolder(t);
  const [elf, object, disk] = ['kernel.elf', 'kernel.o', 'disk.img'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const source = join(sources, 'disk-x86_64.s');
  execFileSync('as', ['-g', '--defsym', `CALLS=${calls}`, '-o', object, source]);
  execFileSync('ld', ['--no-warn-rwx-segments', '-N', '-Ttext=0x7c00', '-static', object, '-o', elf]);
  execFileSync('objcopy', ['-O', 'binary', '-j', '.text', elf, disk]);
  return { elf, command: ['qemu-system-x86_64', ...exit, '-nographic', '-drive', `file=${disk},format=raw`] };
}

/**
 * Assembles `kernels/moved-riscv64.s`, a position-independent kernel that firmware starts elsewhere than it is linked.
 * It waits for so many ticks of 100 ns before its first call.
 */
export function movedKernel(t: { teardown: (fn: () => void) => void }, calls: number, wait = 3_000_000): PagingKernel {
  const folder = scratchFolder(t);
  const [elf, object, image] = ['kernel.elf', 'kernel.o', 'kernel.bin'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const symbols = ['--defsym', `CALLS=${calls}`, '--defsym', `WAIT=${wait}`];
  const source = join(sources, 'moved-riscv64.s');
  execFileSync('riscv64-linux-gnu-as', [
    '-g',
    '-I',
    sources,
    '-march=rv64imac_zicsr',
    ...symbols,
    '-o',
    object,
    source,
  ]);
  const position = ['-pie', '--no-dynamic-linker', '-N', '-Ttext=0'];
  execFileSync('riscv64-linux-gnu-ld', ['--no-warn-rwx-segments', ...position, '-o', elf, object]);
  execFileSync('riscv64-linux-gnu-objcopy', ['-O', 'binary', '-j', '.text', elf, image]);
  return { elf, command: ['qemu-system-riscv64', '-M', 'virt', '-nographic', '-nic', 'none', '-kernel', image] };
}

export interface GatedOptions {
  /** So many bytes lie between its functions and the room behind its text. */
  readonly gap?: number;
  /** Turns that it waits after each call. */
  readonly spin?: number;
  /** Turns that it spends in each call. */
  readonly work?: number;
  readonly harts?: number;
  /** So many of its harts never leave the firmware. */
  readonly parked?: number;
  /** At its end the kernel reads the time until that is illegal, for some ten seconds at most. */
  readonly awaitsClosing?: boolean;
}

/** Assembles `kernels/gated-riscv64.s`, whose firmware keeps all counters from it. */
export function gatedKernel(
  t: { teardown: (fn: () => void) => void },
  calls: number,
  options: GatedOptions = {},
): PagingKernel {
  const { gap = 0, spin = 0, work = 0, harts = 1, parked = 0, awaitsClosing = false } = options;
  const values = {
    CALLS: calls,
    GAP: gap,
    SPIN: spin,
    WORK: work,
    HARTS: harts,
    PARKED: parked,
    CLOSED: awaitsClosing ? 300_000_000 : 0,
  };
  // The assembler's own debug info says that these functions take no arguments.
  const elf = bareKernel(t, 'riscv64', 'gated-riscv64.s', values, ['-g']);
  return { elf, command: [...bareMachine, '-smp', String(harts), '-kernel', elf] };
}

const bareMachine = ['qemu-system-riscv64', '-M', 'virt', '-bios', 'none', '-nographic', '-nic', 'none'];

/** A kernel for M-mode, at the begin of the RAM, or one that QEMU starts through its PVH note. */
function bareKernel(
  t: { teardown: (fn: () => void) => void },
  arch: 'riscv64' | 'x86_64' | 'aarch64',
  file: string,
  values: Readonly<Record<string, number>>,
  options: readonly string[] = [],
  objects: readonly string[] = [],
): string {
  const folder = scratchFolder(t);
  const elf = join(folder, 'kernel.elf');
  const object = join(folder, 'kernel.o');
  const symbols = Object.entries(values).flatMap(([name, value]) => ['--defsym', `${name}=${value}`]);
  const assembled = [...options, ...symbols, '-I', sources, '-o', object, join(sources, file)];
  if (arch === 'x86_64') {
    execFileSync('as', assembled);
    execFileSync('ld', ['-Ttext-segment=0x100000', '-static', object, ...objects, '-o', elf]);
    return elf;
  }
  const march = arch === 'riscv64' ? ['-march=rv64imac_zicsr_zifencei'] : [];
  execFileSync(`${arch}-linux-gnu-as`, [...march, ...assembled]);
  execFileSync(`${arch}-linux-gnu-ld`, [
    '--no-warn-rwx-segments',
    arch === 'riscv64' ? '-Ttext=0x80000000' : '-Ttext=0x40200000',
    '-static',
    object,
    ...objects,
    '-o',
    elf,
  ]);
  return elf;
}

/** What it prints before it ends, by hart. */
export function hartCounts(text: string): readonly HartCounts[] {
  return [...text.matchAll(/hart \d+ outer (\d+) inner (\d+) ticks (\d+) sum (\d+)/g)].map((match) => {
    const [outer = 0, inner = 0, ticks = 0, sum = 0] = match.slice(1).map(Number);
    return { outer, inner, ticks, sum };
  });
}

/** Assembles `kernels/clusters-riscv64.s` for QEMU's sifive_u, whose first hart is a cluster of its own. */
export function clustersKernel(t: { teardown: (fn: () => void) => void }): PagingKernel {
  const elf = bareKernel(t, 'riscv64', 'clusters-riscv64.s', { HARTS: 5, UART: 0x1001_0000 }, ['-g']);
  const machine = ['qemu-system-riscv64', '-M', 'sifive_u', '-smp', '5', '-bios', 'none', '-nographic'];
  return { elf, command: [...machine, '-kernel', elf] };
}
