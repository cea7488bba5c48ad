import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { addTo } from '../base/made-once.js';
import {
  type DebugInfo,
  type Die,
  DieCursor,
  DW_TAG,
  demangle,
  functionName,
  linkageNameOf,
  nameOf,
  pathOf,
  stripGenerics,
} from '../dwarf/index.js';
import { type ElfFile, type ElfSymbol, ET } from '../elf/index.js';
import type { ProbeSpec, whiteList } from './kinds/names.js';

/** A function with code of its own, under one of its names. */
export interface NamedFunction {
  readonly address: Addr;
  /** Bytes; 0 if neither the symbol nor the debug info has the size. */
  readonly size: number;
  /** As the symbol table spells it. */
  readonly symbol: string | undefined;
  /** With its modules, without generic arguments. */
  readonly name: string;
  /** With generic arguments. */
  readonly instance: string;
  /** What a glob may match. */
  readonly names: readonly string[];
  readonly die: Die | undefined;
  /** False for a label in code: assembly that is not marked as a function. */
  readonly isFunction: boolean;
}

/** Every function of a program, in order of address: from its symbols, or from the debug info if it has none. */
export function* namedFunctions(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  arch?: Architecture,
): Generator<NamedFunction> {
  let any = false;
  for (const { name: symbol, address, size, type, chooses } of elf.symbols) {
    if (type === 'object' || !isCode(elf, address)) continue;
    any ||= type === 'function';
    if (chooses && arch) {
      const names = (chosen: ElfSymbol): Omit<NamedFunction, 'name' | 'instance' | 'names'> => {
        return { address: chosen.address, size: chosen.size, symbol, die: undefined, isFunction: true };
      };
      for (const chosen of choicesOf(elf, arch, { address, size })) yield named(elf, names(chosen));
      continue;
    }
    const found = debug?.functionAt(address);
    const own = found?.low === address ? found : undefined;
    const length = own ? Number(own.high - own.low) : size;
    yield named(elf, { address, size: length, symbol, die: own?.die, isFunction: type === 'function' });
  }
  if (any || !debug) return;
  for (const unit of debug.units) {
    for (const { die, low, high } of debug.attempt(unit, () => [...subprograms(debug, DieCursor.of(unit))]) ?? []) {
      const symbol = linkageNameOf(die);
      yield named(elf, { address: elf.codes.fromCode(low), size: high - low, symbol, die, isFunction: true });
    }
  }
}

function named(elf: ElfFile, fn: Omit<NamedFunction, 'name' | 'instance' | 'names'>): NamedFunction {
  const { symbol, die } = fn;
  const full = symbol === undefined ? undefined : demangle(symbol, elf.budget);
  const plain = full === undefined ? undefined : stripGenerics(full);
  // Aliases share their code; the debug info describes one of them.
  const own = die && (symbol === undefined || isCalled(die, symbol)) ? die : undefined;
  const name = own ? functionName(own) : (plain ?? '?');
  const path = own && full === symbol ? pathOf(own).join('::') : undefined;
  const instance = path ?? full ?? name;
  const names = [
    ...new Set([name, instance, plain, symbol, die && functionName(die)].filter((text) => text !== undefined)),
  ];
  // No literal begins with a spread, see `engineChoices`.
  return { name, instance, names, ...fn };
}

/** A function of C, or one that is not mangled, has its own name as its symbol. */
function isCalled(die: Die, symbol: string): boolean {
  return (linkageNameOf(die) ?? nameOf(die)) === symbol;
}

/** The functions whose addresses the code of a resolver makes: it returns one of them. */
function choicesOf(
  elf: ElfFile,
  { references }: Architecture,
  resolver: { readonly address: Addr; readonly size: number },
): readonly ElfSymbol[] {
  const code = elf.bytesAt(resolver.address, resolver.size);
  if (!code || !references) return [];
  const chosen = new Map<Addr, ElfSymbol>();
  const names = (to: number): void => {
    const symbol = Number.isNaN(to) ? undefined : elf.symbols.at(elf.codes.fromCode(to));
    if (symbol?.type === 'function' && !symbol.chooses && symbol.size > 0 && elf.codes.toCode(symbol.address) === to)
      chosen.set(symbol.address, symbol);
  };
  const text = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  references.scan(code, {
    ...{ at: elf.codes.toCode(resolver.address), text, starts: [], isFixed: elf.type === ET.EXEC },
    ...{ leads: () => undefined, names, holds: names },
  });
  return [...chosen.values()];
}

function* subprograms(debug: DebugInfo, cursor: DieCursor): Generator<{ die: Die; low: number; high: number }> {
  while (cursor.next()) {
    if (cursor.tag !== DW_TAG.subprogram) continue;
    const [range] = debug.rangesForTable(cursor);
    if (range) yield { die: cursor.die(), low: range.low, high: range.high };
  }
}

function isCode(elf: ElfFile, address: Addr): boolean {
  if (!elf.isLoaded(elf.codes.toCode(address))) return false;
  return elf.isCode(address);
}

/** The functions of a white list, by their addresses, and which probes name any function at all. */
export function functionsMatching(
  all: Iterable<NamedFunction>,
  list: Pick<ReturnType<typeof whiteList>, 'allows'>,
  includes: readonly ProbeSpec[],
): { readonly places: ReadonlyMap<bigint, readonly NamedFunction[]>; readonly matched: ReadonlySet<ProbeSpec> } {
  const matched = new Set<ProbeSpec>();
  const places = new Map<bigint, NamedFunction[]>();
  for (const one of all) {
    for (const spec of includes) if (one.names.some(spec.matches)) matched.add(spec);
    if (!list.allows(one.names, false)) continue;
    addTo(places, one.address, one);
  }
  return { places, matched };
}
