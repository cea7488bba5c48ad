/*
 * Sockets, and what else a reactor watches: tokio's `PollEvented` and `AsyncFd`, async-io's `Async`. Each has the file
 * descriptor within, in the standard library's `OwnedFd`:
 *
 *   Readiness { scheduled_io: &ScheduledIo, waiter: .. Waiter { interest: Interest(bits), .. } }   below `accept()`
 *   Read { reader: &mut TcpStream { io: PollEvented { io: Option<mio TcpStream>, .. } }, .. }      below `read()`
 *   Ready { handle: &Async { source, io: Option<T> }, dir, .. }                                    below `readable()`
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  genericsOf,
  layoutOf,
  selectVariant,
  stripGenerics,
  type Variant,
  type VariantPart,
} from '../../../dwarf/index.js';
import type { AwaitNode } from '../await-tree.js';
import { behindCounts } from '../references.js';
import { type Awaited, type Look, nameOfType, type Primitive } from './resource.js';

/** What has a descriptor and is watched, and the type parameter that says what it is. */
const WATCHED: ReadonlyMap<string, string> = new Map([
  ['tokio::io::poll_evented::PollEvented', 'E'],
  ['tokio::io::async_fd::AsyncFd', 'T'],
  ['async_io::Async', 'T'],
]);
/** Wrappers between a Future and its socket: `BufReader<ReadHalf<TcpStream>>`, an `Arc`. */
const MAX_DEPTH = 16;
const MAX_POINTERS = 4;

const READ = ['read', 'read_buf', 'read_exact', 'read_to_end', 'read_to_string', 'read_until', 'read_line', 'fill_buf'];
const WRITE = ['write', 'write_all', 'write_buf', 'write_all_buf', 'write_vectored', 'flush', 'shutdown'];
const camel = (name: string): string => name.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
const inTokio = (name: string): string => `tokio::io::util::${name}::${camel(name)}`;
const LITE_READ = [
  'Read',
  'ReadVectored',
  'ReadExact',
  'ReadToEnd',
  'ReadToString',
  'ReadUntil',
  'ReadLine',
  'FillBuf',
];
const LITE_WRITE = ['Write', 'WriteVectored', 'WriteAll', 'Flush', 'Close'];
const inLite = (name: string): string => `futures_lite::io::${name}${name === 'FillBuf' ? '' : 'Future'}`;

const readers: ReadonlySet<string> = new Set([...READ.map(inTokio), ...LITE_READ.map(inLite)]);

/** The adapters of streams: which way they go, their names say. */
const streamed: Primitive = {
  futures: [...readers, ...WRITE.map(inTokio), ...LITE_WRITE.map(inLite)],
  async awaited(look, node) {
    const socket = await socketOf(look, node);
    const name = node.future?.future ?? stripGenerics(node.typeName);
    return socket === undefined ? undefined : waitFor(readers.has(name), socket);
  },
};

/** The bit of tokio's `Interest`. tokio/src/io/interest.rs */
const READABLE = 1n;

const readiness: Primitive = {
  futures: ['tokio::runtime::io::scheduled_io::Readiness'],
  async awaited(look, node, above) {
    const interest = look.within(look.self(node), 'Interest');
    const bits = interest && (await look.number(interest));
    if (bits === undefined) return undefined;
    return waitFor((bits & READABLE) !== 0n, await socketAbove(look, above));
  },
};

/** `dir` of async-io's `Ready`: 0 to read, 1 to write. async-io/src/reactor.rs */
const ready: Primitive = {
  futures: ['Ready', 'Readable', 'ReadableOwned', 'Writable', 'WritableOwned'].map(
    (name) => `async_io::reactor::${name}`,
  ),
  async awaited(look, node) {
    const ready = look.within(look.self(node), 'Ready');
    return ready?.type && readyFor(look, ready.type, ready.address);
  },
};

function waitFor(isReader: boolean, socket: string | undefined): Awaited {
  const kind = isReader ? 'readable' : 'writable';
  return { kind, address: undefined, detail: socket };
}

/** The socket that a Future above is a method of. */
async function socketAbove(look: Look, above: readonly AwaitNode[]): Promise<string | undefined> {
  for (const node of above) {
    const target = await look.selfOf(node);
    const socket = target?.type && (await new Search(look, socketAt(look)).in(target.type, target.address));
    if (socket !== undefined) return socket;
  }
  return undefined;
}

async function socketOf(look: Look, node: AwaitNode): Promise<string | undefined> {
  const type = look.typeOf(node);
  return type && new Search(look, socketAt(look)).in(type, node.address);
}

/**
 * What a Future written by hand waits for: a socket within it, whose next event wakes the task. So are hyper's
 * connections, and streams of lines. `header` is the task's address in wakers.
 */
