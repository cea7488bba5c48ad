// Types of Rust's standard library. A type is recognised by its path, and accepted only if its fields are the
// expected ones, because the layouts change from release to release. A type that looks different is an ordinary
// struct.
//
//   Vec<T>      { buf: RawVec { inner: { ptr: Unique { NonNull { *const u8 } }, cap } }, len }
//   VecDeque<T> { head, len, buf: RawVec }
//   Rc, Arc     { ptr: NonNull { *RcInner { strong, weak, value | data } } }

import { type Die, genericsOf, pathOf, sizeOf, stripGenerics } from '../dwarf/index.js';
import type { Shapes } from './program-shapes.js';
import { type FieldShape, type Shape, type SharedView, traitsOf, type View } from './shape.js';

const MAX_NESTING = 12;

const BOOL: Shape = { kind: 'bool', name: 'bool', size: 1, die: undefined };

/** Types that only wrap one of their members; the other members take no space. */
const THROUGH: Readonly<Record<string, readonly string[]>> = {
  'core::cell::Cell': ['value'],
  'core::cell::UnsafeCell': ['value'],
  'core::cell::SyncUnsafeCell': ['value'],
  'core::cell::once::OnceCell': ['inner'],
  'core::mem::manually_drop::ManuallyDrop': ['value'],
  'core::mem::maybe_dangling::MaybeDangling': ['__0'],
  'core::mem::maybe_uninit::MaybeUninit': ['value'],
  'core::num::nonzero::NonZero': ['__0'],
  'core::num::wrapping::Wrapping': ['__0'],
  'core::num::saturating::Saturating': ['__0'],
  'core::pin::Pin': ['pointer', '__pointer'],
  'core::ptr::non_null::NonNull': ['pointer'],
  'core::ptr::unique::Unique': ['pointer'],
  'core::sync::atomic::AtomicPtr': ['p'],
  'core::sync::exclusive::Exclusive': ['inner'],
};

/**
 * Locks, by the end of their path. The guarded value is in `data`; one of these members says whether the lock is
 * held.
 */
const LOCKS =
  /^(std::sync|spin|lock_api|parking_lot|critical_section|embassy_sync)::.*(Mutex|RwLock|SpinMutex|TicketMutex)$/;

/** How a struct or union is read; undefined if it is no library type, or not the known layout of one. */
export function viewOf(shapes: Shapes, die: Die, fields: readonly FieldShape[]): View | undefined {
  const path = stripGenerics(pathOf(die).join('::'));
  const member = (...names: readonly string[]): FieldShape | undefined => fields.find((f) => names.includes(f.name));
  const through = THROUGH[path] ?? (isPlainWrapper(path) ? ['v', '__0'] : undefined);
  if (through !== undefined) return viewThrough(fields, member(...through));
  switch (path) {
    // An atomic bool is kept as a u8, so its argument gives the type, and its field only shows that there is no
    // other.
    case 'core::sync::atomic::Atomic':
    case 'core::sync::atomic::AtomicBool': {
      const field = viewThrough(fields, member('v'));
      const type = path.endsWith('Bool') ? () => BOOL : elementOf(shapes, die);
      if (field?.kind !== 'through' || type === undefined || type().size !== sizeOf(die)) return undefined;
      return { kind: 'through', offset: field.offset, type };
    }
    case 'alloc::string::String': {
      const vec = member('vec');
      const inner = vec?.type();
      const view = inner?.kind === 'struct' ? inner.view() : undefined;
      if (vec?.offset !== 0 || view?.kind !== 'vec' || !isByte(view.element())) return undefined;
      return { ...view, text: true };
    }
    case 'alloc::vec::Vec': {
      const pointer = pointerIn(member('buf'));
      const length = wordIn(member('len'));
      const element = elementOf(shapes, die);
      if (pointer === undefined || length === undefined || element === undefined) return undefined;
      return { kind: 'vec', pointer: pointer.offset, length, element, text: false };
    }
    case 'alloc::collections::vec_deque::VecDeque': {
      const buffer = member('buf');
      const pointer = pointerIn(buffer);
      const capacity = wordIn(buffer && capacityIn(buffer));
      const length = wordIn(member('len'));
      const head = wordIn(member('head'));
      const element = elementOf(shapes, die);
      if (pointer === undefined || length === undefined || head === undefined) return undefined;
      if (capacity === undefined || element === undefined) return undefined;
      return { kind: 'deque', pointer: pointer.offset, length, head, capacity, element };
    }
    case 'alloc::rc::Rc':
      return sharedView('Rc', die, member('ptr'));
    case 'alloc::sync::Arc':
      return sharedView('Arc', die, member('ptr'));
    case 'alloc::rc::Weak':
    case 'alloc::sync::Weak':
      return sharedView('Weak', die, member('ptr'));
    case 'core::cell::RefCell': {
      const value = member('value');
      const borrow = member('borrow');
      const at = borrow && wordIn(borrow);
      if (value === undefined || at === undefined) return undefined;
      const facts = [{ name: 'borrow', offset: at, size: 8 }];
      return { kind: 'guarded', name: 'RefCell', offset: value.offset, type: value.type, facts };
    }
    default:
      return LOCKS.test(path) ? lockView(path, fields) : undefined;
  }
}

