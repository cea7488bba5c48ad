import { madeOnce } from '../base/made-once.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_ATE,
  DW_TAG,
  dimensionsOf,
  isAlias,
  layoutOf,
  type Member,
  pathOf,
  sizeOf,
  stripGenerics,
  typeName,
  type Variant,
  variantName,
} from '../dwarf/index.js';
import { viewOf } from './library-types.js';
import { type FieldShape, type Shape, type ShapeKind, traitsOf, type VariantShape } from './shape.js';
import type { PointerStyle } from './value.js';

const MAX_ALIASES = 32;

/** The shapes of a program's types, each computed on first use. */
export class Shapes {
  readonly debug: DebugInfo;
  readonly #byOffset = new Map<number, Shape>();

  constructor(debug: DebugInfo) {
    this.debug = debug;
  }

  /**
   * The shape of a type, behind typedefs and qualifiers. A missing type is `()`, because DWARF has no entry for it.
   * Throws `DWARF_DAMAGED`.
   */
  of(type: Die | undefined): Shape {
    let at = type;
    for (let hops = 0; at !== undefined && hops < MAX_ALIASES; hops++) {
      // A stand-in for a type in a type unit.
      const isElsewhere = at.has(DW_AT.signature);
      if (!isElsewhere && !isAlias(at)) break;
      at = at.follow(isElsewhere ? DW_AT.signature : DW_AT.type);
    }
    if (at === undefined) return UNIT;
    return madeOnce(this.#byOffset, at.offset, () => this.#read(at));
  }

  /** A pointer type as a cast makes it: `*const T`. */
  pointerTo(target: Shape, name = `*const ${target.name}`): Shape {
    return { kind: 'pointer', style: 'raw', target: () => target, name, size: 8, die: undefined };
  }

  #read(die: Die): Shape {
    const name = typeName(die);
    const declared = die.flag(DW_AT.declaration);
    const size = declared ? undefined : sizeOf(die);
    return { name, size: usable(size), die, ...(declared ? OPAQUE : this.#kind(die, name, size)) };
  }

  #kind(die: Die, name: string, size: number | undefined): ShapeKind {
    if (SCALARS.has(die.tag) && size !== undefined && size > WIDEST) return OPAQUE;
    switch (die.tag) {
      case DW_TAG.base_type:
        return baseKind(die, size);
      case DW_TAG.enumeration_type:
        return enumerationKind(die, size ?? 0);
      case DW_TAG.pointer_type:
      case DW_TAG.reference_type:
      case DW_TAG.rvalue_reference_type: {
        const target = die.follow(DW_AT.type);
        const style = target?.tag === DW_TAG.subroutine_type ? 'fn' : styleOf(name);
        return { kind: 'pointer', style, target: () => (target === undefined ? undefined : this.of(target)) };
      }
      case DW_TAG.array_type:
        return this.#array(die);
      case DW_TAG.structure_type:
      case DW_TAG.class_type:
      case DW_TAG.union_type:
        return this.#struct(die, name);
      default:
        return OPAQUE;
    }
  }

  // One shape per dimension: [[T; 3]; 2] is an array of two arrays of three.
  #array(die: Die): ShapeKind {
    const inner = (): Shape => this.of(die.follow(DW_AT.type));
    const [outer, ...rest] = dimensionsOf(die).slice(0, MAX_ALIASES);
    const element = rest.reduceRight<() => Shape>((below, count) => () => arrayOf(below(), count), inner);
    return { kind: 'array', element, count: usable(outer) };
  }

