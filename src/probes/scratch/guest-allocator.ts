/*
 * Memory from the program's own allocator, through the one function of Rust's that every allocator has:
 *
 *   __rust_alloc(size: usize, align: usize) -> *mut u8, null where there is none          library/alloc/src/alloc.rs
 *
 * A call of it is safe where the program makes one itself: the allocator is set up there, this hart holds none of its locks, and what another one
 * holds is given back, since all go on running. So a breakpoint waits for such a call, and ours comes before it. It returns to a few
 * instructions of our own in the room behind the text, which go on with the program's call by themselves: a tracer that is killed meanwhile leaves a
 * program that is right.
 */

import type { Architecture } from '../../arch/index.js';
import { type Addr, addr } from '../../base/addr.js';
import { type Logger, silent } from '../../base/logger.js';
import type { ElfFile } from '../../dwarf/index.js';
import type { RegisterBlock, Session } from '../../rsp/index.js';
import { givenScratch } from './given-memory.js';
import { isRefusal, type MapRefusal, PAGE, type Region, type Scratch } from './scratch.js';
import { textSlack } from './text-slack.js';

/** Has a hart that comes to an address stop there once, and calls `then` at that stop. */
export type Intercept = (address: Addr, then: (hart: string | undefined) => Promise<void>) => Promise<void>;

/** As rustc 1.0 to 1.86 and later ones call it. */
const plain = '__rust_alloc';
const mangled = /^_RNvCs[0-9A-Za-z]*_7___rustc12___rust_alloc$/;
/** Bytes asked for, one after the other, until there are so many: little of any heap first. */
const sizes = [256 * 2 ** 10, 64 * 2 ** 10];
/** What every allocator has to take, and no more. */
const ALIGN = 16n;
const codeBytes = 16;

interface Allocator {
  readonly address: Addr;
  readonly size: number;
}

type State =
  | { readonly kind: 'new' | 'asking' }
  | { readonly kind: 'given'; readonly block: Region }
  | { readonly kind: 'refused'; readonly why: string };

export class GuestAllocator {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #elf: ElfFile;
  readonly #logger: Logger;
  readonly #function: Allocator | undefined;
  #state: State = { kind: 'new' };
  #tries = 0;

  constructor(session: Session, arch: Architecture, elf: ElfFile, logger: Logger = silent) {
    this.#session = session;
    this.#arch = arch;
    this.#elf = elf;
    this.#logger = logger;
    this.#function = allocatorOf(elf);
  }

  /** Our call waits for one of the program's. */
  get asking(): boolean {
    return this.#state.kind === 'asking';
  }

