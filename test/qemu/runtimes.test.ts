// `rsptrace tasks` on kernels whose tasks embassy-executor and async-task keep, against the list that the kernel prints itself.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { demangle } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace } from '../support/command.js';
import { usually } from '../support/long.js';
import { elfPath, sourcePath } from './guests/guests.js';

interface Node {
  readonly future: string;
  readonly runtime: string;
  readonly fate: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly file: string | null;
  readonly line: number | null;
  readonly awaits: readonly Node[];
  readonly waits?: readonly Wait[];
}
interface Wait {
  readonly kind: string;
  readonly symbol: string | null;
  readonly address: string | null;
  readonly detail: string | null;
  readonly by: readonly { readonly task: number; readonly line?: number | null; readonly maybe?: true }[];
}
interface Report {
  readonly lost: readonly { readonly task: number }[];
  readonly deadlocks: readonly object[];
  readonly runtimes: readonly string[];
  readonly tasks: readonly Node[];
  readonly others: readonly Node[];
  readonly notes: readonly string[];
  readonly stoodMs: number;
}

/** The guest's time goes with its instructions: on a busy machine, too, its tasks sleep when they have nothing to do. */
const steady = ['-icount', 'shift=1'];

/**
 * Lets the guest run to its nth place to be looked at, which is the argument of a function, and leaves it stopped
 * there. A step from a breakpoint may end in an interrupt's handler, and the handler comes back to the breakpoint.
 */
async function toCheckpoint(socket: string, elf: string, number: number): Promise<void> {
  const session = await connect(socket, { waitMs: 60_000 });
  const { symbols } = await ElfFile.open(elf);
  const [place] = symbols.named('lab_checkpoint');
  const breakpoint = { type: 0, address: addr(place?.address ?? 0n), kind: 2 } as const;
  for (let stops = 0, reached = -1n; reached !== BigInt(number); stops++) {
    if (stops > 20) throw new Error(`not at checkpoint ${number}, but at ${reached}`);
    const [{ id }] = (await session.harts()) as [{ id: string }];
    if (stops > 0) await session.resume({ kind: 'step', hart: id });
    await session.insertBreakpoint(breakpoint);
    await session.resume();
    await session.removeBreakpoint(breakpoint);
    const batch = session.batch(id);
    const [pc, argument] = [batch.readRegister('pc'), batch.readRegister('a0')];
    await batch.send();
    if (pc.value === breakpoint.address) reached = argument.value ?? -1n;
  }
  if (number === 2) await leaveStorage(session, symbols);
  session.close();
}

/** Of `ticker`, as where one was made on a stack: not spawned (its state is byte 88), and in no pool. */
async function leaveStorage(session: Session, symbols: ElfFile['symbols']): Promise<void> {
  const pools = symbols.named('_RNvNvNtCskpKogm42bbL_10labembassy4work6ticker4POOL');
  const [[pool], [rest]] = [pools, symbols.named('__bss_end')];
  const bytes = pool && (await session.memory().read(addr(pool.address), pool.size));
  if (!bytes || !rest) return;
  bytes[88] = 0;
  await session.memory().write(addr(rest.address), bytes);
}

/** The names of the tasks that lived at a checkpoint, by the guest's own list. */
function liveAt(console: string, number: number): string[] {
  return [...console.matchAll(new RegExp(`^LAB live ${number} \\d+ (\\w+) `, 'gm'))]
    .map(([, name = '']) => name)
    .sort();
}

/** Every Future of a tree, the root first. */
function* nodes(node: Node): Generator<Node> {
  yield node;
  for (const inner of node.awaits) yield* nodes(inner);
}

/** The name of an async fn of the guest that a task is made of: its own, or the one that its wrapper holds. */
function taskName(task: Node, names: readonly string[]): string {
  for (const { future } of nodes(task)) {
    const found = names.find((name) => future.includes(`::${name}`));
    if (found) return found;
  }
  return task.future;
}

