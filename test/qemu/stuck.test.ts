// Deadlocks and lost wakes of a kernel with two executors: told by `tasks`, found at the end of a recording, and by a budget of the
// saved trace. The kernel prints its own book of who waits for whom. Of its faults one a guest is planted; all with `--long`.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { long, usually } from '../support/long.js';
import { children, protoc, readPerfetto } from '../trace/decode-perfetto.js';
import { elfPath, sourcePath } from './guests/guests.js';

const guests = {
  'rv-stuck': { faultAt: '0x86000000', usual: ['embassy deadlock'] },
  'x86-stuck': { faultAt: '0x6000000', usual: ['async-task lost wake'] },
} as const;
type Guest = keyof typeof guests;
const faults = [
  'none',
  'embassy deadlock',
  'async-task deadlock',
  'embassy lost wake',
  'async-task lost wake',
] as const;

interface Tasks {
  readonly tasks: readonly {
    readonly future: string;
    readonly waits?: readonly {
      readonly kind: string;
      readonly address: string;
      readonly by: readonly { readonly task: number }[];
    }[];
  }[];
  readonly deadlocks: readonly {
    readonly cycle: readonly { readonly task: number }[];
    readonly behind: readonly { readonly task: number }[];
    readonly likely: boolean;
  }[];
  readonly lost: readonly { readonly task: number }[];
}
interface Recorded {
  readonly findings: readonly {
    readonly kind: string;
    readonly task: number;
    readonly future: string;
    readonly file: string;
    readonly line: number;
    readonly wait?: string;
  }[];
  readonly tasks: readonly { readonly number: number; readonly future: string }[];
  readonly quiet: readonly {
    readonly harts: readonly { readonly own: { readonly file: string; readonly line: number } }[];
  }[];
}

/** What the guest says of a task that is left. */
interface Booked {
  readonly name: string;
  readonly mutex: bigint | undefined;
  readonly by: string | undefined;
  readonly line: number;
}

function bookIn(console: string): readonly Booked[] {
  return [...console.matchAll(/^LAB (?:waits|parked) (\w+) (?:mutex=(0x\w+) by=(\w+) )?line=(\d+)/gm)].map(
    ([, name = '', mutex, by, line]) => ({
      name,
      mutex: mutex === undefined ? undefined : BigInt(mutex),
      by,
      line: Number(line),
    }),
  );
}

/** Those that wait for each other, by the book. */
function circleOf(book: readonly Booked[]): readonly string[] {
  const next = (name: string | undefined): string | undefined => book.find((each) => each.name === name)?.by;
  return book
    .map(({ name }) => name)
    .filter((name) => {
      let at = next(name);
      for (let steps = 0; at !== undefined && at !== name && steps < book.length; steps++) at = next(at);
      return at === name;
    });
}

/** `payer` of `labstuck::work::payer`. */
const nameOf = (future: string): string => future.replace(/^.*::/, '');

async function recorded(t: Test, guest: Guest, fault: (typeof faults)[number]) {
  const number = faults.indexOf(fault);
  const qemu = frozenGuest(t, guest, ['-device', `loader,addr=${guests[guest].faultAt},data=${number},data-len=4`]);
  const trace = join(scratchFolder(t), 'stuck.pftrace');
  // A busy host makes polls long.
  const limits = ['--findings', 'error', '--long-poll', '60s', '--stalled', '1s'];
  const recorder = rsptrace('-r', qemu.socket, '--json', ...limits, '-o', trace, elfPath(guest));
  if (number > 0) {
    // It has printed its book, and nothing of it runs any more. Tasks are looked at after recordings of a second or more.
    await Promise.race([qemu.shows('LAB left').then(() => recorder.shows('the machine is idle')), recorder.ended]);
    recorder.signal('SIGINT');
  }
  const ran = await recorder.ended;
  return { qemu, trace, status: ran.status, output: JSON.parse(ran.stdout || '{}') as Recorded, stderr: ran.stderr };
}

/** The trace of a machine that runs already can be opened before a hit, and none comes. */
async function beginsAtOnce(t: Test, guest: Guest, socket: string): Promise<void> {
  const trace = join(scratchFolder(t), 'idle.pftrace');
  const recorder = rsptrace('-r', socket, '--stalled', '1s', '-o', trace, elfPath(guest));
  await Promise.race([recorder.shows('the machine is idle'), recorder.ended]);
  const { slices, tracks } = readPerfetto(children(protoc(readFileSync(trace)), 'packet'));
  t.strictSame([slices, [...tracks.values()].map(({ name }) => name).slice(0, 2)], [[], [`${guest}.elf`, 'tasks']]);
  t.match(await rsptrace('report', trace).ended, { status: 1, stderr: /has no event \[TRACE_FOREIGN\]/ });
  recorder.signal('SIGINT');
  t.equal((await recorder.ended).status, 0);
}

