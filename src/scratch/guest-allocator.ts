/*
 * Memory from the program's own allocator (see allocators.ts). A call of it is safe where the program makes one
 * itself. The allocator is set up there, and this hart holds none of its locks. Locks of other harts are released,
 * because all harts go on running. So breakpoints wait for such a call, and ours comes before it. Our call returns to
 * a few instructions of our own in the slack behind the text, which go on with the program's call by themselves. So a
 * tracer that is killed meanwhile leaves the program intact.
 */

import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { type Logger, silent } from '../base/logger.js';
import { isRefusal } from '../base/refusal.js';
import type { ElfFile } from '../elf/index.js';
import type { RegisterBlock, Session } from '../rsp/index.js';
import { changesItsCode, compareCode } from '../target/index.js';
import { type Allocator, allocatorOf } from './allocators.js';
import type { PagingFacts } from './ram-piece.js';
import { reservedScratch } from './reserved-memory.js';
import { alignDown, type MapRefusal, PAGE, type Region, type Scratch } from './scratch.js';
import { mapAgain } from './second-mapping.js';
import { slackOf, textSlack } from './text-slack.js';

/** Stops the first hart that comes to one of these addresses, once, and calls `then` at that stop. */
export type Intercept = (
  places: readonly Addr[],
  then: (hart: string | undefined, at: Addr) => Promise<void>,
) => Promise<void>;

type State =
  | { readonly kind: 'new' | 'asking' }
  | { readonly kind: 'given'; readonly block: Region }
  | { readonly kind: 'refused'; readonly why: string };

export class GuestAllocator {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #elf: ElfFile;
  readonly #logger: Logger;
  readonly #allocator: Allocator | undefined;
  #state: State = { kind: 'new' };
  #tries = 0;
  #codeSize = 0;

  constructor(session: Session, arch: Architecture, elf: ElfFile, logger: Logger = silent) {
    this.#session = session;
    this.#arch = arch;
    this.#elf = elf;
    this.#logger = logger;
    this.#allocator = allocatorOf(elf);
  }

  /** Our call waits for one of the program's. */
  get asking(): boolean {
    return this.#state.kind === 'asking';
  }

  /** What it waits for, in words for the user. */
  get unanswered(): string | undefined {
    const found = this.asking ? this.#allocator : undefined;
    return (
      found &&
      `${found.owner}'s allocator (${found.name}) could not be asked: the target has not come by where that is safe`
    );
  }