const tasksOf = {
  embassy: ['producer', 'consumer', 'joiner', 'selector', 'locker', 'ticker', 'napper', 'brief'],
  asynctask: ['producer', 'consumer', 'joiner', 'helper', 'awaiter', 'cancelled', 'sleeper', 'parked'],
};
interface Look {
  readonly report: Report;
  readonly console: string;
}
const looks = new Map<string, Promise<Look>>();

/** The tasks at a checkpoint, of which several tests ask, and all that the guest has printed in the end. */
function lookAt(guest: string, number: number): Promise<Look> {
  const key = `${guest} ${number}`;
  const look = async (): Promise<Look> => {
    const elf = elfPath(guest);
    const qemu = frozenGuest(t, guest, steady);
    await toCheckpoint(qemu.socket, elf, number);
    const { status, stdout, stderr } = await rsptrace('tasks', '--json', '-r', qemu.socket, elf).ended;
    // Nothing is left out.
    if (status !== 0 || stderr !== '') throw new Error(stderr);
    return { report: JSON.parse(stdout) as Report, console: (await qemu.ended).stdout };
  };
  const found = looks.get(key) ?? look();
  looks.set(key, found);
  return found;
}

/** A checkpoint is before the first poll, in the middle, and where all wait. Without `--long` unoptimised guests are looked at in the middle. */
const checkpoints = (guest: string, ...numbers: number[]) =>
  usually(numbers, (number) => number === 1 || guest.endsWith('o3'));

const guests = ['rv-embassy-o0', 'rv-embassy-o3', 'rv-asynctask-o0', 'rv-asynctask-o3'];
for (const guest of usually(guests, (one) => one === 'rv-embassy-o3' || one === 'rv-asynctask-o0')) {
  t.test(`${guest}: the tasks of the kernel's own list, and no others`, async (t) => {
    const embassy = guest.includes('embassy');
    for (const number of checkpoints(guest, 0, 1, 2)) {
      const { report, console } = await lookAt(guest, number);
      const live = liveAt(console, number);
      const names = embassy ? tasksOf.embassy : tasksOf.asynctask;
      // The block that drops `cancelled` awaits the first sleeper; before its first poll it holds it by no type.
      const found = report.tasks.map((task) => (task.future.includes('spawn_all') ? 'sleeper' : taskName(task, names)));
      const known = found.map((name) => (name.includes('stats::Task') ? 'sleeper' : name)).sort();
      t.ok(live.length > 0, console);
      t.strictSame(known, live, `at checkpoint ${number}`);
      t.ok(report.runtimes.includes(embassy ? 'embassy' : 'async-task'));
      t.ok(report.tasks.every(({ fate }) => fate === 'live'));
    }
  });
}

t.test('embassy: every storage of every pool, its timer, its run queue and its executor', async (t) => {
  const { tasks, others } = (await lookAt('rv-embassy-o3', 2)).report;
  // Eleven storages are spawned from at some time: the pools' sizes in the guest's source, without `unspawned`, which the linker leaves out.
  t.equal(tasks.length + others.filter(({ fate }) => fate === 'free').length, 11);
  for (const { facts } of tasks) {
    const { executor, state, name = '', 'timer at': timer } = facts;
    t.ok(tasksOf.embassy.includes(name), `named ${name}`);
    t.equal(executor, 'labembassy::EXECUTOR');
    t.match(timer, /^\d+$/, 'those that are left wait for time');
    t.equal(state, 'spawned');
  }
});

