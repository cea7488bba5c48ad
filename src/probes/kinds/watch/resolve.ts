import { type Addr, hex } from '../../../base/addr.js';
import { type ErrorCode, RsptraceError } from '../../../base/errors.js';
import type { MemoryReader } from '../../../base/memory-reader.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import { evaluateMemberExpr, type MemberExpr, type Operand, type Shape } from '../../../values/index.js';
import { ProgramExpressions } from '../../expressions/program.js';
import { type WatchSpec, watchSizes, wrongSize } from './spec.js';

/** A place to watch, found. */
export interface WatchPlace {
  readonly spec: WatchSpec;
  readonly address: Addr;
  readonly size: number;
  readonly shape: Shape;
}

/** What is to be watched; and its address, if that is known without the target. */
export interface PlannedWatch {
  readonly spec: WatchSpec;
  readonly place: WatchPlace | undefined;
}

/** Addresses below this come from a null pointer. */
const firstPage = 0x1000n;

/** Nothing of the target can be read yet. */
const noMemory: MemoryReader = { read: async () => undefined };

/**
 * The same without a target: undefined for a place that is reached through pointers.
 * @throws RsptraceError as {@link resolveWatches}, but for `WATCH_NOT_YET`
 */
export function knownPlaces(
  specs: readonly WatchSpec[],
  debug: DebugInfo | undefined,
): Promise<(WatchPlace | undefined)[]> {
  return Promise.all(
    specs.map((spec) =>
      placeOf(spec, debug, noMemory).catch((error: unknown) => {
        if (isCode(error, 'EXPRESSION_MEMORY')) return undefined;
        throw error;
      }),
    ),
  );
}

/**
 * Finds the places once, in the target's present memory.
 * @throws RsptraceError `EXPRESSION_*` for one that makes no sense, `DWARF_MISSING`, `WATCH_NO_PLACE`, `WATCH_SIZE`,
 *   `WATCH_OVERLAP`; `WATCH_NOT_YET` where pointers lead to it that the program has not set yet
 */
export async function resolveWatches(
  specs: readonly WatchSpec[],
  debug: DebugInfo | undefined,
  memory: MemoryReader,
): Promise<WatchPlace[]> {
  const known = await knownPlaces(specs, debug);
  const places: WatchPlace[] = [];
  for (const [index, spec] of specs.entries()) {
    const place = known[index] ?? (await behindPointers(spec, debug, memory));
    const other = places.find(({ address, size }) => overlaps(address, size, place.address, place.size));
    if (other) throw overlap(other, place);
    places.push(place);
  }
  return places;
}

export function overlaps(a: bigint, aSize: number, b: bigint, bSize: number): boolean {
  return a < b + BigInt(bSize) && b < a + BigInt(aSize);
}

/**
 * Memory that the program has not filled yet is often zero. Then there is no such variant, no such element, or a null
 * pointer.
 */
async function behindPointers(
  spec: WatchSpec,
  debug: DebugInfo | undefined,
  memory: MemoryReader,
): Promise<WatchPlace> {
  let place: WatchPlace;
  try {
    place = await placeOf(spec, debug, memory);
  } catch (error) {
    if (error instanceof RsptraceError && /^EXPRESSION_(?:MEMORY|TYPE)$/.test(error.code)) {
      throw notYet(spec, error.message);
    }
    throw error;
  }
  if (place.address < firstPage)
    throw notYet(spec, `a pointer on the way to it is null (it leads to ${hex(place.address)})`);
  return place;
}

async function placeOf(spec: WatchSpec, debug: DebugInfo | undefined, memory: MemoryReader): Promise<WatchPlace> {
  const { place, name } = spec;
  if (place.kind === 'address') return { spec, address: place.address, size: place.size, shape: number(place.size) };
  const { shape, place: at } = await operandOf(place.expression, name, debug, memory);
  const { address } = at;
  if (address === undefined) {
    throw new RsptraceError('WATCH_NO_PLACE', `${name} is a value, not a place in memory`, {
      hint:
        place.expression.kind === 'number'
          ? `say how long it is: 'watch:${name},8', or what lies there: 'watch:*(${name} as *const u64)'`
          : 'leave the & away, or dereference it with a *',
    });
  }
  const { size } = shape;
  if (size === undefined || !watchSizes.includes(size)) {
    const members =
      'fields' in shape ? shape.fields.map((field) => `${name}.${field.name.replace(/^__(?=\d)/, '')}`) : [];
    throw wrongSize(name, size, shape.kind === 'array' ? [`${name}[0]`] : members);
  }
  return { spec, address, size, shape };
}

async function operandOf(
  expression: MemberExpr,
  name: string,
  debug: DebugInfo | undefined,
  memory: MemoryReader,
): Promise<Operand> {
  if (!debug) {
    throw new RsptraceError('DWARF_MISSING', `without debug info nothing says where ${name} lies`, {
      hint: "watch an address: 'watch:0x80001000,8', or build with debug = 2",
    });
  }
  const program = new ProgramExpressions(debug);
  const { shapes, names } = program;
  try {
    return await evaluateMemberExpr(expression, { shapes, names, memory });
  } catch (error) {
    throw program.withNearest(error, expression, noneLike);
  }
}

const noneLike = "no static of the program has a name like it; an address is watched with 'watch:0x80001000,8'";

function number(size: number): Shape {
  return { kind: 'integer', signed: false, character: false, name: `u${size * 8}`, size, die: undefined };
}

function notYet({ name }: WatchSpec, why: string): RsptraceError {
  return new RsptraceError('WATCH_NOT_YET', `where ${name} lies is not known before the program runs: ${why}`, {
    hint: 'it is worked out once, at the start: attach (--remote) when the program has set its pointers, or watch the pointer itself',
  });
}

function overlap(one: WatchPlace, other: WatchPlace): RsptraceError {
  return new RsptraceError(
    'WATCH_OVERLAP',
    `'${one.spec.text}' and '${other.spec.text}' watch the same bytes, at ${hex(other.address)}`,
    { hint: `for reads and writes, one is enough: 'watch:${one.spec.name}:rw'` },
  );
}

function isCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof RsptraceError && error.code === code;
}
