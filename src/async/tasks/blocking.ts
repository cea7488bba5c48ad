/*
 * What a thread blocks on: the Future that it gave to a `block_on`. It lies on the thread's stack, or in a box. No
 * runtime keeps its address, and while it is not polled no register need lead to it. Its type is taken from the
 * functions called `block_on` on the thread's stack, by their generic arguments. Then the stack is searched for it. It
 * is in a state in which it waits, and all that it awaits is as it is in a Future that waits.
 */

import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  functionName,
  functionsAt,
  genericsOf,
  layoutOf,
  nameOf,
  selectVariant,
  sizeOf,
  stripGenerics,
  typeName,
} from '../../dwarf/index.js';
import type { Frame } from '../../target/unwind/index.js';
import { type FutureType, onlyHeld, stateOf } from '../futures/index.js';
import { type AwaitNode, AwaitTrees } from './await-tree.js';
import { memberAt, numberAt } from './layout.js';
import type { TaskContext } from './runtime.js';

/** What a thread blocks on, in place. */
export interface Blocking {
  readonly future: FutureType;
  readonly address: Addr;
  /** The function that blocks. */
  readonly by: string;
}

/** They are called so in tokio, async-io, futures-lite, futures-executor, pollster, and in many kernels. */
const BLOCKS = /(?:^|::)block_on$/;
/** More of a stack is not searched. */
const MOST_BYTES = 1 << 22;
const WORD = 8;
/** A box on the way to a runtime's inner functions. */
const BOXED = /^core::pin::Pin<alloc::boxed::Box<(.*), .*>>$/;

/** A Future that a `block_on` was given. */
interface Given {
  readonly future: FutureType;
  readonly by: string;
  /** What shows whether it waits: itself, or what it consists of. Undefined if none of these has a state number. */
  readonly waiting: { readonly future: FutureType; readonly offset: number } | undefined;
  /** The frames that had it: where the innermost begins, and the end of the outermost. */
  readonly start: Addr;
  readonly end: Addr;
}

/**
 * What threads block on. One is left out that is polled now, because its state is not that of a
 * Future that waits. One that is found nowhere, or in two places, is noted.
 */
export async function findBlocking(context: TaskContext): Promise<readonly Blocking[]> {
  const found: Blocking[] = [];
  for (const frames of context.frames) {
    const start = frames[0]?.cfa;
    if (start === undefined) continue;
    const { given, boxed } = givenOn(context, frames);
    const [unseen, ...others] = given.filter(({ waiting }) => waiting === undefined);
    if (unseen && others.length + 1 === given.length) context.note(unsure(unseen, undefined));
    for (const each of given) {
      if (!each.waiting) continue;
      const all = await placesOf(context, each, start, boxed.has(each.future.instance));
      const places = await likeliest(context, each, all);
      const [address] = places ?? [];
      if (places?.length === 1 && address !== undefined) found.push({ ...each, address });
      else context.note(unsure(each, places?.length));
    }
  }
  return found;
}

/**
 * Of several places the only one in the frames that had it counts, because further in there may be bytes of what was
 * moved. Else the only one whose pointers lead to values counts, because two words of a stack may look like a pointer
 * and a state.
 */
async function likeliest(
  { memory, futures, debug }: TaskContext,
  { start, end, future, waiting }: Given,
  places: readonly Addr[] | undefined,
): Promise<readonly Addr[] | undefined> {
  if (places === undefined || places.length < 2) return places;
  const inside = places.filter((address) => address >= start && address < end);
  if (inside.length === 1) return inside;
  const trees = new AwaitTrees(futures, memory);
  const shows = waiting ?? { future, offset: 0 };
  const led: Addr[] = [];
  for (const address of places) {
    const tree = await trees.read(shows.future, addOffset(address, shows.offset));
    if (await waits({ memory, debug }, tree, true)) led.push(address);
  }
  return led.length === 1 ? led : places;
}

/** `places`: undefined if the stack could not be read. */
function unsure({ future, by, waiting }: Given, places: number | undefined): string {
  const nowhere = places === undefined ? 'its stack was not read' : 'nowhere on the stack it is found waiting';
  const found = places ? `it may lie in ${places} places of the stack` : nowhere;
  const why = waiting ? found : 'written by hand, it has no state number to search for';
  return `${future.future}, which a thread blocks on in ${by}, is not told: ${why}; rsptrace bt shows the stack`;
}

