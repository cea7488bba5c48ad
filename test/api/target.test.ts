// The library's face on a guest: what probes are told, against the guest's own counters and the source of the function probed.
import t, { type Test } from 'tap';
import { silent } from '../../src/base/logger.js';
import { type AttachOptions, attach, launch, type PollHit, type Target } from '../../src/index.js';
import { Findings, type Stuck, type TraceEvent, type TraceSink, tee } from '../../src/trace/index.js';
import { Unavailable } from '../../src/values/index.js';
import { elfPath, guest, type Lab, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { usually, variant } from '../support/long.js';
import { gdbserver, pollsProgram } from '../support/native.js';
import { movedKernel } from '../support/tiny-kernels.js';

const longest = '120s';

interface Machine {
  readonly target: Target;
  lab(): Lab;
}

async function machine(
  t: Test,
  name: string,
  options: AttachOptions = {},
  more: readonly string[] = [],
): Promise<Machine> {
  const texts: Uint8Array[] = [];
  const onConsole = (text: Uint8Array): void => void texts.push(Uint8Array.from(text));
  const target = await launch({ ...options, elf: elfPath(name), command: qemuArgv(name, more), onConsole });
  t.teardown(() => target[Symbol.asyncDispose]());
  return { target, lab: () => parseLab(Buffer.concat(texts).toString('latin1')) };
}

/** A sink of events alone. */
function only(event: (event: TraceEvent) => unknown): TraceSink {
  const nothing = (): void => {};
  return { begin: nothing, hart: nothing, flush: nothing, end: nothing, event: (each) => void event(each) };
}

t.test('a kernel that its loader moves: a first boot shows where', async (t) => {
  const { elf, command } = movedKernel(t, 300);
  const texts: Uint8Array[] = [];
  const said: unknown[] = [];
  const logger = { ...silent, info: (...words: unknown[]) => void said.push(words) };
  const onConsole = (text: Uint8Array): void => void texts.push(Uint8Array.from(text));
  await using target = await launch({ elf, command, logger, onConsole });
  t.match(said.at(0), [{ bias: '0x80200000' }, /^a first boot/]);
  const work = target.probe('fn:work');
  const { gaps } = await target.run({ duration: longest });
  t.equal(work.hits, 300);
  t.same(gaps, []);
  t.match(Buffer.concat(texts).toString('latin1'), /0*300\r?\n$/, "the kernel's own count, of one boot");
});

// With stops too under `--long`: a handler at stops is below.
for (const engine of usually(['auto', 'stop'] as const, (one) => one === 'auto')) {
  t.test(`arguments, results and tasks, engine ${engine}`, async (t) => {
    const { target, lab } = await machine(t, 'rv-o2', { engine });
    let wrong = 0;
    let durations = 0;
    const results: unknown[] = [];
    const deep = target.probe(
      'fn:deep0',
      {
        capture: ['x', 'y'],
        onReturn(_, result, duration) {
          results.push(result);
          durations += duration;
        },
      },
      // leaf_io calls it so: deep0(k * 3, k).
      ({ values: { x, y } }) => {
        if (typeof x !== 'bigint' || typeof y !== 'bigint' || x !== 3n * y) wrong++;
      },
    );
    const polls = new Map<number, number>();
    const task = target.probe('fn:labkern::exec::poll_task', { capture: ['t.id'] }, ({ values }) => {
      const id = Number(values['t.id']);
      polls.set(id, (polls.get(id) ?? 0) + 1);
    });
    const recording = await target.run({ duration: longest });
    t.equal(recording.end, 'guest-ended', String(recording.error));
    const { stats, checksum, tasks, exec } = lab();
    t.equal(checksum, guest('rv-o2').checksum, 'the guest computes what it computes untraced');
    const engines = engine === 'auto' ? 'target' : 'stop';
    t.equal(deep.engine, engines);
    t.equal(task.engine, engines, 'members behind an Arc need no stop');
    t.equal(deep.reason, engine === 'auto' ? undefined : '--engine stop');
    t.equal(deep.hits, stats.get('deep_calls')?.calls);
    t.equal(deep.returns, deep.hits);
    t.equal(wrong, 0, 'every call has the arguments that its caller gives');
    t.ok(results.length === deep.hits && results.every((result) => typeof result === 'bigint'));
    t.ok(durations > 0, `${durations} ns in all`);
    t.equal(task.hits, stats.get('poll_task')?.calls);
    t.equal(polls.size, exec?.spawned);
    // One that was woken during its last poll is taken from the queue once more.
    for (const { id, polls: own } of tasks) t.ok([own, own + 1].includes(polls.get(id) ?? 0), `task ${id}`);
  });
}

t.test('polls: the Future, its task, the await chain', async (t) => {
  const { target, lab } = await machine(t, 'rv-o0');
  target.probe('poll:labkern::work::chain_task');
  const waits = new Map<string, number>();
  let first: PollHit | undefined;
  const leaf = target.probe('poll:labkern::work::leaf_io', {
    onReturn(hit, { result, chain: awaits }) {
      first ??= hit;
      const told = `${result} ${awaits.map(({ typeName }) => typeName)}`;
      waits.set(told, (waits.get(told) ?? 0) + 1);
    },
  });
  t.equal((await target.run({ duration: longest })).end, 'guest-ended');
  const { calls = 0, polls = 0 } = lab().stats.get('leaf_io') ?? {};
  t.equal(leaf.hits, polls);
  t.equal(waits.get('ready '), calls);
  t.equal(waits.get('pending labkern::futs::YieldN'), polls - calls);
  t.match(first?.future, { future: 'labkern::work::leaf_io', file: '/labkern/src/work.rs', line: 39 });
  t.equal(first?.chain.at(-1), first?.future);
  t.equal(first?.chain[0], first?.task.future, 'the chain begins with the task');
});

const held = [
  ['rv-o0', 'auto'],
  ['rv-o0', 'stop'],
  ['x86-o0', 'auto'],
] as const;
// With stops too under `--long`: captures at polls were always read so.
for (const [name, engine] of usually(held, ([name, engine]) => name === 'x86-o0' && engine === 'auto')) {
  t.test(`what a Future holds, in each of its states, ${name}, engine ${engine}`, async (t) => {
    const { target, lab } = await machine(t, name, { engine });
    const ids = new Map<unknown, number>();
    const chain = target.probe(
      'poll:labkern::work::chain_task',
      { capture: ['id'] },
      ({ values }) => void ids.set(values.id, (ids.get(values.id) ?? 0) + 1),
    );
    // leaf_io(k) keeps `before`, k * 3, while it waits, which it does k % 3 times.
    const begun = new Map<number, number>();
    const resumed = new Map<number, number>();
    let wrong = 0;
    const leaf = target.probe(
      'poll:labkern::work::leaf_io',
      { capture: ['k', 'before', 'self.k'] },
      ({ state, values: { k, before, 'self.k': low } }) => {
        const isNew = state?.name === 'Unresumed';
        const polls = isNew ? begun : resumed;
        polls.set(Number(k), (polls.get(Number(k)) ?? 0) + 1);
        if (isNew ? !(before instanceof Unavailable) : before !== 3n * BigInt(Number(k))) wrong++;
        if (low !== k) wrong++;
      },
    );
    t.equal((await target.run({ duration: longest })).end, 'guest-ended');
    const { stats, cfg, checksum } = lab();
    t.equal(checksum, guest(name).checksum, 'the guest computes what it computes untraced');
    for (const probe of [chain, leaf]) t.equal(probe.engine, engine === 'auto' ? 'target' : 'stop');
    t.equal(chain.hits, stats.get('chain_task')?.polls);
    t.same([...ids.keys()].sort(), [...Array(cfg?.tasks ?? 3).keys()].slice(0, 3).map(BigInt));
    t.equal(leaf.hits, stats.get('leaf_io')?.polls);
    t.equal(
      [...begun.values()].reduce((sum, polls) => sum + polls, 0),
      stats.get('leaf_io')?.calls,
    );
    for (const [k, calls] of begun) t.equal(resumed.get(k) ?? 0, calls * (k % 3), `leaf_io(${k})`);
    t.equal(wrong, 0);
  });
}

t.test('memory at a stop, and a target that stands between runs', async (t) => {
  // By instructions its clock does not tick meanwhile, however long a stop takes.
  const { target, lab } = await machine(t, 'rv-o2', { engine: 'stop' }, ['-icount', 'shift=6']);
  const polls = target.elf.symbols;
  const spawned = [...polls].find(({ name }) => /exec.*SPAWNED/.test(name))?.address;
  if (spawned === undefined) throw new Error('the guest has no SPAWNED');
  t.match(await target.run({ until: 'labkern::exec::run', duration: longest }), { end: 'until', events: 0 });
  const { tasks } = await target.tasks();
  const [hart] = await target.backtraces();
  t.equal(hart?.stack.end.complete, true, 'the stack is known to its end');
  const seen: number[] = [];
  // It goes on being called, a few times.
  const probe = target.probe('fn:timer_tick', { capture: ['labkern::exec::SPAWNED'] }, async (hit) => {
    const bytes = await hit.memory?.read(spawned, 8);
    seen.push(bytes?.[0] ?? -1);
    t.equal(hit.values['labkern::exec::SPAWNED'], BigInt(seen.at(-1) ?? -1));
  });
  t.match(await target.run({ maxEvents: 20, duration: longest }), { end: 'max-events' });
  t.ok(probe.hits >= 10 && probe.hits <= 20, `${probe.hits} hits`);
  t.match(await target.run({ duration: longest }), { end: 'guest-ended' });
  t.equal(tasks.length, lab().exec?.spawned, 'all were spawned, none had run');
  t.ok(seen.every((count) => count === lab().exec?.spawned));
  t.equal(lab().checksum, guest('rv-o2').checksum);
});

t.test('what cannot be had is told', async (t) => {
  const { target } = await machine(t, 'rv-o2');
  t.throws(() => target.probe('fin:main'), { code: 'PROBE_SYNTAX' });
  t.throws(() => target.probe('fn:deep0', { capture: ['x.'] }), { code: 'EXPRESSION_SYNTAX' });
  await t.rejects(target.run({ duration: 'soon' }), { code: 'USAGE' });
  const values: unknown[] = [];
  const capture = '*(x as *const u64)';
  const probe = target.probe('fn:deep0', { capture: [capture] }, (hit) => {
    values.push(hit.values[capture]);
    throw new Error('enough');
  });
  await t.rejects(target.run({ duration: longest }), { message: 'enough' }, 'what a handler throws ends the run');
  t.ok(values[0] instanceof Unavailable, 'a value that cannot be read says why');
  t.match(String(values[0]), /cannot be read/);
  t.equal(probe.engine, 'stop');
  t.match(probe.reason, /is read at a stop: it is computed/);
  target.probe('fn:deep0', { capture: ['nothing.id'] });
  await t.rejects(target.run(), { code: 'EXPRESSION_NAME', hint: 'arguments: x, y' });
  const { target: other } = await machine(t, 'rv-o0');
  const behind = other.probe('poll:labkern::work::Disk::seek', { capture: ['self.self.sector'] });
  t.match(await other.run({ until: 'labkern::exec::run', duration: longest }), { end: 'until' });
  t.match(behind.reason, /only the target knows in which state/);
  other.probe('poll:labkern::work::chain_task', { capture: ['idd'] });
  await t.rejects(other.run(), { code: 'EXPRESSION_TYPE', message: /'idd': self, a .* has no member idd/ });
});

t.test('attach leaves a guest that never ran as it was, and a signal ends a run', async (t) => {
  const { target } = await machine(t, 'rv-o2', { engine: 'stop' });
  await t.rejects(attach(':1', elfPath('rv-o2')), { code: 'RSP_CONNECT' });
  const stopper = new AbortController();
  const probe = target.probe('fn:deep0', () => stopper.abort());
  t.match(await target.run({ signal: stopper.signal, duration: longest }), { end: 'interrupted' });
  t.equal(probe.hits, 1);
});

variant(t, 'tasks that will not be polled again are told to a sink at the end of a run', async (t) => {
  const elf = pollsProgram(t, 'futures-waits-o3');
  const server = await gdbserver(t, elf, 'mutexes');
  // It outlives its server, which is told to let it go.
  t.teardown(() => void process.kill(server.pid, 'SIGKILL'));
  let printed = '';
  const waiting = new AbortController();
  server.process.stdout?.on('data', (text: string) => {
    printed += text;
    // The poll that prints it ends soon after.
    if (printed.includes('\nready\n')) setTimeout(() => waiting.abort(), 1000);
  });
  await using target = await attach(server.address, elf);
  target.probe('poll:**');
  const findings = new Findings();
  const stuck: Stuck[] = [];
  const sink = tee([findings, only((event) => event.type === 'stuck' && stuck.push(event))]);
  await target.run({ signal: waiting.signal, duration: longest, sink });
  // A task has a mutex and wants that of another: the program says which mutexes, and who.
  const book = new Map(
    [...printed.matchAll(/^waits (\d+) greedy Mutex (\w+) (\d+)$/gm)].map(([, id, at, by]) => [id, { at, by }]),
  );
  t.equal(book.size, 2, printed);
  t.equal(stuck.length, 2);
  for (const { why, future, root, wait } of stuck) {
    const { at, by } = book.get(String(root?.about?.id)) ?? {};
    t.strictSame([why, future.future], ['deadlock', 'futures_waits_program::greedy']);
    t.match(wait, new RegExp(`^waits for Mutex at ${at}, held by task ${by} `));
  }
  const found = findings.all([], { isTimed: false, seesWakes: false }, () => 0);
  t.strictSame(
    found.filter(({ kind }) => kind === 'deadlock').map(({ future }) => future),
    Array(2).fill('futures_waits_program::greedy'),
  );
  const { deadlocks, blocking } = await target.tasks();
  t.strictSame(
    [deadlocks.length, deadlocks[0]?.cycle.length, blocking.length],
    [1, 2, 1],
    'the target stands: the same is seen',
  );
});
