// `rsptrace tasks` on tokio programs under a real gdbserver: what each task waits for and who can end that, against the
// program's own book. The locks and channels are tokio's, those of the futures crate, or async-lock's.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace } from '../support/command.js';
import { long, usually } from '../support/long.js';
import { pollsProgram, waitingProgram } from '../support/native.js';

type Build = 'blocked-o0' | 'blocked-o3' | 'futures-waits-o0' | 'futures-waits-o3';

interface Wait {
  readonly kind: string;
  readonly address: string | null;
  readonly detail: string | null;
  readonly by: readonly { readonly task: number; readonly id: number; readonly maybe?: true }[];
  readonly known: string;
  readonly counted?: { readonly of: string; readonly count: number };
}
interface Report {
  readonly tasks: readonly {
    readonly future: string;
    readonly runtime: string;
    readonly facts: { readonly id: number; readonly spawned?: string };
    readonly waits?: readonly Wait[];
    readonly blocks_thread?: { readonly inside: string; readonly file: string; readonly line: number };
  }[];
  readonly blocking: readonly { readonly future: string; readonly awaits: readonly { readonly future: string }[] }[];
  readonly others: readonly { readonly future: string; readonly fate: string }[];
  readonly deadlocks: readonly {
    readonly cycle: readonly { readonly id: number }[];
    readonly behind: readonly { readonly id: number }[];
    readonly likely: boolean;
  }[];
  readonly lost: readonly { readonly id: number }[];
  readonly notes: readonly string[];
}
/** What the program says of a task. */
interface Booked {
  readonly name: string;
  readonly kind: string;
  readonly at: string;
  readonly by: readonly number[];
}

/** Runs the program until it waits, and looks at it. */
async function look(t: Test, build: Build, what: string, threads?: string) {
  const elf = pollsProgram(t, build);
  const { printed, tasks: text } = await waitingProgram(t, elf, threads === undefined ? [what] : [what, threads]);
  const book = new Map<number, Booked>();
  for (const [, id, name = '', kind = '', at = '', by = ''] of printed.matchAll(
    /^waits (\d+) (\w+) (\w+) (\w+) (\S*)$/gm,
  ))
    book.set(Number(id), { name, kind, at, by: by === '' ? [] : by.split(',').map(Number) });
  const senders = new Map(
    [...printed.matchAll(/^senders (\w+) (\d+)$/gm)].map(([, key, count]) => [key, Number(count)]),
  );
  return { book, senders, report: JSON.parse(await text('--json')) as Report, text };
}

const idsOf = (tasks: readonly { readonly id: number }[]): number[] => tasks.map(({ id }) => id).sort((a, b) => a - b);

const SOURCE = readFileSync(join(import.meta.dirname, '../native/blocked.rs'), 'utf8').split('\n');

/** The program's word for what a wait is for. */
const WORDS: Readonly<Record<string, string>> = {
  room: 'mpsc',
  message: 'mpsc',
};
/** Of these the program knows the address. */
const PLACED: ReadonlySet<string> = new Set(['Mutex', 'Semaphore', 'RwLock', 'Notify', 'Barrier', 'OnceCell']);

/** `others`: so many are not compared. */
function compare(t: Test, book: ReadonlyMap<number, Booked>, { tasks }: Report, others = 0): void {
  const ids = tasks.map(({ facts: { id } }) => id);
  t.equal(ids.length, book.size - others);
  t.ok(ids.every((id) => book.has(id)));
  const dropped = [...book].find(([, { name }]) => name === 'dropped')?.[0];
  for (const { facts, waits = [] } of tasks) {
    const { name, kind, at, by } = book.get(facts.id) as Booked;
    if (kind === 'nobody' || kind === 'unknown') {
      t.strictSame(waits, [], `${name}: nothing that is known`);
      continue;
    }
    const wait = waits.find((each) => (WORDS[each.kind] ?? each.kind) === kind);
    if (wait === undefined) {
      t.fail(`${name} waits for ${kind}`);
      continue;
    }
    if (PLACED.has(kind)) t.equal(wait.address, at, `${name}: the ${kind}'s place`);
    const found = idsOf(wait.by);
    // The one that was borrowed and let go is named too, and then neither of both for sure.
    const isUnsure = dropped !== undefined && found.includes(dropped);
    t.strictSame(
      isUnsure ? found.filter((id) => id !== dropped) : found,
      [...by].sort((a, b) => a - b),
      `${name}: by whom`,
    );
    t.equal(
      wait.by.every(({ maybe = false }) => maybe === isUnsure),
      true,
    );
    t.equal(waits.length, name === 'selector' || name === 'branches' ? 2 : 1, name);
    if (kind === 'Barrier') t.equal(wait.detail, '1 of 3 have come');
    if (kind === 'timer') t.match(wait.detail, /^due at \d+\.\d{3} s$/);
  }
}

