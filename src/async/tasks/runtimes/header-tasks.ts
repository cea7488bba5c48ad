/*
 * Runtimes with one allocation a task: a header that points to a vtable, a constant of the program, and the Future
 * behind it. One of the vtable's functions is generic over the Future. So the vtables are found in the program's data,
 * and the headers in memory by the vtables' addresses.
 */

import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { type Die, DW_AT, DW_TAG, genericsOf, layoutOf, typeName, variantName } from '../../../dwarf/index.js';
import { memberAt, numberAt, type Part } from '../layout.js';
import { type FoundRoot, isIn, type Runtime, type TaskContext } from '../runtime.js';
import { functionsOf, tasksByVtable, vtablesOf } from './constants.js';

/** What a header says of its task. `undefined`: these bytes are no task. */
export type HeaderFacts = { readonly isOver: boolean; readonly state: string } | undefined;

/** How one runtime keeps its tasks. Paths are those of its crate. */
export interface HeaderTasks {
  readonly name: string;
  readonly wakers: RegExp;
  readonly polls: RegExp;
  /** The type of the header: its member `vtable`, which has to be called so, points to the vtable. */
  readonly header: string;
  /** The type of the vtable. */
  readonly vtable: string;
  /** The vtable's member with the function that polls, and that function, which is generic over the Future. */
  readonly entry: string;
  readonly function: string;
  /** Which of that function's types is the Future: 0, the first, where it is left out. */
  readonly generic?: number;
  /** How many bytes behind the header the Future lies. */
  futureAt(context: Pick<TaskContext, 'debug'>, generics: ReadonlyMap<string, Die>): number | undefined;
  /** `word`: a number in the header by its member's name. */
  read(word: (member: string) => bigint | undefined): HeaderFacts;
}

/** A kind of task that the program can spawn. */
interface HeaderKind {
  readonly future: Die;
  /** Of the Future, from the header. */
  readonly offset: number;
  /** The function that polls it, and where that begins. */
  readonly die: Die;
  readonly address: Addr;
}

/** A runtime for `runtimes` of `attach`, `launch` and plug-ins, from such a description. */
export function headerRuntime(tasks: HeaderTasks): Runtime {
  const { name, wakers, polls } = tasks;
  return { name, wakers, polls, roots: (context) => rootsOf(context, tasks) };
}

/** The kinds of a runtime's tasks, as the functions show that were compiled for them. */
export function headerKinds(context: Pick<TaskContext, 'debug' | 'note'>, tasks: HeaderTasks): HeaderKind[] {
  return functionsOf(context, tasks.function).flatMap(({ die, address }) => {
    const generics = genericsOf(die);
    const future = [...generics.values()][tasks.generic ?? 0];
    const offset = future && context.debug.attempt(die.unit, () => tasks.futureAt(context, generics));
    if (future && offset !== undefined) return [{ future, offset, die, address }];
    const type = future ? `tasks of \`${typeName(future)}\` are` : 'a kind of task is';
    context.note(`${tasks.name}: ${type} missing, because the debug info has not where the Future lies`);
    return [];
  });
}

async function rootsOf(context: TaskContext, tasks: HeaderTasks): Promise<FoundRoot[] | undefined> {
  const { debug, note } = context;
  if (functionsOf(context, tasks.function).length === 0) return undefined;
  const kinds = new Map(headerKinds(context, tasks).map((kind) => [kind.address as bigint, kind]));
  const without = (what: string): void => note(`${tasks.name}: ${what}, so its tasks cannot be listed`);
  const [header, table] = [debug.typesNamed(tasks.header)[0], debug.typesNamed(tasks.vtable)[0]];
  if (!header || !table) {
    without(`\`${tasks.header}\` or \`${tasks.vtable}\` is not in the debug info`);
    return [];
  }
  const pointer = memberAt(header, 'vtable', without);
  const entry = memberAt(table, tasks.entry, without);
  if (!pointer || !entry) return [];
  return tasksByVtable(context, vtablesOf(debug.elf, kinds, entry.offset), (kind, place) =>
    taskAt(context, { tasks, header, kind }, addOffset(place, -pointer.offset)),
  );
}

async function taskAt(
  context: TaskContext,
  { tasks, header, kind }: { readonly tasks: HeaderTasks; readonly header: Die; readonly kind: HeaderKind },
  at: Addr,
): Promise<FoundRoot | undefined> {
  const { size, align = 8 } = layoutOf(header);
  // It is put together on a stack, and moved to the heap.
  if (at % BigInt(align) !== 0n || isIn(context.stacks, at)) return undefined;
  const bytes = await context.memory.read(at, size);
  if (!bytes || (await context.isFreed(at, size))) return undefined;
  const word = (member: string): bigint | undefined => {
    const part: Part | undefined = memberAt(header, member);
    return part && numberAt(bytes, part);
  };
  const facts = tasks.read(word);
  if (facts === undefined) return undefined;
  return {
    future: context.futures.ofType(kind.future),
    typeName: typeName(kind.future),
    address: addr(addOffset(at, kind.offset)),
    references: [at],
    header: at,
    fate: facts.isOver ? 'ended' : 'live',
    facts: { state: facts.state },
  };
}

/** What of an allocation is aligned to. Arrays are as their elements, and numbers and pointers have their own size. */
export function alignOf(type: Die): number {
  const element = type.tag === DW_TAG.array_type ? type.follow(DW_AT.type) : undefined;
  if (element) return alignOf(element);
  const { size, align } = layoutOf(type);
  return align ?? Math.max(1, Math.min(size, 16));
}

/** The next multiple of an alignment. */
export function alignedTo(offset: number, align: number): number {
  return Math.ceil(offset / align) * align;
}

/** Where tokio's stage, and that of runtimes made after it, has the Future as long as it runs. */
export function runningOffset({ offset, type }: Part): number | undefined {
  const variants = layoutOf(type).variantPart?.variants ?? [];
  const member = variants.find((variant) => variantName(variant) === 'Running')?.members[0];
  if (member?.type === undefined) return undefined;
  const [inner] = layoutOf(member.type).members;
  return offset + member.offset + (inner?.offset ?? 0);
}
