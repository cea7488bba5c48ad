// Values of a guest that QEMU has stopped: every variable in scope and every static as gdb prints them at the same stop, and the
// library types against what the guest itself prints. Places and guests of x86_64
// that are left out here are tested under `scripts/test --long`.
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { architectureOf } from '../../src/arch/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect, type TargetMemory } from '../../src/rsp/index.js';
import {
  evaluateMemberExpr,
  type FrameAccess,
  formatValue,
  type ObjectPlace,
  ProgramNames,
  parseMemberExpr,
  placeOf,
  type ReadOptions,
  readValue,
  Shapes,
  type Value,
  variablesAt,
} from '../../src/values/index.js';
import { frozenGuest, scratchFolder } from '../support/command.js';
import { asGdb, gdbPrint, typesIn } from '../support/gdb-values.js';
import { usually } from '../support/long.js';
import { elfPath, type Lab, parseLab, sourcePath } from './guests/guests.js';

const limits = { elements: 1000, values: 100_000, text: 10_000 };

interface Program {
  readonly elf: ElfFile;
  readonly debug: DebugInfo;
  readonly shapes: Shapes;
  readonly names: ProgramNames;
}

async function load(name: string): Promise<Program> {
  const elf = await ElfFile.open(elfPath(name));
  const debug = DebugInfo.load(elf);
  return { elf, debug, shapes: new Shapes(debug), names: new ProgramNames(debug) };
}

interface Stop {
  readonly program: Program;
  readonly memory: TargetMemory;
  readonly frame: FrameAccess;
  read(shape: Parameters<typeof readValue>[2], place: ObjectPlace, options?: ReadOptions): Promise<Value>;
  value(expression: string, options?: ReadOptions): Promise<Value>;
}

/** Looks at the stopped target and leaves it stopped. */
async function look<T>(program: Program, socket: string, read: (stop: Stop) => Promise<T>): Promise<T> {
  const { elf, shapes, names } = program;
  const arch = architectureOf(elf.machine);
  if (arch === undefined) throw new Error('no architecture');
  const session = await connect(socket, { timeoutMs: 10_000, expectedArchitecture: arch.name });
  try {
    const batch = session.batch();
    const registers = batch.readRegisters();
    await batch.send();
    const memory = session.memory();
    const register = (name: string): bigint | undefined => registers.value.register(name);
    const frame: FrameAccess = {
      pc: addr(register(arch.pc) ?? 0n),
      register: (number) => {
        const name = arch.dwarfRegister(number);
        return name === undefined ? undefined : register(name);
      },
    };
    const options: ReadOptions = { limits, concrete: (vtable: Addr) => names.concrete(vtable) };
    return await read({
      program,
      memory,
      frame,
      read: (shape, place, more) => readValue(shapes, memory, shape, place, { ...options, ...more }),
      async value(expression, more) {
        const found = await evaluateMemberExpr(parseMemberExpr(expression), { shapes, names, memory, frame });
        return readValue(shapes, memory, found.shape, found.place, { ...options, ...more });
      },
    });
  } finally {
    session.close();
  }
}

/** Statics of the guest's crate, by path. */
const STATICS = [
  ...['exec::READY', 'exec::TIMERS', 'exec::DONE', 'exec::LIVE', 'exec::TICKS', 'heap::ALLOC', 'heap::ALLOCS'],
  ...['stats::NAMES', 'stats::CALLS', 'stats::POLLS', 'stats::CHECKSUM', 'stats::CUR_POLL', 'exec::WAKES'],
].map((path) => `labkern::${path}`);

/**
 * Where the guest is stopped: the line of a source file that holds a text, and the how manieth time it gets there.
 * What is not `usual` is left to `--long`.
 */