for (const guest of Object.keys(guests) as Guest[]) {
  const planted = usually(faults.slice(1), (fault) => (guests[guest].usual as readonly string[]).includes(fault));
  for (const fault of planted) {
    t.test(`${guest}: ${fault}`, async (t) => {
      const { qemu, trace, status, output, stderr } = await recorded(t, guest, fault);
      t.equal(status, 4, stderr);

      // It waits where its loop's last line waits.
      const quiet = output.quiet.at(-1);
      t.match(quiet, { ms: 1000, more: 0, harts: [{ number: 0, state: 'idle' }] });
      const { file = '', line = 0 } = quiet?.harts[0]?.own ?? {};
      const code = readFileSync(sourcePath(file.replace('/lab/', '/lab')), 'utf8').split('\n');
      // Its pc is behind the instruction.
      t.match(code[line - 1], /"wfi"|"hlt"|wait_irq/, `${file}:${line}`);
      t.match(stderr, /^rsptrace: no event for 1 s: the machine is idle: hart 0 waits for an interrupt in lab/m);

      // The guest runs on, and its tasks are the same.
      const options = ['--json', '--findings', 'error'];
      const words = ['tasks', ...options, '-r', qemu.socket, elfPath(guest)];
      const { tasks, deadlocks, lost } = await rsptrace(...words).json<Tasks>(4);
      if (fault === planted[0]) await beginsAtOnce(t, guest, qemu.socket);
      qemu.process.kill('SIGKILL');
      const book = bookIn((await qemu.ended).stdout);
      const named = (at: readonly { readonly task: number }[]): string[] =>
        at.map(({ task }) => nameOf(tasks[task]?.future ?? '')).sort();

      t.strictSame(tasks.map(({ future }) => nameOf(future)).sort(), book.map(({ name }) => name).sort());
      for (const { future, waits = [] } of tasks) {
        const { mutex, by } = book.find(({ name }) => name === nameOf(future)) as Booked;
        t.strictSame(
          waits.map(({ kind, address, by }) => [kind, BigInt(address), ...named(by)]),
          mutex === undefined ? [] : [['Mutex', mutex, by]],
        );
      }
      const circle = circleOf(book);
      const isDeadlock = fault.endsWith('deadlock');
      const parked = book.filter(({ mutex }) => mutex === undefined).map(({ name }) => name);
      t.equal(circle.length, isDeadlock ? (fault.startsWith('embassy') ? 2 : 3) : 0);
      t.strictSame(
        deadlocks.map(({ cycle, likely }) => [named(cycle), likely]),
        isDeadlock ? [[[...circle].sort(), false]] : [],
      );
      const behind = book.map(({ name }) => name).filter((name) => !circle.includes(name) && !parked.includes(name));
      t.strictSame(
        deadlocks.flatMap(({ behind }) => named(behind)),
        behind,
      );
      t.strictSame(named(lost), parked);

      // One finding for each of them, at the await that the guest names.
      const expected = book.filter(({ name }) => circle.includes(name) || parked.includes(name));
      t.equal(output.findings.length, expected.length);
      for (const { kind, task, future, file, line, wait } of output.findings) {
        const { mutex, line: booked } = expected.find(({ name }) => name === nameOf(future)) as Booked;
        t.equal(kind, isDeadlock ? 'deadlock' : 'lost-wake');
        t.equal(output.tasks.find(({ number }) => number === task)?.future, future, 'a task of the table');
        t.equal(file, '/lab/stuck/src/work.rs');
        if (isDeadlock) t.equal(line, booked, `${future}: the await`);
        t.ok(wait?.includes(mutex === undefined ? 'no waker is left' : `0x${mutex.toString(16)}`), `${wait}`);
      }

      const budget = `${trace}.json`;
      writeFileSync(budget, '{ "findings": {} }');
      const checked = await rsptrace('check', trace, '--budget', budget).ended;
      t.equal(checked.status, 4, checked.stderr);
      t.match(checked.stdout, isDeadlock ? /in a deadlock: it waits for Mutex/ : /a lost wake: it is suspended/);
      const converted = await rsptrace('convert', trace, '-o', `${trace}.jsonl`).ended;
      t.equal(converted.status, 0, converted.stderr);
      const lines = readFileSync(`${trace}.jsonl`, 'utf8').trim().split('\n');
      const told = lines.map((line) => JSON.parse(line) as { type: string }).filter(({ type }) => type === 'stuck');
      t.equal(told.length, expected.length, 'an instant each');
      const again = await rsptrace('convert', trace, '-o', `${trace}.again.pftrace`).ended;
      t.equal(again.status, 0, again.stderr);
      t.ok(
        readFileSync(`${trace}.again.pftrace`).equals(readFileSync(trace)),
        'read and written again, the same bytes',
      );
    });
  }
  if (guest === 'x86-stuck' && !long) continue;
  t.test(`${guest}: without a fault nothing is found`, async (t) => {
    const { qemu, status, output, stderr } = await recorded(t, guest, 'none');
    t.equal(status, 0, stderr);
    t.match((await qemu.ended).stdout, /^LAB done/m);
    t.strictSame(output.findings, []);
  });
}
