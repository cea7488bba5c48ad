import { type Die, DW_AT, DW_TAG, layoutOf, type Member, qualifiedName, sizeOf, typeName } from '../../dwarf/index.js';
import type { BoxedFuture, FutureType } from './types.js';

/** The Future that a type's DIE stands for. */
export type FutureOfType = (type: Die) => FutureType | undefined;

/** Where the words of a pointer lie in a type that is only a pointer. Offsets count from the type's start. */
interface PointerWords {
  readonly pointer: number;
  /** For `dyn Trait`: the place of the vtable's address. */
  readonly vtable: number | undefined;
  /** For `[T]`: the place of the number of elements. */
  readonly length: number | undefined;
  /** The target type; for a slice its element. Undefined if DWARF does not say. */
  readonly target: Die | undefined;
}

const MAX_WRAPPERS = 8;

/**
 * The pointer that a type is, also inside `Pin`. A thin `Box` is a pointer type (or, with an allocator, a struct
 * around one). A pointer to `dyn Trait` or to `[T]` is a struct of two words.
 *
 *   Pin<Box<dyn Future>> { pointer: Box<dyn Future> { pointer @0, vtable @8 } }
 *   &mut [T] { data_ptr @0, length @8 }
 */
export function pointerOf(type: Die): PointerWords | undefined {
  let at: Die | undefined = type;
  let offset = 0;
  for (let depth = 0; at !== undefined && depth < MAX_WRAPPERS; depth++) {
    if (at.tag === DW_TAG.pointer_type) {
      return { pointer: offset, vtable: undefined, length: undefined, target: at.follow(DW_AT.type) };
    }
    if (at.tag !== DW_TAG.structure_type) return undefined;
    const name = depth === 0 ? qualifiedName(at) : undefined;
    if (name !== undefined && !/^(core::pin::Pin<|alloc::boxed::Box<|&mut )/.test(name)) return undefined;
    const { members } = layoutOf(at);
    const pointer = members.find((m) => m.name === 'pointer' || m.name === 'data_ptr');
    const second = members.find((m) => m.name === 'vtable' || m.name === 'length');
    if (second !== undefined && pointer?.type !== undefined) {
      const where = offset + second.offset;
      return {
        pointer: offset + pointer.offset,
        vtable: second.name === 'vtable' ? where : undefined,
        length: second.name === 'length' ? where : undefined,
        target: pointer.type.follow(DW_AT.type),
      };
    }
    // The one member that is not of size 0 (markers, the global allocator).
    const inner: Member | undefined = members.find((m) => sizeOf(m.type) !== 0);
    offset += inner?.offset ?? 0;
    at = inner?.type;
  }
  return undefined;
}

/** Where the pointer lies in a type that is a pointer to a Future. */
export function boxOf(type: Die, futureOf: FutureOfType): BoxedFuture | undefined {
  const words = pointerOf(type);
  if (words === undefined || words.length !== undefined) return undefined;
  const { pointer, vtable, target } = words;
  const future = vtable === undefined ? target && futureOf(target) : undefined;
  return { pointer, vtable, typeName: typeName(target), future };
}
