// BTF, which Linux kernels carry in a section .BTF: Linux, Documentation/bpf/btf.rst; include/uapi/linux/btf.h.
//
//   header  eb9f (2) | version 1 (1) | flags (1) | header length (4)
//           | types, their length | strings, their length (4 each, from the header's end)
//   type    name (4) | vlen 15:0, kind 28:24 (4) | size or type (4) | what the kind says
//
// Read: the prototypes of functions, members of structs. Left out: functions or structs with the same name and
// another content, bit-fields. Refused: big-endian, and unknown kinds, because their length is not known.
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import { asText, textAt } from '../base/file-bytes.js';

/** How a value is passed: `words` if it is an aggregate or unknown. */
export interface BtfValue {
  readonly kind: 'none' | 'integer' | 'pointer' | 'words';
  /** Undefined if the BTF does not say. */
  readonly size: number | undefined;
}

export interface BtfFunction {
  readonly parameters: readonly (BtfValue & { readonly name: string | undefined })[];
  readonly variadic: boolean;
  readonly result: BtfValue;
}

const KIND = {
  INT: 1,
  PTR: 2,
  ARRAY: 3,
  STRUCT: 4,
  UNION: 5,
  ENUM: 6,
  TYPEDEF: 8,
  VOLATILE: 9,
  CONST: 10,
  RESTRICT: 11,
  FUNC: 12,
  FUNC_PROTO: 13,
  TYPE_TAG: 18,
  ENUM64: 19,
} as const;

/** Bytes behind the twelve of each type, by its kind: those of the type, and those of each of its `vlen` members. */
const trailing: readonly (readonly [own: number, each: number])[] = [
  [0, 0], // never used
  [4, 0], // INT
  [0, 0], // PTR
  [12, 0], // ARRAY
  [0, 12], // STRUCT
  [0, 12], // UNION
  [0, 8], // ENUM
  [0, 0], // FWD
  [0, 0], // TYPEDEF
  [0, 0], // VOLATILE
  [0, 0], // CONST
  [0, 0], // RESTRICT
  [0, 0], // FUNC
  [0, 8], // FUNC_PROTO
  [4, 0], // VAR
  [0, 12], // DATASEC
  [0, 0], // FLOAT
  [4, 0], // DECL_TAG
  [0, 0], // TYPE_TAG
  [0, 12], // ENUM64
];

/** Typedefs of typedefs; compilers do not nest them this deep. */
const DEEPEST = 64;

/**
 * Reads a `.BTF` section. The returned function gives the prototype of a function by its name.
 * @throws RsptraceError `BTF_DAMAGED`, `INPUT_DAMAGED`, as does the returned function
 */
export function btfFunctions(section: Uint8Array, budget: Budget): (name: string) => BtfFunction | undefined {
  const all = readTypes(section, budget);
  const prototypes = all.functions();
  return (name) => {
    const id = prototypes.get(name);
    return id === undefined ? undefined : all.prototype(id);
  };
}

/**
 * Offset of a struct's member in bytes, by the names on the way to it; undefined if not found.
 * @throws RsptraceError `BTF_DAMAGED`, `INPUT_DAMAGED`
 */
export function btfMember(
  section: Uint8Array,
  budget: Budget,
  struct: string,
  path: readonly string[],
): number | undefined {
  return readTypes(section, budget).member(struct, path);
}

function readTypes(section: Uint8Array, budget: Budget): Types {
  const reader = new ByteReader(section, '.BTF');
  if (reader.u16() !== 0xeb9f || reader.u8() !== 1) throw damaged('its header is not that of version 1');
  reader.skip(1);
  const header = reader.u32();
  const [typesAt, typesSize, stringsAt, stringsSize] = [reader.u32(), reader.u32(), reader.u32(), reader.u32()];
  if (header + Math.max(typesAt + typesSize, stringsAt + stringsSize) > section.length) {
    throw damaged('it points outside itself');
  }
  const strings = section.subarray(header + stringsAt, header + stringsAt + stringsSize);
  const types = new ByteReader(section, '.BTF', header + typesAt, header + typesAt + typesSize);
  budget.spend(typesSize, '.BTF');
  return new Types(types, asText(strings), budget);
}

interface Type {
  readonly kind: number;
  readonly name: number;
  readonly count: number;
  /** Bit 31 of the second word: in such a struct, members' offsets have the widths of bit-fields above them. */
  readonly flag: boolean;
  readonly sizeOrType: number;
  /** Where its content begins in the section. */
  readonly members: number;
}

class Types {
  readonly #types: ByteReader;
  readonly #strings: Uint8Array;
  readonly #budget: Budget;
  /** Where each type begins; the first, `void`, has no place. */
  readonly #starts: number[] = [0];

