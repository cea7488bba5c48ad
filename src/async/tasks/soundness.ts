import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  layoutOf,
  nameOf,
  selectVariant,
  sizeOf,
  stripGenerics,
  typeName,
} from '../../dwarf/index.js';
import { memberAt, numberAt } from './layout.js';

const MAX_DEPTH = 24;
const MAX_BYTES = 1 << 16;
/** No Arc is shared by more. */
const MOST_SHARED = 1n << 31n;
/** What no pointer leads to, but a dangling one of something empty. */
const FIRST_PAGE = 4096n;
const COUNTED = /^alloc::(?:sync::ArcInner|rc::RcInner|rc::RcBox)$/;
/** May be dangling, whatever its type says. */
const WEAK = /^alloc::(?:sync|rc)::Weak$/;

/**
 * Whether bytes may be a value of a type. Enums have variants that exist, references lead to memory, and shared
 * values have plausible counts. What may be uninitialised (a union) is not looked at.
 */
export class Soundness {
  readonly #memory: MemoryReader;

  constructor(memory: MemoryReader) {
    this.#memory = memory;
  }

  async holds(type: Die, at: Addr): Promise<boolean> {
    const size = sizeOf(type) ?? 0;
    if (size === 0 || size > MAX_BYTES) return true;
    const bytes = await this.#memory.read(at, size);
    return bytes !== undefined && this.#value(type, bytes, 0, 0);
  }

  async #value(type: Die, bytes: Uint8Array, offset: number, depth: number): Promise<boolean> {
    if (depth > MAX_DEPTH) return true;
    if (type.tag === DW_TAG.pointer_type) return this.#pointer(type, bytes, offset);
    if (type.tag === DW_TAG.base_type && nameOf(type) === 'bool') return numberAt(bytes, { offset, size: 1 }) <= 1n;
    if (type.tag !== DW_TAG.structure_type) return true;
    const name = stripGenerics(typeName(type));
    if (WEAK.test(name)) return true;
    const { members, variantPart } = layoutOf(type);
    if (name === 'core::ptr::non_null::NonNull' && numberAt(bytes, { offset, size: 8 }) === 0n) return false;
    const { discriminant } = variantPart ?? {};
    const value = discriminant ? numberAt(bytes, { ...discriminant, offset: offset + discriminant.offset }) : 0n;
    const variant = variantPart && selectVariant(variantPart.variants, value);
    if (variantPart && variant === undefined) return false;
    for (const member of [...members, ...(variant?.members ?? [])]) {
      const inner = offset + member.offset;
      if (member.type && !(await this.#value(member.type, bytes, inner, depth + 1))) return false;
    }
    return true;
  }

  async #pointer(type: Die, bytes: Uint8Array, offset: number): Promise<boolean> {
    const target = type.follow(DW_AT.type);
    if (offset + 8 > bytes.length || target === undefined) return true;
    const address = addr(numberAt(bytes, { offset, size: 8 }));
    const isCounted = COUNTED.test(stripGenerics(typeName(target)));
    const isRaw = /^\*(?:const|mut) /.test(nameOf(type) ?? '');
    if (address === 0n) return isRaw;
    if (isCounted) return this.#isCounted(target, address);
    if (isRaw || address < FIRST_PAGE || (sizeOf(target) ?? 0) === 0) return true;
    return (await this.#memory.read(address, 1)) !== undefined;
  }

  async #isCounted(target: Die, address: Addr): Promise<boolean> {
    for (const name of ['strong', 'weak']) {
      const part = memberAt(target, name);
      const bytes = part && (await this.#memory.read(addOffset(address, part.offset), 8));
      const count = bytes && numberAt(bytes, { offset: 0, size: 8 });
      if (part && (count === undefined || count === 0n || count > MOST_SHARED)) return false;
    }
    return true;
  }
}
