// Stacks of panics, and stacks after a recording: those that gdb sees where nothing was traced.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { usually } from '../support/long.js';
import { elfPath, guest, qemuArgv } from './guests/guests.js';

interface Stacks {
  readonly harts: readonly {
    readonly pc: string;
    readonly frames: readonly { readonly pc: string; readonly inlined: boolean }[];
    readonly end: { readonly complete: boolean };
  }[];
}

/** The pcs of a stack. */
type Pcs = readonly string[];

function pcsOf({ harts: [hart] }: Stacks): Pcs {
  return hart?.frames.filter(({ inlined }) => !inlined).map(({ pc }) => pc) ?? [];
}

/** The stacks that gdb sees at the first hits of a place. The guest stands at the last one. */
async function gdbStacks(t: Test, socket: string, name: string, at: string, hits: number): Promise<readonly Pcs[]> {
  const out = join(scratchFolder(t), 'stacks.jsonl');
  const env = { ...process.env, TARGET: socket, OUT: out, AT: at, HITS: `${hits}` };
  const script = join(import.meta.dirname, 'gdb-stacks.py');
  // The guest's console is read meanwhile, or the guest would stand.
  const { stderr } = await promisify(execFile)('gdb-multiarch', ['-nx', '-batch', '-x', script, elfPath(name)], {
    env,
  });
  t.ok(existsSync(out), stderr);
  const lines = readFileSync(out, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  // Behind the outermost function of x86_64 there is a word of 0.
  return lines.map((line) => (JSON.parse(line) as Pcs).filter((pc, index) => index === 0 || pc !== '0x0'));
}

/** The end of RAM that no guest uses: a small ring, so that a guest does not end before its recording does. */
const given = {
  riscv64: '0x87c00000',
  x86_64: '0x7c00000',
  aarch64: '0x47c00000',
  loongarch64: '0x90000000bfc00000',
} as const;

/** Stacks of a place after a recording that ended while calls were open, which is not let go behind it. */
async function afterRecording(t: Test, name: string, at: string): Promise<{ socket: string; seen: readonly Pcs[] }> {
  const detach = /\$D(;[0-9a-f.]+)?#[0-9a-f]{2}/;
  const edit = (text: string, proxy: FaultProxy): string => {
    if (!detach.test(text)) return text;
    proxy.say('+$OK#9a');
    return text.replace(detach, '');
  };
  // A busy host sees a guest end too soon, or stop for its first events alone: then another one is recorded.
  for (const events of [100, 50, 400, 30, 1000]) {
    const { socket } = frozenGuest(t, name, slow);
    await using proxy = await FaultProxy.start(socket, { 'to-stub': { edit } });
    const trace = join(scratchFolder(t), 'out.pftrace');
    const scratch = `${given[guest(name).arch]},${name.endsWith('-o2') ? '0x40000' : '0x80000'}`;
    const record = ['-n', `${events}`, '-p', 'fn:**', '-p', 'poll:**', '--scratch', scratch];
    const args = ['-r', proxy.path, '--json', ...record, '-o', trace, elfPath(name)];
    const { end, records } = await rsptrace(...args).json<{ end: string; records: number }>();
    if (end === 'guest-ended' || records <= 20) continue;
    const seen = await gdbStacks(t, socket, name, at, 5);
    if (seen.length === 5) return { socket, seen };
  }
  throw new Error('each guest ended too soon');
}

async function addressOf(name: string, symbol: RegExp): Promise<string> {
  const elf = await ElfFile.open(elfPath(name));
  const found = [...elf.symbols].find(({ name: path, type }) => type === 'function' && symbol.test(path));
  if (found === undefined) throw new Error(`no ${symbol} in ${name}`);
  return `0x${found.address.toString(16)}`;
}

/** Whether these lie in the stack, in their order. */
function isWithin(these: Pcs, stack: Pcs): boolean {
  let at = 0;
  for (const pc of stack) if (pc === these[at]) at++;
  return at === these.length;
}

const step = /4work4step0/;
const places: Readonly<Record<string, RegExp>> = {
  'rv-o0': /^deep7$/,
  'rv-o2': /^deep7$/,
  'x86-o0': /^deep7$/,
  'x86-o2': /^deep7$/,
  'rv-embassy-o0': step,
  'rv-embassy-lto': step,
  'rv-asynctask-o0': step,
  'rv-asynctask-lto': step,
  'x86-asynctask-o0': step,
  'x86-asynctask-lto': step,
};
const asUsual = new Set(['x86-o0']);
/** A guest of thirty million instructions a second, so that a busy host does not see it end before it is looked at. */
const slow = ['-icount', 'shift=5,align=on'];
/** More hits than a place has. */
const all = 5000;

for (const [name, symbol] of usually(Object.entries(places), ([name]) => asUsual.has(name))) {
  t.test(`${name}: bt after a recording shows what gdb shows of an untraced guest`, async (t) => {
    const at = await addressOf(name, symbol);
    const untraced = await gdbStacks(t, frozenGuest(t, name).socket, name, at, all);
    const { socket, seen } = await afterRecording(t, name, at);
    const { stdout, stderr } = await rsptrace('bt', '-r', socket, '--json', elfPath(name)).ended;
    const stack = JSON.parse(stdout) as Stacks;
    t.equal(stack.harts[0]?.end.complete, true, stderr);
    const pcs = pcsOf(stack);
    t.ok(
      untraced.some((one) => one.join() === pcs.join()),
      `${pcs.join(' < ')} is a stack of the untraced guest`,
    );
    t.ok(isWithin(pcs, seen.at(-1) ?? []), `gdb's ${seen.at(-1)?.join(' < ')} has all of it`);
    // What calls that were open return through is all that gdb may see in addition.
    for (const one of seen)
      t.ok(
        untraced.some((other) => isWithin(other, one)),
        `so has ${one.join(' < ')}`,
      );
  });
}

/** What a loader puts into RAM plants a fault: the guest panics by itself, or by an arithmetic error. */
for (const name of usually(['rv-faulty', 'x86-faulty'] as const, (one) => one === 'rv-faulty')) {
  t.test(`${name}: a panic under trampolines has the stack that gdb shows of an untraced one`, async (t) => {
    const fault = ['-device', `loader,addr=${name === 'rv-faulty' ? '0x86000000' : '0x6000000'},data=3,data-len=4`];
    const trace = join(scratchFolder(t), 'out.pftrace');
    const record = ['--json', '-p', 'poll:**', '-p', 'fn:**', '-o', trace, elfPath(name)];
    const { stdout, stderr } = await rsptrace('run', ...record, '--', ...qemuArgv(name, fault)).ended;
    const { panic, records } = JSON.parse(stdout) as { panic?: Stacks; records: number };
    t.ok(panic, stderr);
    t.ok(records > 100, `${records} records were written without stops`);
    const at = panic?.harts[0]?.pc ?? '0';
    const [untraced = []] = await gdbStacks(t, frozenGuest(t, name, fault).socket, name, at, 1);
    t.same(panic && pcsOf(panic), untraced);
  });
}