  #struct(die: Die, name: string): ShapeKind {
    const layout = layoutOf(die);
    const fields = layout.members.map((m) => this.#field(m));
    if (layout.variantPart !== undefined) {
      const { discriminant, variants } = layout.variantPart;
      const short = coroutineName(die) ?? '';
      return { kind: 'enum', short, discriminant, fields, variants: variants.map((v) => this.#variant(v)) };
    }
    const fat = fatPointer(name, fields);
    if (fat !== undefined) return fat;
    const short = shortName(die, name);
    const kind = die.tag === DW_TAG.union_type ? 'union' : 'struct';
    // A damaged type may hold itself: where it is asked for meanwhile, it has none.
    const view = once(() => viewOf(this, die, fields), undefined);
    return { kind, short, fields, view };
  }

  #field(member: Member, base = 0): FieldShape {
    const { type } = member;
    return {
      name: member.name ?? '',
      offset: base + member.offset,
      bits: member.bits,
      type: () => this.of(type),
    };
  }

  #variant(variant: Variant): VariantShape {
    return {
      name: variantName(variant) ?? '?',
      values: variant.values,
      // rustc wraps what a variant holds in a struct of the variant's name.
      fields: once(() =>
        variant.members.flatMap((m) =>
          m.type?.tag === DW_TAG.structure_type && variant.members.length === 1
            ? layoutOf(m.type).members.map((inner) => this.#field(inner, m.offset))
            : [this.#field(m)],
        ),
      ),
    };
  }
}

const UNIT: Shape = { kind: 'unit', name: '()', size: 0, die: undefined };
const OPAQUE: ShapeKind = { kind: 'opaque' };

/** Numbers, of which no compiler makes wider ones. */
const SCALARS: ReadonlySet<number> = new Set([
  ...[DW_TAG.base_type, DW_TAG.enumeration_type],
  ...[DW_TAG.pointer_type, DW_TAG.reference_type, DW_TAG.rvalue_reference_type],
]);
const WIDEST = 16;

/** A size or count within the limits of this program. */
function usable(size: number | undefined): number | undefined {
  return size !== undefined && size >= 0 && Number.isSafeInteger(size) ? size : undefined;
}

function baseKind(die: Die, size: number | undefined): ShapeKind {
  if (size === 0) return { kind: 'unit' };
  if (size === undefined) return OPAQUE;
  switch (die.number(DW_AT.encoding)) {
    case DW_ATE.boolean:
      return { kind: 'bool' };
    case DW_ATE.float:
      return size === 4 || size === 8 ? { kind: 'float' } : OPAQUE;
    case DW_ATE.UTF:
      return size === 4 ? { kind: 'char' } : { kind: 'integer', signed: false, character: false };
    case DW_ATE.signed:
      return { kind: 'integer', signed: true, character: false };
    case DW_ATE.signed_char:
      return { kind: 'integer', signed: true, character: size === 1 };
    case DW_ATE.unsigned:
    case DW_ATE.address:
      return { kind: 'integer', signed: false, character: false };
    case DW_ATE.unsigned_char:
      return { kind: 'integer', signed: false, character: size === 1 };
    default:
      return OPAQUE;
  }
}

function enumerationKind(die: Die, size: number): ShapeKind {
  const names = new Map<bigint, string>();
  let signed = false;
  for (const child of die.children()) {
    if (child.tag !== DW_TAG.enumerator) continue;
    const value = child.big(DW_AT.const_value);
    if (value === undefined) continue;
    if (value < 0n) signed = true;
    const bits = BigInt.asUintN(Math.min(size, 16) * 8, value);
    if (!names.has(bits)) names.set(bits, child.name ?? '?');
  }
  const encoding = die.follow(DW_AT.type)?.number(DW_AT.encoding);
  if (encoding !== undefined) signed = encoding === DW_ATE.signed || encoding === DW_ATE.signed_char;
  return { kind: 'enumeration', names, signed };
}

export function arrayOf(element: Shape, count: number | undefined): Shape {
  const size = count === undefined || element.size === undefined ? undefined : usable(count * element.size);
  const name = count === undefined ? `[${element.name}]` : `[${element.name}; ${count}]`;
  return { kind: 'array', element: () => element, count, name, size, die: undefined };
}

/** rustc names pointer types as Rust writes them; C's have no name. */
function styleOf(name: string): PointerStyle {
  if (name.startsWith('&mut ')) return 'mut';
  if (name.startsWith('&')) return 'ref';
  if (name.startsWith('alloc::boxed::Box<')) return 'box';
  return /^(unsafe )?(extern "[^"]*" )?fn\(/.test(name) ? 'fn' : 'raw';
}

const FAT = /^(?:&(?:mut )?|\*(?:const|mut) |alloc::boxed::Box<)(.*)$/s;

/** Two words that rustc names like a pointer: `&str` { data_ptr, length }, `Box<dyn Trait>` { pointer, vtable }. */
function fatPointer(name: string, fields: readonly FieldShape[]): ShapeKind | undefined {
  const pointee = FAT.exec(name)?.[1];
  if (pointee === undefined || fields.length !== 2) return undefined;
  const field = (wanted: string): FieldShape | undefined => fields.find((f) => f.name === wanted);
  const style = styleOf(name);
  const data = field('data_ptr');
  const length = field('length');
  if (data !== undefined && length?.type().kind === 'integer' && length.type().size === 8) {
    const pointer = data.type();
    if (pointer.kind !== 'pointer' || pointer.size !== 8) return undefined;
    const text = /^str\b/.test(pointee);
    if (!text && !pointee.startsWith('[')) return undefined;
    const element = (): Shape => pointer.target() ?? UNIT;
    return { kind: 'slice', style, fields, pointer: data.offset, length: length.offset, text, element };
  }
  const object = field('pointer');
  const vtable = field('vtable');
  const trait = traitsOf(pointee);
  if (object === undefined || vtable === undefined || trait === undefined) return undefined;
  if (object.type().size !== 8 || vtable.type().size !== 8) return undefined;
  return { kind: 'dyn', style, fields, pointer: object.offset, vtable: vtable.offset, trait };
}

/** The name that Rust's Debug writes: the last part of the path, without generic arguments. Tuples have none. */
function shortName(die: Die, name: string): string {
  if (name.startsWith('(')) return '';
  return coroutineName(die) ?? (die.name === undefined ? '' : stripGenerics(die.name));
}

/** `level3` for the environment of `async fn level3`, `spawn_all::{closure#0}` for a closure's. */
function coroutineName(die: Die): string | undefined {
  const own = /^\{(\w+)_env(#\d+)\}/.exec(die.name ?? '');
  if (own === null) return undefined;
  const path = pathOf(die).slice(0, -1).map(stripGenerics);
  const around = path.filter((part) => !/^\{async_(fn|closure)#\d+\}$/.test(part));
  const named = around.findLastIndex((part) => !part.startsWith('{'));
  const place = around.slice(Math.max(named, 0));
  if (own[1] !== 'async_fn' && own[1] !== 'async_closure') place.push(`{${own[1]}${own[2]}}`);
  return place.join('::');
}

/** `meanwhile`: what is given while it is worked out. */
function once<T>(work: () => T, ...meanwhile: readonly T[]): () => T {
  let done: readonly T[] = [];
  return () => {
    if (done.length === 0) {
      done = meanwhile;
      done = [work()];
    }
    return done[0] as T;
  };
}
