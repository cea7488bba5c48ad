import type { Architecture } from '../arch/index.js';
import { type BtfFunction, btfFunctions, type ElfFile } from '../elf/index.js';
import type { ValuePlace } from './argument-places.js';
import type { FunctionArgument } from './resolve-functions.js';

/** What BTF tells of a function that no DWARF describes. */
export interface BtfSignature {
  readonly arguments: readonly FunctionArgument[];
  /** True as well where that cannot be told. */
  readonly stackArguments: boolean;
}

const WORD = 8;
/** Larger ones are passed in memory, or by address. */
const largestInRegisters = 16;
const unavailable: ValuePlace = { kind: 'unavailable' };

/** The signatures of a program's functions by their symbols, out of its section `.BTF`; undefined where it has none. */
export function btfSignatures(
  elf: ElfFile,
  arch: Architecture,
): ((symbol: string) => BtfSignature | undefined) | undefined {
  const section = elf.section('.BTF');
  if (section === undefined) return undefined;
  const functions = btfFunctions(section, elf.budget);
  return (symbol) => {
    // BTF tells no addresses: of two functions of one name it may describe the other.
    const only = elf.symbols.named(symbol).length === 1;
    const found = only ? functions(symbol) : undefined;
    return found && signature(arch, found);
  };
}

/**
 * Of the calling conventions (see argument-places.ts) only so much as is sure without the members of aggregates:
 * integers and pointers take a register each. Behind an aggregate no value is told, and what it takes is counted
 * high.
 */
function signature(arch: Architecture, { parameters, variadic, result }: BtfFunction): BtfSignature {
  const inMemory = result.kind === 'words' && (result.size ?? Number.POSITIVE_INFINITY) > largestInRegisters;
  let used = inMemory ? 1 : 0;
  let known = result.size !== undefined;
  let stack = variadic || !known;
  const told = parameters.map(({ name, kind, size }, index): FunctionArgument => {
    let where = unavailable;
    if (kind === 'words') {
      known = false;
      if (size === undefined || size > largestInRegisters) stack = true;
      // RISC-V begins a pair at an even register.
      else used += size > WORD ? 3 : 1;
    } else {
      const register = arch.arguments[used++];
      const mask = size === undefined || size >= WORD ? {} : { mask: (1n << BigInt(8 * size)) - 1n };
      if (known && register !== undefined) {
        where = { kind: 'registers', parts: [{ register, offset: 0, size: WORD, ...mask }] };
      }
    }
    return { name: name ?? `arg${index}`, type: undefined, shape: undefined, where };
  });
  return { arguments: told, stackArguments: stack || used > arch.arguments.length };
}
