import type { Addr } from '../base/addr.js';
import type { DebugInfo, Die } from '../dwarf/index.js';
import { DW_AT, linkageNameOf, namedPath, pathOf, stripGenerics, typeName } from '../dwarf/index.js';
import type { CodeAddress } from '../elf/index.js';
import { type FutureLookup, fieldsOf, holdsOfFields, readStates, type StateMachine } from './layout.js';
import { pollTypeOf } from './poll-functions.js';
import type { FutureKind, FutureType, HeldFuture, InlinedPoll, PollFunction, StateLocal } from './types.js';

/** One Future, filled while the debug info is read. Expensive parts are read on first use. */
export class FutureEntry implements FutureType {
  readonly kind: FutureKind;
  readonly instance: string;
  readonly size: number;
  readonly polls: PollFunction[] = [];
  readonly inlined: InlinedPoll[] = [];
  readonly vtables: Addr[] = [];
  readonly typeOffset: number;
  readonly align: number | undefined;
  readonly #debug: DebugInfo;
  readonly #lookup: FutureLookup;
  readonly #type: Die;
  readonly #pollCodes = new Set<CodeAddress>();
  /** One of its poll functions. Its mangled name says which impl block it belongs to. */
  #poll: Die | undefined;
  #future: string | undefined;
  #machine: StateMachine | undefined;
  #holds: readonly HeldFuture[] | undefined;

  constructor(debug: DebugInfo, lookup: FutureLookup, type: Die, kind: FutureKind, instance: string, size: number) {
    this.#debug = debug;
    this.#lookup = lookup;
    this.#type = type;
    this.kind = kind;
    this.instance = instance;
    this.size = size;
    this.typeOffset = type.offset;
    this.align = type.number(DW_AT.alignment);
  }

  /** Two units may describe one function. */
  addPoll(code: CodeAddress, poll: PollFunction): void {
    if (this.#pollCodes.has(code)) return;
    this.#pollCodes.add(code);
    this.polls.push(poll);
  }

  polledBy(fn: Die): void {
    this.#poll ??= fn;
  }

  get future(): string {
    this.#future ??= this.kind === 'impl' ? stripGenerics(this.instance) : this.#coroutineName();
    return this.#future;
  }

  get crate(): string {
    // The place of the impl block: `impl Future for Box<F>` belongs to alloc, whatever F is.
    return pathOf(this.kind === 'impl' && this.#poll !== undefined ? this.#poll : this.#type)[0] ?? '';
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
    const poll = this.#poll;
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
    this.#machine ??= (this.kind !== 'impl' &&
      this.#attempt(() => readStates(this.#debug, this.#type, this.#lookup))) || {
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
    const poll = this.#poll;
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
    const named = namedPath(
      [...path, `{${own?.[1]}${own?.[2]}}`],
      this.#poll && linkageNameOf(this.#poll),
      this.#debug.elf.budget,
    );
    return named.filter((part) => !/^\{async_(fn|closure)#\d+\}$/.test(part)).join('::');
  }
}
