import type { Addr } from '../../base/addr.js';
import {
  alignmentOf,
  type DebugInfo,
  type Die,
  linkageNameOf,
  namedPath,
  pathOf,
  stripGenerics,
  typeName,
} from '../../dwarf/index.js';
import type { CodeAddress } from '../../elf/index.js';
import { type FutureLookup, fieldsOf, holdsOfFields, readStates, type StateMachine } from './layout.js';
import { pollTypeOf, returnsNothing } from './poll-functions.js';
import { asWritten } from './short-names.js';
import {
  type FutureKind,
  type FutureType,
  type HeldFuture,
  type InlinedPoll,
  NEVER,
  type PollFunction,
  type StateLocal,
} from './types.js';

/** One Future, filled while the debug info is read. Expensive parts are read on first use. */
export class FutureEntry implements FutureType {
  readonly kind: FutureKind;
  readonly instance: string;
  readonly size: number;
  readonly align: number | undefined;
  readonly polled = new PollPlaces();
  readonly #lookup: FutureLookup;
  readonly #type: Die;
  #future: string | undefined;
  #machine: StateMachine | undefined;
  #holds: readonly HeldFuture[] | undefined;

  constructor(lookup: FutureLookup, type: Die, kind: FutureKind, instance: string, size: number) {
    this.#lookup = lookup;
    this.#type = type;
    this.kind = kind;
    this.instance = instance;
    this.size = size;
    this.align = alignmentOf(type);
  }

  get typeOffset(): number {
    return this.#type.offset;
  }

  get polls(): readonly PollFunction[] {
    return this.polled.functions;
  }

  get inlined(): readonly InlinedPoll[] {
    return this.polled.inlined;
  }

  get isTypeOnly(): boolean {
    const { poll, functions, inlined } = this.polled;
    return this.kind === 'impl' && poll === undefined && functions.length === 0 && inlined.length === 0;
  }

  get vtables(): readonly Addr[] {
    return this.polled.vtables;
  }

  get #debug(): DebugInfo {
    return this.#type.unit.debug;
  }

  get future(): string {
    this.#future ??= this.kind === 'impl' ? stripGenerics(this.instance) : this.#coroutineName();
    return this.#future;
  }

  get crate(): string {
    // The place of the impl block: `impl Future for Box<F>` belongs to alloc, whatever F is.
    return pathOf((this.kind === 'impl' && this.polled.poll) || this.#type)[0] ?? '';
  }

  get file(): string | undefined {
    return this.#declaration.file;
  }

  get line(): number | undefined {
    return this.#declaration.line;
  }

  get discriminant(): { readonly offset: number; readonly size: number } | undefined {
    return this.#states.discriminant;
  }

  get states(): StateMachine['states'] {
    return this.#states.states;
  }

  get output(): string | undefined {
    const { poll } = this.polled;
    if (poll && this.#attempt(() => returnsNothing(poll))) return NEVER;
    const name = poll && this.#attempt(() => typeName(pollTypeOf(poll)));
    return name === undefined ? undefined : /^core::task::poll::Poll<(.*)>$/.exec(name)?.[1];
  }

  get fields(): readonly StateLocal[] {
    if (this.kind !== 'impl') return [];
    return this.#attempt(() => fieldsOf(this.#type)) ?? [];
  }

  get holds(): readonly HeldFuture[] {
    if (this.kind !== 'impl') return [];
    this.#holds ??= this.#attempt(() => holdsOfFields(this.#type, this.#lookup.held)) ?? [];
    return this.#holds;
  }

  get #states(): StateMachine {
    this.#machine ??= (this.kind !== 'impl' && this.#attempt(() => readStates(this.#type, this.#lookup))) || {
      discriminant: undefined,
      states: [],
    };
    return this.#machine;
  }

  #attempt<T>(read: () => T): T | undefined {
    return this.#debug.attempt(this.#type.unit, read);
  }

  get #declaration(): { readonly file: string | undefined; readonly line: number | undefined } {
    const first = this.states.find((s) => s.name === 'Unresumed');
    if (first?.line !== undefined) return first;
    const { poll } = this.polled;
    return (
      (poll && this.#debug.attempt(poll.unit, () => this.#debug.declarationOf(poll))) ?? {
        file: undefined,
        line: undefined,
      }
    );
  }

  #coroutineName(): string {
    const path = pathOf(this.#type);
    const own = /^\{(async_\w+)_env(#\d+)\}/.exec(path.pop() ?? '');
    const { poll } = this.polled;
    const named = namedPath([...path, `{${own?.[1]}${own?.[2]}}`], poll && linkageNameOf(poll), this.#debug.elf.budget);
    return asWritten(named.filter((part) => !/^\{async_(fn|closure)#\d+\}$/.test(part))).join('::');
  }
}

/** Where one Future is polled. */
class PollPlaces {
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
