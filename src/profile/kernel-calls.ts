import { madeOnce } from '../base/made-once.js';
import { textOf } from '../base/proc.js';

/** A function of the kernel that begins a system call. */
interface CallCode {
  readonly name: string;
  readonly low: bigint;
  /** Where the next symbol begins. */
  readonly high: bigint;
}

/** `__x64_sys_read`, and what that may end with a jump to: `ksys_read`, `__sys_sendto`. */
const call = /^([0-9a-f]{16}) [tT] (?:k|__(?:[a-z0-9]+_)?)sys_(\w+)\n(?=([0-9a-f]{16}))/gm;

/** Which system call the kernel is in, by its symbols. Few users may see where these are. */
export class KernelCalls {
  readonly #symbols: () => string;
  #calls: readonly CallCode[] | undefined;
  /** By return addresses; '' for one that is in none of them. */
  readonly #known = new Map<bigint, string>();

  constructor(symbols = () => textOf('/proc/kallsyms')) {
    this.#symbols = symbols;
  }

  /** `chain`: where the kernel is, and return addresses. */
  of(chain: readonly bigint[]): string | undefined {
    return chain.map((at) => madeOnce(this.#known, at, () => this.#at(at))).find((name) => name !== '');
  }

  #at(address: bigint): string {
    this.#calls ??= [...this.#symbols().matchAll(call)].map(([, low, name = '', high]) => {
      return { name, low: BigInt(`0x${low}`), high: BigInt(`0x${high}`) };
    });
    return this.#calls.find(({ low, high }) => address >= low && address < high)?.name ?? '';
  }
}
