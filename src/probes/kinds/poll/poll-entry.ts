// What a poll function is entered with: `fn poll(self: Pin<&mut Self>, cx: &mut Context) -> Poll<T>`, by Rust's calling
// convention.
import type { Architecture } from '../../../arch/index.js';
import type { PollFunction } from '../../../async/futures/index.js';
import type { Addr } from '../../../base/addr.js';
import type { Die } from '../../../dwarf/index.js';
import type { Shapes } from '../../../values/index.js';
import { type Calling, placeResult, rustConvention } from '../../argument-places.js';

/** Where a poll function is entered, and what its registers hold there and at its return. */
export interface PollEntry {
  readonly address: Addr;
  /** The register that holds the Future's address at entry. */
  readonly selfRegister: string;
  /** The register that holds the address of the result at entry, if the result is too large for registers. */
  readonly resultPointer: string | undefined;
  /** Where the result's discriminant is returned, if that is in registers and the type shows it. */
  readonly resultTag: ResultTag | undefined;
}

/** Bits of a register from `shift` on. */
interface ResultTag {
  readonly register: string;
  readonly shift: number;
}

export function pollEntry(poll: PollFunction, arch: Architecture, shapes: Shapes): PollEntry {
  const [first, second] = arch.arguments as [string, string];
  const known = poll.self === undefined ? undefined : arch.dwarfRegister(poll.self.register);
  const inMemory = known === first ? false : known === second || returnsThroughMemory(arch, shapes, poll);
  return {
    address: poll.address,
    selfRegister: known ?? (inMemory ? second : first),
    resultPointer: inMemory ? first : undefined,
    resultTag: inMemory ? undefined : tagOf(arch, shapes, poll),
  };
}

/** Whether the caller gives an address for the result, in the first register. */
function returnsThroughMemory(arch: Architecture, shapes: Shapes, { resultType }: PollFunction): boolean {
  if (resultType === undefined) return false;
  // A block of bytes above a word: through memory in all versions from 1.65 to 1.96, by the code that they make.
  return placeResult(asInteger(arch, resultType), shapes.of(resultType)).inMemory ?? true;
}

/** Where numbers are makes no difference to these results. */
function asInteger(arch: Architecture, resultType: Die): Calling {
  return { arch, convention: rustConvention(resultType), floats: undefined };
}

/** How Ready differs from Pending in a result that is returned in registers. */
function tagOf(arch: Architecture, shapes: Shapes, { result, resultType }: PollFunction): ResultTag | undefined {
  if (result === undefined || resultType === undefined) return undefined;
  const { offset } = result;
  const { place } = placeResult(asInteger(arch, resultType), shapes.of(resultType));
  const parts = place.kind === 'registers' ? place.parts : [];
  const part = parts.find((at) => offset >= at.offset && offset < at.offset + at.size);
  if (part?.register !== undefined) return { register: part.register, shift: (offset - part.offset) * 8 };
  // A pair with a floating-point number has its tag in the integer register.
  const register = arch.results[offset < 8 ? 0 : 1];
  return register === undefined ? undefined : { register, shift: (offset % 8) * 8 };
}
