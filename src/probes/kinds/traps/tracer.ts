import type { Interrupted, Trap, TrapKind } from '../../../arch/index.js';
import { type Addr, addOffset, hex } from '../../../base/addr.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import {
  type Crossing,
  type CrossingKind,
  type CrossingPlace,
  type HitMemory,
  type MemoryRequest,
  type Moment,
  stackNumber,
  type TracedCall,
} from '../../../calls/index.js';
import { isLinux } from '../../../target/index.js';
import type { ArgumentValue } from '../../../trace/index.js';
import type { TracerContext } from '../kind.js';
import { CallNaming } from './call-names.js';
import { callArguments, callReads } from './call-values.js';
import { readOf, TrapPlaces } from './places.js';
import type { FoundTraps } from './resolve.js';
import { type OpenTrap, type TrapCall, TrapCalls } from './trap-calls.js';

/** Stands for the return address that a trap has not: see `BlockEdge.key`. No block has it. */
const key = -(1n << 62n);
const none: readonly never[] = [];
/** So often in a row one instruction is interrupted where a guest makes no progress. */
const stormy = 50;
/** After so many returns in a row from traps that nobody wants, returns are not watched until one begins that is. */
const mostIdle = 200;
/** Bytes of an instruction that is a system call, on all architectures. */
const longestCall = 4n;

/**
 * Makes calls of traps: from the entry that the processor goes to, to the instruction that goes back. A trap ends where
 * a hart goes on with the stack that it has interrupted, in the same address space. So one that gives way to others ends
 * when its own program runs again.
 */
export class TrapTracer extends TrapCalls implements CrossingKind {
  readonly #found: FoundTraps;
  readonly #context: TracerContext;
  readonly #places: TrapPlaces;
  readonly #naming: CallNaming;
  /** Traps that have not ended. */
  readonly #open = new Set<TracedCall>();
  /** Returns since a wanted trap was last open. */
  #idle = 0;
  /** By hart: where the last trap has interrupted it, if it was an interrupt, and how often in a row it was there. */
  readonly #interrupted: ({ readonly pc: Addr; readonly inARow: number } | undefined)[] = [];

  constructor(found: FoundTraps, context: TracerContext) {
    const onLinux = isLinux(context.elf);
    super(context, context.arch.traps?.result, onLinux);
    this.#found = found;
    this.#context = context;
    this.#places = new TrapPlaces({ ...found, arch: context.arch, elf: context.elf });
    this.#naming = new CallNaming(context, onLinux);
  }

  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** See {@link TrapPlaces.current}. */
  current(registers: RegisterReader): readonly Addr[] {
    return this.#places.current(registers);
  }

  isAt(pc: Addr): boolean {
    return this.#places.isAt(pc);
  }

