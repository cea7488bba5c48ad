// Static programs of Linux on aarch64 under QEMU in user mode, stopped at random by gdb: their stacks are those that gdb shows.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { aarch64 } from '../../../src/arch/index.js';
import { addr, hex } from '../../../src/base/addr.js';
import { ElfFile } from '../../../src/elf/index.js';
import { Stacks, StackWindow, type UnwinderName } from '../../../src/target/unwind/index.js';
import { scratchFolder, start } from '../../support/command.js';
import { long } from '../../support/long.js';

/** See gdb-stacks.py. */
interface Stop {
  readonly registers: Readonly<Record<string, string | null>>;
  readonly low: string;
  readonly stack: string;
  readonly frames: readonly string[];
}

const registers = `${Array.from({ length: 31 }, (_, number) => `x${number}`).join(' ')} sp pc`;

const wanted = long ? 200 : 40;

function isStub(elf: ElfFile, pc: bigint): boolean {
  const plt = elf.sections.find(({ name }) => name === '.plt');
  return plt !== undefined && pc >= plt.address && pc < plt.address + BigInt(plt.size);
}

function compile(t: Test, ...options: readonly string[]): string {
  const program = join(scratchFolder(t), 'program');
  const source = join(import.meta.dirname, '../../support/programs/calls-aarch64.c');
  execFileSync('aarch64-linux-gnu-gcc', ['-g', '-static', ...options, '-o', program, source]);
  return program;
}

async function stopsOf(
  t: Test,
  program: string,
  elf: ElfFile,
  functions: readonly string[],
  cpu: string,
): Promise<Stop[]> {
  const folder = scratchFolder(t);
  const [socket, out] = [join(folder, 'gdb'), join(folder, 'stops.jsonl')];
  const guest = start('env', ['-i', 'qemu-aarch64', '-cpu', cpu, '-g', socket, program]);
  t.teardown(() => void guest.process.kill('SIGKILL'));
  const places = functions.flatMap((name) => [...elf.symbols.named(name)].slice(0, 1));
  t.equal(places.length, functions.length, 'the program has all of these');
  const environment = {
    ...{ TARGET: socket, OUT: out, STOPS: `${wanted}`, BREAKS: places.map(({ address }) => hex(address)).join(' ') },
    ...{ HANDLER: '0 0', SHARE: '0', TICK: '0', REGISTERS: registers, SEED: '11' },
  };
  const assignments = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
  const script = join(import.meta.dirname, 'gdb-stacks.py');
  const gdb = start('env', [...assignments, 'gdb-multiarch', '-nx', '-batch', '-x', script, program]);
  const { status, stderr } = await gdb.ended;
  if (status !== 0) throw new Error(`gdb failed: ${stderr}`);
  const lines = readFileSync(out, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Stop);
}

function walk(stacks: Stacks, stop: Stop, unwinder: 'auto' | UnwinderName): string {
  const window = new StackWindow();
  window.add(addr(BigInt(stop.low)), Uint8Array.from(Buffer.from(stop.stack, 'hex')));
  const register = (wanted: string): bigint | undefined => {
    const text = stop.registers[wanted];
    return text == null ? undefined : BigInt(text);
  };
  return stacks
    .walk({ register }, window, { unwinder })
    .frames.map(({ pc }) => hex(pc))
    .join(' ');
}

t.test('in a program and in the C library under it', async (t) => {
  const program = compile(t, '-O1');
  const elf = await ElfFile.open(program);
  const stacks = new Stacks(elf, aarch64);
  const stops = await stopsOf(t, program, elf, ['compare'], 'cortex-a72');
  if (long) stops.push(...(await stopsOf(t, program, elf, ['fib', 'large', 'wide', 'many'], 'cortex-a72')));
  t.ok(stops.length >= wanted, `${stops.length} stops`);
  const inStub = stops.filter(({ registers: { pc } }) => isStub(elf, BigInt(pc ?? 0))).length;
  t.ok(inStub > 0, `${inStub} of them in stubs of imported functions`);
  const different = (unwinder: 'auto' | UnwinderName): string[] =>
    stops.flatMap((stop) => {
      const [mine, real] = [walk(stacks, stop, unwinder), stop.frames.join(' ')];
      return mine === real ? [] : [`real ${real}\nmine ${mine}`];
    });
  t.same(different('auto'), []);
  t.same(different('prologue'), [], 'by the code alone');
});

t.test('where return addresses are signed, as where the processor leaves them as they are', async (t) => {
  const program = compile(t, '-O2', '-mbranch-protection=standard');
  const elf = await ElfFile.open(program);
  const stacks = new Stacks(elf, aarch64);
  const plain = await stopsOf(t, program, elf, ['fib'], 'cortex-a72');
  const signed = await stopsOf(t, program, elf, ['fib'], 'max');
  t.ok(
    signed.every(({ frames }, index) => frames.join() !== plain[index]?.frames.join()),
    'gdb, which is not told what is signed, does not come so far',
  );
  const real = plain.map(({ frames }) => frames.join(' '));
  t.ok(real.length >= wanted, `${real.length} stops`);
  for (const unwinder of ['auto', 'prologue'] as const)
    t.same(
      signed.map((stop) => walk(stacks, stop, unwinder)),
      real,
      unwinder,
    );
});

t.test('in an epilogue of which call frame information says nothing the code is believed', async (t) => {
  const program = compile(t, '-O1');
  const elf = await ElfFile.open(program);
  const stacks = new Stacks(elf, aarch64);
  const [leaves] = [...elf.symbols.named('leaves')];
  const inside = (await stopsOf(t, program, elf, ['leaves'], 'cortex-a72')).filter(({ registers: { pc } }) => {
    const offset = Number(BigInt(pc ?? 0) - (leaves?.address ?? 0n));
    return offset >= 0 && offset < (leaves?.size ?? 0);
  });
  const callers = (chain: string): string => chain.split(' ').slice(1).join(' ');
  const atEntry = inside.find(({ registers: { pc } }) => BigInt(pc ?? 0) === leaves?.address);
  const real = callers(atEntry?.frames.join(' ') ?? '');
  t.ok(real.split(' ').length >= 3, `${real} called it`);
  t.ok(
    inside.some(({ frames }) => callers(frames.join(' ')) !== real),
    'gdb believes the information',
  );
  t.same(new Set(inside.map((stop) => callers(walk(stacks, stop, 'auto')))), new Set([real]));
});
