import type { Addr } from '../base/addr.js';
import { littleEndian } from '../base/little-endian.js';
import type { MemoryReader } from '../base/memory-reader.js';
import {
  type Answer,
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  evaluateAsync,
  evaluate as evaluateDwarf,
  type Location,
  locationAt,
  type Need,
  nameOf,
  type Piece,
  rangesOf,
  typeOf,
  type Unit,
  unpackedChildren,
} from '../dwarf/index.js';
import type { CodeAddress } from '../elf/index.js';
import { ObjectPlace, type PlacePart, wordBytes } from './object-place.js';
import { ProgramNames } from './program-names.js';
import { Shapes } from './program-shapes.js';
import { readValue } from './reader.js';
import type { Value } from './value.js';

/** A parameter or local variable that is in scope at an address. */
export interface Variable {
  readonly name: string;
  readonly die: Die;
  readonly type: Die | undefined;
  readonly parameter: boolean;
  /** The function that it belongs to: the one at the address, or one that is inlined there. */
  readonly owner: Die;
}

/** What a frame provides; undefined if it is not available. Registers have their DWARF numbers. */
export interface FrameAccess {
  readonly pc: Addr;
  register(number: number): bigint | undefined;
  /** The canonical frame address, from unwinding. */
  cfa?(): Promise<bigint | undefined>;
  /** The value of an expression at the function's entry, computed in the caller. */
  entryValue?(expression: Uint8Array, unit: Unit): Promise<bigint | undefined>;
  /** The address of thread-local storage at an offset. */
  threadLocal?(offset: bigint): Promise<bigint | undefined>;
}

const MAX_SCOPES = 256;

/** The variables in scope at a code address, innermost scope first: a shadowed name comes later. */
export function variablesAt(debug: DebugInfo, pc: Addr): Variable[] {
  const fn = debug.functionAt(pc)?.die;
  if (fn === undefined) return [];
  return debug.attempt(fn.unit, () => scopesAt(fn, debug.elf.codes.toCode(pc))) ?? [];
}

function scopesAt(fn: Die, pc: CodeAddress): Variable[] {
  const found: Variable[] = [];
  let scope: Die | undefined = fn;
  let owner = fn;
  for (let depth = 0; scope !== undefined && depth < MAX_SCOPES; depth++) {
    const here: Variable[] = [];
    let inner: Die | undefined;
    for (const child of unpackedChildren(scope)) {
      switch (child.tag) {
        case DW_TAG.formal_parameter:
        case DW_TAG.variable: {
          const name = nameOf(child);
          const type = typeOf(child);
          const parameter = child.tag === DW_TAG.formal_parameter;
          if (name !== undefined) here.push({ name, die: child, type, parameter, owner });
          break;
        }
        case DW_TAG.lexical_block:
        case DW_TAG.inlined_subroutine:
          if (rangesOf(child).some((r) => pc >= r.low && pc < r.high)) inner = child;
      }
    }
    // Of two in one scope, the later declaration hides the earlier.
    found.unshift(...here.reverse());
    if (inner?.tag === DW_TAG.inlined_subroutine) owner = inner;
    scope = inner;
  }
  return found;
}

/**
 * Where a variable lies in a frame; undefined if its location does not say (optimized out there). Throws
 * `DWARF_DAMAGED`.
 */
export async function placeOf(
  variable: { readonly die: Die },
  frame: FrameAccess | undefined,
  memory: MemoryReader,
): Promise<ObjectPlace | undefined> {
  const { die } = variable;
  const constant = die.locate(DW_AT.const_value);
  if (constant !== undefined && !die.has(DW_AT.location)) {
    const value = die.big(DW_AT.const_value);
    const bytes = die.block(DW_AT.const_value) ?? (value === undefined ? undefined : wordBytes(value, 16));
    return bytes && ObjectPlace.bytes(bytes);
  }
  const pc = frame === undefined ? Number.NaN : die.unit.codes.toCode(frame.pc);
  const expression = locationAt(die, DW_AT.location, pc);
  if (expression === undefined || expression.length === 0) return undefined;
  const fn = frame && die.unit.debug.functionAt(frame.pc)?.die;
  const scope = { unit: die.unit, fn, frame, memory };
  const found = await evaluateAsync(expression, die.unit, (need) => answer(need, scope, 0));
  if ('missing' in found) return undefined;
  return placeOfPieces(found.pieces, frame);
}

