// The list of live tasks that a program keeps itself, read out of its memory while it stands, and a comparison with
// what rsptrace finds.
import { type FoundTasks, tasksIn, taskView, type Understood, understandFutures } from '../../src/api/index.js';
import { copyTarget } from '../../src/api/task-copy.js';
import type { Architecture } from '../../src/arch/index.js';
import type { AwaitNode, Task } from '../../src/async/tasks/index.js';
import { type Addr, addr } from '../../src/base/addr.js';
import { silent } from '../../src/base/logger.js';
import { ElfFile } from '../../src/elf/index.js';
import type { Session } from '../../src/rsp/index.js';
import { architectureFor, connect, loadedElf } from '../../src/target/index.js';

/** What the program says of a task. */
export interface Booked {
  /** `spawning`: its executor may have it. `ending`: it has ended, and the thread that polled it may not be done. */
  readonly phase: 'spawning' | 'live' | 'ending' | 'ended';
  readonly name: string;
  /** Of the Future that keeps the list; 0 before the first poll. */
  readonly place: bigint;
  /** Of the await that it waits at; 0 before the first poll has ended. */
  readonly line: number;
  /** It is polled by a thread that may be anywhere: neither its line nor its guards are settled. */
  readonly busy: boolean;
  /** Of locks: whether it has a guard of this one. */
  holds(lock: bigint): boolean;
}

/** A program that stands, whose Futures are known. */
export class Watched {
  readonly session: Session;
  readonly program: Understood;
  readonly #arch: Architecture;

  private constructor(session: Session, program: Understood, arch: Architecture) {
    this.session = session;
    this.program = program;
    this.#arch = arch;
  }

  static async at(address: string, path: string): Promise<Watched> {
    const linked = await ElfFile.open(path);
    const arch = architectureFor(linked);
    await arch.prepare();
    const session = await connect(address, { waitMs: 60_000, expectedArchitecture: arch.name });
    return new Watched(session, understandFutures(await loadedElf(session, linked), silent), arch);
  }

