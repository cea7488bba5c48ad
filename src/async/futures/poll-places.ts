import type { Addr } from '../../base/addr.js';
import type { Die } from '../../dwarf/index.js';
import type { CodeAddress } from '../../elf/index.js';
import type { InlinedPoll, PollFunction } from './types.js';

/** Where one Future is polled. */
export class PollPlaces {
  readonly functions: PollFunction[] = [];
  readonly inlined: InlinedPoll[] = [];
  /** Through these, as `dyn Future`. */
  readonly vtables: Addr[] = [];
  /** One of its poll functions. Its mangled name says which impl block it belongs to. */
  poll: Die | undefined;
  readonly #codes = new Set<CodeAddress>();

  /** Two units may describe one function. */
  add(code: CodeAddress, poll: PollFunction): void {
    if (this.#codes.has(code)) return;
    this.#codes.add(code);
    this.functions.push(poll);
  }
}
