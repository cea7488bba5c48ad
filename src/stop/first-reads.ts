import { type AddressSpaces, walkNow } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { isRefusal } from '../base/errors.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { MemoryRequest } from '../calls/index.js';
import type { ClockReader } from '../clock/index.js';
import type { Reply } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import type { Breakpoints } from './breakpoints.js';
import type { HitChecks } from './hit-checks.js';
import { type GuessedReads, ReadGuesses } from './read-guesses.js';
import type { StopEngineOptions } from './stop-engine-options.js';

const PAGE = 4096n;

/**
 * Answers a stop's reads of memory out of the machine's RAM, without packets, as the stopped hart sees it. The page
 * tables are walked anew at each stop, because the program may have changed them. Nothing is found that is no RAM, not
 * mapped, or not for the hart's mode. `registers`: those that the spaces want.
 */
function readsInRam(ram: GuestRam, spaces: AddressSpaces, registers: RegisterReader): GuessedReads {
  const translation = spaces.format(registers);
  if (isRefusal(translation)) return { find: () => undefined };
  const { pages, user } = translation;
  const word = (physical: bigint): bigint | undefined => ram.word(physical);
  const physicalOf = (address: bigint): bigint | undefined => {
    if (pages === undefined) return address;
    const leaf = walkNow(pages, addr(address), word);
    return leaf === undefined || leaf.user !== user ? undefined : leaf.physical + (address % BigInt(leaf.size));
  };
  const find = ({ address, length }: MemoryRequest): Reply<Uint8Array | undefined> | undefined => {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const at = address + BigInt(done);
      const size = Math.min(length - done, Number(PAGE - (at % PAGE)));
      const physical = physicalOf(at);
      if (physical === undefined || !ram.read(physical, bytes.subarray(done, done + size))) return undefined;
      done += size;
    }
    return { value: bytes, errorText: undefined };
  };
  return { find };
}

/** What a stop has shown in its first write. */
export interface Look {
  readonly registers: RegisterReader;
  /** Undefined before there is a clock. */
  readonly time: (() => number) | undefined;
  readonly guessed: GuessedReads;
  readonly pc: Addr | undefined;
  readonly stackPointer: bigint | undefined;
}

/**
 * A stop's first write: registers, the clock and the memory that the stop will probably read, which costs less there
 * than anything else. What was not guessed is read out of the machine's RAM where that is at hand, which costs less
 * than another round trip.
 */
export class FirstReads {
  readonly #options: StopEngineOptions;
  readonly #checks: HitChecks | undefined;
  readonly #points: Breakpoints;
  readonly #guesses = new ReadGuesses();
  #clock: ClockReader | undefined;

  constructor(options: StopEngineOptions, points: Breakpoints, checks: HitChecks | undefined) {
    this.#options = options;
    this.#points = points;
    this.#checks = checks;
  }

  get clock(): ClockReader | undefined {
    return this.#clock;
  }

  /** The clock, which is chosen at the first call. */
  async findClock(): Promise<ClockReader> {
    this.#clock ??= await this.#options.findClock();
    return this.#clock;
  }

  async at(hart: string | undefined): Promise<Look> {
    const { session, arch, resets } = this.#options;
    const first = session.batch(hart);
    const names = this.#checks?.ask();
    const registers = first.readRegisters(this.#andValues(names));
    // The clock is not chosen at a reset vector, because the machine has no useful clock there.
    const clock = resets ? this.#clock : await this.findClock();
    const time = clock?.request(first);
    const guessed = this.#guesses.ask(first);
    const hasCome = this.#points.late.ask(first);
    await first.send();
    if (hasCome()) await this.#points.plantLate();
    const { value } = registers;
    const pc = value.register(arch.pc);
    return {
      registers: this.#withoutOff(value),
      time,
      guessed: this.#orInRam(guessed, value, names),
      pc: pc === undefined ? undefined : addr(pc),
      stackPointer: value.register(arch.sp),
    };
  }

  /** The memory that the stop at this place finally read: the next look there reads it at once. */
  learn(pc: bigint, wanted: readonly MemoryRequest[]): void {
    this.#guesses.learn(pc, wanted);
  }

  /** `names`: what was read besides `g`; undefined: all registers. */
  #orInRam(guessed: GuessedReads, registers: RegisterReader, names: readonly string[] | undefined): GuessedReads {
    const { session, arch, ram } = this.#options;
    const { addressSpaces } = arch;
    const { features, target } = session;
    const isRead = (name: string): boolean =>
      names === undefined ||
      names.includes(name) ||
      (features.registerBlock && target.register(name)?.offsetInG !== undefined);
    if (!ram || !addressSpaces?.registers.every(isRead)) return guessed;
    let inRam: GuessedReads | undefined;
    const find: GuessedReads['find'] = (request) => {
      const known = guessed.find(request);
      if (known !== undefined) return known;
      inRam ??= readsInRam(ram, addressSpaces, registers);
      return inRam.find(request);
    };
    return { find };
  }

  /**
   * The registers that are asked for besides all that a stub gives at once: floating-point ones, if values are there.
   */
  #andValues(names: readonly string[] | undefined): readonly string[] | undefined {
    const { session, arch, valueRegisters = [] } = this.#options;
    if (valueRegisters.length === 0 || !session.features.registerBlock) return names;
    const unit = arch.floatUnit?.register;
    return [...(names ?? []), ...valueRegisters, ...(unit === undefined ? [] : [unit])];
  }

  /** While the unit is off, its registers may have values of another task. */
  #withoutOff(registers: RegisterReader): RegisterReader {
    const { valueRegisters = [], arch } = this.#options;
    const { floatUnit } = arch;
    const state = valueRegisters.length === 0 ? undefined : floatUnit && registers.register(floatUnit.register);
    if (state === undefined || !floatUnit?.isOff(state)) return registers;
    return {
      register: (name) => (floatUnit.has(name) ? undefined : registers.register(name)),
      halves: (name, into, at) => registers.halves?.(name, into, at) ?? false,
    };
  }
}
