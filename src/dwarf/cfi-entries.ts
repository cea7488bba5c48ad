// CIEs and FDEs of .debug_frame (DWARF 5, section 6.4.1, versions 1, 3 and 4) and .eh_frame (LSB core specification,
// "Exception Frames", version 1):
//
//   length (4) | id or CIE pointer (4) | ...
//   CIE  version (1) | augmentation, NUL | [v4: address size, segment size] | code align (uleb) | data align (sleb) |
//        return address register (v1: 1, else uleb) | [z: length, then data] | initial instructions
//   FDE  first address, length of the range (encoded) | [z: length, then data] | instructions
//
// Augmentations: `eh`, and z with any of R, S, L, P, B, G; of these without z those that have no data. Refused, entry
// by entry: others without z, segments, 32-bit addresses in version 4, pointers that are neither absolute nor relative
// to their place. .eh_frame_hdr is not needed and not read: its search table says nothing that the entries do not.
import { highHalf, lowHalf } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { isDamage, messageOf, RsptraceError } from '../base/errors.js';
import { type CodeAddress, type ElfFile, signedWord } from '../elf/index.js';
import { DW_EH_PE } from './cfi-codes.js';

/** What a CIE's augmentation says of its FDEs. */
interface Augmentation {
  /** Augmentation S: the frame of a signal handler's trampoline, whose caller was interrupted. */
  readonly isSignalFrame: boolean;
  /** How the FDEs' addresses are written (augmentation R). */
  readonly encoding: number;
  readonly hasAugmentationData: boolean;
  /** Augmentation L, how FDEs point to their languages' data: they may have landing pads. Undefined: they have none. */
  readonly lsda: number | undefined;
}

export interface Cie extends Augmentation {
  readonly codeAlign: number;
  readonly dataAlign: number;
  readonly returnAddress: number;
  /** Instructions: a range of the section. */
  readonly start: number;
  readonly end: number;
}

export interface Fde {
  readonly cie: Cie;
  readonly section: CfiSection;
  readonly low: CodeAddress;
  readonly high: CodeAddress;
  /** Augmentation data, up to `start`. */
  readonly data: number;
  readonly start: number;
  readonly end: number;
}

/** One section of call frame information. */
export class CfiSection {
  readonly name: '.eh_frame' | '.debug_frame';
  readonly bytes: Uint8Array;
  readonly #elf: ElfFile;
  readonly #address: CodeAddress;
  /** By offset; undefined for one that cannot be used. */
  readonly #cies = new Map<number, Cie | undefined>();

  constructor(elf: ElfFile, name: '.eh_frame' | '.debug_frame') {
    this.name = name;
    this.bytes = elf.section(name) ?? new Uint8Array(0);
    this.#elf = elf;
    this.#address = elf.codes.toCode(elf.sections.find((s) => s.name === name)?.address ?? 0n);
  }

  /** The FDEs of loaded code, in the order of the file. Unreadable ones are reported to `warn` and left out. */
  *fdes(warn: (message: string) => void): Generator<Fde> {
    let next = 0;
    while (next < this.bytes.length) {
      const at = next;
      try {
        const entry = this.#entryAt(at);
        next = entry.end;
        if (entry.isCie) continue;
        const fde = this.#fde(entry);
        if (fde !== undefined && this.#elf.isLoaded(fde.low)) yield fde;
      } catch (error) {
        if (!isDamage(error)) throw error;
        this.#elf.budget.fault(this.name);
        warn(`${this.name} at offset 0x${at.toString(16)}: ${messageOf(error)}`);
        // Without a length the next entry cannot be found.
        if (next === at) return;
      }
    }
  }

  #entryAt(at: number): Entry {
    const r = new ByteReader(this.bytes, this.name, at);
    const length = r.u32();
    const start = r.offset;
    // An empty entry ends what one object file contributed; others may follow.
    if (length === 0) return { isCie: true, start, end: start, cieAt: 0 };
    if (length > r.remaining || length < 4) throw r.truncated(`an entry of ${length} bytes`);
    const end = start + length;
    const id = r.u32();
    if (this.name === '.eh_frame') return { isCie: id === 0, start: r.offset, end, cieAt: start - id };
    return { isCie: id === 0xffff_ffff, start: r.offset, end, cieAt: id };
  }

