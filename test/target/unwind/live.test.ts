import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Architecture, architectureOf } from '../../../src/arch/index.js';
import { type Addr, addr, hex } from '../../../src/base/addr.js';
import { ElfFile } from '../../../src/elf/index.js';
import { Stacks, StackWindow, type UnwinderName } from '../../../src/target/unwind/index.js';
import { elfPath } from '../../qemu/guests/guests.js';
import { frozenGuest, scratchFolder, start } from '../../support/command.js';
import { long, usually } from '../../support/long.js';

/** See gdb-stacks.py. */
interface Stop {
  readonly registers: Readonly<Record<string, string | null>>;
  readonly low: string;
  readonly stack: string;
  readonly plain: readonly string[];
  readonly frames: readonly string[];
  readonly interrupted: readonly string[] | null;
}

const riscv = 'pc ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6';
const registerNames = {
  riscv64: `${riscv} sepc mepc sscratch mscratch`,
  x86_64: 'rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip',
  aarch64: `${Array.from({ length: 31 }, (_, number) => `x${number}`).join(' ')} sp pc cpsr ELR_EL1 ELR_EL2`,
} as const;

/** Where gdb stops the guest, at the first instruction; from there it steps through prologues, bodies and epilogues. */
const places = ['deep0', 'deep1', 'deep3', 'deep6', 'deep7'];

interface Walked {
  readonly name: string;
  readonly stops: number;
  readonly unwinders: readonly ('auto' | UnwinderName)[];
  /** More of QEMU's arguments. */
  readonly machine?: readonly string[];
}

/** Without `--long` one of each way to compile it, and a third of the stops of the long ones. */
const guests: readonly Walked[] = [
  { name: 'rv-o2-long', stops: 320, unwinders: ['auto', 'prologue'] },
  { name: 'rv-o0', stops: 300, unwinders: ['auto', 'prologue'] },
  { name: 'rv-o2-fp', stops: 300, unwinders: ['auto', 'prologue', 'fp'] },
  { name: 'rvm-o2', stops: 300, unwinders: ['auto', 'prologue'] },
  { name: 'x86-o2-long', stops: 320, unwinders: ['auto', 'prologue'] },
  { name: 'x86-o0', stops: 300, unwinders: ['auto', 'prologue'] },
  { name: 'arm-o0', stops: 300, unwinders: ['auto', 'prologue'] },
  { name: 'arm-lto', stops: 240, unwinders: ['auto', 'prologue'] },
  // At EL2, by registers of its own.
  { name: 'arm-o2', stops: 240, unwinders: ['auto', 'prologue'], machine: ['-M', 'virtualization=on'] },
];

const usual = ['rv-o2-fp', 'x86-o2-long', 'arm-o2'];
for (const { name, stops: all, unwinders, machine = [] } of usually(guests, (one) => usual.includes(one.name))) {
  // A short guest meets so few ticks that only many stops come across one.
  const wanted = long || !name.endsWith('-long') ? all : Math.ceil(all / 3);
  t.test(`${[name, ...machine].join(' ')}: every stack is the guest's real one, as gdb walks it`, async (t) => {
    const elf = await ElfFile.open(elfPath(name));
    const arch = architectureOf(elf.machine);
    if (arch === undefined) throw new Error('unknown architecture');
    await arch.prepare();
    const stops: Stop[] = [];
    // A short guest may end before there are enough; then it is run again, and stopped elsewhere.
    for (let seed = 7; stops.length < wanted && seed < 12; seed++) {
      stops.push(...(await record(t, name, elf, arch, wanted - stops.length, seed, machine)));
    }
    t.ok(stops.length >= wanted, `${stops.length} stops`);
    const handled = stops.filter(({ interrupted }) => interrupted !== null).length;
    t.ok(handled >= 5, `${handled} of them across a trap`);
    const stacks = new Stacks(elf, arch);
    const inHandler = handlerOf(elf);
    for (const unwinder of unwinders) {
      const different: string[] = [];
      let better = 0;
      for (const stop of stops) {
        const { frames, end } = walk(stacks, stop, unwinder);
        const mine = frames.map(({ pc }) => hex(pc)).join(' ');
        const real = chainOf(stop, inHandler).join(' ');
        if (real !== stop.plain.filter((pc) => pc !== '0x0').join(' ')) better++;
        if (mine !== real || !/^(own-stack|entry)$/.test(end.reason))
          different.push(`real ${real}\nmine ${mine} ${end.reason}`);
      }
      t.same(different, [], `${unwinder}: all ${stops.length}; gdb without help shows ${better} of them otherwise`);
    }
  });
}