const STOPS: readonly {
  readonly file: string;
  readonly text: string;
  readonly after: number;
  readonly usual: boolean;
}[] = [
  { file: 'work.rs', text: 's & 0xff', after: 40, usual: false },
  { file: 'work.rs', text: 'let buf = [a; 4];', after: 10, usual: true },
  { file: 'work.rs', text: 'black_box(buf)', after: 10, usual: false },
  { file: 'work.rs', text: 'r + name.len() as u64', after: 3, usual: false },
  { file: 'work.rs', text: 'fold(a + b + c);', after: 3, usual: false },
  { file: 'work.rs', text: 'Either::Right(v) => v + 1', after: 3, usual: true },
  { file: 'work.rs', text: 'black_box(d);', after: 2, usual: false },
  { file: 'work.rs', text: 'let b = fib_box(n - 2).await;', after: 3, usual: true },
  { file: 'work.rs', text: 'fold(a + b + c + z);', after: 2, usual: false },
  { file: 'work.rs', text: 'if v == u64::MAX', after: 4, usual: false },
  { file: 'exec.rs', text: 'POLLS.fetch_add(1, Relaxed);', after: 200, usual: false },
  { file: 'exec.rs', text: 'DONE.with(|d| d.push((t.id, t.name, n)));', after: 5, usual: true },
  { file: 'exec.rs', text: 'IRQ_WAKES.fetch_add(1, Relaxed);', after: 3, usual: false },
  { file: 'futs.rs', text: 'let db = b.as_mut().poll_done(cx);', after: 12, usual: false },
  { file: 'futs.rs', text: 'match (ra, rb) {', after: 9, usual: false },
  { file: 'futs.rs', text: 'c.w = Some(cx.waker().clone());', after: 2, usual: true },
];

const lineOf = (file: string, text: string): number => {
  const lines = readFileSync(sourcePath(`src/${file}`), 'utf8').split('\n');
  const found = lines.findIndex((line) => line.includes(text));
  if (found < 0) throw new Error(`${file} has no line with '${text}'`);
  return found + 1;
};

/** What differs in spelling and not in value. */
function normal(text: string): string {
  return text.replace(/^\((?:[^()]|\([^()]*\))*\) (?=0x)/, '').replaceAll(/\s+/g, ' ');
}

for (const name of usually(['rv-o0', 'x86-o0'], (one) => one === 'rv-o0')) {
  t.test(`${name}: variables and statics are what gdb prints`, async (t) => {
    const program = await load(name);
    const elf = elfPath(name);
    const folder = scratchFolder(t);
    const seen = new Set<string>();
    const wrong: string[] = [];
    let compared = 0;
    const stops = usually(STOPS, ({ file, usual }) => usual && (name === 'rv-o0' || file === 'futs.rs'));
    for (const { file, text, after } of stops) {
      const { socket } = frozenGuest(t, name);
      const where = `${file}:${lineOf(file, text)}`;
      await gdbPrint(folder, elf, socket, [`break src/${where}`, `ignore 1 ${after}`, 'continue']);
      const ours = await look(program, socket, async (stop) => {
        const values = new Map<string, Value>();
        for (const path of STATICS) values.set(path, await stop.value(path, { raw: true, limits }));
        for (const local of variablesAt(program.debug, stop.frame.pc)) {
          if (values.has(local.name)) continue;
          const place = await placeOf(local, stop.frame, stop.memory);
          if (place === undefined) continue;
          values.set(local.name, await stop.read(program.shapes.of(local.type), place, { raw: true, limits }));
        }
        return values;
      });
      t.ok(ours.size > STATICS.length, `${where}: variables in scope`);
      const said = await gdbPrint(folder, elf, socket, [], [...ours.keys()]);
      for (const [i, [expression, value]] of [...ours].entries()) {
        compared++;
        typesIn(value, seen);
        const [mine, gdbs] = [asGdb(value), normal(said[i] as string)];
        if (mine !== gdbs) wrong.push(`${where} ${expression}\n  ours ${mine}\n  gdb  ${gdbs}`);
      }
    }
    t.strictSame(wrong, []);
    t.ok(seen.size >= (stops.length === STOPS.length ? 40 : 12), `${seen.size} types, ${compared} values compared`);
  });
}

/** Functions of the optimised guests that are still there, the how manieth call, and where it is looked at without `--long`. */
const OPTIMISED: readonly { readonly at: string; readonly after: number; readonly usual?: string }[] = [
  { at: 'labkern::exec::poll_task', after: 60, usual: 'rv-o2' },
  { at: 'deep7', after: 30 },
  { at: 'timer_tick', after: 5 },
  { at: 'labkern::work::level3::{async_fn#0}', after: 20, usual: 'x86-o2' },
  { at: 'labkern::work::fib_box::{async_block#0}', after: 20, usual: 'rv-o2' },
];

