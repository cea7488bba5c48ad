import { type Addr, addOffset, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { Die } from '../dwarf/index.js';
import { DW_AT, littleEndian, through } from '../dwarf/index.js';
import { type MemberExpr, type TypeExpr, textOf, typeText } from './member-expr.js';
import {
  fieldsOf,
  isList,
  type List,
  pick,
  primitive,
  row,
  sizeOrThrow,
  typeError,
  variantShape,
  WORD,
} from './member-expr-shapes.js';
import { ObjectPlace } from './object-place.js';
import type { ProgramNames } from './program-names.js';
import { arrayOf, type Shapes } from './program-shapes.js';
import { fieldName, wordBytes } from './reader.js';
import type { FieldShape, Shape, VariantShape } from './shape.js';
import { type FrameAccess, placeOf, variablesAt } from './variables.js';

/** The meaning of an expression: an object of the target, or a computed value. */
export interface Operand {
  readonly shape: Shape;
  readonly place: ObjectPlace;
}

/** The meaning of names in an expression. */
export interface ExpressionScope {
  readonly shapes: Shapes;
  readonly names: ProgramNames;
  readonly memory: MemoryReader;
  /** Finds locals and parameters; without it there are statics only. */
  readonly frame?: FrameAccess;
  /** Names that come before all others: a function's arguments at its entry. */
  readonly own?: (name: string) => Operand | undefined;
}

/**
 * Finds the object that an expression names: its place and its type. Fields are found through references, `Box`,
 * `Rc`, `Arc`, `Pin` and cells, as in Rust's auto-dereference, and in the present variant of an enum. Indices work on
 * arrays, slices, `Vec`, `VecDeque` and pointers. Throws `EXPRESSION_NAME` (no such variable or type),
 * `EXPRESSION_TYPE` (the types do not fit), `EXPRESSION_MEMORY` (memory on the way cannot be read),
 * `EXPRESSION_OPTIMIZED_OUT`.
 */
export function evaluateMemberExpr(expression: MemberExpr, scope: ExpressionScope): Promise<Operand> {
  return new Evaluator(scope).eval(expression);
}

const MAX_STEPS = 16;

class Evaluator {
  readonly #scope: ExpressionScope;

  constructor(scope: ExpressionScope) {
    this.#scope = scope;
  }

  async eval(e: MemberExpr): Promise<Operand> {
    switch (e.kind) {
      case 'number':
        return this.#number(e.value);
      case 'path':
        return this.#variable(e.path);
      case 'deref':
        return this.#deref(await this.eval(e.of));
      case 'address': {
        const { shape, place } = await this.eval(e.of);
        if (place.address === undefined) throw typeError(`${textOf(e.of)} has no address: it does not lie in memory`);
        return this.#pointer(place.address, shape, `&${shape.name}`);
      }
      case 'negate': {
        const of = await this.eval(e.of);
        return this.#made(of.shape, -(await this.#integer(of, textOf(e.of))));
      }
      case 'member':
        return this.#member(await this.eval(e.of), e);
      case 'index':
        return this.#index(await this.eval(e.of), await this.#whole(e.index), textOf(e.of));
      case 'range': {
        const of = await this.eval(e.of);
        const from = e.from === undefined ? 0 : await this.#whole(e.from);
        return this.#range(of, from, e.to === undefined ? undefined : await this.#whole(e.to), textOf(e.of));
      }
      case 'cast':
        return this.#cast(await this.eval(e.of), e.type, textOf(e.of));
    }
  }

  #number(value: bigint): Operand {
    const shape: Shape = {
      ...{ kind: 'integer', signed: true, character: false },
      ...{ name: 'i128', size: 16, die: undefined },
    };
    return { shape, place: ObjectPlace.bytes(wordBytes(value, 16)) };
  }

  #made(shape: Shape, value: bigint): Operand {
    return { shape, place: ObjectPlace.bytes(wordBytes(value, shape.size ?? WORD)) };
  }

  #pointer(address: Addr, target: Shape, name?: string): Operand {
    return this.#made(this.#scope.shapes.pointerTo(target, name), address);
  }

  async #variable(path: string): Promise<Operand> {
    const { frame, names, memory, shapes, own } = this.#scope;
    const first = own?.(path);
    if (first !== undefined) return first;
    if (frame !== undefined && !path.includes('::')) {
      const local = variablesAt(shapes.debug, frame.pc).find((v) => v.name === path);
      if (local !== undefined) {
        const place = await placeOf(local, frame, memory);
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
      const all = names.statics(path).map((n) => n.name);
      throw new RsptraceError('EXPRESSION_NAME', `${path} is the end of several names: ${all.slice(0, 8).join(', ')}`, {
        hint: 'give more of the path',
      });
    }
    const place = await placeOf({ die: found.die }, frame, memory);
    if (place === undefined) throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', `${path} has no place in memory`);
    return { shape: shapes.of(typeOf(found.die)), place };
  }

  async #bytes(place: ObjectPlace, size: number, what: string): Promise<Uint8Array> {
    const found = await place.read(this.#scope.memory, size);
    if (found instanceof Uint8Array) return found;
    if (found.missing === 'optimized-out')
      throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', `${what} is optimized out`);
    throw new RsptraceError('EXPRESSION_MEMORY', `${what} cannot be read at 0x${found.address.toString(16)}`);
  }

  async #word(place: ObjectPlace, what: string): Promise<bigint> {
    return littleEndian(await this.#bytes(place, WORD, what));
  }

  /** The value of an integer, enum, char, bool or pointer. */
  async #integer({ shape, place }: Operand, what: string): Promise<bigint> {
    switch (shape.kind) {
      case 'integer':
      case 'enumeration':
      case 'char':
      case 'bool':
      case 'pointer': {
        const bits = littleEndian(await this.#bytes(place, shape.size ?? WORD, what));
        return 'signed' in shape && shape.signed ? BigInt.asIntN((shape.size ?? WORD) * 8, bits) : bits;
      }
      case 'slice':
      case 'dyn':
        return this.#word(place.inside(shape.pointer), what);
      case 'struct':
      case 'union': {
        const view = shape.view();
        if (view?.kind === 'through') {
          return this.#integer({ shape: view.type(), place: place.inside(view.offset) }, what);
        }
        if (view?.kind === 'shared') return this.#word(place.inside(view.pointer), what);
      }
    }
    throw typeError(`${what} is a ${shape.name}, not a number or pointer`);
  }

  async #whole(e: MemberExpr): Promise<number> {
    const value = await this.#integer(await this.eval(e), textOf(e));
    if (value < BigInt(Number.MIN_SAFE_INTEGER) || value > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw typeError(`the index ${value} is out of all bounds`);
    }
    return Number(value);
  }

  /** One step through a pointer or a wrapper type; undefined if there is none. */
  async #step({ shape, place }: Operand, what: string): Promise<Operand | undefined> {
    switch (shape.kind) {
      case 'pointer': {
        const target = shape.target();
        if (target === undefined || shape.style === 'fn') return undefined;
        return { shape: target, place: ObjectPlace.memory(addr(await this.#word(place, what))) };
      }
      case 'dyn': {
        const die = this.#scope.names.concrete(addr(await this.#word(place.inside(shape.vtable), what)));
        if (die === undefined) return undefined;
        const address = addr(await this.#word(place.inside(shape.pointer), what));
        return { shape: this.#scope.shapes.of(die), place: ObjectPlace.memory(address) };
      }
      case 'struct':
      case 'union': {
        const view = shape.view();
        if (view?.kind === 'through' || view?.kind === 'guarded') {
          return { shape: view.type(), place: place.inside(view.offset) };
        }
        if (view?.kind !== 'shared') return undefined;
        const address = addr(await this.#word(place.inside(view.pointer), what));
        const { target } = view;
        if (target.kind !== 'sized') return undefined;
        return { shape: target.type(), place: ObjectPlace.memory(addOffset(address, target.offset)) };
      }
      default:
        return undefined;
    }
  }

  async #deref(of: Operand): Promise<Operand> {
    let at: Operand | undefined = of;
    for (let steps = 0; at !== undefined && steps < MAX_STEPS; steps++) {
      const transparent: boolean = at.shape.kind === 'struct' && at.shape.view()?.kind === 'through';
      const next: Operand | undefined = await this.#step(at, `what the ${at.shape.name} points to`);
      // For Pin<&mut T> and NonNull<T> the pointer inside is used.
      if (!transparent && next !== undefined) return next;
      at = next;
    }
    throw typeError(`a ${of.shape.name} cannot be dereferenced`);
  }

  async #member(of: Operand, e: MemberExpr & { kind: 'member' }): Promise<Operand> {
    let at: Operand | undefined = of;
    for (let steps = 0; at !== undefined && steps < MAX_STEPS; steps++) {
      const found = await this.#ownMember(at, e);
      if (found !== undefined) return found;
      at = await this.#step(at, textOf(e.of));
    }
    const names = fieldsOf(of.shape).map((f) => fieldName(f.name));
    throw typeError(`${textOf(e.of)}, a ${of.shape.name}, has no member ${e.name}`, names);
  }

  async #ownMember({ shape, place }: Operand, e: MemberExpr & { kind: 'member' }): Promise<Operand | undefined> {
    const own = pick(fieldsOf(shape), e.name);
    if (own !== undefined) return this.#field(own, place);
    if (shape.kind !== 'enum') return undefined;
    const variant = await this.#variant(shape, place, textOf(e.of));
    if (variant === undefined) return undefined;
    const inside = pick(variant.fields(), e.name);
    if (inside !== undefined) return this.#field(inside, place);
    if (variant.name === e.name) return { shape: variantShape(shape, variant), place };
    if (!shape.variants.some((v) => v.name === e.name || pick(v.fields(), e.name))) return undefined;
    throw typeError(`${textOf(e.of)} is ${variant.name} now, which has no ${e.name}`);
  }

  async #field(field: FieldShape, place: ObjectPlace): Promise<Operand> {
    const shape = field.type();
    if (field.bits === undefined) return { shape, place: place.inside(field.offset) };
    const { offset, size } = field.bits;
    const bytes = await this.#bytes(place.inside(field.offset), Math.ceil((offset + size) / 8), field.name);
    const bits = (littleEndian(bytes) >> BigInt(offset)) & ((1n << BigInt(size)) - 1n);
    return this.#made(shape, 'signed' in shape && shape.signed ? BigInt.asIntN(size, bits) : bits);
  }

  async #variant(shape: Shape & { kind: 'enum' }, place: ObjectPlace, what: string): Promise<VariantShape | undefined> {
    const { discriminant, variants } = shape;
    if (discriminant === undefined) return variants.length === 1 ? variants[0] : undefined;
    const value = littleEndian(await this.#bytes(place.inside(discriminant.offset), discriminant.size, what));
    return (
      variants.find((v) => v.values?.some((r) => value >= r.low && value <= r.high)) ??
      variants.find((v) => v.values === undefined)
    );
  }

  async #index(of: Operand, index: number, what: string): Promise<Operand> {
    const list = await this.#list(of, what);
    if (index < 0 && list.length !== undefined) throw typeError(`the index ${index} of ${what} is below 0`);
    if (list.length !== undefined && index >= list.length) {
      throw typeError(`the index ${index} of ${what} is beyond its length, ${list.length}`);
    }
    return { shape: list.element, place: list.placeOf(index) };
  }

  async #range(of: Operand, from: number, to: number | undefined, what: string): Promise<Operand> {
    const list = await this.#list(of, what);
    const end = to ?? list.length;
    if (end === undefined) throw typeError(`${what} has no length: say where the range ends`);
    if (from < 0 || end < from || (list.length !== undefined && end > list.length)) {
      throw typeError(`the range ${from}..${end} of ${what} is beyond its length, ${list.length ?? 'unknown'}`);
    }
    if (!list.contiguous) throw typeError(`${what} does not lie in one piece: index its elements`);
    return { shape: arrayOf(list.element, end - from), place: list.placeOf(from) };
  }

  /** The object to index, found through pointers to it. */
  async #list(of: Operand, what: string): Promise<List> {
    let at: Operand | undefined = of;
    for (let steps = 0; at !== undefined && steps < MAX_STEPS; steps++) {
      const found = await this.#ownList(at, what);
      if (found !== undefined) return found;
      at = await this.#step(at, what);
    }
    throw typeError(`${what} is a ${of.shape.name}, which has no elements`);
  }

  async #ownList({ shape, place }: Operand, what: string): Promise<List | undefined> {
    if (shape.kind === 'array') return row(shape.element(), place, shape.count);
    if (shape.kind === 'slice') {
      const data = ObjectPlace.memory(addr(await this.#word(place.inside(shape.pointer), what)));
      return row(shape.element(), data, Number(await this.#word(place.inside(shape.length), what)));
    }
    if (shape.kind === 'pointer' && shape.style !== 'fn') {
      const target = shape.target();
      // A pointer to an array or collection is indexed like that array; any other pointer as in C.
      if (target === undefined || (target.kind !== 'integer' && shape.style !== 'raw')) return undefined;
      if (isList(target)) return undefined;
      return row(target, ObjectPlace.memory(addr(await this.#word(place, what))), undefined);
    }
    const view = shape.kind === 'struct' ? shape.view() : undefined;
    if (view?.kind !== 'vec' && view?.kind !== 'deque') return undefined;
    const data = ObjectPlace.memory(addr(await this.#word(place.inside(view.pointer), what)));
    const length = Number(await this.#word(place.inside(view.length), what));
    const element = view.element();
    if (view.kind === 'vec') return row(element, data, length);
    const head = Number(await this.#word(place.inside(view.head), what));
    const capacity = Number(await this.#word(place.inside(view.capacity), what));
    const size = sizeOrThrow(element);
    const placeOf = (i: number): ObjectPlace => data.inside(capacity === 0 ? 0 : ((head + i) % capacity) * size);
    return { element, length, contiguous: false, placeOf };
  }

  async #cast(of: Operand, type: TypeExpr, what: string): Promise<Operand> {
    const shape = this.#typeShape(type);
    switch (shape.kind) {
      case 'pointer':
      case 'integer':
      case 'char':
      case 'bool':
        return this.#made(shape, await this.#integer(of, what));
      default:
        throw typeError(`${what} cannot be cast to ${shape.name}: a cast leads to a pointer or a number`);
    }
  }

  #typeShape(type: TypeExpr): Shape {
    switch (type.kind) {
      case 'pointer': {
        // A pointer to an unsized type is two words. The program must have that pointer type, or the cast is of no
        // use.
        const fat = type.to.kind === 'array' ? type.to.count === undefined : isUnsized(type.to);
        if (fat) return this.#named(typeText(type));
        return this.#scope.shapes.pointerTo(this.#typeShape(type.to));
      }
      case 'array':
        return arrayOf(this.#typeShape(type.of), type.count);
      case 'named':
        return primitive(type.name) ?? this.#named(type.name);
    }
  }

  #named(name: string): Shape {
    const { names, shapes } = this.#scope;
    const found = names.types(name);
    const die = found[0]?.die;
    if (die === undefined) {
      const like = names.typesLike(name, 3);
      throw new RsptraceError('EXPRESSION_NAME', `there is no type ${name}`, {
        ...(like.length > 0 ? { hint: `did you mean ${like.join(' or ')}?` } : {}),
      });
    }
    const paths = new Set(found.map((f) => f.name));
    if (paths.size > 1) {
      const some = [...paths].slice(0, 8).join(', ');
      throw new RsptraceError('EXPRESSION_NAME', `${name} is the end of several names: ${some}`, {
        hint: 'give more of the path, or the generic arguments',
      });
    }
    return shapes.of(die);
  }
}

function isUnsized(type: TypeExpr): boolean {
  return type.kind === 'named' && (type.name === 'str' || type.name.startsWith('dyn '));
}

function typeOf(variable: Die): Die | undefined {
  return through(variable, (d) => d.follow(DW_AT.type));
}
