import type { Architecture } from '../arch/index.js';
import { madeOnce } from '../base/made-once.js';
import { type BtfFunction, btfFunctions, type ElfFile } from '../elf/index.js';
import type { ValuePlace } from './argument-places.js';
import type { FunctionArgument } from './describer.js';

/** What BTF says about a function that no DWARF describes. */
export interface BtfSignature {
  readonly arguments: readonly FunctionArgument[];
  /** Also true if that is not known. */
  readonly stackArguments: boolean;
}

const WORD = 8;
/** Larger ones are passed in memory, or by address. */
const largestInRegisters = 16;
const unavailable: ValuePlace = { kind: 'unavailable' };

/** The signatures of a program's functions by their symbols, from its section `.BTF`; undefined if it has none. */
export function btfSignatures(
  elf: ElfFile,
  arch: Architecture,
): ((symbol: string) => BtfSignature | undefined) | undefined {
  const section = elf.section('.BTF');
  if (section === undefined) return undefined;
  const functions = btfFunctions(section, elf.budget);
  /** Many functions have the same: a kernel has tens of thousands. */
  const signatures = new Map<string, BtfSignature>();
  return (symbol) => {
    // BTF has no addresses: of two functions with one name it may describe the other.
    const only = elf.symbols.named(symbol).length === 1;
    const found = only ? functions(symbol) : undefined;
    return found && madeOnce(signatures, JSON.stringify(found), () => signature(arch, found));
  };
}

/**
 * Only the part of the calling conventions (see argument-places.ts) that does not depend on the members of
 * aggregates: integers and pointers take a register each. Values behind an aggregate are unknown, and the registers
 * that it takes are overestimated.
 */
function signature(arch: Architecture, { parameters, variadic, result }: BtfFunction): BtfSignature {
  const inMemory = result.kind === 'words' && (result.size ?? Number.POSITIVE_INFINITY) > largestInRegisters;
  let used = inMemory ? 1 : 0;
  let known = result.size !== undefined;
  let stack = variadic || !known;
  const described = parameters.map(({ name, kind, size }, index): FunctionArgument => {
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
  return { arguments: described, stackArguments: stack || used > arch.arguments.length };
}
