// Damage to ELF files, from a seed: the same seed always makes the same damage, so a failure can be made again.
import { ElfFile, type ElfSection } from '../../src/elf/index.js';

/** Marsaglia's xorshift32: a number from 0 to below `limit`. */
export type Random = (limit: number) => number;

export function randomOf(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  next();
  next();
  return (limit) => (limit <= 0 ? 0 : next() % limit);
}

/** A good file and where its sections and their headers stand. */
export interface Sample {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly sections: readonly ElfSection[];
  readonly headers: number;
}

export function sampleOf(name: string, bytes: Uint8Array): Sample {
  const sections = ElfFile.parse(bytes, name).sections.filter((s) => s.type !== 0 && s.type !== 8 && s.size > 0);
  return {
    name,
    bytes,
    sections,
    headers: Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0x28, true)),
  };
}

/** Numbers at which arithmetic and checks go wrong. */
const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_fffe, 0xffff_ffff];

/** A damaged copy: one to four of the kinds of damage below, each in a section as likely as in any other. */
export function damage(sample: Sample, random: Random): Uint8Array {
  let bytes = Uint8Array.from(sample.bytes);
  for (let count = 1 + random(4); count > 0; count--) bytes = once(bytes, sample, random);
  return bytes;
}

function once(bytes: Uint8Array<ArrayBuffer>, { sections, headers }: Sample, random: Random): Uint8Array<ArrayBuffer> {
  const section = sections[random(sections.length)] as ElfSection;
  const view = new DataView(bytes.buffer);
  const at = section.offset + random(section.size);
  const room = bytes.length - at;
  if (room < 8) return bytes;
  const header = headers + section.index * 64;
  switch (random(12)) {
    case 0:
    case 1:
    case 2:
      bytes[at] = (bytes[at] as number) ^ (1 << random(8));
      return bytes;
    case 3:
    case 4:
      bytes[at] = random(256);
      return bytes;
    case 5:
      view.setUint32(at, EDGES[random(EDGES.length)] as number, true);
      return bytes;
    case 6:
      view.setUint32(at, random(section.size * 2), true);
      return bytes;
    case 7:
      // A LEB128 number that goes on and on.
      bytes.fill(0x80 | random(128), at, at + 1 + random(Math.min(room, 24)));
      return bytes;
    case 8: {
      // A piece of the section over another.
      const from = section.offset + random(section.size);
      bytes.copyWithin(
        at,
        from,
        Math.min(from + 1 + random(64), section.offset + section.size, bytes.length - (at - from)),
      );
      return bytes;
    }
    case 9:
      // The section's own header: sh_flags, sh_offset, sh_size, sh_link, ... or only cut off.
      if (header + 64 > bytes.length) return bytes;
      if (random(3) > 0) view.setBigUint64(header + 32, BigInt(random(section.size)), true);
      else
        view.setUint32(header + 4 * random(16), random(2) ? random(bytes.length) : (EDGES[random(12)] as number), true);
      return bytes;
    case 10:
      bytes[random(64 + 56 * 4)] = random(256);
      return bytes;
    default:
      return random(4) === 0 ? bytes.slice(0, random(bytes.length)) : bytes;
  }
}
