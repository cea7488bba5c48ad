/*
 * GDB manual, "Memory Map Format": <memory type start length>. Properties are passed over. Refused: more than 4096
 * regions, numbers beyond 64 bits. Types that are not known count as RAM.
 */

import { type Addr, addr } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import { readXml } from './xml.js';

/** A piece of the target's memory, as its stub describes it. */
export interface MemoryRegion {
  /** A trap instruction cannot be written into `rom`, nor into `flash` without programming it. */
  readonly type: 'ram' | 'rom' | 'flash';
  readonly start: Addr;
  /** In bytes. */
  readonly length: bigint;
}

const MOST_REGIONS = 4096;
const NUMBER = /^(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})$/;

/** Reads a memory map. Throws `RSP_BAD_XML`. */
export function parseMemoryMap(text: string): MemoryRegion[] {
  const regions: MemoryRegion[] = [];
  readXml(text, 'memory map', {
    open: ({ name, attributes }) => {
      if (name !== 'memory') return;
      const [start = '', length = ''] = [attributes.get('start'), attributes.get('length')];
      if (!NUMBER.test(start) || !NUMBER.test(length) || regions.length === MOST_REGIONS) {
        throw new RsptraceError('RSP_BAD_XML', "The stub's memory map has a region without a place, or too many");
      }
      const said = attributes.get('type');
      const type = said === 'rom' || said === 'flash' ? said : 'ram';
      regions.push({ type, start: addr(BigInt(start)), length: BigInt(length) });
    },
  });
  return regions;
}

/** The region that an address lies in. */
export function regionOf(regions: readonly MemoryRegion[], address: Addr): MemoryRegion | undefined {
  return regions.find(({ start, length }) => address >= start && address - start < length);
}

/*
 * GDB manual, "Library List Format for SVR4 Targets": what the dynamic loader has loaded. The object of qXfer is
 * `libraries-svr4`.
 *
 *   <library-list-svr4 version="1.0" main-lm="0x...">
 *     <library name="PATH" lm="0x..." l_addr="0x..." l_ld="0x..."/> ...
 *
 * At most 16,384 libraries are kept.
 */

export interface ListedLibrary {
  /** A path on the target's machine. */
  readonly name: string;
  /** How far from its own addresses it was loaded. */
  readonly bias: Addr;
}

const MOST = 16_384;

/** The libraries of a list, without those that have no name. Throws `RSP_BAD_XML`. */
export function parseLibraryList(text: string): ListedLibrary[] {
  const found: ListedLibrary[] = [];
  readXml(text, 'list of libraries', {
    open: ({ name, attributes }) => {
      const [path, bias] = [attributes.get('name'), attributes.get('l_addr')];
      if (name !== 'library' || !path || !bias || !/^0x[0-9a-f]{1,16}$/i.test(bias) || found.length >= MOST) return;
      found.push({ name: path, bias: addr(BigInt(bias)) });
    },
  });
  return found;
}