/** The Futures of the `block_on`s on a stack, and the types that were boxed there. */
function givenOn(
  { debug, futures }: TaskContext,
  frames: readonly Frame[],
): { readonly given: readonly Given[]; readonly boxed: ReadonlySet<string> } {
  const given = new Map<FutureType, Given>();
  const boxed = new Set<string>();
  const polled = new Set<FutureType>();
  for (const [index, { pc, exact, cfa, image }] of frames.entries()) {
    if (image?.isLibrary || cfa === undefined) continue;
    const at = exact ? pc : addr(pc - 1n);
    const around = debug.functionAt(at);
    const poll = around && futures.byPollAddress(around.low);
    if (poll) polled.add(poll);
    for (const die of functionsAt(debug, at)) {
      const inner = futures.ofCopy(die);
      if (inner) polled.add(inner);
      const by = stripGenerics(functionName(die) ?? '');
      if (!BLOCKS.test(by)) continue;
      const types = [...genericsOf(die).values()];
      for (const type of types) for (const inBox of BOXED.exec(typeName(type))?.slice(1) ?? []) boxed.add(inBox);
      for (const { future, held } of types.flatMap((type) => ownFuture(futures.ofType(type)))) {
        if (held.some((each) => polled.has(each.future))) continue;
        const waiting = held.find((each) => each.future.discriminant);
        const start = given.get(future)?.start ?? frames[index - 1]?.cfa ?? cfa;
        given.set(future, { future, by, waiting, start, end: cfa });
      }
    }
  }
  return { given: [...given.values()], boxed };
}

/** A Future with those inside it; none for one that refers to another, which is shown by that. */
function ownFuture(future: FutureType | undefined) {
  if (!future || /^(?:core::pin::Pin<|&mut |alloc::boxed::Box<)/.test(future.instance)) return [];
  return [{ future, held: [{ future, offset: 0 }, ...onlyHeld(future)] }];
}

/** Where such a Future lies and waits, in the stack or in a box that the stack has; undefined if that is not read. */
async function placesOf(
  context: TaskContext,
  { future, waiting, end }: Given,
  start: Addr,
  isBoxed: boolean,
): Promise<readonly Addr[] | undefined> {
  const { memory, futures } = context;
  const length = Number(end - start);
  const bytes = length > 0 && length <= MOST_BYTES ? await memory.read(start, length) : undefined;
  if (bytes === undefined) return undefined;
  const trees = new AwaitTrees(futures, memory);
  const found = new Set<Addr>();
  const shows = waiting ?? { future, offset: 0 };
  const look = async (address: Addr): Promise<void> => {
    if (found.has(address)) return;
    if (await waits(context, await trees.read(shows.future, addOffset(address, shows.offset)))) found.add(address);
  };
  const step = Math.max(future.align ?? 1, 1);
  for (let offset = toAligned(start, step); offset + future.size <= length; offset += step)
    if (isSuspended(shows.future, bytes, offset + shows.offset)) await look(addOffset(start, offset));
  if (!isBoxed) return [...found];
  for (let offset = toAligned(start, WORD); offset + WORD <= length; offset += WORD) {
    const address = addr(numberAt(bytes, { offset, size: WORD }));
    const value = address === 0n ? undefined : await memory.read(address, future.size);
    if (value && isSuspended(shows.future, value, shows.offset)) await look(address);
  }
  return [...found];
}

/** How many bytes behind an address the next multiple of `step` is. */
function toAligned(start: Addr, step: number): number {
  return (step - Number(start % BigInt(step))) % step;
}

function isSuspended(future: FutureType, bytes: Uint8Array, offset: number): boolean {
  return stateOf(future, bytes, offset)?.name.startsWith('Suspend') ?? false;
}

/** Whether a Future waits, as far as its bytes show, with all that it awaits. `led`: see {@link Soundness}. */
async function waits(context: Pick<TaskContext, 'memory' | 'debug'>, node: AwaitNode, led = false): Promise<boolean> {
  const { future, state, cut, path, awaits } = node;
  if (cut !== undefined && cut !== 'depth') return false;
  const isAwaited = path === '' || path === '__awaitee';
  if (future === undefined) return false;
  if (future.discriminant && (state === undefined || (isAwaited && !state.name.startsWith('Suspend')))) return false;
  // Who waits for another one has that.
  if (future.discriminant && isAwaited && awaits.length === 0) return false;
  // What is in the states of the others may have been moved out.
  const type = future.kind === 'impl' ? context.debug.die(future.typeOffset) : undefined;
  if (type && !(await new Soundness(context.memory, { led }).holds(type, node.address))) return false;
  for (const inner of awaits) if (!(await waits(context, inner, led))) return false;
  return true;
}