/** This tokio keeps where tasks were spawned. */
function compareSpawns(t: Test, book: ReadonlyMap<number, Booked>, { tasks }: Report): void {
  for (const { facts } of tasks) {
    const { name = '' } = book.get(facts.id) ?? {};
    const line = Number(/^src\/main\.rs:(\d+):\d+$/.exec(facts.spawned ?? '')?.[1]);
    t.match(
      SOURCE[line - 1],
      new RegExp(`spawn\\((on_thread::)?(${name}|sleeps\\("${name}"\\))`),
      `${name} at ${facts.spawned}`,
    );
  }
}

// The debug build is seen below, in its threads and where it spawns; each build and each runtime under `--long`.
for (const build of usually(['blocked-o0', 'blocked-o3'] as const, (one) => one === 'blocked-o3')) {
  for (const threads of usually(['ct', 'mt'], (one) => one === 'mt')) {
    t.test(`${build} ${threads}: locks, channels, handles and timers, and nothing wrong`, async (t) => {
      const { book, report } = await look(t, build, 'clean', threads);
      t.equal(book.size, 36);
      compare(t, book, report);
      t.strictSame(report.notes, []);
      t.strictSame(report.deadlocks, []);
      t.strictSame(report.lost, []);
      if (build === 'blocked-o0') compareSpawns(t, book, report);
    });
    t.test(`${build} ${threads}: two mutexes, each held by who wants the other`, async (t) => {
      const { book, report } = await look(t, build, 'mutexes', threads);
      compare(t, book, report);
      const greedy = [...book].filter(([, { name }]) => name === 'greedy').map(([id]) => id);
      const [deadlock, ...others] = report.deadlocks;
      t.strictSame(others, []);
      t.strictSame(idsOf(deadlock?.cycle ?? []), greedy);
      t.equal(deadlock?.likely, false);
      // A task that joins one of them, and one that wants a mutex of theirs.
      const behind = [...book].filter(([, { by }]) => by.some((id) => greedy.includes(id))).map(([id]) => id);
      t.strictSame(
        idsOf(deadlock?.behind ?? []),
        behind.filter((id) => !greedy.includes(id)),
      );
      t.strictSame(report.lost, []);
    });
    t.test(`${build} ${threads}: a message of one that waits for the receiver's end`, async (t) => {
      const { book, report } = await look(t, build, 'channels', threads);
      compare(t, book, report);
      t.strictSame(
        report.deadlocks.map(({ cycle }) => idsOf(cycle)),
        [[...book.keys()]],
      );
    });
    t.test(`${build} ${threads}: wakers that are gone`, async (t) => {
      const { book, report } = await look(t, build, 'lost', threads);
      compare(t, book, report);
      const lost = [...book].filter(([, { kind }]) => kind === 'nobody').map(([id]) => id);
      t.strictSame(idsOf(report.lost), lost);
      t.strictSame(report.deadlocks, []);
    });
  }
}