/** `AtomicU64` and the aligned cell inside newer ones, `NonZeroUsizeInner`, `UsizeNoHighBit`. */
function isPlainWrapper(path: string): boolean {
  return /^core::(sync::atomic::(Atomic[IU]\w+|private::Align\d+)|num::niche_types::\w+|num::nonzero::NonZero\w+)$/.test(
    path,
  );
}

function viewThrough(fields: readonly FieldShape[], field: FieldShape | undefined): View | undefined {
  if (field === undefined || field.bits !== undefined) return undefined;
  const alone = fields.every((f) => f === field || f.type().size === 0);
  return alone ? { kind: 'through', offset: field.offset, type: field.type } : undefined;
}

function lockView(path: string, fields: readonly FieldShape[]): View | undefined {
  const data = fields.find((f) => f.name === 'data') ?? fields.find((f) => f.name === 'inner');
  const type = data?.type();
  if (data === undefined || type === undefined) return undefined;
  // spin's Mutex is a struct around the lock that was chosen.
  const inner = type.kind === 'struct' ? type.view() : undefined;
  const name = path.slice(path.lastIndexOf(':') + 1);
  if (inner?.kind === 'guarded') return { ...inner, name, offset: data.offset + inner.offset };
  if (inner?.kind !== 'through') return undefined;
  const facts: { name: string; offset: number; size: number }[] = [];
  for (const field of fields) {
    const leaf = field === data ? undefined : scalarIn(field);
    if (leaf === undefined) continue;
    const shown =
      field.name === 'poison' ? 'poisoned' : ['inner', 'lock', 'raw'].includes(field.name) ? 'locked' : field.name;
    facts.push({ name: shown, offset: leaf.offset, size: leaf.size });
  }
  return { kind: 'guarded', name, offset: data.offset, type: data.type, facts };
}

function sharedView(name: SharedView['name'], die: Die, ptr: FieldShape | undefined): View | undefined {
  const found = pointerIn(ptr);
  const inner = found?.target?.();
  if (found === undefined || inner?.kind !== 'struct') return undefined;
  const strong = wordIn(inner.fields.find((f) => f.name === 'strong'));
  const weak = wordIn(inner.fields.find((f) => f.name === 'weak'));
  const value = inner.fields.find((f) => f.name === 'value' || f.name === 'data');
  if (strong === undefined || weak === undefined) return undefined;
  const base = { kind: 'shared', name, pointer: found.offset, strong, weak } as const;
  if (found.second === undefined) {
    if (value === undefined || inner.size === undefined) return undefined;
    return { ...base, target: { kind: 'sized', offset: value.offset, type: value.type } };
  }
  const argument = /<(.*)/s.exec(die.name ?? '')?.[1] ?? '';
  if (found.second.name === 'vtable') {
    const trait = traitsOf(argument);
    return trait === undefined ? undefined : { ...base, target: { kind: 'dyn', vtable: found.second.offset, trait } };
  }
  const text = /^str\b/.test(argument);
  // The first element lies at the place of the value.
  if (value === undefined || !(text || argument.startsWith('['))) return undefined;
  const { offset, type } = value;
  return { ...base, target: { kind: 'slice', length: found.second.offset, text, offset, element: type } };
}

