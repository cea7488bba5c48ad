import type { Interrupted, Trap, TrapEntry, TrapExit, TrapRead, TrapSetter, TrapTable } from '../../../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { madeOnce } from '../../../base/made-once.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import {
  type CallKind,
  type Crossing,
  type CrossingKind,
  type CrossingPlace,
  emittedAround,
  type HitMemory,
  type MemoryRequest,
  type Moment,
  type OpenCall,
  stackNumber,
  type TracedCall,
} from '../../../calls/index.js';
import type { ArgumentValue, CallBegin, FunctionRef, GuestNanos } from '../../../trace/index.js';
import type { TracerContext } from '../kind.js';
import type { FoundTraps } from './resolve.js';

/** Stands for the return address that a trap has not: see `BlockEdge.key`. No block has it. */
const key = -(1n << 62n);
const none: readonly never[] = [];
const pageBits = 12n;
const pageMask = (1n << pageBits) - 1n;
/** Bytes of an instruction that ends a trap, and of the code before it that must be the same in a copy. */
const exitBytes = 4;
const shown = 12;

interface OpenTrap extends TracedCall {
  emitted?: CallBegin | undefined;
  readonly ref: FunctionRef;
  readonly began: GuestNanos;
  readonly hart: number;
  readonly values: readonly ArgumentValue[];
  exit: { readonly hart: number; readonly result: string | undefined } | undefined;
}

type TrapCall = OpenCall<TracedCall> & { readonly payload: OpenTrap };

/**
 * Makes calls of traps: from the entry that the processor goes to, to the instruction that goes back. A trap ends where
 * a hart goes on with the stack that it has interrupted, in the same address space, so a trap that gives way to others
 * ends when its own program runs again.
 */
export class TrapTracer implements CrossingKind, CallKind {
  readonly #found: FoundTraps;
  readonly #context: TracerContext;
  readonly #setters = new AddressMap<TrapSetter>(64);
  readonly #exits = new AddressMap<TrapExit>(64);
  readonly #entries = new AddressMap<TrapEntry>(64);
  readonly #learned: Addr[] = [];
  readonly #refs = new Map<string, FunctionRef>();
  /** The tables of entries that are in use, and whether one may have been filled since it was read. */
  readonly #tables = new Map<bigint, TrapTable>();
  #isStale = false;
  /** Pages with entries that the ELF does not have, in which exits were looked for. */
  readonly #searched = new Set<bigint>();

  constructor(found: FoundTraps, context: TracerContext) {
    this.#found = found;
    this.#context = context;
    for (const setter of found.setters) this.#setters.set(setter.address, setter);
    for (const exit of found.exits) this.#exits.set(exit.address, exit);
  }

  /** The places that the target has shown so far, and those that a hart's registers name. */
  current(registers: RegisterReader): readonly Addr[] {
    this.#add(this.#context.arch.traps?.current(registers) ?? none);
    return this.#learned;
  }

  isAt(pc: Addr): boolean {
    return this.#entries.get(pc) !== undefined || this.#setters.get(pc) !== undefined || this.#exits.get(pc) !== undefined;
  }

