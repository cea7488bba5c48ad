// What a trampoline records of the values that arguments lead to. A stop reads them step by step, and needs no plan.
import { madeOnce } from '../base/made-once.js';
import type { EnumShape, FieldShape, Shape, SharedView, VariantShape } from '../values/index.js';
import type { ValuePlace } from './argument-places.js';
import { type PlannedPointer, pointerAt } from './expressions/plan.js';
import { loadsOf, type PlannedExtent, type PlannedReads } from './read-plan.js';

/** How much of a value is shown: the same with and without stops, as far as a record has room. */
export const shownLimits = { depth: 5, elements: 6, text: 48, values: 32, object: 128, bytes: 1024 } as const;

/** References that are followed from an argument. */
const mostHops = 2;
const wordBytes = 8;
/** Types nest deeper than this only in damaged files. */
const deepest = 16;

/** A part of the value lies in memory that a reference, a slice or a collection leads to. */
export function leadsToMemory(shape: Shape, depth = 0): boolean {
  if (depth > deepest) return false;
  switch (shape.kind) {
    case 'pointer':
      return isReference(shape.style) && shape.target()?.size !== undefined;
    case 'slice':
    case 'dyn':
      return isReference(shape.style);
    case 'union':
      return false;
    case 'struct': {
      const view = shape.view();
      if (view !== undefined && view.kind !== 'through' && view.kind !== 'guarded') return true;
    }
  }
  return partsOf(shape).some((part) => leadsToMemory(part, depth + 1));
}

/**
 * Types of libraries that stand for registers of a device: vcell, volatile, volatile-register, tock-registers,
 * virtio-drivers, and kernels' own.
 */
const registers = /(?:^|::)(?:Volatile|VolatileCell|Mmio)(?:<|$)|^(?:volatile_register|tock_registers)::|::volatile::/;
const devices = new WeakMap<Shape, boolean>();

/**
 * Whether a register of a device may be among what is read of such a value. Reading it may change it: a serial port
 * then loses what it has received.
 */
export function leadsToDevice(shape: Shape): boolean {
  return madeOnce(devices, shape, () => {
    let level: ReadonlySet<Shape> = new Set([shape]);
    const seen = new Set<Shape>();
    for (let depth = 0; depth < shownLimits.depth && level.size > 0; depth++) {
      for (const one of level) {
        if (registers.test(one.name)) return true;
        seen.add(one);
      }
      level = new Set([...level].flatMap(nextTo).filter((one) => !seen.has(one)));
    }
    return false;
  });
}

/** The types of its parts, and those that it leads to. */
function nextTo(shape: Shape): readonly Shape[] {
  if (shape.kind === 'slice') return isReference(shape.style) ? [shape.element()] : [];
  if (shape.kind === 'pointer') {
    const target = isReference(shape.style) ? shape.target() : undefined;
    return target ? [target] : [];
  }
  const view = shape.kind === 'struct' ? shape.view() : undefined;
  const at = view?.kind === 'shared' ? view.target : view;
  return at === undefined ? partsOf(shape) : 'element' in at ? [at.element()] : 'type' in at ? [at.type()] : [];
}

/** Reads for the values of one function, as long as a record has room for them. */
export class ValueReads {
  readonly reads: PlannedReads[] = [];
  readonly extents: PlannedExtent[] = [];
  #room: number;

  /** `room`: bytes of the record. */
  constructor(room: number) {
    this.#room = room;
  }

  add(where: ValuePlace, shape: Shape | undefined): void {
    if (shape === undefined || where.kind === 'unavailable') return;
    if (where.kind === 'registers') this.#follow(shape, where, 0, 0);
    else this.#object(shape, { register: where.register, through: [] }, 0);
  }

  /** The same without what a pointer leads to: a record of a return has room for a text or a slice. */
  addRegisters(where: ValuePlace, shape: Shape): void {
    if (where.kind === 'registers' && shape.kind === 'slice') this.#follow(shape, where, 0, 0);
  }

  /** An object as a whole, and what it leads to. */
  #object(shape: Shape, pointer: PlannedPointer, hops: number): void {
    const align = leadsToDevice(shape) ? undefined : alignmentOf(shape);
    if (align === undefined || !this.#load(pointer, shape.size ?? 0, align, hops)) return;
    this.#follow(shape, { kind: 'object', ...pointer }, 0, hops);
  }

  /** False if the record has no room for it. */
  #load({ register, through }: PlannedPointer, size: number, align: NonNullable<Align>, hops: number): boolean {
    if (size === 0 || size > shownLimits.object || size > this.#room || hops > mostHops) return false;
    this.#room -= size;
    this.reads.push({ pointer: register, through, align, size, loads: loadsOf(0, size, align) });
    return true;
  }