const MAX_DEPTH = 24;
const MAX_BYTES = 1 << 16;
/** No Arc is shared by more. */
const MOST_SHARED = 1n << 31n;
/** What no pointer leads to, but a dangling one of something empty. */
const FIRST_PAGE = 4096n;
const COUNTED = /^alloc::(?:sync::ArcInner|rc::RcInner|rc::RcBox)$/;
/** May be dangling, whatever its type says. */
const WEAK = /^alloc::(?:sync|rc)::Weak$/;

/**
 * Whether bytes may be a value of a type. Enums have variants that exist, references lead to such values, and shared
 * values have plausible counts. What may be uninitialised (a union) is not looked at. `led`: a `NonNull` leads to a
 * value, too. That of an empty collection does not. `isFar`: references lead to memory, whatever is there.
 */
export class Soundness {
  readonly #memory: MemoryReader;
  readonly #led: boolean;
  readonly #isFar: boolean;

  constructor(memory: MemoryReader, { led = false, isFar = false } = {}) {
    this.#memory = memory;
    this.#led = led;
    this.#isFar = isFar;
  }

  async holds(type: Die, at: Addr): Promise<boolean> {
    const size = sizeOf(type) ?? 0;
    if (size === 0 || size > MAX_BYTES) return true;
    const bytes = await this.#memory.read(at, size);
    return bytes !== undefined && this.#value(type, bytes, 0, 0);
  }

  async #value(type: Die, bytes: Uint8Array, offset: number, depth: number): Promise<boolean> {
    if (depth > MAX_DEPTH) return true;
    if (type.tag === DW_TAG.pointer_type) return this.#pointer(type, bytes, offset);
    if (type.tag === DW_TAG.base_type && nameOf(type) === 'bool') return numberAt(bytes, { offset, size: 1 }) <= 1n;
    if (type.tag !== DW_TAG.structure_type) return true;
    const name = stripGenerics(typeName(type));
    if (WEAK.test(name)) return true;
    const { members, variantPart } = layoutOf(type);
    if (name === 'core::ptr::non_null::NonNull') {
      const address = addr(numberAt(bytes, { offset, size: 8 }));
      const target = this.#led ? members[0]?.type?.follow(DW_AT.type) : undefined;
      if (!(await (target ? this.#leads(target, address) : this.#mayPoint(address)))) return false;
    }
    const { discriminant } = variantPart ?? {};
    const value = discriminant ? numberAt(bytes, { ...discriminant, offset: offset + discriminant.offset }) : 0n;
    const variant = variantPart && selectVariant(variantPart.variants, value);
    if (variantPart && variant === undefined) return false;
    for (const member of [...members, ...(variant?.members ?? [])]) {
      const inner = offset + member.offset;
      if (member.type && !(await this.#value(member.type, bytes, inner, depth + 1))) return false;
    }
    return true;
  }

  async #pointer(type: Die, bytes: Uint8Array, offset: number): Promise<boolean> {
    const target = type.follow(DW_AT.type);
    if (offset + 8 > bytes.length || target === undefined) return true;
    const address = addr(numberAt(bytes, { offset, size: 8 }));
    const isCounted = COUNTED.test(stripGenerics(typeName(target)));
    const isRaw = /^\*(?:const|mut) /.test(nameOf(type) ?? '');
    if (address === 0n) return isRaw;
    if (isCounted) return this.#isCounted(target, address);
    if (isRaw || address < FIRST_PAGE || (sizeOf(target) ?? 0) === 0) return true;
    if (this.#isFar) return this.#isThere(address);
    return this.#leads(target, address);
  }

  /** To a value, behind the last of some, or, of none, nowhere: `NonNull::dangling` is as small as an alignment. */
  async #mayPoint(address: Addr): Promise<boolean> {
    if (address < FIRST_PAGE) return address !== 0n;
    return (await this.#isThere(address)) || this.#isThere(addOffset(address, -1));
  }

  async #isThere(address: Addr): Promise<boolean> {
    return (await this.#memory.read(address, 1)) !== undefined;
  }

  async #leads(target: Die, address: Addr): Promise<boolean> {
    return address >= FIRST_PAGE && (await new Soundness(this.#memory, { isFar: true }).holds(target, address));
  }

  async #isCounted(target: Die, address: Addr): Promise<boolean> {
    for (const name of ['strong', 'weak']) {
      const part = memberAt(target, name);
      const bytes = part && (await this.#memory.read(addOffset(address, part.offset), 8));
      const count = bytes && numberAt(bytes, { offset: 0, size: 8 });
      if (part && (count === undefined || count === 0n || count > MOST_SHARED)) return false;
    }
    return true;
  }
}