  reads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const setter = this.#setters.get(pc);
    const reads = [this.#entries.get(pc), this.#exits.get(pc), setter].flatMap((place) => place?.reads(registers) ?? none);
    if (setter) {
      const set = setter.sets(registers, readOf(memory));
      if ('table' in set) reads.push(set.table);
    }
    if (this.#isStale) reads.push(...this.#tables.values());
    if (this.#isCopied(pc)) reads.push(...this.#copiesIn(pc).map(({ window }) => window));
    return reads.map(({ address, length }: TrapRead) => ({ address, length }));
  }

  cross(at: Moment, memory: HitMemory): Crossing {
    const { pc, registers } = at;
    const read = readOf(memory);
    const places: Addr[] = [];
    if (this.#isStale) places.push(...this.#readTables(memory));
    const set = this.#setters.get(pc)?.sets(registers, read);
    if (set && 'table' in set) {
      this.#tables.set(set.table.address, set.table);
      places.push(...this.#readTables(memory));
    } else if (set) places.push(...this.#add(set));
    if (this.#isCopied(pc)) places.push(...this.#findExits(pc, memory));
    const goesOn = this.#exits.get(pc)?.to(registers, read);
    const ended = goesOn && this.#placeOf(goesOn, registers);
    const trap = this.#entries.get(pc)?.trap(registers, read);
    return { ended, begun: trap && this.#begun(trap, at), places };
  }

  /** What goes on has not been interrupted, or where it was is not known. */
  unmatched(): void {
    this.#found.alone.returns++;
    this.#isStale = this.#tables.size > 0;
  }

  entryReads(): undefined {
    return undefined;
  }

  begin(): undefined {
    return undefined;
  }

  began(call: TrapCall): void {
    const { payload, depth, thread } = call;
    const { time } = this.#context.output;
    const { hart, ref, values } = payload;
    const around = emittedAround(call);
    const begin = { type: 'call-begin', time, hart, thread, function: ref, depth, around, arguments: values } as const;
    payload.emitted = begin;
    this.#context.output.emit(begin);
  }

  exitReads(): readonly MemoryRequest[] {
    return none;
  }

  returning({ payload }: TrapCall, { hart, registers }: Moment): void {
    const { arch, values = true } = this.#context;
    const result = values && payload.ref.trap === 'syscall' ? registers.register(arch.traps?.result ?? '') : undefined;
    payload.exit = { hart, result: result === undefined ? undefined : signed(result) };
  }

  ended({ payload, depth, thread, wasLost }: TrapCall): void {
    const { ref, began, emitted, exit } = payload;
    if (!exit) return;
    const { time } = this.#context.output;
    const ended = { time, thread, function: ref, depth, begin: emitted, began, wasLost, ...exit };
    this.#context.output.emit({ type: 'call-end', ...ended });
  }

  lost({ payload, depth, thread }: TrapCall, hart: number): void {
    const { ref, began, emitted } = payload;
    const { time } = this.#context.output;
    this.#context.output.emit({ type: 'call-lost', time, hart, thread, function: ref, depth, begin: emitted, began });
  }

  #begun(trap: Trap, at: Moment): (CrossingPlace & { readonly call: OpenTrap }) | undefined {
    const name = `${trap.kind}::${trap.name ?? trap.number ?? 'unknown'}`;
    if (!this.#found.wants(name)) return undefined;
    const ref = madeOnce(this.#refs, name, () => {
      const key = this.#context.firstKey + this.#refs.size;
      return { key, name, instance: name, address: at.pc, file: undefined, line: undefined, trap: trap.kind };
    });
    const began = this.#context.output.at(at.time);
    const values = this.#context.values === false ? none : valuesOf(trap);
    return {
      ...this.#placeOf(trap.from, at.registers),
      call: { kind: this, ref, began, hart: at.hart, values, exit: undefined },
    };
  }

  /** Where what is interrupted lies: its stack, and its address space if it is a program's. */
  #placeOf({ stackPointer, isUser }: Interrupted, registers: RegisterReader): CrossingPlace {
    const { arch, spaces } = this.#context;
    const root = isUser ? arch.privilege?.standing(registers).root : undefined;
    const space = root === undefined ? 0 : spaces.of(root);
    return { space, key, stackPointer: stackNumber(stackPointer) - 1 };
  }

  /** Traps enter here a copy of the kernel's code, or another mapping of it, whose exits are not known yet. */
  #isCopied(pc: Addr): boolean {
    return (
      this.#entries.get(pc) !== undefined &&
      this.#context.elf.bytesAt(pc, 1) === undefined &&
      !this.#searched.has(pc >> pageBits)
    );
  }

  /** Where exits would be in the page of an entry, and the code that shows them. */
  #copiesIn(entry: Addr): readonly { readonly exit: TrapExit; readonly window: TrapRead }[] {
    const page = (entry >> pageBits) << pageBits;
    return this.#found.exits.map((exit) => {
      const address = addr(page | (exit.address & pageMask));
      const before = Math.min(shown, Number(address - page));
      const window = { address: addOffset(address, -before), length: before + exitBytes };
      return { exit: { ...exit, address }, window };
    });
  }

  /** @returns the exits that the page of an entry has as the kernel's own code has them */
  #findExits(entry: Addr, memory: HitMemory): readonly Addr[] {
    this.#searched.add(entry >> pageBits);
    const found: Addr[] = [];
    for (const [index, { exit, window }] of this.#copiesIn(entry).entries()) {
      const there = memory.bytes(window.address, window.length);
      const linked = (this.#found.exits[index] as TrapExit).address;
      const own = this.#context.elf.bytesAt(addOffset(linked, exitBytes - window.length), window.length);
      if (typeof there === 'string' || !own || Buffer.compare(there, own) !== 0) continue;
      this.#exits.set(exit.address, exit);
      found.push(exit.address);
      this.#learned.push(exit.address);
    }
    return found;
  }

  #readTables(memory: HitMemory): readonly Addr[] {
    this.#isStale = false;
    return [...this.#tables.values()].flatMap((table) => {
      const bytes = memory.bytes(table.address, table.length);
      return typeof bytes === 'string' ? none : this.#add(table.entries(bytes));
    });
  }

  /** @returns those that are new */
  #add(entries: readonly TrapEntry[]): readonly Addr[] {
    const places: Addr[] = [];
    for (const entry of entries) {
      if (entry.kind !== undefined && !this.#found.mayWant(entry.kind)) continue;
      if (this.#entries.get(entry.address)) continue;
      this.#entries.set(entry.address, entry);
      places.push(entry.address);
      this.#learned.push(entry.address);
    }
    return places;
  }
}

function readOf(memory: HitMemory): { bytes(address: Addr, length: number): Uint8Array | undefined } {
  return {
    bytes(address, length) {
      const bytes = memory.bytes(address, length);
      return typeof bytes === 'string' ? undefined : bytes;
    },
  };
}

function valuesOf({ kind, arguments: passed = none, address, from: { pc, isUser } }: Trap): readonly ArgumentValue[] {
  if (kind === 'syscall') return passed.map((value, index) => ({ name: `arg${index}`, value: signed(value) }));
  const accessed = address === undefined ? none : [{ name: 'address', value: hex(address) }];
  return [...accessed, { name: 'pc', value: hex(pc) }, { name: 'from', value: isUser ? 'user' : 'kernel' }];
}

/** Small numbers as such, others as bits. */
function signed(value: bigint): string {
  const number = BigInt.asIntN(64, value);
  return number > -4096n && number < 65_536n ? String(number) : hex(BigInt.asUintN(64, value));
}