for (const build of usually(['blocked-o0', 'blocked-o3'] as const, (one) => one === 'blocked-o3')) {
  t.test(`${build}: another executor's tasks beside tokio's, by their wakers`, async (t) => {
    const { book, report } = await look(t, build, 'boxes', 'ct');
    const [keeper] = book.keys();
    const own = report.tasks.filter(({ runtime }) => runtime === 'search');
    // Of the fourth the waker is gone.
    t.strictSame(
      own.map(({ future }) => future),
      Array(3).fill('blocked_program::elsewhere'),
    );
    t.equal(report.tasks.length, 4);
    // All senders are in a Vec of the one task of tokio.
    for (const { waits = [] } of own)
      t.strictSame(
        waits.map(({ kind, by }) => [kind, ...idsOf(by)]),
        [['oneshot', keeper]],
      );
  });
}

for (const build of usually(['blocked-o0', 'blocked-o3'] as const, (one) => one === 'blocked-o3')) {
  t.test(`${build}: who waits behind a queued writer, and for a closure`, async (t) => {
    const { book, report, text } = await look(t, build, 'queue', 'ct');
    t.equal(report.tasks.length, book.size);
    for (const { facts, waits = [] } of report.tasks) {
      const { name, kind, by } = book.get(facts.id) as Booked;
      const [wait] = waits;
      t.equal(wait?.kind, kind, name);
      if (kind === 'RwLock') t.strictSame(idsOf(wait?.by ?? []), by, `${name}: by whom`);
      if (kind === 'closure') t.match(wait?.detail, /^blocked_program::wants_closure::.*closure/);
    }
    const blocked = await text('--blocked');
    t.match(
      blocked,
      /^2 tasks \(blocked_program::queued_reader, .*\), each waits .*, queued behind task \d+ \(blocked_program::queued_writer, .*: tasks \d+, \d+$/m,
    );
    // Of async-lock's.
    t.equal(blocked.match(/queued::\w+, .*, queued behind task \d+ \(blocked_program::queued::writes, /g)?.length, 4);
    t.equal(blocked.match(/queued::reads, .*, queued behind task \d+ .*queued::upgrades, /g)?.length, 1);
    t.strictSame([report.deadlocks, report.lost], [[], []]);
    t.match(blocked, /wants_closure, .* waits for what spawn_blocking runs \(blocked_program::wants_closure::.*\)$/m);
  });
}

/** In what each task blocks its thread. */
const BLOCKS: Readonly<Record<string, string>> = {
  holds: 'std::thread::sleep',
  locks: 'std::sync::Mutex::lock',
  signalled: 'std::sync::Condvar::wait',
  reads: 'std::io::Read::read_exact',
};

t.test('tasks that block their threads wait for that, and not for what they awaited last', async (t) => {
  const { book, report, text } = await look(t, 'blocked-o0', 'threads', 'mt');
  t.equal(report.tasks.length, book.size);
  compareSpawns(t, book, report);
  for (const { facts, waits, blocks_thread: blocks } of report.tasks) {
    const { name = '', at } = book.get(facts.id) ?? {};
    if (name === 'sleeper') t.match([waits, blocks], [[{ kind: 'timer' }], undefined]);
    else {
      t.equal(waits, undefined, name);
      t.match(blocks, { inside: BLOCKS[name], file: '/native/src/main.rs', line: Number(at) }, name);
    }
  }
  t.match(
    await text('--blocked'),
    /on_thread::locks, .* blocks its thread in std::sync::Mutex::lock at .*main\.rs:\d+$/m,
  );
  t.match(await text(), /^[│ ] blocks its thread in std::thread::sleep at .*main\.rs:\d+$/m);
});

t.test('--blocked shows who waits for whom', async (t) => {
  const elf = pollsProgram(t, 'blocked-o3');
  // Attached by the command itself, to the process's own program.
  const { pid } = await waitingProgram(t, elf, ['mutexes', 'ct']);
  const { status, stdout, stderr } = await rsptrace('tasks', '--blocked', '--pid', pid).ended;
  t.equal(status, 0, stderr);
  const bt = await rsptrace('bt', '--pid', pid).ended;
  t.match(bt.stdout, new RegExp(`^thread ${pid} .*\\n(?: .*\\n)* +#\\d+ +0x\\w+ epoll_wait`, 'm'), bt.stderr);
  t.match(readFileSync(`/proc/${pid}/status`, 'latin1'), /^State:\tS .*^TracerPid:\t0$/ms, 'it runs on, alone');
  const line =
    /^task 9 \(blocked_program::acquirer, \/native\/src\/main\.rs:\d+\) waits for Semaphore at 0x\w+ \(2 permits\), held by task 7 .*, task 8 /m;
  t.match(stdout, line);
  t.match(stdout, /^task 21 .* waits for the end of task 20 \(blocked_program::sleeps, .*:\d+\)$/m);
  // What a holder waits for itself is shown with whom it holds up: 22 tasks sleep.
  t.match(stdout, /^task 1 \(blocked_program::dropped, .*\) waits for a timer/m);
  const alike = [...stdout.matchAll(/^(\d+) tasks .*, each waits for a timer/gm)].map(([, count]) => Number(count));
  const one = stdout.match(/^task .*\) waits for a timer/gm) ?? [];
  const rest = /^others wait: (\d+) for a timer$/m.exec(stdout)?.[1] ?? 0;
  t.equal(
    alike.reduce((sum, count) => sum + count, one.length + Number(rest)),
    22,
  );
  t.match(stdout, /^task 23 .* waits for Notify at 0x\w+, reachable by no task that was found$/m);
  t.match(
    stdout,
    /^task 27 .* waits for Notify at 0x\w+, reachable by task 28 \(blocked_program::has_notify, .*\) or others$/m,
  );
  // Where it is declared, for the await lies in tokio.
  t.match(stdout, /^task 36 .* waits for OnceCell .* by task 33 \(blocked_program::initialiser, \/native\/.*\)$/m);
  t.match(stdout, /^deadlock: 2 tasks wait for each other$/m);
  t.match(stdout, /^ {2}task 37 .* waits for Mutex at 0x\w+, held by task 38$/m);
  t.match(stdout, /^ {2}2 more tasks behind them: task 39, task 40$/m);
});

for (const build of usually(['blocked-o0', 'blocked-o3'] as const, (one) => one === 'blocked-o3')) {
  t.test(
    `${build}: senders that no task has are counted, nothing is lost, and what the root holds is shown once`,
    async (t) => {
      const { book, senders, report, text } = await look(t, build, 'kept', 'mt');
      const found = report.tasks.flatMap(({ facts: { id }, waits = [] }) => {
        const { name = '', kind = '', at = '', by = [] } = book.get(id) ?? {};
        if (kind === 'timer') return [];
        const [wait] = waits;
        t.equal(WORDS[wait?.kind ?? ''] ?? wait?.kind, kind, name);
        t.strictSame(wait?.counted, { of: 'sender', count: senders.get(at) }, name);
        t.strictSame(idsOf(wait?.by ?? []), by);
        t.not(wait?.known, 'all', name);
        return name;
      });
      t.strictSame(found.toSorted(), ['listener', 'one', 'receiver', 'receiver', 'watcher']);
      t.strictSame([report.deadlocks, report.lost], [[], []]);
      const blocked = await text('--blocked');
      t.match(
        blocked,
        /receiver.* waits for a message of the channel at \w+, 2 senders, held by no task that was found$/m,
      );
      t.match(blocked, /oneshot at \w+, 1 sender, held by no task that was found$/m);
      t.match(
        blocked,
        /to be sent by task \d+ \(.*has_sender.*\) or 2 other senders, held by no task that was found$/m,
      );
      // What the root of block_on holds is shown there, once, and is no stale box.
      const rests = report.others.filter(({ future }) => future === 'blocked_program::rests');
      t.strictSame(rests, []);
      t.strictSame(
        report.blocking.map(({ future, awaits }) => [future, awaits.map((each) => each.future)]),
        [['blocked_program::program', ['blocked_program::rests']]],
      );
    },
  );

  t.test(`${build}: sockets that are waited for, by their descriptors`, async (t) => {
    const { book, report, text } = await look(t, build, 'sockets', 'mt');
    const types: Readonly<Record<string, string>> = { accepts: 'TcpListener', datagrams: 'UdpSocket' };
    for (const { facts, waits = [] } of report.tasks) {
      const { name = '', kind, at } = book.get(facts.id) ?? {};
      t.strictSame(
        waits.map(({ kind, detail }) => ({ kind, detail })),
        [{ kind, detail: `${types[name] ?? 'TcpStream'} fd ${Number(at)}` }],
        name,
      );
    }
    t.equal(report.tasks.length, 6);
    t.match(await text(), /^ +waits for readable: UdpSocket fd \d+$/m);
  });
}

for (const build of usually(['blocked-o0', 'blocked-o3'] as const, (one) => one === 'blocked-o3')) {
  t.test(`${build}: a sender in a message that was not received is the receiver's`, async (t) => {
    const { book, report } = await look(t, build, 'asked', 'ct');
    t.equal(book.size, 4);
    compare(t, book, report);
    t.strictSame([report.notes, report.deadlocks, report.lost], [[], [], []]);
  });
}

for (const build of usually(['futures-waits-o0', 'futures-waits-o3'] as const, (one) => one === 'futures-waits-o3')) {
  t.test(`${build}: the locks and channels of the futures crate, and nothing wrong`, async (t) => {
    const { book, report } = await look(t, build, 'clean');
    t.equal(book.size, 26);
    compare(t, book, report);
    t.strictSame([report.notes, report.deadlocks, report.lost], [[], [], []]);
    const wants = report.tasks.filter(({ waits }) => waits?.some(({ kind }) => kind === 'room'));
    t.strictSame(
      wants.map(({ facts: { id } }) => book.get(id)?.name),
      ['sender', 'feeder'],
    );
    const counts = report.tasks.flatMap(({ waits = [] }) => waits.flatMap(({ counted }) => counted?.count ?? []));
    t.strictSame(counts, [2, 1, 1, 1, 1, 1, 1], 'senders of each channel and oneshot');
  });
  t.test(`${build}: a mutex that was let go a moment ago is free`, async (t) => {
    const { book, report, text } = await look(t, build, 'free');
    // One is polled, and its timer over: an unoptimised build has dropped that already.
    compare(
      t,
      book,
      { ...report, tasks: report.tasks.filter(({ facts }) => book.get(facts.id)?.name !== 'releases') },
      1,
    );
    const waits = report.tasks.flatMap(({ waits = [] }) => waits.filter(({ kind }) => kind !== 'timer'));
    t.strictSame(
      waits.map(({ kind, detail, by }) => ({ kind, detail, by })),
      [{ kind: 'Mutex', detail: 'free by now', by: [] }],
      'the place of the old guard is not believed',
    );
    t.strictSame([report.deadlocks, report.lost], [[], []]);
    t.match(await text(), /waits for Mutex at 0x[0-9a-f]+ \(free by now\)$/m);
  });
  // Usually test/api has a deadlock of the futures crate.
  if (!long) continue;
  t.test(`${build}: two mutexes of the futures crate, each held by who wants the other`, async (t) => {
    const { book, report } = await look(t, build, 'mutexes');
    compare(t, book, report);
    const [deadlock, ...others] = report.deadlocks;
    t.strictSame(others, []);
    const named = (name: string) => [...book].filter(([, each]) => each.name === name).map(([id]) => id);
    t.strictSame(idsOf(deadlock?.cycle ?? []), named('greedy'));
    t.strictSame(idsOf(deadlock?.behind ?? []), named('owned_locker').slice(1));
    t.equal(deadlock?.likely, false);
  });
  t.test(`${build}: a message of one that waits for a oneshot of the receiver`, async (t) => {
    const { book, report } = await look(t, build, 'channels');
    compare(t, book, report);
    t.strictSame(
      report.deadlocks.map(({ cycle }) => idsOf(cycle)),
      [[...book.keys()]],
    );
  });
}