export async function socketThatWakes(
  look: Look,
  node: AwaitNode,
  header: Addr | undefined,
): Promise<Awaited | undefined> {
  const type = look.typeOf(node);
  if (type === undefined || node.future?.kind !== 'impl' || node.awaits.length > 0) return undefined;
  const wakes: Match<Awaited> = async (part, address) => {
    const name = nameOfType(part);
    if (name === 'async_io::reactor::Ready') return readyFor(look, part, address);
    return name === 'tokio::io::poll_evented::PollEvented' ? registered(look, part, address, header) : undefined;
  };
  return new Search(look, wakes, isOwner).in(type, node.address);
}

async function readyFor(look: Look, type: Die, address: Addr): Promise<Awaited | undefined> {
  const dir = await look.number({ type, address }, 'dir');
  return dir === undefined ? undefined : waitFor(dir === 0n, await new Search(look, socketAt(look)).in(type, address));
}

/** The directions for which a socket of tokio's has a waker of the task. tokio/src/runtime/io/scheduled_io.rs */
async function registered(
  look: Look,
  type: Die,
  address: Addr,
  header: Addr | undefined,
): Promise<Awaited | undefined> {
  const shared = header === undefined ? undefined : await look.pointerIn({ type, address }, 'registration.shared');
  const waiters = shared && look.within(shared, 'Waiters');
  if (!waiters) return undefined;
  const wakes = async (direction: string): Promise<boolean> => {
    const member = look.member(waiters, direction);
    const waker = member && look.within(member, 'RawWaker');
    return waker !== undefined && (await look.number(waker, 'data')) === header;
  };
  const [reads, writes] = [await wakes('reader'), await wakes('writer')];
  if (!reads && !writes) return undefined;
  const socket = await socketAt(look)(type, address);
  const wait = waitFor(reads, socket);
  return reads && writes ? { ...wait, kind: 'readable or writable' } : wait;
}

/** What is looked for at a part of a value. */
type Match<T> = (type: Die, address: Addr) => Promise<T | undefined>;

/** Looks for the first match in a value, also behind pointers. */
class Search<T> {
  readonly #look: Look;
  readonly #match: Match<T>;
  readonly #follows: (pointer: Die) => boolean;
  readonly #seen = new Set<string>();

  constructor(look: Look, match: Match<T>, follows: (pointer: Die) => boolean = () => true) {
    this.#look = look;
    this.#match = match;
    this.#follows = follows;
  }

  async in(type: Die, address: Addr, depth = 0, pointers = 0): Promise<T | undefined> {
    const key = `${address}:${type.offset}`;
    if (depth > MAX_DEPTH || this.#seen.has(key)) return undefined;
    this.#seen.add(key);
    if (type.tag === DW_TAG.pointer_type) return this.#behind(type, address, pointers);
    if (type.tag !== DW_TAG.structure_type) return undefined;
    const match = await this.#match(type, address);
    if (match !== undefined) return match;
    const { members, variantPart } = layoutOf(type);
    const variant = variantPart && (await this.#active(variantPart, address));
    for (const member of [...members, ...(variant?.members ?? [])]) {
      const at = addOffset(address, member.offset);
      const found = member.type && (await this.in(member.type, at, depth + 1, pointers));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #active(part: VariantPart, address: Addr): Promise<Variant | undefined> {
    const { discriminant } = part;
    if (discriminant === undefined) return selectVariant(part.variants, 0n);
    const value = await this.#look.numberAt(addOffset(address, discriminant.offset), discriminant.size);
    return value === undefined ? undefined : selectVariant(part.variants, value);
  }

  async #behind(type: Die, address: Addr, pointers: number): Promise<T | undefined> {
    const target = type.follow(DW_AT.type);
    const isFollowed = target && pointers < MAX_POINTERS && this.#follows(type);
    const to = isFollowed ? await this.#look.numberAt(address, 8) : undefined;
    if (!to) return undefined;
    const { type: value, address: at } = behindCounts(target, addr(to));
    return value && this.in(value, at, 0, pointers + 1);
  }
}

/** Nobody else uses what lies behind it. */
function isOwner(pointer: Die): boolean {
  return /^(?:&mut |alloc::boxed::Box<)/.test(pointer.name ?? '');
}

/** `TcpStream fd 9`. */
function socketAt(look: Look): Match<string> {
  return async (type, address) => {
    const parameter = WATCHED.get(nameOfType(type));
    const fd = parameter === undefined ? undefined : look.within({ type, address }, 'OwnedFd');
    const what = parameter === undefined ? undefined : genericsOf(type).get(parameter);
    const number = fd && (await look.numberAt(fd.address, 4));
    const name = nameOfType(what).replace(/^.*::/, '') || 'file';
    return number === undefined || number > MAX_FD ? undefined : `${name} fd ${number}`;
  };
}

/** Negative ones stand for none. */
const MAX_FD = 0x7fff_ffffn;

export const sockets: readonly Primitive[] = [readiness, ready, streamed];