interface FoundPointer {
  readonly offset: number;
  readonly target: (() => Shape | undefined) | undefined;
  /** For a pointer to an unsized value: the length or the vtable. */
  readonly second: { readonly name: 'length' | 'vtable'; readonly offset: number } | undefined;
}

/**
 * The one pointer in a struct of structs, apart from members of size 0, capacities and allocators. `without`: structs that
 * were found to have none, and those around, which a damaged type may hold again.
 */
function pointerIn(field: FieldShape | undefined, nesting = 0, without = new Set<Shape>()): FoundPointer | undefined {
  if (field === undefined || nesting > MAX_NESTING) return undefined;
  const shape = field.type();
  if (without.has(shape)) return undefined;
  if (shape.kind === 'pointer') return { offset: field.offset, target: shape.target, second: undefined };
  if (shape.kind !== 'struct') return undefined;
  const data = shape.fields.find((f) => f.name === 'data_ptr' || (f.name === 'pointer' && shape.fields.length === 2));
  const second = shape.fields.find((f) => f.name === 'length' || f.name === 'vtable');
  if (data !== undefined && second !== undefined && shape.fields.length === 2) {
    const pointer = data.type();
    if (pointer.kind !== 'pointer') return undefined;
    const name = second.name === 'vtable' ? 'vtable' : 'length';
    return {
      offset: field.offset + data.offset,
      target: pointer.target,
      second: { name, offset: field.offset + second.offset },
    };
  }
  let found: FoundPointer | undefined;
  without.add(shape);
  for (const inner of shape.fields) {
    if (inner.name === 'alloc' || inner.name === 'cap' || inner.type().size === 0) continue;
    const one = pointerIn({ ...inner, offset: field.offset + inner.offset }, nesting + 1, without);
    if (one === undefined) continue;
    if (found !== undefined) return undefined;
    found = one;
  }
  if (found !== undefined) without.delete(shape);
  return found;
}

function capacityIn(field: FieldShape, nesting = 0): FieldShape | undefined {
  const shape = field.type();
  if (shape.kind !== 'struct' || nesting > MAX_NESTING) return undefined;
  for (const inner of shape.fields) {
    const placed = { ...inner, offset: field.offset + inner.offset };
    if (inner.name === 'cap') return placed;
    if (inner.name === 'inner') return capacityIn(placed, nesting + 1);
  }
  return undefined;
}

/** Where the one integer in a member lies, or that which says what it does. */
function scalarIn(field: FieldShape, nesting = 0): { offset: number; size: number } | undefined {
  const shape = field.type();
  if (nesting > MAX_NESTING || field.bits !== undefined) return undefined;
  if ((shape.kind === 'integer' || shape.kind === 'bool') && shape.size !== undefined && shape.size <= 8) {
    return { offset: field.offset, size: shape.size };
  }
  if (shape.kind !== 'struct') return undefined;
  const solid = shape.fields.filter((f) => f.type().size !== 0);
  // Beside its state std's RwLock counts what wakes writers.
  const only = solid.length > 1 ? solid.find(({ name }) => name === 'state') : solid[0];
  return only && scalarIn({ ...only, offset: field.offset + only.offset }, nesting + 1);
}

function wordIn(field: FieldShape | undefined): number | undefined {
  const found = field && scalarIn(field);
  return found?.size === 8 ? found.offset : undefined;
}

function isByte(shape: Shape): boolean {
  return shape.kind === 'integer' && shape.size === 1 && !shape.signed;
}

/** The type of a collection's elements: its generic argument `T`. */
function elementOf(shapes: Shapes, die: Die): (() => Shape) | undefined {
  const type = genericsOf(die).get('T');
  return type && (() => shapes.of(type));
}
