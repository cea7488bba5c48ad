/*
 * Sockets, and what else a reactor watches: tokio's `PollEvented` and `AsyncFd`, async-io's `Async`. Each has the file
 * descriptor within, in the standard library's `OwnedFd`:
 *
 *   Readiness { scheduled_io: &ScheduledIo, waiter: .. Waiter { interest: Interest(bits), .. } }   below `accept()`
 *   Read { reader: &mut TcpStream { io: PollEvented { io: Option<mio TcpStream>, .. } }, .. }      below `read()`
 *   Ready { handle: &Async { source, io: Option<T> }, dir, .. }                                    below `readable()`
 */

import { type Addr, addOffset, addr } from '../../base/addr.js';
import { type Die, DW_AT, DW_TAG, layoutOf, stripGenerics } from '../../dwarf/index.js';
import type { AwaitNode } from '../await-tree.js';
import { genericsOf, numberAt, partCalled } from '../layout.js';
import { behindCounts } from '../references.js';
import { type Awaited, type Look, nameOfType, type Primitive } from './resource.js';

/** What has a descriptor and is watched, and the type parameter that says what it is. */
const WATCHED: ReadonlyMap<string, string> = new Map([
  ['tokio::io::poll_evented::PollEvented', 'E'],
  ['tokio::io::async_fd::AsyncFd', 'T'],
  ['async_io::Async', 'T'],
]);
/** Wrappers between a Future and its socket: `BufReader<ReadHalf<TcpStream>>`, an `Arc`. */
const MAX_DEPTH = 10;
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
export const streamed: Primitive = {
  futures: [...readers, ...WRITE.map(inTokio), ...LITE_WRITE.map(inLite)],
  async awaited(look, node) {
    const socket = await socketOf(look, node);
    const name = node.future?.future ?? stripGenerics(node.typeName);
    return socket === undefined ? undefined : waitFor(readers.has(name), socket);
  },
};

/** The bit of tokio's `Interest`. tokio/src/io/interest.rs */
const READABLE = 1n;

export const tokioReadiness: Primitive = {
  futures: ['tokio::runtime::io::scheduled_io::Readiness'],
  async awaited(look, node, above) {
    const type = look.typeOf(node);
    const interest = type && partCalled(type, 'Interest');
    const bits = interest && (await numberIn(look, addOffset(node.address, interest.offset), interest.size));
    if (bits === undefined) return undefined;
    return waitFor((bits & READABLE) !== 0n, await socketAbove(look, above));
  },
};

/** `dir` of async-io's `Ready`: 0 to read, 1 to write. async-io/src/reactor.rs */
export const asyncReady: Primitive = {
  futures: ['Ready', 'Readable', 'ReadableOwned', 'Writable', 'WritableOwned'].map(
    (name) => `async_io::reactor::${name}`,
  ),
  async awaited(look, node) {
    const type = look.typeOf(node);
    const ready = type && partCalled(type, 'Ready');
    if (!ready) return undefined;
    const dir = await look.number({ type: ready.type, address: addOffset(node.address, ready.offset) }, 'dir');
    return dir === undefined ? undefined : waitFor(dir === 0n, await socketOf(look, node));
  },
};

function waitFor(isReader: boolean, socket: string | undefined): Awaited {
  const kind = isReader ? 'readable' : 'writable';
  return { kind, address: undefined, ...(socket === undefined ? {} : { detail: socket }) };
}

/** The socket that a Future above is a method of. */
async function socketAbove(look: Look, above: readonly AwaitNode[]): Promise<string | undefined> {
  for (const node of above) {
    const target = await look.selfOf(node);
    const socket = target?.type && (await new Search(look).in(target.type, target.address));
    if (socket !== undefined) return socket;
  }
  return undefined;
}

async function socketOf(look: Look, node: AwaitNode): Promise<string | undefined> {
  const type = look.typeOf(node);
  return type && new Search(look).in(type, node.address);
}

/** Looks for the first socket in a value, also behind pointers. */
class Search {
  readonly #look: Look;
  readonly #seen = new Set<string>();

  constructor(look: Look) {
    this.#look = look;
  }

  /** `TcpStream fd 9`. */
  async in(type: Die, address: Addr, depth = 0, pointers = 0): Promise<string | undefined> {
    const key = `${address}:${type.offset}`;
    if (depth > MAX_DEPTH || this.#seen.has(key)) return undefined;
    this.#seen.add(key);
    if (type.tag === DW_TAG.pointer_type) return this.#behind(type, address, pointers);
    if (type.tag !== DW_TAG.structure_type) return undefined;
    const parameter = WATCHED.get(nameOfType(type));
    if (parameter !== undefined) return this.#named(type, address, parameter);
    for (const member of layoutOf(type).members) {
      const at = addOffset(address, member.offset);
      const found = member.type && (await this.in(member.type, at, depth + 1, pointers));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #behind(type: Die, address: Addr, pointers: number): Promise<string | undefined> {
    const target = type.follow(DW_AT.type);
    const to = target && pointers < MAX_POINTERS ? await numberIn(this.#look, address, 8) : undefined;
    if (!to) return undefined;
    const { type: value, address: at } = behindCounts(target, addr(to));
    return value && this.in(value, at, 0, pointers + 1);
  }

  async #named(type: Die, address: Addr, parameter: string): Promise<string | undefined> {
    const fd = partCalled(type, 'OwnedFd');
    const what = genericsOf(type).get(parameter);
    const number = fd && (await numberIn(this.#look, addOffset(address, fd.offset), 4));
    const name = nameOfType(what).replace(/^.*::/, '') || 'file';
    return number === undefined || number > MAX_FD ? undefined : `${name} fd ${number}`;
  }
}

/** Negative ones stand for none. */
const MAX_FD = 0x7fff_ffffn;

async function numberIn({ context }: Look, address: Addr, size: number): Promise<bigint | undefined> {
  const bytes = await context.memory.read(address, size);
  return bytes && numberAt(bytes, { offset: 0, size });
}