  #cie(at: number): Cie | undefined {
    if (!this.#cies.has(at)) {
      // Set first: an error leaves it undefined.
      this.#cies.set(at, undefined);
      const entry = this.#entryAt(at);
      if (entry.isCie && entry.end > entry.start) this.#cies.set(at, this.#readCie(entry));
    }
    return this.#cies.get(at);
  }

  #readCie({ start, end }: Entry): Cie | undefined {
    // Those of a damaged file may overlap many times over.
    this.#elf.budget.spend((end - start) >> 2, this.name);
    const r = new ByteReader(this.bytes, this.name, start, end);
    const version = r.u8();
    if (version !== 1 && version !== 3 && version !== 4) throw refused(`version ${version}`);
    let augmentation = r.cstr();
    if (augmentation.startsWith('eh')) {
      r.skip(8);
      augmentation = augmentation.slice(2);
    }
    if (version === 4) {
      const [addressSize, segmentSize] = [r.u8(), r.u8()];
      if (addressSize !== 8 || segmentSize !== 0) throw refused(`addresses of ${addressSize} + ${segmentSize} bytes`);
    }
    const codeAlign = r.uleb();
    const dataAlign = r.sleb();
    const returnAddress = version === 1 ? r.u8() : r.uleb();
    const augmented = this.#augmentation(augmentation, r);
    return { codeAlign, dataAlign, returnAddress, ...augmented, start: r.offset, end };
  }

  /** What an augmentation string and its data say: LSB, "Exception Frames", section 10.6.1.1.1. */
  #augmentation(text: string, r: ByteReader): Augmentation {
    const found = { encoding: DW_EH_PE.absptr as number, isSignalFrame: false, lsda: undefined as number | undefined };
    if (!text.startsWith('z')) {
      if (!/^[SBG]*$/.test(text)) throw refused(`augmentation "${text.slice(0, 20)}"`);
      return { ...found, isSignalFrame: text.includes('S'), hasAugmentationData: false };
    }
    const length = r.uleb();
    const after = r.offset + length;
    if (length > r.remaining) throw r.truncated('augmentation data');
    for (const letter of text.slice(1)) {
      if (letter === 'R') found.encoding = r.u8();
      else if (letter === 'S') found.isSignalFrame = true;
      else if (letter === 'P') rawPointer(r, r.u8() & 0x0f);
      else if (letter === 'L') {
        found.lsda = r.u8();
        // The length gives the end of what is not known.
      } else if (letter !== 'B' && letter !== 'G') break;
    }
    r.offset = after;
    return { ...found, hasAugmentationData: true };
  }

  #fde({ start, end, cieAt }: Entry): Fde | undefined {
    const cie = cieAt < 0 || cieAt >= this.bytes.length ? undefined : this.#cie(cieAt);
    if (cie === undefined) throw refused('an entry whose CIE is not there or cannot be used');
    const r = new ByteReader(this.bytes, this.name, start, end);
    const low = this.pointer(r, cie.encoding);
    const length = signedWord(...rawPointer(r, cie.encoding & 0x0f));
    const size = cie.hasAugmentationData ? r.uleb() : 0;
    const data = r.offset;
    r.skip(size);
    if (!(length > 0)) return undefined;
    return { cie, section: this, low, high: low + length, data, start: r.offset, end };
  }

  /** Where a function has its language's data, which say where its landing pads are; undefined if it has none. */
  lsda({ cie: { lsda: encoding }, data, start }: Fde): CodeAddress | undefined {
    if (encoding === undefined) return undefined;
    const reader = (): ByteReader => new ByteReader(this.bytes, this.name, data, start);
    if (rawPointer(reader(), encoding & 0x0f).every((word) => word === 0)) return undefined;
    return this.pointer(reader(), encoding);
  }

  /** An encoded pointer; NaN for one outside every address space. */
  pointer(r: ByteReader, encoding: number): CodeAddress {
    const { codes } = this.#elf;
    const here = this.#address + r.offset;
    const [low, high] = rawPointer(r, encoding & 0x0f);
    const application = encoding & 0xf0;
    if (application === DW_EH_PE.pcrel) return codes.plus(here, low, high);
    if (application !== DW_EH_PE.absptr) throw refused(`a pointer encoding 0x${encoding.toString(16)}`);
    return codes.ofFile(low, high);
  }
}

interface Entry {
  readonly isCie: boolean;
  /** Behind the id. */
  readonly start: number;
  readonly end: number;
  readonly cieAt: number;
}

/** A pointer, or a number that is written like one, as two little-endian words. A single one is sign-extended. */
export function rawPointer(r: ByteReader, format: number): [low: number, high: number] {
  switch (format) {
    case DW_EH_PE.absptr:
    case DW_EH_PE.udata8:
    case DW_EH_PE.sdata8:
      return [r.u32(), r.u32()];
    case DW_EH_PE.uleb128: {
      const value = r.uleb64();
      return [lowHalf(value), highHalf(value)];
    }
    case DW_EH_PE.udata4:
      return [r.u32(), 0];
    case DW_EH_PE.sdata4: {
      const value = r.i32();
      return [value >>> 0, value >> 31];
    }
    default:
      throw refused(`a pointer format 0x${format.toString(16)}`);
  }
}

function refused(what: string): RsptraceError {
  return new RsptraceError('DWARF_DAMAGED', `call frame information with ${what} is not served`);
}