/** What each await of the guest's source waits for. */
const AWAITS: readonly (readonly [RegExp, kind: string, symbol: string | null])[] = [
  [/SUM\.lock\(\)/, 'Mutex', 'labembassy::work::SUM'],
  [/NUMBERS\.receive\(\)/, 'message', 'labembassy::work::NUMBERS'],
  [/NUMBERS\.send\(/, 'room', 'labembassy::work::NUMBERS'],
  [/NEVER\.wait\(\)/, 'Signal', 'labembassy::work::NEVER'],
  [/Timer::after|ticks\.next\(\)/, 'timer', null],
  [/yield_now\(\)/, 'turn', null],
];
for (const guest of usually(['rv-embassy-o0', 'rv-embassy-o3'], (one) => one === 'rv-embassy-o3')) {
  t.test(`${guest}: what the awaits in the source wait for, and who has the mutex`, async (t) => {
    const { symbols } = await ElfFile.open(elfPath(guest));
    const source = readFileSync(sourcePath('/labembassy/src/work.rs'), 'utf8').split('\n');
    const textAt = ({ line }: Node): string => source[(line ?? 0) - 1] ?? '';
    for (const number of checkpoints(guest, 1, 2)) {
      const { tasks, lost, deadlocks } = (await lookAt(guest, number)).report;
      t.strictSame([lost, deadlocks], [[], []]);
      // A guard lives where `sum` is used behind an await.
      const owners = tasks.flatMap((task, i) =>
        [...nodes(task)].some((node) => textAt(node).includes('*sum +=')) ? [i] : [],
      );
      for (const task of tasks) {
        const own = [...nodes(task)].filter(({ file }) => file?.endsWith('/work.rs'));
        const expected = own.flatMap((node) =>
          AWAITS.flatMap(([text, ...what]) => (text.test(textAt(node)) ? [what.join(' ')] : [])),
        );
        const waits = task.waits ?? [];
        t.strictSame(waits.map(({ kind, symbol }) => `${kind} ${symbol ?? ''}`).sort(), expected.sort(), task.future);
        for (const { kind, address, symbol, detail, by } of waits) {
          if (kind === 'Mutex')
            t.strictSame(
              by.map(({ task }) => task),
              owners,
            );
          if (kind === 'timer' && task.facts['timer at'] !== undefined && waits.length === 1)
            t.equal(detail, `due at tick ${task.facts['timer at']}`, "as in the executor's queue");
          const [named] = [...symbols].filter(({ name }) => demangle(name) === symbol);
          if (symbol !== null) t.equal(BigInt(address ?? 0), named?.address);
        }
      }
    }
  });
}

for (const guest of usually(['rv-asynctask-o0', 'rv-asynctask-o3'], (one) => one === 'rv-asynctask-o0')) {
  t.test(`${guest}: a task that nobody wakes, and one that awaits another`, async (t) => {
    const names = tasksOf.asynctask;
    for (const number of checkpoints(guest, 1, 2)) {
      const { tasks, lost } = (await lookAt(guest, number)).report;
      const named = (i: number): string => taskName(tasks[i] as Node, names);
      t.strictSame(
        lost.map(({ task }) => named(task)),
        ['parked'],
        `at checkpoint ${number}`,
      );
      const awaiter = tasks.find((task) => taskName(task, names) === 'awaiter');
      if (awaiter)
        t.strictSame(
          awaiter.waits?.map(({ kind, by }) => [kind, ...by.map(({ task }) => named(task))]),
          [['task', 'helper']],
        );
    }
  });
}

t.test('--runtime asks one alone', async (t) => {
  const elf = elfPath('rv-asynctask-o3');
  const qemu = frozenGuest(t, 'rv-asynctask-o3', steady);
  await toCheckpoint(qemu.socket, elf, 0);
  const ran = await rsptrace('tasks', '--json', '--runtime', 'tokio', '-r', qemu.socket, elf).ended;
  const { runtimes, tasks } = JSON.parse(ran.stdout) as Report;
  t.strictSame(runtimes, []);
  t.strictSame(tasks, []);
  const wrong = await rsptrace('tasks', '--runtime', 'nope', '-r', qemu.socket, elf).ended;
  t.match(wrong.stderr, /\[RUNTIME_UNKNOWN\].*there are tokio, async-task, embassy, monoio, glommio, compio, search/s);
});