  /**
   * Asks for memory, or returns it once it is there. Undefined if the program has no such function.
   * @param intercept without it the allocator is not asked
   */
  async scratch(facts: PagingFacts, intercept: Intercept | undefined): Promise<Scratch | MapRefusal | undefined> {
    const found = this.#allocator;
    if (found === undefined) return undefined;
    const state = this.#state;
    if (state.kind === 'refused') return { refused: this.#no(found, state.why), later: false };
    if (state.kind === 'given') return this.#use(found, state.block, facts);
    if (!this.#arch.injectedCall) {
      const why = `it could not be called: how functions are on ${this.#arch.name} is not known`;
      return { refused: this.#no(found, why), later: false };
    }
    if (state.kind === 'new') {
      const slack = await textSlack(this.#session, this.#arch, this.#elf);
      if (isRefusal(slack)) return { refused: this.#no(found, slack.refused), later: false };
      if (intercept !== undefined) {
        this.#state = { kind: 'asking' };
        this.#codeSize = facts.codeSize ?? 0;
        this.#logger.info({ function: found.name }, `${found.owner}'s allocator is asked when it is called next`);
        await intercept(found.places, (hart, at) => this.#call(found, at, hart, intercept));
      }
    }
    return { refused: `${found.owner}'s allocator (${found.name}) is asked at its next call`, later: true };
  }

  async #use(found: Allocator, block: Region, facts: PagingFacts): Promise<Scratch | MapRefusal> {
    const name = `memory of ${found.owner}'s allocator (${found.name})`;
    const made = found.pages
      ? await this.#map(found, name, block, facts)
      : await this.#asItIs(found, name, block, facts);
    if (isRefusal(made) && !made.later) this.#refuse(made.refused);
    return made;
  }

  /** Code goes among the program's, where there is little room, only if it can neither run in the block nor be mapped. */
  async #asItIs(found: Allocator, name: string, block: Region, facts: PagingFacts): Promise<Scratch | MapRefusal> {
    const [session, arch] = [this.#session, this.#arch];
    const given = { owned: true, name, ...block };
    const made = await reservedScratch(session, arch, given, { ...facts, slack: undefined });
    if (!isRefusal(made) || made.later) return made;
    const mapped = await this.#map(found, name, wholePages(block), facts);
    if (!isRefusal(mapped) || mapped.later) return mapped;
    const slack = await slackOf({ session, arch, elf: this.#elf });
    return reservedScratch(session, arch, given, { ...facts, slack });
  }

  async #map(found: Allocator, name: string, block: Region, facts: PagingFacts): Promise<Scratch | MapRefusal> {
    const made = await mapAgain(this.#session, this.#arch, block, facts);
    if (isRefusal(made)) return { refused: this.#no(found, made.refused), later: made.later };
    return { ...made, source: `${name} ${made.source}; ${found.owner} keeps it for rsptrace` };
  }

  /** The target is at the first instruction of a function where a call is safe: ours comes first. */
  async #call(found: Allocator, entry: Addr, hart: string | undefined, intercept: Intercept): Promise<void> {
    const slack = await textSlack(this.#session, this.#arch, this.#elf);
    if (isRefusal(slack)) return this.#refuse(slack.refused);
    const memory = this.#session.memory(hart);
    if (!(await this.#isOwnCode([found.address, entry], hart)))
      return this.#refuse("its code in the target is not the ELF's");
    const { injectedCall: injected } = this.#arch;
    if (!injected) return;
    const stub = injected.stub(slack.address, entry);
    if (stub === undefined || stub.length > slack.size)
      return this.#refuse('there is no room for a call behind the text');
    const registers = await this.#registers(hart);
    const size = found.sizes(this.#codeSize)[this.#tries] ?? 0;
    const call = injected.enter(registers, slack.address, found.arguments(size));
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
    await intercept([slack.address], async (at) => {
      const after = await this.#registers(at);
      // Another hart is there now: the program's own code is right for it as well.
      if (after.register(this.#arch.sp) !== call.stackPointer) return this.#refuse('its call has returned elsewhere');
      const result = after.register(this.#arch.results[0]) ?? 0n;
      await this.#write(at, before);
      await clear();
      this.#returned(found, addr(result), size);
    });
    await this.#write(hart, [...call.registers, { name: this.#arch.pc, value: found.address }]);
  }

  async #isOwnCode(functions: readonly Addr[], hart: string | undefined): Promise<boolean> {
    const code = (address: Addr, length: number): Uint8Array | undefined => this.#elf.bytesAt(address, length);
    const batch = this.#session.batch(hart);
    const states = functions.map((one) => compareCode(batch, { code, codeChanges: changesItsCode(this.#elf) }, one));
    await batch.send();
    return states.every((state) => state?.() === 'same');
  }

  #returned({ owner, sizes }: Allocator, address: Addr, size: number): void {
    this.#logger.info({ address: address.toString(16), size }, `${owner}'s allocator has answered`);
    this.#tries++;
    if (address !== 0n) this.#state = { kind: 'given', block: { address, size } };
    else if (this.#tries < sizes(this.#codeSize).length) this.#state = { kind: 'new' };
    else this.#refuse(`it has no ${size} bytes left`);
  }

  #refuse(why: string): void {
    this.#state = { kind: 'refused', why };
  }

  #no({ name, owner }: Allocator, why: string): string {
    return `no memory of ${owner}'s allocator (${name}) can be had: ${why}`;
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

function wholePages({ address, size }: Region): Region {
  const before = -Number(address & BigInt(PAGE - 1)) & (PAGE - 1);
  return { address: addOffset(address, before), size: alignDown(Math.max(size - before, 0), PAGE) };
}