  constructor(types: ByteReader, strings: Uint8Array, budget: Budget) {
    this.#types = types;
    this.#strings = strings;
    this.#budget = budget;
    const end = types.at(types.offset);
    while (end.remaining > 0) {
      this.#starts.push(end.offset);
      const { kind, count } = this.#read(end);
      const [own, each] = trailing[kind] ?? [];
      if (own === undefined || each === undefined || kind === 0) throw damaged(`a type is of the unknown kind ${kind}`);
      end.skip(own + each * count);
    }
  }

  /** The prototype of each function; none if two have one name. */
  functions(): Map<string, number | undefined> {
    const found = new Map<string, number | undefined>();
    for (let id = 1; id < this.#starts.length; id++) {
      const type = this.#type(id);
      const name = type?.kind === KIND.FUNC ? this.#name(type.name) : undefined;
      if (type === undefined || name === undefined) continue;
      this.#budget.hold(name.length, '.BTF');
      found.set(name, found.has(name) ? undefined : type.sizeOrType);
    }
    return found;
  }

  prototype(id: number): BtfFunction | undefined {
    const type = this.#type(id);
    if (type?.kind !== KIND.FUNC_PROTO) return undefined;
    const reader = this.#types.at(type.members);
    const parameters = Array.from({ length: type.count }, () => ({ name: reader.u32(), type: reader.u32() }));
    // An ellipsis is a last parameter of no type.
    const variadic = parameters.at(-1)?.type === 0;
    if (variadic) parameters.pop();
    return {
      parameters: parameters.map(({ name, type }) => ({ name: this.#name(name), ...this.#value(type) })),
      variadic,
      result: this.#value(type.sizeOrType),
    };
  }

  member(struct: string, path: readonly string[]): number | undefined {
    const found = new Set<number | undefined>();
    for (let id = 1; id < this.#starts.length; id++) {
      const type = this.#type(id);
      if (type?.kind === KIND.STRUCT && this.#name(type.name) === struct) found.add(this.#memberAt(type, path));
    }
    return found.size === 1 ? [...found][0] : undefined;
  }

  #memberAt(struct: Type, [wanted, ...rest]: readonly string[]): number | undefined {
    const reader = this.#types.at(struct.members);
    for (let index = 0; index < struct.count; index++) {
      const [name, type, place] = [reader.u32(), reader.u32(), reader.u32()];
      if (this.#name(name) !== wanted) continue;
      const bit = struct.flag ? place & 0xff_ffff : place;
      if (bit % 8 !== 0 || (struct.flag && place >>> 24 !== 0)) return undefined;
      if (rest.length === 0) return bit / 8;
      const inner = this.#type(type);
      const inside = inner?.kind === KIND.STRUCT ? this.#memberAt(inner, rest) : undefined;
      return inside === undefined ? undefined : bit / 8 + inside;
    }
    return undefined;
  }

  #value(id: number): BtfValue {
    for (let at = id, depth = 0; depth < DEEPEST; depth++) {
      if (at === 0) return { kind: 'none', size: 0 };
      const type = this.#type(at);
      switch (type?.kind) {
        case KIND.TYPEDEF:
        case KIND.VOLATILE:
        case KIND.CONST:
        case KIND.RESTRICT:
        case KIND.TYPE_TAG:
          at = type.sizeOrType;
          continue;
        case KIND.PTR:
          return { kind: 'pointer', size: 8 };
        case KIND.INT:
        case KIND.ENUM:
        case KIND.ENUM64:
          return { kind: type.sizeOrType <= 8 ? 'integer' : 'words', size: type.sizeOrType };
        case KIND.STRUCT:
        case KIND.UNION:
          return { kind: 'words', size: type.sizeOrType };
        default:
          return { kind: 'words', size: undefined };
      }
    }
    return { kind: 'words', size: undefined };
  }

  #type(id: number): Type | undefined {
    const start = this.#starts[id];
    return start === undefined || id === 0 ? undefined : this.#read(this.#types.at(start));
  }

  #read(reader: ByteReader): Type {
    const name = reader.u32();
    const info = reader.u32();
    const sizeOrType = reader.u32();
    const kind = (info >>> 24) & 0x1f;
    return { kind, name, count: info & 0xffff, flag: info >>> 31 === 1, sizeOrType, members: reader.offset };
  }

  #name(offset: number): string | undefined {
    if (offset === 0) return undefined;
    const name = textAt(this.#strings, offset, this.#budget, '.BTF');
    if (name === undefined) throw damaged(`there is no name at 0x${offset.toString(16)}`);
    return name;
  }
}

function damaged(why: string): RsptraceError {
  return new RsptraceError('BTF_DAMAGED', `The section .BTF cannot be read: ${why}`);
}
