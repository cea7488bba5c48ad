// Debian's Linux under a QEMU that somebody else has started, already running when rsptrace comes: memory of its own allocator.
import { join } from 'node:path';
import type { Test } from 'tap';
import { ElfFile } from '../../../src/elf/index.js';
import { connect } from '../../../src/rsp/index.js';
import { rsptraceWithin, start } from '../command.js';
import { linuxGuest } from './boot.js';
import { commonFunctions } from './trace.js';

interface Output {
  readonly end: string;
  readonly scratch: string;
  readonly missing: number;
  readonly records: number;
  readonly events: number;
  readonly stops: number;
  readonly functions: readonly { readonly function: string; readonly calls: number }[];
  readonly probes: readonly { readonly function: string; readonly engine: string; readonly why?: string }[];
  readonly gaps: readonly { readonly from_ns: number; readonly to_ns: number; readonly why: string }[];
}

/** Linux calls it when it has begun to start tasks, before it looks for its devices. */
const from = 'driver_init';
/** The last that it does with its devices there. */
const until = 'kernel_power_off';

interface Attached {
  readonly behind: bigint;
  readonly words: readonly string[];
  /** Further probes, so many that the kernel would hardly go on with a breakpoint for each. */
  readonly crowd?: string;
}

export async function traceAttached(
  t: Test,
  arch: 'riscv64' | 'x86_64',
  { behind, words, crowd }: Attached,
): Promise<void> {
  const guest = linuxGuest(t, arch);
  const { symbols } = await ElfFile.open(guest.elf);
  const addressOf = (name: string): bigint => symbols.named(name)[0]?.address ?? 0n;
  const places = new Map(commonFunctions.map((name) => [name, addressOf(name) + behind]));
  const [socket, trace] = [join(guest.elf, '../gdb'), join(guest.elf, '../out.json')];
  const stub = ['-S', '-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'];
  const span = [addressOf(from), addressOf(until)] as const;
  const [program = '', ...args] = [...guest.command(...words), ...guest.counting([...places.values()], span), ...stub];
  const qemu = start(program, args, 200_000);
  t.teardown(() => void qemu.process.kill('SIGKILL'));

  // It stands when nobody is there any more, and runs on with the next one.
  const session = await connect(`unix:${socket}`, { waitMs: 60_000 });
  const breakpoint = { type: 1, address: symbols.named(from)[0]?.address, kind: 1 } as const;
  if (breakpoint.address === undefined) throw new Error(`there is no ${from}`);
  await session.insertBreakpoint({ ...breakpoint, address: breakpoint.address });
  await session.resume();
  await session.removeBreakpoint({ ...breakpoint, address: breakpoint.address });
  session.close();

  const options = ['--json', '-o', trace, '-r', `unix:${socket}`, '--until', until];
  const probes = [...places.keys()].map((name) => `fn:${name}`);
  if (crowd !== undefined) probes.push(crowd);
  const run = await rsptraceWithin(150_000, ...options, ...probes.flatMap((probe) => ['-p', probe]), guest.elf).ended;
  t.equal(run.status, 0, run.stderr.slice(-500));
  const output = JSON.parse(run.stdout) as Output;
  const { stdout: console } = await qemu.ended;

  t.equal(output.end, 'until');
  t.match(
    output.scratch,
    /^memory of Linux's allocator \(vmalloc\) at 0xff[0-9a-f]{14}, \d{7} bytes, mapped at 0xffffffff[89a-f][0-9a-f]{7}; /,
  );
  t.equal(output.missing, 0);
  const common = new Set<string>(commonFunctions);
  t.strictSame(
    output.probes.filter(({ function: name, engine }) => engine !== 'target' && common.has(name)),
    [],
    'no probe stops the target',
  );
  t.ok(output.stops < output.records / 20, `${output.stops} stops, ${output.records} records without`);
  const calls = new Map<string, number>();
  for (const { function: name, calls: count } of output.functions) calls.set(name, (calls.get(name) ?? 0) + count);
  const counted = guest.counts();
  for (const [name, place] of places) {
    const counts = counted.get(place)?.reduce((sum, count) => sum + count, 0);
    if (crowd === undefined) t.equal(calls.get(name) ?? 0, counts, `${name}: as often as QEMU has carried it out`);
    else t.ok((calls.get(name) ?? 0) <= (counts ?? 0), `${name}: ${calls.get(name)} of ${counts}`);
  }
  if (crowd !== undefined) {
    t.ok(output.probes.length > 1100, `${output.probes.length} probes`);
    t.ok(output.stops < 10, `${output.stops} stops`);
    t.match(output.gaps, [{ why: /^there was no memory for trampolines yet/ }]);
  }
  t.ok((calls.get('do_one_initcall') ?? 0) > 100, 'its own start');
  t.ok((calls.get('do_exit') ?? 0) > 20, 'and many processes are in it');
  t.match(console, /init has ended/);
  t.notMatch(console, /\bOops|\bBUG:|WARNING:|Call Trace|Kernel panic/);
}