function walk(stacks: Stacks, stop: Stop, unwinder: 'auto' | UnwinderName) {
  const window = new StackWindow();
  window.add(addr(BigInt(stop.low)), Uint8Array.from(Buffer.from(stop.stack, 'hex')));
  const register = (wanted: string): bigint | undefined => {
    const text = stop.registers[wanted];
    return text == null ? undefined : BigInt(text);
  };
  return stacks.walk({ register }, window, { unwinder });
}

/** Up to the trap handler as gdb walks it, then what it found when the CPU had just got there. */
function chainOf(stop: Stop, inHandler: (pc: Addr) => boolean): string[] {
  const frames = stop.frames.filter((pc) => pc !== '0x0');
  if (stop.interrupted === null) return frames;
  const handler = frames.findIndex((pc) => inHandler(addr(BigInt(pc))));
  return [...frames.slice(0, handler + 1), ...stop.interrupted.filter((pc) => pc !== '0x0')];
}

function handlerOf(elf: ElfFile): (pc: Addr) => boolean {
  const { address, size } = handler(elf);
  return (pc) => pc >= address && pc < address + BigInt(size);
}

function handler(elf: ElfFile): { readonly address: Addr; readonly size: number } {
  const [found] = ['irq_entry', 'trap_entry', 'irq_timer'].flatMap((name) => [...elf.symbols.named(name)]);
  if (found === undefined) throw new Error('the guest has no trap handler');
  return found;
}

/** The function whose mangled name holds `exec` and `timer_tick` one after the other. */
function tickOf(elf: ElfFile): Addr {
  for (const { name, address } of elf.symbols) if (/4exec10timer_tick$|^timer_tick$/.test(name)) return address;
  throw new Error('the guest has no timer_tick');
}

async function record(
  t: { teardown: (fn: () => void) => void },
  name: string,
  elf: ElfFile,
  arch: Architecture,
  stops: number,
  seed: number,
  machine: readonly string[],
): Promise<Stop[]> {
  // Under icount the guest's time is that of its instructions: a slow machine sees the same ticks.
  const guest = frozenGuest(t, name, ['-icount', 'shift=0', ...machine]);
  const out = join(scratchFolder(t), 'stops.jsonl');
  const { address, size } = handler(elf);
  const environment = {
    TARGET: guest.socket,
    OUT: out,
    STOPS: String(stops),
    BREAKS: places
      .flatMap((place) => elf.symbols.named(place))
      .map(({ address }) => hex(address))
      .join(' '),
    HANDLER: `${hex(address)} ${hex(address + BigInt(size))}`,
    // The short guests see some forty ticks in all.
    SHARE: name.endsWith('-long') ? '0.2' : '0.05',
    TICK: hex(tickOf(elf)),
    REGISTERS: registerNames[arch.name as keyof typeof registerNames],
    SEED: String(seed),
  };
  const script = join(import.meta.dirname, 'gdb-stacks.py');
  const assignments = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
  const gdb = start('env', [...assignments, 'gdb-multiarch', '-nx', '-batch', '-x', script, elfPath(name)]);
  const { status, stderr } = await gdb.ended;
  if (status !== 0) throw new Error(`gdb failed: ${stderr}`);
  return readFileSync(out, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Stop);
}
