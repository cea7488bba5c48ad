// Library types as their content: what `readView` makes of them, as text.
import { type Addr, addOffset } from '../../base/addr.js';
import { dangling, mostShared } from '../library-views.js';
import { invalidText, wrapperText } from '../print.js';
import type { Shape, SharedView, View } from '../shape.js';
import { byteText } from './byte-texts.js';
import { lostText } from './scalar-plans.js';
import type { TextPlan } from './text-plan.js';
import { found, type Spot, spotAt, type TextReading } from './text-reading.js';

const wordSize = 8;

/** Writes what one value holds. `undefined`: nothing of it was read. */
type Write = TextPlan['text'];

/** What the plans of other types give. */
export interface Plans {
  of(shape: Shape): TextPlan;
  sequence(owner: Shape, name: string, element: () => Shape): SequenceText;
}

/** Elements one behind the other, or where `place` says. */
export type SequenceText = (
  reading: TextReading,
  spot: Spot,
  offset: number,
  length: number,
  place?: (index: number) => number,
) => string | undefined;

/** How a library type is written. */
export function viewText(plans: Plans, shape: Shape, view: View): Write {
  switch (view.kind) {
    case 'through': {
      const type = once(() => plans.of(view.type()));
      return (reading, spot, offset) => reading.read(type(), spot, offset + view.offset);
    }
    case 'vec':
      return vecText(plans, shape, view);
    case 'deque':
      return dequeText(plans, shape, view);
    case 'shared':
      return sharedText(plans, shape, view);
    case 'guarded':
      return guardedText(plans, view);
  }
}

function vecText(plans: Plans, shape: Shape, view: View & { kind: 'vec' }): Write {
  const elements = plans.sequence(shape, 'Vec', view.element);
  return (reading, spot, offset) => {
    const how = reading.locate(spot, offset + view.pointer, wordSize);
    if (how !== found) return lostText(how);
    const at = reading.address();
    const length = lengthAt(reading, shape, spot, offset + view.length);
    if (typeof length !== 'number') return length?.text;
    if (view.text) return textAt(reading, at, length);
    return reading.follow(shape.name, at, () => elements(reading, spotAt(at), 0, length));
  };
}

function dequeText(plans: Plans, shape: Shape, view: View & { kind: 'deque' }): Write {
  const elements = plans.sequence(shape, 'VecDeque', view.element);
  return (reading, spot, offset) => {
    const how = reading.locate(spot, offset + view.pointer, wordSize);
    if (how !== found) return lostText(how);
    const at = reading.address();
    const length = lengthAt(reading, shape, spot, offset + view.length);
    if (typeof length !== 'number') return length?.text;
    const { size } = view.element();
    if (size === undefined) return invalidText(shape.name, 'elements of unknown size');
    const head = lengthAt(reading, shape, spot, offset + view.head);
    if (typeof head !== 'number') return head?.text;
    const capacity = lengthAt(reading, shape, spot, offset + view.capacity);
    if (typeof capacity !== 'number') return capacity?.text;
    if (size > 0 && (length > capacity || (head >= capacity && capacity > 0)))
      return invalidText(shape.name, `head ${head}, length ${length}, capacity ${capacity}`);
    const place = (i: number): number => (size === 0 ? 0 : ((head + i) % capacity) * size);
    return reading.follow(shape.name, at, () => elements(reading, spotAt(at), 0, length, place));
  };
}

function sharedText(plans: Plans, shape: Shape, view: SharedView): Write {
  const { name } = view;
  const inside = insideShared(plans, shape, view);
  return (reading, spot, offset) => {
    const how = reading.locate(spot, offset + view.pointer, wordSize);
    if (how !== found) return lostText(how);
    const at = reading.address();
    if (name === 'Weak' && at === dangling) return wrapperText(name, '', undefined);
    const [strongAt, weakAt] = [addOffset(at, view.strong), addOffset(at, view.weak)];
    const counted = reading.locate(spotAt(strongAt), 0, wordSize);
    if (counted !== found) return lostText(counted);
    const strong = reading.count();
    const strongWord = strong > mostExact ? reading.word() : undefined;
    const weakly = reading.locate(spotAt(weakAt), 0, wordSize);
    if (weakly !== found) return lostText(weakly);
    const weak = reading.count();
    const weakText = weak > mostExact ? weakFact(reading.word(), strong > 0) : weakFact(weak, strong > 0);
    if (strongWord !== undefined && strongWord > mostShared)
      return invalidText(shape.name, `strong count 0x${strongWord.toString(16)}`);
    const facts = `strong=${strongWord ?? strong}, weak=${weakText}`;
    if (name === 'Weak' || strong === 0) return wrapperText(name, facts, undefined);
    const value = inside(reading, spot, offset, at);
    return typeof value === 'object' ? value.instead : wrapperText(name, facts, value);
  };
}

