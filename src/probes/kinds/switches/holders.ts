import type { Addr } from '../../../base/addr.js';
import { addOffset } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_ATE,
  DW_TAG,
  demangle,
  dimensionsOf,
  isAlias,
  layoutOf,
  sizeOf,
  staticAddress,
  stripGenerics,
  typeOf,
} from '../../../dwarf/index.js';
import type { ElfFile, ElfSymbol } from '../../../elf/index.js';

/** A member of what holds a context, from its beginning on. */
export interface Field {
  readonly offset: number;
  readonly size: number;
  readonly isSigned?: boolean;
}

/** Members that say which thread it is. */
export interface NameFields {
  readonly number: Field | undefined;
  readonly name: Field | undefined;
}

/** What a context is part of: an element of a table, a variable. */
export interface Holder {
  readonly base: Addr;
  /** `proc[3]`, `TABLE.threads[3]`. */
  readonly place: string;
  readonly fields: NameFields;
}

export const noFields: NameFields = { number: undefined, name: undefined };
const mostName = 32;
const mostDepth = 12;
/** Members of wrappers: a Mutex, an UnsafeCell, a newtype. */
const plainMember = /^(?:__\d+|value|data|inner|cell)$/;

/** Finds what holds a context among the variables of a program. */
export class Holders {
  readonly #elf: ElfFile;
  readonly #debug: DebugInfo | undefined;
  readonly #known = new Map<Addr, Holder | undefined>();
  /** By address: in C, variables of several files have one name. */
  readonly #variables = new Map<Addr, { readonly name: string; readonly type: Die | undefined }>();

  constructor(elf: ElfFile, debug: DebugInfo | undefined) {
    this.#elf = elf;
    this.#debug = debug;
  }

  /** Undefined if a context lies in no variable: on the heap. */
  of(context: Addr): Holder | undefined {
    if (!this.#known.has(context)) this.#known.set(context, this.#find(context));
    return this.#known.get(context);
  }

  #find(context: Addr): Holder | undefined {
    const symbol = this.#elf.symbols.at(context);
    if (symbol?.type !== 'object' || symbol.size === 0) return undefined;
    const { name, type } = madeOnce(this.#variables, symbol.address, () => this.#variable(symbol));
    const offset = Number(context - symbol.address);
    const inside = type && this.#debug?.attempt(type.unit, () => partAt(type, offset));
    if (!inside) return { base: symbol.address, place: `${name}+0x${offset.toString(16)}`, fields: noFields };
    return { base: addOffset(symbol.address, inside.at), place: `${name}${inside.path}`, fields: inside.fields };
  }

  #variable({ name: mangled, address }: ElfSymbol): { readonly name: string; readonly type: Die | undefined } {
    const whole = demangle(mangled, this.#elf.budget);
    const full = stripGenerics(whole);
    const [, of = full] = /^<([\w:]+) as /.exec(whole) ?? [];
    // What lazy_static has is a static of a function: `<TASKS as Deref>::deref::__stability::LAZY`.
    const name = of.slice(of.lastIndexOf('::') + (of.includes('::') ? 2 : 1));
    const debug = this.#debug;
    for (const die of [mangled, full].flatMap((one) => debug?.variablesNamed(one) ?? [])) {
      const type = debug?.attempt(die.unit, () => (staticAddress(die) === address ? typeOf(die) : undefined));
      if (type) return { name, type };
    }
    return { name, type: undefined };
  }
}

interface Part {
  readonly path: string;
  /** Bytes from the variable's beginning. */
  readonly at: number;
  readonly fields: NameFields;
}

/**
 * The element of the innermost array around what begins at an offset of a variable, or all of that. Its fields are
 * those of the innermost part with a name or a number.
 */
function partAt(variable: Die, offset: number): Part | undefined {
  let type = plain(variable);
  let part: Part = { path: '', at: 0, fields: noFields };
  let [path, at] = ['', 0];
  for (let depth = 0; type && depth < mostDepth; depth++) {
    const element = type.tag === DW_TAG.array_type ? plain(type.follow(DW_AT.type)) : undefined;
    const fields = fieldsIn(type);
    if (fields.number || fields.name) part = { ...part, at, fields };
    const isTable = element !== undefined && element.tag !== DW_TAG.base_type;
    if (at === offset && depth > 0 && !isTable) return part;
    if (type.tag === DW_TAG.array_type) {
      const size = sizeOf(element);
      if (dimensionsOf(type).length !== 1 || size === undefined || size === 0) return part;
      const index = Math.floor((offset - at) / size);
      [path, at, type] = [`${path}[${index}]`, at + index * size, element];
      part = { path, at, fields: noFields };
      continue;
    }
    const begun = at;
    const member = membersOf(type).find(({ offset: from, type: of }) => {
      const distance = offset - begun - from;
      return distance >= 0 && distance < (sizeOf(of) ?? 0);
    });
    if (!member) return part;
    if (member.name !== undefined && !plainMember.test(member.name)) path = `${path}.${member.name}`;
    at += member.offset;
    type = plain(member.type);
    // Until an array is seen, a variable's member is what threads are called by: `IDLE.context`.
    if (!part.path.includes('[')) part = { ...part, path };
  }
  return part;
}

function membersOf(type: Die): ReturnType<typeof layoutOf>['members'] {
  return type.tag === DW_TAG.structure_type || type.tag === DW_TAG.union_type ? layoutOf(type).members : [];
}

function plain(type: Die | undefined): Die | undefined {
  let at = type;
  for (let depth = 0; at && isAlias(at) && depth < mostDepth; depth++) at = at.follow(DW_AT.type);
  return at;
}

function isInteger(type: Die): boolean {
  const encoding = type.tag === DW_TAG.base_type ? type.number(DW_AT.encoding) : undefined;
  return encoding === DW_ATE.signed || encoding === DW_ATE.unsigned;
}

function fieldsIn(type: Die | undefined): NameFields {
  if (!type) return noFields;
  const members = membersOf(type);
  const find = (names: readonly string[], fits: (die: Die, size: number) => boolean): Field | undefined => {
    for (const { name, offset, bits, type: of } of members) {
      const die = plain(of);
      const size = sizeOf(die);
      if (name === undefined || !names.includes(name) || bits !== undefined || !die || !size) continue;
      const isSigned = die.number(DW_AT.encoding) === DW_ATE.signed;
      if (fits(die, size)) return { offset, size: Math.min(size, mostName), isSigned };
    }
    return undefined;
  };
  return {
    number: find(['pid', 'tid', 'id'], (die, size) => isInteger(die) && (size === 4 || size === 8)),
    name: find(['name', 'comm'], (die) => die.tag === DW_TAG.array_type && sizeOf(plain(die.follow(DW_AT.type))) === 1),
  };
}