// Not rv-o2-dwarf5: gdb 13 finds no function by name where .debug_names covers a part of the units.
const optimised = ['rv-o2', 'x86-o2', 'x86-o2-legacy'];
for (const name of usually(optimised, (one) => one === 'rv-o2')) {
  t.test(`${name}: what is left of the variables of optimised code`, async (t) => {
    const program = await load(name);
    const folder = scratchFolder(t);
    const wrong: string[] = [];
    let compared = 0;
    for (const { at, after } of usually(OPTIMISED, ({ usual }) => usual === name)) {
      const { socket } = frozenGuest(t, name);
      await gdbPrint(folder, elfPath(name), socket, [`break ${at}`, `ignore 1 ${after}`, 'continue']);
      const ours = await look(program, socket, async (stop) => {
        const values = new Map<string, Value>();
        for (const path of STATICS.filter((p) => program.names.statics(p).length > 0)) {
          values.set(path, await stop.value(path, { raw: true, limits }));
        }
        for (const local of variablesAt(program.debug, stop.frame.pc)) {
          if (values.has(local.name)) continue;
          const place = await placeOf(local, stop.frame, stop.memory);
          const shape = program.shapes.of(local.type);
          const none: Value = { kind: 'optimized-out', type: shape.name };
          values.set(local.name, place === undefined ? none : await stop.read(shape, place, { raw: true, limits }));
        }
        return values;
      });
      const said = await gdbPrint(folder, elfPath(name), socket, [], [...ours.keys()]);
      for (const [i, [expression, value]] of [...ours].entries()) {
        compared++;
        const [mine, gdbs] = [asGdb(value), normal(said[i] as string)];
        if (mine !== gdbs) wrong.push(`${at} ${expression}\n  ours ${mine}\n  gdb  ${gdbs}`);
      }
    }
    t.strictSame(wrong, []);
    t.ok(compared >= 10, `${compared} values compared`);
  });
}

/** Expressions that mean the same in gdb's Rust, in poll_task, where `t` is an Arc<Task> and `slot` a reference. */
const EXPRESSIONS = [
  ...['n', '*slot', 't.ptr.pointer', '*t.ptr.pointer', '(*t.ptr.pointer).data', '(*t.ptr.pointer).data.id'],
  ...['(*t.ptr.pointer).data.name', '(*t.ptr.pointer).strong.v.value.__0', 'cx.waker', '*cx.waker', 'w.waker.data'],
  ...['labkern::stats::NAMES[3]', 'labkern::stats::CALLS[4]', 'labkern::stats::CALLS[4].v.value.__0'],
  ...['labkern::exec::READY.__0.value.len', 'labkern::heap::ALLOC.head.value', '*labkern::heap::ALLOC.head.value'],
  ...[
    '(*(*labkern::heap::ALLOC.head.value).next).size',
    '&(*t.ptr.pointer).data.id',
    '*&n',
    '-5',
    'n as u8',
    '300 as u8',
  ],
  ...['(&(*t.ptr.pointer).data.id) as usize', '*(&(*t.ptr.pointer).data.id as *const u64)'],
];

t.test('member expressions are what gdb makes of them', async (t) => {
  const name = 'rv-o0';
  const program = await load(name);
  const folder = scratchFolder(t);
  const { socket } = frozenGuest(t, name);
  const where = `src/exec.rs:${lineOf('exec.rs', 'POLLS.fetch_add(1, Relaxed);')}`;
  await gdbPrint(folder, elfPath(name), socket, [`break ${where}`, 'ignore 1 150', 'continue']);
  const ours = await look(program, socket, async (stop) => {
    const values: string[] = [];
    for (const expression of EXPRESSIONS) values.push(asGdb(await stop.value(expression, { raw: true, limits })));
    return values;
  });
  const gdbs = await gdbPrint(folder, elfPath(name), socket, [], EXPRESSIONS);
  for (const [i, expression] of EXPRESSIONS.entries()) t.equal(ours[i], normal(gdbs[i] as string), expression);
});