  async tasks(): Promise<FoundTasks> {
    const copy = await copyTarget(this.session, this.program, { arch: this.#arch });
    return tasksIn(this.program, await taskView(this.program, copy));
  }

  /** The bytes of a static. */
  async bytesOf(symbol: string): Promise<DataView> {
    const [found] = this.program.elf.symbols.named(symbol);
    const bytes = found && (await this.session.memory().read(found.address, found.size));
    if (!bytes) throw new Error(`${symbol} cannot be read`);
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  async textAt(address: bigint, length: number): Promise<string> {
    const bytes = await this.session.memory().read(addr(address), length);
    return new TextDecoder().decode(bytes ?? new Uint8Array());
  }

  address(symbol: string): Addr {
    const [found] = this.program.elf.symbols.named(symbol);
    if (!found) throw new Error(`no ${symbol}`);
    return found.address;
  }
}

/** The words of an array of entries. */
export function entriesOf(view: DataView, words: number): (readonly bigint[])[] {
  const count = Math.floor(view.byteLength / (8 * words));
  return Array.from({ length: count }, (_, i) =>
    Array.from({ length: words }, (_, word) => view.getBigUint64(8 * (i * words + word), true)),
  );
}

/** The list of scripts/coverage/src/book.rs. */
export async function nativeBook(watched: Watched): Promise<Booked[]> {
  const entries = entriesOf(await watched.bytesOf('LAB_BOOK'), 7);
  // What each thread has polled or dropped last, from 1.
  const current = new Set(entriesOf(await watched.bytesOf('LAB_CURRENT'), 1).map(([slot]) => Number(slot) - 1));
  const found: Booked[] = [];
  for (const [i, [phase, name = 0n, length, place = 0n, line, busy, holds]] of entries.entries()) {
    if (phase === 0n) continue;
    found.push({
      phase: phase === 1n ? 'spawning' : phase === 2n ? 'live' : current.has(i) ? 'ending' : 'ended',
      name: await watched.textAt(name, Number(length)),
      place,
      line: Number(line),
      busy: busy !== 0n,
      holds: (address) => holds === address,
    });
  }
  return found;
}

function* nodes(node: AwaitNode): Generator<AwaitNode> {
  yield node;
  for (const inner of node.awaits) yield* nodes(inner);
}

const isWrapper = ({ typeName }: AwaitNode): boolean => /^(?:\w+::)*(?:stats::Task|book::Live)</.test(typeName);

/** What is wrong: one sentence each, nothing if all is right. */
export function compare(found: FoundTasks, all: readonly Booked[], source: string): string[] {
  const { tasks } = found;
  const isConnection = ({ name }: Booked): boolean => name === 'conn';
  const book = all.filter((entry) => !isConnection(entry));
  const connections = all.filter(isConnection);
  const wrong: string[] = [];
  const byPlace = new Map(book.filter(({ phase }) => phase !== 'ended').map((entry) => [entry.place, entry]));
  // A place may be used anew while the one before is about to end.
  for (const entry of book) if (entry.phase === 'live') byPlace.set(entry.place, entry);
  const bookedAs = new Map<Task, Booked>();
  const taskOf = new Map<Booked, Task>();
  const pair = (task: Task, entry: Booked): void => {
    if (taskOf.has(entry)) wrong.push(`${entry.name} is shown twice`);
    bookedAs.set(task, entry);
    taskOf.set(entry, task);
  };
  for (const task of tasks) {
    const places = [...nodes(task)].filter(isWrapper).map(({ address }) => address);
    const entry = places.flatMap((place) => byPlace.get(place) ?? [])[0];
    if (entry) pair(task, entry);
  }
  const fresh = book.filter((entry) => entry.place === 0n && (entry.phase === 'live' || entry.phase === 'spawning'));
  for (const task of tasks) {
    if (bookedAs.has(task) || connections.length > 0) continue;
    const left = fresh.filter((each) => !taskOf.has(each));
    // A block has no name.
    const isCalled = ({ name }: Booked): boolean =>
      new RegExp(`\\b${name}\\b|\\b__${name}_task|_block_env`).test(task.typeName);
    const entry = left.find(isCalled);
    if (entry) pair(task, entry);
    else
      wrong.push(
        `a task that the program does not have: ${task.typeName} @${task.address.toString(16)}, ${JSON.stringify(task.facts)}`,
      );
  }
  for (const entry of book) {
    const task = taskOf.get(entry);
    if (entry.phase === 'live' && !task) wrong.push(`${entry.name} @${entry.place.toString(16)} is missing`);
    if (task && entry.phase === 'live' && !entry.busy) wrong.push(...linesOf(task, entry, source));
  }
  wrong.push(...counted(connections, tasks.length));
  for (const { task, address, holders, maybe } of mutexes(found)) {
    const isSettled = [...taskOf.keys()].every(({ busy }) => !busy);
    const isFree = !book.some((entry) => entry.holds(address));
    for (const [i, holder] of holders.entries()) {
      const entry = bookedAs.get(holder);
      // One that the mutex was handed to has not run since, and has not booked it.
      const isHanded = isFree && [...nodes(holder)].some(({ typeName }) => /\bAcquire(?:Slow)?\b/.test(typeName));
      if (isSettled && entry && !entry.holds(address) && !isHanded && !maybe[i])
        wrong.push(`${entry.name} is said to hold what ${bookedAs.get(task)?.name} waits for, and does not`);
    }
    const owner = [...taskOf].find(([entry]) => entry.holds(address) && !entry.busy);
    if (isSettled && owner && !holders.includes(owner[1]))
      wrong.push(`${owner[0].name} holds a mutex, and is not named`);
  }
  return wrong;
}

/** Of connections the program knows only how many there are. */
function counted(connections: readonly Booked[], tasks: number): string[] {
  if (connections.length === 0) return [];
  const least = connections.filter(({ phase }) => phase === 'live').length;
  const most = connections.filter(({ phase }) => phase !== 'ended').length;
  return tasks < least || tasks > most ? [`${tasks} tasks, and ${least} to ${most} connections`] : [];
}

function linesOf(task: Task, { name, line, place }: Booked, source: string): string[] {
  const all = [...nodes(task)];
  const below = place === 0n ? all : [...nodes(all.find((node) => node.address === place && isWrapper(node)) ?? task)];
  const own = below.filter(({ state }) => state?.file?.endsWith(source) && state.name.startsWith('Suspend'));
  const lines = own.map(({ state }) => state?.line);
  // An await in a macro of a library has the macro's line.
  const [, first] = below;
  if (line !== 0 && first?.state?.name.startsWith('Suspend') && !first.state.file?.endsWith(source)) return [];
  if (line === 0 ? own.length > 0 : !lines.includes(line))
    return [`${name} waits at line ${line}, not at ${lines.join(', ')}`];
  return [];
}

interface Locked {
  readonly task: Task;
  readonly address: bigint;
  readonly holders: readonly Task[];
  readonly maybe: readonly boolean[];
}

/** Who waits for a mutex, and who is said to have it. */
function mutexes({ waits }: FoundTasks): Locked[] {
  return [...waits].flatMap(([task, all]) =>
    all.flatMap(({ kind, address, enders }) =>
      kind === 'Mutex' && address !== undefined
        ? [{ task, address, holders: enders.map((each) => each.task), maybe: enders.map((each) => each.maybe) }]
        : [],
    ),
  );
}
