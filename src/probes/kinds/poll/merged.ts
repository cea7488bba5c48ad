import type { Architecture } from '../../../arch/index.js';
import type { FutureSet, FutureState, FutureType } from '../../../async/futures/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import { type DebugInfo, type Die, functionsAt, qualifiedName } from '../../../dwarf/index.js';
import { SourceFrames } from '../../../target/unwind/index.js';
import { codeOf } from '../../function-graphs.js';

/** A poll function that belongs to several Futures, and who calls it. */
interface MergedCall {
  readonly address: Addr;
  readonly futures: readonly FutureType[];
  readonly returnAddress: Addr;
  /** The Future in whose poll the call is made, and that holds the one that is polled. */
  readonly outer: FutureType | undefined;
  /** Where the poll of that was inlined; undefined if it is a function. */
  readonly copy: Die | undefined;
}

/**
 * Tells by the code that calls a poll function which of several Futures it polls there. Compiler and linker make one
 * function of those with the same code, and nothing in the function itself distinguishes them.
 */
export class MergedPolls {
  readonly #debug: DebugInfo;
  readonly #futures: FutureSet;
  readonly #arch: Architecture;
  readonly #sources: SourceFrames;
  readonly #known = new Map<Addr, Map<FutureType | undefined, FutureType | undefined>>();

  constructor(debug: DebugInfo, arch: Architecture, futures: FutureSet) {
    this.#futures = futures;
    this.#debug = debug;
    this.#arch = arch;
    this.#sources = new SourceFrames(debug.elf, debug);
  }

  /** The Future that this call polls; undefined if nothing proves it. */
  at(call: MergedCall): FutureType | undefined {
    const { returnAddress, outer } = call;
    const known = madeOnce(this.#known, returnAddress, () => new Map());
    if (!known.has(outer)) known.set(outer, this.#find(call));
    return known.get(outer);
  }

  #find(call: MergedCall): FutureType | undefined {
    const { address, futures, returnAddress, outer, copy } = call;
    const around = functionsAt(this.#debug, addr(returnAddress - 1n));
    const host = around.at(-1);
    if (!host || !this.#callsDirectly(host, returnAddress, address)) return undefined;
    if (outer) {
      const level = copy ? around.findIndex(({ offset }) => offset === copy.offset) : around.length - 1;
      return level < 0 ? undefined : this.#awaitedThere(outer, call, level);
    }
    // A function with type arguments may be one that was made of several itself.
    if (this.#nameOf(host).includes('<')) return undefined;
    for (const [level, die] of around.entries()) {
      const polled = this.#futures.ofCopy(die);
      if (polled && polled.kind !== 'impl') return this.#awaitedThere(polled, call, level);
      const name = this.#nameOf(die);
      const named = futures.filter(({ instance }) => names(name, instance));
      if (named.length > 0) return named.length === 1 ? named[0] : undefined;
    }
    return undefined;
  }

  /** What the states of a Future await whose `.await` stands where the call is made. */
  #awaitedThere(outer: FutureType, { futures, returnAddress }: MergedCall, level: number): FutureType | undefined {
    const place = this.#sources.of({ pc: returnAddress, exact: false })[level];
    const isHere = ({ line, file }: FutureState): boolean => line === place?.line && file === place?.file;
    const found = new Set(
      outer.states.flatMap((state) => {
        const { future } = state.awaitee ?? {};
        return future && isHere(state) && futures.includes(future) ? [future] : [];
      }),
    );
    return found.size === 1 ? [...found][0] : undefined;
  }

  /** A jump in between would show the caller of another function. */
  #callsDirectly(host: Die, returnAddress: Addr, target: Addr): boolean {
    const range = codeOf(host).find(({ low, high }) => low < returnAddress && returnAddress <= high);
    const bytes = range && this.#debug.elf.bytesAt(range.low, Number(range.high - range.low));
    const steps = (bytes && this.#arch.codeFlow?.steps(bytes, range.low)) ?? [];
    return steps.some((step) => step.address + BigInt(step.length) === returnAddress && step.target === target);
  }

  #nameOf(die: Die): string {
    return this.#debug.attempt(die.unit, () => qualifiedName(die)) ?? '<';
  }
}

/** Whether a name has a type among its type arguments, and not only one whose name begins or ends so. */
function names(name: string, type: string): boolean {
  for (let at = name.indexOf(type); at >= 0; at = name.indexOf(type, at + 1)) {
    const [before, behind] = [name[at - 1] ?? '', name[at + type.length] ?? ''];
    if (!/[\w:]/.test(before) && !/[\w:<]/.test(behind)) return true;
  }
  return false;
}