/** Where a static lies, which the compiler may have divided; undefined for other variables. */
export function staticPlace({ die }: { readonly die: Die }): ObjectPlace | undefined {
  const expression = die.block(DW_AT.location);
  const found = expression && evaluateDwarf(expression, die.unit, () => undefined);
  const isStatic = found && 'pieces' in found && found.pieces.some(({ location }) => location.kind === 'memory');
  return isStatic ? placeOfPieces(found.pieces, undefined) : undefined;
}

function placeOfPieces(pieces: readonly Piece[], frame: FrameAccess | undefined): ObjectPlace | undefined {
  const parts = pieces.map(
    ({ location, bitSize }): PlacePart => ({
      size: bitSize === undefined ? Number.POSITIVE_INFINITY : bitSize / 8,
      at: partAt(location, frame),
    }),
  );
  // A piece with a number of bits that is no multiple of 8, or from the middle of a register: hardly ever emitted.
  if (parts.some((p) => p.size !== Number.POSITIVE_INFINITY && !Number.isInteger(p.size))) return undefined;
  return pieces.some(({ bitOffset }) => bitOffset !== 0) ? undefined : ObjectPlace.parts(parts);
}

function partAt(location: Location, frame: FrameAccess | undefined): PlacePart['at'] {
  switch (location.kind) {
    case 'memory':
      return { address: location.address };
    case 'register': {
      const value = frame?.register(location.register);
      return value === undefined ? undefined : { bytes: wordBytes(value, 8) };
    }
    case 'value':
      return { bytes: wordBytes(location.value, 8) };
    case 'bytes':
      return { bytes: location.bytes };
    case 'implicit-pointer':
    case 'optimized-out':
      return undefined;
  }
}

const MAX_NESTING = 4;

/** Where an expression is evaluated. */
interface ExpressionScope {
  readonly unit: Unit;
  /** The function around. */
  readonly fn: Die | undefined;
  readonly frame: FrameAccess | undefined;
  readonly memory: MemoryReader;
}

async function answer(need: Need, scope: ExpressionScope, nesting: number): Promise<Answer> {
  const { unit, fn, frame, memory } = scope;
  switch (need.kind) {
    case 'register':
      return frame?.register(need.register);
    case 'memory': {
      const bytes = await memory.read(need.address, need.size);
      return bytes && littleEndian(bytes);
    }
    case 'cfa':
      return frame?.cfa?.();
    case 'entry-value':
      return frame?.entryValue?.(need.expression, unit);
    case 'tls':
      return frame?.threadLocal?.(need.offset);
    case 'unserved':
      return undefined;
    case 'frame-base': {
      if (fn === undefined || frame === undefined || nesting >= MAX_NESTING) return undefined;
      const expression = locationAt(fn, DW_AT.frame_base, fn.unit.codes.toCode(frame.pc));
      if (expression === undefined) return undefined;
      const found = await evaluateAsync(expression, fn.unit, (inner) =>
        answer(inner, { ...scope, unit: fn.unit }, nesting + 1),
      );
      const location = 'pieces' in found ? found.pieces[0]?.location : undefined;
      // A frame base that is a register means the register's value (DWARF 5, section 3.3.5).
      if (location?.kind === 'register') return frame.register(location.register);
      if (location?.kind === 'memory') return location.address;
      return location?.kind === 'value' ? location.value : undefined;
    }
  }
}

/** Enough to recognise a value. Not everything that it owns on the heap is read. */
const brief = { depth: 4, elements: 16, text: 200, values: 500 };

/**
 * Reads values of one program from one memory, in short form, and `dyn Trait`s by their vtables. For lists of locals.
 */
export class Values {
  readonly #memory: MemoryReader;
  readonly #shapes: Shapes;
  readonly #names: ProgramNames;

  constructor(debug: DebugInfo, memory: MemoryReader) {
    this.#memory = memory;
    this.#shapes = new Shapes(debug);
    this.#names = new ProgramNames(debug);
  }

  /** The value at a place; a variable without a place was optimized out. */
  async read(type: Die | undefined, place: ObjectPlace | undefined): Promise<Value> {
    const shape = this.#shapes.of(type);
    if (place === undefined) return { kind: 'optimized-out', type: shape.name };
    const concrete = (vtable: Parameters<ProgramNames['concrete']>[0]) => this.#names.concrete(vtable);
    return readValue(this.#shapes, this.#memory, shape, place, { limits: brief, concrete });
  }
}