const mostExact = Number.MAX_SAFE_INTEGER;

/** All strong pointers together hold one weak count. */
function weakFact(weak: number | bigint, isHeld: boolean): string {
  if (typeof weak === 'bigint') return String(isHeld ? weak - 1n : weak);
  return String(isHeld && weak > 0 ? weak - 1 : weak);
}

/** What is written in place of the whole. */
interface Instead {
  readonly instead: string | undefined;
}

/** What an `Rc` or `Arc` holds. */
function insideShared(
  plans: Plans,
  shape: Shape,
  { target }: SharedView,
): (reading: TextReading, spot: Spot, offset: number, at: Addr) => string | Instead | undefined {
  switch (target.kind) {
    case 'sized': {
      const type = once(() => plans.of(target.type()));
      return (reading, _spot, _offset, at) => {
        const where = addOffset(at, target.offset);
        const inner = type();
        return reading.follow(inner.name, where, () => reading.read(inner, spotAt(where), 0));
      };
    }
    case 'slice': {
      const elements = plans.sequence(shape, '', target.element);
      return (reading, spot, offset, at) => {
        const length = lengthAt(reading, shape, spot, offset + target.length);
        if (typeof length !== 'number') return { instead: length?.text };
        const where = addOffset(at, target.offset);
        return target.text ? textAt(reading, where, length) : elements(reading, spotAt(where), 0, length);
      };
    }
    case 'dyn':
      // Nobody says which type a vtable is for. Where it says how far the value lies is read all the same.
      return (reading, spot, offset) => {
        const how = reading.locate(spot, offset + target.vtable, wordSize);
        if (how !== found) return { instead: lostText(how) };
        reading.locate(spotAt(addOffset(reading.address(), alignInVtable)), 0, wordSize);
        return undefined;
      };
  }
}

function guardedText(plans: Plans, view: View & { kind: 'guarded' }): Write {
  const type = once(() => plans.of(view.type()));
  return (reading, spot, offset) => {
    let facts = '';
    for (const fact of view.facts) {
      const how = reading.locate(spot, offset + fact.offset, fact.size);
      if (how !== found) return lostText(how);
      const text = factText(reading, fact);
      if (text !== '') facts += `${facts === '' ? '' : ', '}${text}`;
    }
    const value = reading.read(type(), spot, offset + view.offset);
    return view.name === 'RefCell' && facts === '' ? value : wrapperText(view.name, facts, value);
  };
}

function factText({ data, at }: TextReading, { name, size }: { name: string; size: number }): string {
  const bytes = data.subarray(at, at + size);
  if (bytes.every((byte) => byte === 0)) return '';
  if (name !== 'borrow') return `${name}=true`;
  const isNegative = size === wordSize && (bytes[size - 1] as number) > 0x7f;
  return `borrowed=${isNegative ? 'mut' : String(unsigned(bytes))}`;
}

function unsigned(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i] as number);
  return value;
}

/** A length as the target keeps it, or the text that stands for what cannot be one. */
export function lengthAt(
  reading: TextReading,
  shape: Shape,
  spot: Spot,
  offset: number,
): number | { readonly text: string } | undefined {
  const how = reading.locate(spot, offset, wordSize);
  if (how !== found) {
    const text = lostText(how);
    return text === undefined ? undefined : { text };
  }
  const length = reading.count();
  return length > mostExact ? { text: invalidText(shape.name, `length 0x${reading.word().toString(16)}`) } : length;
}

/** A string of `length` bytes, of which at most the limit is read. */
export function textAt(reading: TextReading, address: Addr, length: number): string | undefined {
  const size = Math.min(length, reading.limits.text);
  const how = reading.locate(spotAt(address), 0, size);
  return how === found ? byteText(reading.data, reading.at, size, size < length) : lostText(how);
}

/** drop_in_place, size, align: the first three words of every vtable. */
const alignInVtable = 16;

/** What is worked out when it is first asked for: types hold pointers to themselves. */
export function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
