import { type Addr, addOffset, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { littleEndian } from '../base/little-endian.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { type Die, selectVariant, typeOf } from '../dwarf/index.js';
import { type MemberExpr, type TypeExpr, textOf } from './member-expr.js';
import { ExpressionReads, type Need, type Operand, type Use } from './member-expr-reads.js';
import {
  anyInteger,
  fieldsOf,
  type List,
  memberNames,
  pick,
  severalNames,
  typeError,
  typeShape,
  variantShape,
  WORD,
} from './member-expr-shapes.js';
import { type Missing, ObjectPlace, readsOf, whenKnown, wordBytes } from './object-place.js';
import type { ProgramNames } from './program-names.js';
import { arrayOf, type Shapes } from './program-shapes.js';
import type { EnumShape, FieldShape, Shape, VariantShape } from './shape.js';
import { type FrameAccess, placeOf, variablesAt } from './variables.js';

/** What the names in an expression mean. */
interface Names {
  readonly shapes: Shapes;
  readonly names: ProgramNames;
  /** Finds locals and parameters; without it there are statics only. */
  readonly frame?: FrameAccess;
  /** Names that come before all others: a function's arguments at its entry. */
  readonly own?: (name: string) => Operand | undefined;
}

/** For an evaluation of whatever is known: of a target that stands, of what was read at a hit, before there is one. */
export interface EvaluationScope extends Names {
  /** Where a variable lies; undefined where there is no place for it. */
  locate(variable: { readonly die: Die }): ObjectPlace | undefined;
  /** Bytes, or why there are none. What it throws ends the evaluation. */
  read(need: Need): Uint8Array | Missing | undefined;
}

/** The meaning of names in an expression. */
export interface ExpressionScope extends Names {
  readonly memory: MemoryReader;
}

/**
 * Finds the object that an expression names: its place and its type. Fields are found through references, `Box`,
 * `Rc`, `Arc`, `Pin` and cells, as in Rust's auto-dereference, and in the present variant of an enum. Indices work on
 * arrays, slices, `Vec`, `VecDeque` and pointers. Throws `EXPRESSION_NAME` (no such variable or type),
 * `EXPRESSION_TYPE` (the types do not fit), `EXPRESSION_MEMORY` (memory on the way cannot be read),
 * `EXPRESSION_OPTIMIZED_OUT`.
 */
export function evaluateMemberExpr(expression: MemberExpr, scope: ExpressionScope): Promise<Operand> {
  const { memory, frame } = scope;
  return whenKnown((ask) =>
    evaluate(expression, {
      ...scope,
      locate: (variable) => ask(`place ${variable.die.offset}`, () => placeOf(variable, frame, memory)),
      read: ({ place, size }) => place.bytesBy(size, readsOf(ask, memory)),
    }),
  );
}

/** The same at once, with what the scope knows. */
export function evaluate(expression: MemberExpr, scope: EvaluationScope): Operand {
  return new Evaluator(scope).eval(expression);
}

const MAX_STEPS = 16;

class Evaluator {
  readonly #scope: EvaluationScope;
  readonly #reads: ExpressionReads;

  constructor(scope: EvaluationScope) {
    this.#scope = scope;
    this.#reads = new ExpressionReads(scope.read);
  }

  eval(e: MemberExpr): Operand {
    switch (e.kind) {
      case 'number':
        return this.#made(anyInteger, e.value);
      case 'path':
        return this.#variable(e.path);
      case 'deref':
        return this.#deref(this.eval(e.of));
      case 'address': {
        const { shape, place } = this.eval(e.of);
        if (place.address === undefined) throw typeError(`${textOf(e.of)} has no address: it does not lie in memory`);
        return this.#pointer(place.address, shape, `&${shape.name}`);
      }
      case 'negate': {
        const of = this.eval(e.of);
        return this.#made(of.shape, -this.#integer(of, textOf(e.of)));
      }
      case 'member':
        return this.#member(this.eval(e.of), e);
      case 'index':
        return this.#index(this.eval(e.of), this.#whole(e.index), textOf(e.of));
      case 'range': {
        const of = this.eval(e.of);
        const from = e.from === undefined ? 0 : this.#whole(e.from);
        return this.#range(of, from, e.to === undefined ? undefined : this.#whole(e.to), textOf(e.of));
      }
      case 'cast':
        return this.#cast(this.eval(e.of), e.type, textOf(e.of));
    }
  }

  #made(shape: Shape, value: bigint): Operand {
    return { shape, place: ObjectPlace.bytes(wordBytes(value, shape.size ?? WORD)) };
  }

  #pointer(address: Addr, target: Shape, name?: string): Operand {
    return this.#made(this.#scope.shapes.pointerTo(target, name), address);
  }

  #variable(path: string): Operand {
    const { frame, names, shapes, own } = this.#scope;
    const first = own?.(path);
    if (first !== undefined) return first;
    if (frame !== undefined && !path.includes('::')) {
      const local = variablesAt(shapes.debug, frame.pc).find((v) => v.name === path);
      if (local !== undefined) {
        const place = this.#scope.locate(local);
        if (place === undefined) {
          throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', `${path} is not there at this address`, {
            hint: 'the compiler keeps a variable only as long as it is needed; opt-level 0 keeps all of them',
          });
        }
        return { shape: shapes.of(local.type), place };
      }
    }
    const [found, second] = names.statics(path);
    if (found === undefined) {
      const where = frame === undefined ? 'no static' : 'no variable in scope here and no static';
      throw new RsptraceError('EXPRESSION_NAME', `there is ${where} named ${path}`);
    }
    if (second !== undefined) {
      throw severalNames(
        path,
        names.statics(path).map((n) => n.name),
        'give more of the path',
      );
    }
    const place = this.#scope.locate(found);
    if (place === undefined) throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', `${path} has no place in memory`);
    return { shape: shapes.of(typeOf(found.die)), place };
  }

  /** The value of an integer, enum, char, bool or pointer. */
  #integer({ shape, place }: Operand, what: string, steps = 0): bigint {
    switch (shape.kind) {
      case 'integer':
      case 'enumeration':
      case 'char':
      case 'bool':
      case 'pointer': {
        const bits = littleEndian(this.#reads.bytes(place, shape.size ?? WORD, what, 'value', 0n));
        return 'signed' in shape && shape.signed ? BigInt.asIntN((shape.size ?? WORD) * 8, bits) : bits;
      }
      case 'slice':
      case 'dyn':
        return this.#reads.word(place.inside(shape.pointer), what, 'value', 0n);
      case 'struct':
      case 'union': {
        const view = shape.view();
        if (view?.kind === 'through' && steps < MAX_STEPS)
          return this.#integer({ shape: view.type(), place: place.inside(view.offset) }, what, steps + 1);
        if (view?.kind === 'shared') return this.#reads.word(place.inside(view.pointer), what, 'value', 0n);
      }
    }
    throw typeError(`${what} is a ${shape.name}, not a number or pointer`);
  }

  #whole(e: MemberExpr): number {
    const value = this.#integer(this.eval(e), textOf(e));
    if (value < BigInt(Number.MIN_SAFE_INTEGER) || value > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw typeError(`the index ${value} is out of all bounds`);
    }
    return Number(value);
  }

  /** One step through a pointer or a wrapper type; undefined if there is none. */
  #step({ shape, place, isUnsure }: Operand, what: string): Operand | undefined {
    const sure: Use = isUnsure ? 'pointer' : 'reference';
    switch (shape.kind) {
      case 'pointer': {
        const target = shape.target();
        if (target === undefined || shape.style === 'fn') return undefined;
        const address = this.#reads.word(place, what, shape.style === 'raw' ? 'pointer' : sure);
        return { shape: target, place: ObjectPlace.memory(addr(address)) };
      }
      case 'dyn': {
        const die = this.#scope.names.concrete(addr(this.#reads.word(place.inside(shape.vtable), what, 'vtable')));
        if (die === undefined) return undefined;
        const address = addr(this.#reads.word(place.inside(shape.pointer), what, sure));
        return { shape: this.#scope.shapes.of(die), place: ObjectPlace.memory(address) };
      }
      case 'struct':
      case 'union': {
        const view = shape.view();
        if (view?.kind === 'through' || view?.kind === 'guarded') {
          // The one union that is passed through is MaybeUninit.
          return {
            shape: view.type(),
            place: place.inside(view.offset),
            isUnsure: isUnsure || shape.kind === 'union',
          };
        }
        if (view?.kind !== 'shared') return undefined;
        const use = view.name === 'Weak' ? 'pointer' : sure;
        const address = addr(this.#reads.word(place.inside(view.pointer), what, use));
        const { target } = view;
        if (target.kind !== 'sized') return undefined;
        return { shape: target.type(), place: ObjectPlace.memory(addOffset(address, target.offset)) };
      }
      default:
        return undefined;
    }
  }

  #deref(of: Operand): Operand {
    let at: Operand | undefined = of;
    for (let steps = 0; at !== undefined && steps < MAX_STEPS; steps++) {
      const transparent: boolean = at.shape.kind === 'struct' && at.shape.view()?.kind === 'through';
      const next: Operand | undefined = this.#step(at, `what the ${at.shape.name} points to`);
      // For Pin<&mut T> and NonNull<T> the pointer inside is used.
      if (!transparent && next !== undefined) return next;
      at = next;
    }
    throw typeError(`a ${of.shape.name} cannot be dereferenced`);
  }

  /** What is found in an operand, or behind pointers and wrappers from there on. */
  #reached<T>(of: Operand, what: string, find: (at: Operand) => T | undefined): T | undefined {
    let at: Operand | undefined = of;
    for (let steps = 0; at !== undefined && steps < MAX_STEPS; steps++) {
      const found = find(at);
      if (found !== undefined) return found;
      at = this.#step(at, what);
    }
    return undefined;
  }

  #member(of: Operand, e: MemberExpr & { kind: 'member' }): Operand {
    const names: string[] = [];
    const found = this.#reached(of, textOf(e.of), (at) => {
      const own = this.#ownMember(at, e);
      if (own === undefined) names.push(...memberNames(at.shape));
      return own;
    });
    if (found !== undefined) return found;
    throw typeError(`${textOf(e.of)}, a ${of.shape.name}, has no member ${e.name}`, names, e.name);
  }

  #ownMember({ shape, place, isUnsure }: Operand, e: MemberExpr & { kind: 'member' }): Operand | undefined {
    const own = pick(fieldsOf(shape), e.name);
    if (own !== undefined) return this.#field(own, place, isUnsure || shape.kind === 'union');
    if (shape.kind !== 'enum') return undefined;
    const meant = shape.variants.find((v) => v.name === e.name || pick(v.fields(), e.name));
    if (meant === undefined) return undefined;
    const variant = this.#variant(shape, place, textOf(e.of), meant);
    if (variant === undefined) return undefined;
    const inside = pick(variant.fields(), e.name);
    if (inside !== undefined) return this.#field(inside, place, isUnsure);
    if (variant.name === e.name) return { shape: variantShape(shape, variant), place, isUnsure };
    throw typeError(`${textOf(e.of)} is ${variant.name} now, which has no ${e.name}`);
  }

  #field(field: FieldShape, place: ObjectPlace, isUnsure: boolean | undefined): Operand {
    const shape = field.type();
    if (field.bits === undefined) return { shape, place: place.inside(field.offset), isUnsure };
    const { offset, size } = field.bits;
    if (!(size > 0 && size <= 64)) throw typeError(`${field.name} is said to have ${size} bits`);
    const length = Math.ceil((offset + size) / 8);
    const bytes = this.#reads.bytes(place.inside(field.offset), length, field.name, 'value', 0n);
    const bits = (littleEndian(bytes) >> BigInt(offset)) & ((1n << BigInt(size)) - 1n);
    return this.#made(shape, 'signed' in shape && shape.signed ? BigInt.asIntN(size, bits) : bits);
  }

  /** The variant that is present. `meant`: the one that the expression is about. */
  #variant(
    { discriminant, variants }: EnumShape,
    place: ObjectPlace,
    what: string,
    meant: VariantShape,
  ): VariantShape | undefined {
    if (discriminant === undefined) return variants.length === 1 ? variants[0] : undefined;
    const { offset, size } = discriminant;
    const plausible = meant.values?.[0]?.low ?? otherThan(variants);
    const value = littleEndian(this.#reads.bytes(place.inside(offset), size, what, 'discriminant', plausible));
    return selectVariant(variants, value);
  }

  #index(of: Operand, index: number, what: string): Operand {
    const list = this.#list(of, what);
    if (index < 0 && list.length !== undefined) throw typeError(`the index ${index} of ${what} is below 0`);
    if (list.length !== undefined && index >= list.length) {
      throw typeError(`the index ${index} of ${what} is beyond its length, ${list.length}`);
    }
    return { shape: list.element, place: list.placeOf(index) };
  }

  #range(of: Operand, from: number, to: number | undefined, what: string): Operand {
    const list = this.#list(of, what);
    const end = to ?? list.length;
    if (end === undefined) throw typeError(`${what} has no length: say where the range ends`);
    if (from < 0 || end < from || (list.length !== undefined && end > list.length)) {
      throw typeError(`the range ${from}..${end} of ${what} is beyond its length, ${list.length ?? 'unknown'}`);
    }
    if (!list.contiguous) throw typeError(`${what} does not lie in one piece: index its elements`);
    return { shape: arrayOf(list.element, end - from), place: list.placeOf(from) };
  }

  /** The object to index, found through pointers to it. */
  #list(of: Operand, what: string): List {
    const found = this.#reached(of, what, (at) => this.#reads.list(at, what));
    if (found !== undefined) return found;
    throw typeError(`${what} is a ${of.shape.name}, which has no elements`);
  }

  #cast(of: Operand, type: TypeExpr, what: string): Operand {
    const shape = typeShape(type, this.#scope);
    switch (shape.kind) {
      case 'pointer':
      case 'integer':
      case 'char':
      case 'bool':
        return this.#made(shape, this.#integer(of, what));
      default:
        throw typeError(`${what} cannot be cast to ${shape.name}: a cast leads to a pointer or a number`);
    }
  }
}

/** A discriminant of the variant of all other values. */
function otherThan(variants: readonly VariantShape[]): bigint {
  let found = 0n;
  for (const { high } of variants.flatMap(({ values = [] }) => values).toSorted((a, b) => (a.low < b.low ? -1 : 1)))
    if (selectVariant(variants, found)?.values !== undefined) found = high + 1n;
  return found;
}