  /**
   * Asks for memory, or gives it once it is there. Undefined where the program has no such function.
   * @param intercept without it nothing is asked for
   */
  async scratch(pages: boolean, intercept: Intercept | undefined): Promise<Scratch | MapRefusal | undefined> {
    const found = this.#function;
    if (found === undefined) return undefined;
    const state = this.#state;
    if (state.kind === 'refused') return { refused: this.#no(state.why), later: false };
    if (state.kind === 'given') return this.#use(state.block, pages);
    if (state.kind === 'new') {
      const slack = await textSlack(this.#session, this.#arch, this.#elf);
      if (isRefusal(slack)) return { refused: this.#no(slack.refused), later: false };
      if (intercept !== undefined) {
        this.#state = { kind: 'asking' };
        await intercept(found.address, (hart) => this.#call(found.address, hart, intercept));
      }
    }
    return { refused: `the program's allocator (${plain}) is asked at its next call`, later: true };
  }

  async #use(block: Region, pages: boolean): Promise<Scratch | MapRefusal> {
    const slack = await textSlack(this.#session, this.#arch, this.#elf);
    const name = `memory of the program's allocator (${plain})`;
    const given = { owned: true, name, ...block };
    const options = { pages, slack: isRefusal(slack) ? undefined : slack };
    const made = await givenScratch(this.#session, this.#arch, given, options);
    if (isRefusal(made) && !made.later) this.#state = { kind: 'refused', why: made.refused };
    return made;
  }

  /** The target stands at the first instruction of the allocator's function: our call comes first. */
  async #call(entry: Addr, hart: string | undefined, intercept: Intercept): Promise<void> {
    const slack = await textSlack(this.#session, this.#arch, this.#elf);
    if (isRefusal(slack)) return this.#refuse(slack.refused);
    const memory = this.#session.memory(hart);
    const [there, own] = [await memory.read(entry, codeBytes), this.#elf.bytesAt(entry, codeBytes)];
    if (there === undefined || own === undefined || Buffer.compare(there, own) !== 0)
      return this.#refuse("its code in the target is not the ELF's");
    const { injectedCall: injected } = this.#arch;
    const stub = injected.stub(slack.address, entry);
    if (stub === undefined || stub.length > slack.size)
      return this.#refuse('there is no room for a call behind the text');
    const registers = await this.#registers(hart);
    const size = (sizes[this.#tries] ?? 0) + PAGE;
    const call = injected.enter(registers, slack.address, [BigInt(size), ALIGN]);
    if (call === undefined) return this.#refuse('its stack is not what it is at a call');
    const clear = (): Promise<boolean> => this.#session.memory(hart).write(slack.address, new Uint8Array(stub.length));
    const writes = [{ address: slack.address, bytes: stub }, ...call.memory];
    for (const { address, bytes } of writes) {
      const kept = (await memory.write(address, bytes)) && (await memory.read(address, bytes.length));
      if (!kept || Buffer.compare(kept, bytes) !== 0) {
        await clear();
        return this.#refuse('the stub does not write memory');
      }
    }
    const before = [...injected.changes, this.#arch.pc].flatMap((name) => {
      const value = registers.register(name);
      return value === undefined ? [] : [{ name, value }];
    });
    await intercept(slack.address, async (at) => {
      const after = await this.#registers(at);
      // Somebody else is there: what stands there is right for him as well.
      if (after.register(this.#arch.sp) !== call.stackPointer) return this.#refuse('its call has returned elsewhere');
      const result = after.register(this.#arch.results[0]) ?? 0n;
      await this.#write(at, before);
      await clear();
      this.#returned(addr(result), size);
    });
    await this.#write(hart, call.registers);
  }

  #returned(address: Addr, size: number): void {
    this.#logger.info({ address: address.toString(16), size }, "the program's allocator has answered");
    this.#tries++;
    if (address !== 0n) this.#state = { kind: 'given', block: { address, size } };
    else if (this.#tries < sizes.length) this.#state = { kind: 'new' };
    else this.#refuse(`it has no ${sizes.at(-1)} bytes left`);
  }

  #refuse(why: string): void {
    this.#state = { kind: 'refused', why };
  }

  #no(why: string): string {
    return `no memory of the program's allocator (${plain}) can be had: ${why}`;
  }

  async #registers(hart: string | undefined): Promise<RegisterBlock> {
    const batch = this.#session.batch(hart);
    const reply = batch.readRegisters();
    await batch.send();
    return reply.value;
  }

  async #write(hart: string | undefined, values: readonly { name: string; value: bigint }[]): Promise<void> {
    const batch = this.#session.batch(hart);
    for (const { name, value } of values) batch.writeRegister(name, value);
    await batch.send();
  }
}

/**
 * The allocator's function where it is one that other objects may call: then the compiler has left its arguments as they are. One that
 * was made local (link-time optimisation) may have lost them.
 */
export function allocatorOf(elf: ElfFile): Allocator | undefined {
  const found = elf.symbols.named(plain);
  if (found.length === 0) for (const symbol of elf.symbols) if (mangled.test(symbol.name)) found.push(symbol);
  const [one, ...others] = found.filter(({ type, size }) => type === 'function' && size > 0);
  return one?.external && others.length === 0 ? one : undefined;
}
