import { type Addr, addOffset, hex } from '../../../base/addr.js';
import { littleEndian } from '../../../base/little-endian.js';
import type { HitMemory, MemoryRequest } from '../../../calls/index.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import { memberOfTask } from '../../../target/index.js';
import { loadsOf, type PlannedReads } from '../../read-plan.js';
import { type Field, type Holder, Holders, type NameFields, noFields } from './holders.js';

/** What a thread is called, and which it is among those that use the same context one after the other. */
interface ThreadName {
  readonly name: string;
  readonly id: string;
  /** All that a probe may name it by. */
  readonly names: readonly string[];
}

/** Names threads by what their contexts are part of: Linux' tasks, variables of the program. */
export class ThreadNames {
  readonly #holders: Holders;
  /** Of Linux, from the address of a task on. */
  readonly #task: NameFields | undefined;
  readonly #hasTypes: boolean;

  constructor(elf: ElfFile, debug: DebugInfo | undefined) {
    this.#holders = new Holders(elf, debug);
    this.#hasTypes = debug !== undefined;
    const [number, name] = ['pid', 'comm'].map((member) => memberOfTask(elf, debug, member));
    if (number !== undefined && name !== undefined)
      this.#task = { number: { offset: number, size: 4, isSigned: true }, name: { offset: name, size: 16 } };
  }

  /**
   * What a record reads of a task, whose address is in a register: the switch itself reads and writes others of its
   * members.
   */
  planned(register: string): readonly PlannedReads[] {
    return fieldsOf(this.#task ?? noFields).map(({ offset, size }) => {
      const align = offset % 8 === 0 ? 8 : offset % 4 === 0 ? 4 : 1;
      return { pointer: register, from: offset, align, size, loads: loadsOf(0, size, align) };
    });
  }

  /** What a record has not, and a stop may have. */
  get unread(): string | undefined {
    if (this.#task || !this.#hasTypes) return undefined;
    return 'threads are called as their place in memory: what names and numbers them there only a stop reads';
  }

  reads(context: Addr): readonly MemoryRequest[] {
    const { base, fields } = this.#around(context);
    return fieldsOf(fields).map(({ offset, size }) => ({ address: addOffset(base, offset), length: size }));
  }

  of(context: Addr, memory: HitMemory): ThreadName {
    const { base, fields, place } = this.#around(context);
    const bytes = (field: Field | undefined): Uint8Array | undefined => {
      const read = field && memory.at(addOffset(base, field.offset), field.size)?.bytes;
      return read && read.length >= field.size ? read.subarray(0, field.size) : undefined;
    };
    const [text, number] = [textIn(bytes(fields.name)), numberIn(bytes(fields.number), fields.number)];
    const called = [text, number].filter((part) => part !== undefined && part !== '').join(':');
    const id = number ?? '';
    if (called === '') return { name: place, id, names: [place] };
    const name = this.#task ? called : `${called} (${place})`;
    const parts = [name, called, text ?? '', number ?? '', place].filter((part) => part !== '');
    return { name, id, names: parts };
  }

  #around(context: Addr): Holder {
    if (this.#task) return { base: context, fields: this.#task, place: hex(context) };
    return this.#holders.of(context) ?? { base: context, fields: noFields, place: hex(context) };
  }
}

function fieldsOf({ number, name }: NameFields): readonly Field[] {
  return [number, name].filter((field) => field !== undefined);
}

function numberIn(bytes: Uint8Array | undefined, field: Field | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  const number = littleEndian(bytes);
  return String(field?.isSigned ? BigInt.asIntN(8 * bytes.length, number) : number);
}

/** Up to its zero; undefined if it is no text. */
function textIn(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined) return undefined;
  const end = bytes.indexOf(0);
  const text = new TextDecoder().decode(bytes.subarray(0, end < 0 ? bytes.length : end));
  return /^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(text) && !text.includes('\u{fffd}') ? text : undefined;
}
