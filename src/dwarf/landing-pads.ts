// Where exceptions come back into a function: the call sites of its language's data (.gcc_except_table), which GCC and
// LLVM write alike for every language (LSB core specification, "Exception Frames"; GCC's unwind-pe.h):
//
//   pads' base: encoding (1), a pointer unless it is omitted | types: encoding (1), their distance (uleb) unless omitted |
//   call sites: encoding (1) | their length (uleb) | each: start, length, pad (encoded numbers) | action (uleb)
import { ByteReader } from '../base/byte-reader.js';
import { isDamage } from '../base/errors.js';
import { type CodeAddress, type ElfFile, signedWord } from '../elf/index.js';
import { DW_EH_PE } from './cfi-codes.js';
import { type Fde, rawPointer } from './cfi-entries.js';

/**
 * The landing pads of a function. Undefined if they cannot be read: data that is damaged, of another kind, or of which
 * a call site lies outside of the function.
 */
export function landingPads(elf: ElfFile, fde: Fde): readonly CodeAddress[] | undefined {
  try {
    const at = fde.section.lsda(fde);
    return at === undefined ? [] : read(elf, at, fde);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}

function read(elf: ElfFile, at: CodeAddress, { low, high }: Fde): readonly CodeAddress[] | undefined {
  const section = elf.sections.find(({ address, size }) => {
    const from = at - elf.codes.toCode(address);
    return address > 0n && from >= 0 && from < size;
  });
  const bytes = section && elf.rawSection(section);
  if (!bytes) return undefined;
  const r = new ByteReader(bytes, section.name, at - elf.codes.toCode(section.address));
  // No compiler writes a base of its own where the pads are in the function.
  if (r.u8() !== DW_EH_PE.omit) return undefined;
  if (r.u8() !== DW_EH_PE.omit) r.uleb();
  const encoding = r.u8();
  const length = r.uleb();
  if (length > r.remaining) throw r.truncated('the call sites');
  const sites = r.at(r.offset, r.offset + length);
  elf.budget.spend(sites.remaining, section.name);
  const number = (): number => signedWord(...rawPointer(sites, encoding));
  const pads: CodeAddress[] = [];
  for (let before = 0; sites.remaining > 0; ) {
    const [start, size, pad] = [number(), number(), number()];
    sites.uleb();
    const end = start + size;
    if (!(start >= before && size >= 0 && low + end <= high && pad >= 0 && low + pad < high)) return undefined;
    if (pad > 0) pads.push(low + pad);
    before = end;
  }
  return pads;
}