  /** What a value at an offset leads to. Most variants are left out: only the target says whether they are there. */
  #follow(shape: Shape, at: Region, offset: number, hops: number, depth = 0): void {
    if (depth > deepest) return;
    switch (shape.kind) {
      case 'pointer': {
        const target = isReference(shape.style) ? shape.target() : undefined;
        const pointer = target && pointerAt(at, offset);
        if (target && typeof pointer === 'object') this.#object(target, pointer, hops + 1);
        return;
      }
      case 'slice':
        if (isReference(shape.style) && !leadsToDevice(shape.element()))
          this.#extent(at, offset + shape.pointer, offset + shape.length, shape.text ? 1 : shape.element().size);
        return;
      case 'struct': {
        const view = shape.view();
        if (view?.kind === 'through') this.#follow(view.type(), at, offset + view.offset, hops, depth + 1);
        else if (view?.kind === 'vec')
          this.#extent(at, offset + view.pointer, offset + view.length, view.text ? 1 : view.element().size);
        else if (view?.kind === 'shared') this.#shared(view, at, offset, hops);
        else if (view === undefined)
          for (const field of shape.fields) this.#follow(field.type(), at, offset + field.offset, hops, depth + 1);
        return;
      }
      case 'enum':
        for (const { offset: from, type } of behindNiche(shape))
          this.#follow(type(), at, offset + from, hops, depth + 1);
    }
  }

  /** The counts and the value of an `Rc` or `Arc`. A `Weak` that leads nowhere is misaligned. */
  #shared({ pointer, strong, weak, target }: SharedView, at: Region, offset: number, hops: number): void {
    if (target.kind !== 'sized') return;
    const found = pointerAt(at, offset + pointer);
    const size = Math.max(strong + wordBytes, weak + wordBytes, target.offset + (target.type().size ?? 0));
    if (typeof found !== 'object') return;
    if (this.#load(found, size, wordBytes, hops + 1))
      this.#follow(target.type(), { kind: 'object', ...found }, target.offset, hops + 1);
  }

  #extent(at: Region, pointer: number, count: number, element: number | undefined): void {
    const shift = Math.log2(element ?? 0);
    if (!Number.isInteger(shift)) return;
    const bytes = shift === 0 ? shownLimits.text : shownLimits.elements * 2 ** shift;
    const taken = extentWords(bytes) * wordBytes;
    if (taken > this.#room) return;
    const words = at.kind === 'registers' ? inRegisters(at, pointer, count) : inObject(at, pointer, count);
    if (words === undefined) return;
    this.#room -= taken;
    this.extents.push({ ...words, shift, bytes });
  }
}

/** `Option<&T>`: where its pointer is null there is nothing, and a trampoline follows no null pointer. */
function behindNiche({ discriminant, fields, variants }: EnumShape): readonly FieldShape[] {
  const [one, ...others] = variants.filter((each) => each.fields().some((field) => field.type().size !== 0));
  if (discriminant?.size !== wordBytes || !one || others.length > 0 || fields.length > 0) return [];
  const isNull = (variant: VariantShape): boolean =>
    variant.values?.every(({ low, high }) => low === 0n && high === 0n) ?? false;
  if (!variants.every((variant) => variant === one || isNull(variant))) return [];
  return one.fields().filter(({ offset, type }) => {
    const shape = type();
    const pointer = shape.kind === 'slice' ? shape.pointer : shape.kind === 'pointer' ? 0 : undefined;
    return pointer !== undefined && offset + pointer === discriminant.offset;
  });
}

type Region = (ValuePlace & { readonly kind: 'registers' }) | ({ readonly kind: 'object' } & PlannedPointer);

/** Whole words that so many bytes may lie in. */
export function extentWords(bytes: number): number {
  return Math.ceil(bytes / wordBytes) + 1;
}

function inRegisters(
  { parts }: Region & { kind: 'registers' },
  pointer: number,
  count: number,
): Pick<PlannedExtent, 'pointer' | 'count'> | undefined {
  const [one, other] = [pointer, count].map((offset) =>
    parts.find((part) => part.offset === offset && part.size === wordBytes),
  );
  if (one?.register === undefined || other?.register === undefined) return undefined;
  if (one.mask !== undefined || other.mask !== undefined) return undefined;
  return { pointer: { register: one.register }, count: { register: other.register } };
}

function inObject(
  { register, through }: PlannedPointer,
  pointer: number,
  count: number,
): Pick<PlannedExtent, 'pointer' | 'count'> | undefined {
  if (pointer % wordBytes !== 0 || count % wordBytes !== 0) return undefined;
  const behind = (offset: number) => ({ register, behind: { through, offset } });
  return { pointer: behind(pointer), count: behind(count) };
}

function isReference(style: string): boolean {
  return style === 'ref' || style === 'mut' || style === 'box';
}

type Align = 1 | 2 | 4 | 8 | undefined;

const known = new WeakMap<Shape, Align>();

/** What a pointer to such an object is a multiple of, up to a word; undefined if that is not known. */
function alignmentOf(shape: Shape, depth = 0): Align {
  if (depth > deepest) return undefined;
  if (!known.has(shape)) {
    // Meanwhile, for a type that holds itself.
    known.set(shape, undefined);
    const parts = partsOf(shape).map((part) => alignmentOf(part, depth + 1));
    known.set(shape, alignOf(shape, parts));
  }
  return known.get(shape);
}

/** The types that lie in an object of this one. */
function partsOf(shape: Shape): Shape[] {
  switch (shape.kind) {
    case 'array':
      return [shape.element()];
    case 'struct':
    case 'union':
      return shape.fields.map((field) => field.type());
    case 'enum':
      return [...shape.fields, ...shape.variants.flatMap((each) => each.fields())].map((field) => field.type());
    default:
      return [];
  }
}

function alignOf(shape: Shape, parts: readonly Align[]): Align {
  const most = parts.includes(undefined) ? undefined : (Math.max(1, ...(parts as number[])) as Align);
  switch (shape.kind) {
    case 'unit':
      return 1;
    case 'pointer':
    case 'slice':
    case 'dyn':
      return wordBytes;
    case 'array':
      return most;
    case 'struct':
    case 'union':
      return aligned(shape, most);
    case 'enum':
      return aligned(shape, most && (Math.min(wordBytes, Math.max(most, shape.discriminant?.size ?? 1)) as Align));
    case 'opaque':
      return undefined;
    default: {
      const { size = 0 } = shape;
      return size >= wordBytes ? wordBytes : size === 1 || size === 2 || size === 4 ? size : undefined;
    }
  }
}

/** A packed struct's size or offsets show that it is none. */
function aligned(shape: Shape, align: Align): Align {
  return align === undefined || (shape.size ?? 0) % align === 0 ? align : 1;
}