  reads(at: Moment, memory: HitMemory): readonly MemoryRequest[] {
    return [...this.#places.reads(at, memory), ...this.#callReads(at, memory)];
  }

  /** Texts that a system call is given, once the registers are there. */
  #callReads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const trap = this.#places.entryAt(pc)?.trap(registers, readOf(memory));
    if (trap?.kind !== 'syscall' || this.#context.values === false) return none;
    const { names, signature } = this.#naming.of(trap);
    return this.#wants('syscall', names) ? callReads(signature, trap.arguments ?? none, memory) : none;
  }

  cross(at: Moment, memory: HitMemory): Crossing {
    const { pc, registers } = at;
    const places = this.#places.learn(at, memory);
    const read = readOf(memory);
    const goesOn = this.#places.exitAt(pc)?.to(registers, read);
    const trap = this.#places.entryAt(pc)?.trap(registers, read);
    if (trap) this.#watchStorm(trap, at.hart);
    const begun = trap && this.#begun(trap, at, memory);
    const { watched, unwatched } = this.#exitsAfter(begun?.call);
    return {
      ended: goesOn && { ...this.#placeOf(goesOn, registers), isOf: (call) => endsAt(call as OpenTrap, goesOn) },
      begun,
      places: [...places, ...watched],
      spent: [...this.#places.spentAt(at, memory), ...unwatched],
    };
  }

  /** A boot takes thousands of interrupts before its first program calls it. */
  #exitsAfter(begun: OpenTrap | undefined): Record<'watched' | 'unwatched', readonly Addr[]> {
    const { seen } = this.#found;
    const { exits, isEntered } = this.#places;
    if (begun) {
      this.#open.add(begun);
      this.#idle = 0;
      const watched = seen.areIdle ? exits : none;
      seen.areIdle = false;
      return { watched, unwatched: none };
    }
    if (seen.areIdle || this.#idle < mostIdle || this.#open.size > 0 || !isEntered) {
      return { watched: none, unwatched: none };
    }
    seen.areIdle = true;
    return { watched: none, unwatched: exits };
  }

  override ended(call: TrapCall): void {
    this.#open.delete(call.payload);
    super.ended(call);
  }

  override lost(call: TrapCall, hart: number): void {
    this.#open.delete(call.payload);
    super.lost(call, hart);
  }

  unmatched(): void {
    this.#found.seen.returnsAlone++;
    this.#idle++;
    this.#places.missed();
  }

  #begun(trap: Trap, at: Moment, memory: HitMemory): (CrossingPlace & { readonly call: OpenTrap }) | undefined {
    const { names, signature } = trap.name === undefined ? this.#naming.of(trap) : { names: [trap.name] };
    const name = `${trap.kind}::${names[0]}`;
    if (!this.#wants(trap.kind, names)) {
      this.#found.seen.others.add(name);
      return undefined;
    }
    const values =
      trap.kind === 'syscall' ? callArguments(signature, trap.arguments ?? none, memory) : this.#valuesOf(trap);
    return {
      ...this.#placeOf(trap.from, at.registers),
      call: this.open({ kind: trap.kind, name, values, signature, from: trap.from }, at),
    };
  }

  /** Of a trampoline, the place in the program that it stands for. */
  #valuesOf({ address, from: { pc, isUser } }: Trap): readonly ArgumentValue[] {
    const accessed = address === undefined ? none : [{ name: 'address', value: hex(address) }];
    const plan = isUser ? undefined : this.#context.served(pc)?.site.plan;
    const tracing = plan ? [{ name: 'tracing', value: plan.name }] : none;
    const from = { name: 'from', value: isUser ? 'user' : 'kernel' };
    return [...accessed, { name: 'pc', value: hex(plan?.address ?? pc) }, from, ...tracing];
  }

  #wants(kind: TrapKind, names: readonly string[]): boolean {
    return this.#found.wants(names.map((name) => `${kind}::${name}`));
  }

  /** Where what is interrupted lies: its stack, and its address space if it is a program's. */
  #placeOf({ stackPointer, isUser }: Interrupted, registers: RegisterReader): CrossingPlace {
    const { arch, spaces } = this.#context;
    const root = isUser ? arch.privilege?.standing(registers).root : undefined;
    const space = root === undefined ? 0 : spaces.of(root);
    return { space, key, stackPointer: stackNumber(stackPointer) - 1 };
  }

  /** Whether a guest does nothing but take interrupts: stops last longer than its timer lets them. */
  #watchStorm({ kind, from }: Trap, hart: number): void {
    const { arch, elf } = this.#context;
    const { seen } = this.#found;
    const last = this.#interrupted[hart];
    const inARow = last?.pc === from.pc ? last.inARow + 1 : 0;
    this.#interrupted[hart] = kind === 'irq' ? { pc: from.pc, inARow } : undefined;
    if (kind !== 'irq' || inARow < stormy || seen.isStorm) return;
    // A hart that waits is interrupted where it waits, and so is one whose loop is one instruction.
    const before = [1, 2, 3, 4].map((bytes) => elf.bytesAt(addOffset(from.pc, -bytes), 4));
    const waits = before.some((code) => code === undefined || arch.waits?.(code));
    seen.isStorm = arch.waits !== undefined && !waits && !this.#jumpsToItself(from.pc);
  }

  #jumpsToItself(pc: Addr): boolean {
    const { arch, elf } = this.#context;
    const code = elf.bytesAt(pc, 4) ?? elf.bytesAt(pc, 2);
    const effects = code && arch.emulate(code, pc)?.effects({ register: () => undefined });
    return effects?.registers.some(({ name, value }) => name === arch.pc && value === pc) ?? false;
  }
}

/**
 * A program goes on where it was, or at the next instruction. One that begins with another's stack and page tables,
 * after that has ended in a trap, goes on somewhere else.
 */
function endsAt({ from }: OpenTrap, { pc, isUser }: Interrupted): boolean {
  const moved = pc - from.pc;
  return from.isUser === isUser && (!isUser || (moved >= -longestCall && moved <= longestCall));
}
