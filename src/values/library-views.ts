import { addOffset, addr } from '../base/addr.js';
import { ObjectPlace } from './object-place.js';
import type { ValueReading } from './reader.js';
import type { Shape, SharedView, View } from './shape.js';
import type { Value } from './value.js';

/** Reads a library type as its content. */
export function readView(reading: ValueReading, shape: Shape, view: View, place: ObjectPlace): Value {
  switch (view.kind) {
    case 'through':
      return reading.read(view.type(), place.inside(view.offset));
    case 'vec':
    case 'deque': {
      const pointer = reading.number(shape, place.inside(view.pointer));
      if (typeof pointer !== 'bigint') return pointer;
      const length = reading.length(shape, place.inside(view.length));
      if (typeof length !== 'number') return length;
      const at = addr(pointer);
      if (view.kind === 'vec') {
        if (view.text) return reading.text(shape, at, length);
        const read = (): Value => reading.sequence(shape, 'Vec', view.element(), ObjectPlace.memory(at), length);
        return reading.follow(shape, at, read);
      }
      return readDeque(reading, shape, view, place, { start: ObjectPlace.memory(at), length });
    }
    case 'shared':
      return readShared(reading, shape, view, place);
    case 'guarded':
      return readGuarded(reading, shape, view, place);
  }
}

/** The memory of a VecDeque, and how many elements it has. */
interface RingBuffer {
  readonly start: ObjectPlace;
  readonly length: number;
}

/** A ring: element i lies at (head + i) modulo the capacity. */
function readDeque(
  reading: ValueReading,
  shape: Shape,
  view: View & { kind: 'deque' },
  place: ObjectPlace,
  { start, length }: RingBuffer,
): Value {
  const element = view.element();
  if (element.size === undefined) return { kind: 'invalid', type: shape.name, reason: 'elements of unknown size' };
  const head = reading.length(shape, place.inside(view.head));
  if (typeof head !== 'number') return head;
  const capacity = reading.length(shape, place.inside(view.capacity));
  if (typeof capacity !== 'number') return capacity;
  const { size } = element;
  if (size > 0 && (length > capacity || (head >= capacity && capacity > 0))) {
    return { kind: 'invalid', type: shape.name, reason: `head ${head}, length ${length}, capacity ${capacity}` };
  }
  const placeOf = (i: number): ObjectPlace => start.inside(size === 0 ? 0 : ((head + i) % capacity) * size);
  const read = (): Value => reading.elements(shape, 'VecDeque', element, length, placeOf);
  const { address } = start;
  return address === undefined ? read() : reading.follow(shape, address, read);
}

const dangling = 0xffff_ffff_ffff_ffffn;
/** What a live pointer's strong count, read as a signed number, never exceeds. */
const mostShared = 1n << 62n;

function readShared(reading: ValueReading, shape: Shape, view: SharedView, place: ObjectPlace): Value {
  const type = shape.name;
  const pointer = reading.number(shape, place.inside(view.pointer));
  if (typeof pointer !== 'bigint') return pointer;
  const { name } = view;
  if (name === 'Weak' && pointer === dangling) return { kind: 'wrapper', type, name, facts: [], value: undefined };
  const at = addr(pointer);
  const strong = reading.number(shape, ObjectPlace.memory(addOffset(at, view.strong)));
  if (typeof strong !== 'bigint') return strong;
  const weak = reading.number(shape, ObjectPlace.memory(addOffset(at, view.weak)));
  if (typeof weak !== 'bigint') return weak;
  // All strong pointers together hold one weak count.
  const others = strong > 0n && weak > 0n ? weak - 1n : weak;
  const facts = [
    { name: 'strong', value: strong.toString() },
    { name: 'weak', value: others.toString() },
  ];
  if (strong > mostShared) return { kind: 'invalid', type, reason: `strong count 0x${strong.toString(16)}` };
  if (name === 'Weak' || strong === 0n) return { kind: 'wrapper', type, name, facts, value: undefined };
  const { target } = view;
  let value: Value | undefined;
  switch (target.kind) {
    case 'sized': {
      const inner = target.type();
      const where = addOffset(at, target.offset);
      value = reading.follow(inner, where, () => reading.read(inner, ObjectPlace.memory(where)));
      break;
    }
    case 'slice': {
      const length = reading.length(shape, place.inside(target.length));
      if (typeof length !== 'number') return length;
      const element = target.element();
      const where = addOffset(at, target.offset);
      value = target.text
        ? reading.text(shape, where, length)
        : reading.sequence(shape, '', element, ObjectPlace.memory(where), length);
      break;
    }
    case 'dyn': {
      const vtable = reading.number(shape, place.inside(target.vtable));
      if (typeof vtable !== 'bigint') return vtable;
      const concrete = reading.concrete(addr(vtable));
      // drop_in_place, size, align: the first three words of every vtable.
      const align = reading.number(shape, ObjectPlace.memory(addr(vtable + 16n)));
      if (concrete === undefined || typeof align !== 'bigint' || align > 1n << 29n) break;
      const where = addOffset(at, afterCounts(Number(align)));
      value = reading.follow(concrete, where, () => reading.read(concrete, ObjectPlace.memory(where)));
    }
  }
  return { kind: 'wrapper', type, name, facts, value };
}

/** The offset of the value behind two counts. */
function afterCounts(align: number): number {
  const by = Math.max(align, 1);
  return Math.ceil(16 / by) * by;
}

function readGuarded(reading: ValueReading, shape: Shape, view: View & { kind: 'guarded' }, place: ObjectPlace): Value {
  const facts: { name: string; value: string }[] = [];
  for (const { name, offset, size } of view.facts) {
    const found = reading.number(shape, place.inside(offset), size);
    if (typeof found !== 'bigint') return found;
    const count = BigInt.asIntN(64, found);
    if (name === 'locked' || name === 'poisoned') {
      if (count !== 0n) facts.push({ name, value: 'true' });
    } else if (name !== 'borrow') facts.push({ name, value: count.toString() });
    else if (count !== 0n) facts.push({ name: 'borrowed', value: count < 0n ? 'mut' : count.toString() });
  }
  const value = reading.read(view.type(), place.inside(view.offset));
  // A RefCell that is not borrowed is shown as its content.
  if (view.name === 'RefCell' && facts.length === 0) return value;
  return { kind: 'wrapper', type: shape.name, name: view.name, facts, value };
}