for (const name of usually(['rv-o0', 'x86-o0'], (one) => one === 'rv-o0')) {
  t.test(`${name}: library types hold what the guest prints of them`, async (t) => {
    const program = await load(name);
    const qemu = frozenGuest(t, name);
    const lab = await atShutdown(t, name, qemu);
    await look(program, qemu.socket, async (stop) => {
      const text = async (path: string): Promise<string> => formatValue(await stop.value(path, { limits }));
      const done = lab.tasks.map(({ id, name, polls }) => `(${id}, "${name}", ${polls})`).join(', ');
      t.equal(await text('exec::DONE.0'), `Vec(len=${lab.tasks.length})[${done}]`);
      const names = [...lab.stats.keys()];
      t.equal(await text('stats::NAMES'), `&[${names.map((n) => `"${n}"`).join(', ')}]`);
      for (const [i, counts] of [...lab.stats.values()].entries()) {
        t.equal(await text(`stats::CALLS[${i}]`), String(counts.calls), `calls of ${names[i]}`);
        t.equal(await text(`stats::POLLS[${i}]`), String(counts.polls), `polls of ${names[i]}`);
      }
      t.equal(BigInt(await text('CHECKSUM')), BigInt(lab.checksum ?? -1));
      t.equal(await text('exec::SPAWNED'), String(lab.exec?.spawned));
      t.equal(await text('exec::READY.0'), 'VecDeque(len=0)[]');
      t.equal(await text('exec::LIVE'), '0');
    });
  });
}

t.test('a queue of tasks, each with the states of its Futures', async (t) => {
  const program = await load('rv-o0');
  const { socket } = frozenGuest(t, 'rv-o0');
  const where = `src/exec.rs:${lineOf('exec.rs', 'POLLS.fetch_add(1, Relaxed);')}`;
  await gdbPrint(scratchFolder(t), elfPath('rv-o0'), socket, [`break ${where}`, 'ignore 1 100', 'continue']);
  await look(program, socket, async (stop) => {
    const queue = formatValue(await stop.value('READY.0', { limits }));
    const length = await stop.value('READY.0.value.len');
    if (length.kind !== 'integer') throw new Error('no length');
    t.ok(length.value > 5n);
    t.ok(queue.startsWith(`VecDeque(len=${length.value})[Arc(strong=1, weak=0)(Task { id: `));
    t.equal(queue.match(/Task \{/g)?.length, Number(length.value));
    // Which task is being polled here, and so is not in the queue, depends on the timer.
    const tasks = `${queue} ${formatValue(await stop.value('t', { limits }))}`;
    // A task's Box<dyn Future>, by its vtable, and what it awaits in place and through boxes.
    t.match(
      tasks,
      /name: "chain", fut: Some\(Box<dyn Future<Output=\(\)>>\(chain_task::Suspend0 \{ .*level1::Suspend0 \{ .*name: "lvl", __awaitee: level2::Suspend0 \{ .*level3::Suspend\d \{ .*leaf_io::Suspend0 \{ .*YieldN \{ left: \d, started: true \}/,
    );
    t.match(tasks, /fib_task::Suspend0 \{ .*Box<dyn Future<Output=u64>>\(fib_box::\{async_block#0\}::Suspend\d/);
    t.match(tasks, /Rc\(strong=2, weak=0\)\(Chan \{ q: VecDeque\(len=\d+\)\[/);
    t.equal(formatValue(await stop.value('t.id')), formatValue(await stop.value('(*t.ptr.pointer).data.id')));
  });
});

/** Runs to where the guest is about to power off; gives what it has printed. */
async function atShutdown(t: Test, name: string, qemu: ReturnType<typeof frozenGuest>): Promise<Lab> {
  let console = '';
  qemu.process.stdout?.on('data', (chunk: string) => {
    console += chunk;
  });
  await gdbPrint(scratchFolder(t), elfPath(name), qemu.socket, ['break labkern::arch::shutdown', 'continue']);
  await qemu.shows('LAB checksum');
  return parseLab(`${console}\n`);
}
