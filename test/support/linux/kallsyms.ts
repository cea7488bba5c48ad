// The symbols that a Linux kernel carries in itself (kernel/kallsyms.c, scripts/kallsyms.c), for distributions' kernels, which come
// without a symbol table. In the image, in this order, each aligned to 4 or 8:
//
//   before    offsets (4 each) | base (8) | number (4) | names | markers (4 each) | order (3 each) | tokens | token index (2 each)
//   6.4 on    number (4) | names | markers (4 each) | tokens | token index (2 each) | offsets (4 each) | base (8)
//
// A name is a length (two bytes when the first has bit 7) and so many tokens; its first letter is the type that nm shows.
// A marker is where each 256th name begins. Read: 64-bit kernels with CONFIG_KALLSYMS_BASE_RELATIVE.

export interface KernelSymbol {
  readonly address: bigint;
  /** As in nm: `T`, `t`, `d`, ... */
  readonly type: string;
  readonly name: string;
}

const TOKENS = 256;
const DIGIT = 0x30;
/** How far before the tokens their markers are looked for: names may be indexed by what lies between. */
const MOST_BYTES = 4 << 20;

/**
 * @param percpu CONFIG_KALLSYMS_ABSOLUTE_PERCPU, which x86 has: offsets of which the sign says whether they are absolute
 * @param linked where the kernel is linked, if its image has 0 there: relocations say it
 */
export function kallsyms(image: Buffer, percpu: boolean, linked = 0n): KernelSymbol[] {
  const { tokens, start, end } = tokenTable(image);
  const markers = markersBefore(image, start);
  for (const at of candidates(image, markers)) {
    const symbols = namesAt(image, at, markers, tokens);
    if (symbols === undefined) continue;
    const count = symbols.length;
    const before = at.number - 8 - align(4 * count, 8);
    const behind = align(end, 8);
    for (const offsets of [behind, align(end, 4), before]) {
      const base = offsets === before ? at.number - 8 : align(offsets + 4 * count, 8);
      if (offsets < 0 || base + 8 > image.length) continue;
      const origin = image.readBigUInt64LE(base) || linked;
      if (origin !== linked && origin >> 40n !== 0xff_ffffn) continue;
      if (origin === 0n) continue;
      const addresses = symbols.map((_, index) => {
        const offset = image.readInt32LE(offsets + 4 * index);
        if (!percpu) return origin + BigInt(offset >>> 0);
        return offset >= 0 ? BigInt(offset) : origin - 1n - BigInt(offset);
      });
      if (addresses.every((address, index) => address >= (addresses[index - 1] ?? 0n))) {
        return symbols.map((text, index) => ({
          address: addresses[index] ?? 0n,
          type: text[0] ?? '?',
          name: text.slice(1),
        }));
      }
    }
  }
  throw new Error('no kallsyms were found');
}

/** Digits stand for themselves, so that the table holds `0\0 1\0 ... 9\0`. */
function tokenTable(image: Buffer): { tokens: string[]; start: number; end: number } {
  const digits = Buffer.from([...'0123456789'].flatMap((digit) => [digit.charCodeAt(0), 0]));
  for (let at = image.indexOf(digits); at >= 0; at = image.indexOf(digits, at + 1)) {
    const starts: number[] = [];
    let end = at;
    for (let token = DIGIT; token < TOKENS; token++) {
      starts[token] = end;
      end = image.indexOf(0, end) + 1;
    }
    for (const index of [align(end, 8), align(end, 4), align(end, 2)]) {
      const start = at - image.readUInt16LE(index + 2 * DIGIT);
      const offsets = Array.from({ length: TOKENS }, (_, token) => image.readUInt16LE(index + 2 * token));
      if (offsets[0] !== 0 || starts.some((place, token) => place - start !== offsets[token])) continue;
      const tokens = offsets.map((offset) =>
        image.toString('latin1', start + offset, image.indexOf(0, start + offset)),
      );
      return { tokens, start, end: index + 2 * TOKENS };
    }
  }
  throw new Error('no token table was found');
}

interface Markers {
  readonly at: number;
  readonly values: readonly number[];
}

/** The longest run of numbers before the tokens that begins with 0 and rises as 256 names do. */
function markersBefore(image: Buffer, end: number): Markers {
  let best: Markers = { at: end, values: [] };
  for (let at = align(end - 4, 4); at > end - MOST_BYTES && at > 0; at -= 4) {
    if (image.readUInt32LE(at) !== 0) continue;
    const values = [0];
    for (let next = at + 4; next + 4 <= end; next += 4) {
      const value = image.readUInt32LE(next);
      const rise = value - (values.at(-1) ?? 0);
      if (rise < 2 * 256 || rise > 256 * 520) break;
      values.push(value);
    }
    if (values.length > best.values.length) best = { at, values };
  }
  return best;
}

function* candidates(image: Buffer, { at, values }: Markers): Generator<{ number: number; names: number }> {
  const last = values.at(-1) ?? 0;
  for (let names = align(at - last, 4); names > at - last - 256 * 520 && names >= 8; names -= 4) {
    for (const number of [names - 4, names - 8]) {
      if (Math.ceil(image.readUInt32LE(number) / 256) === values.length) yield { number, names };
    }
  }
}

function namesAt(
  image: Buffer,
  { number, names }: { number: number; names: number },
  markers: Markers,
  tokens: readonly string[],
): string[] | undefined {
  const count = image.readUInt32LE(number);
  const found: string[] = [];
  let at = names;
  for (let index = 0; index < count; index++) {
    if (index % 256 === 0 && at - names !== markers.values[index / 256]) return undefined;
    let length = image[at++] ?? 0;
    if (length >= 0x80) length = (length & 0x7f) | ((image[at++] ?? 0) << 7);
    if (length === 0 || at + length > markers.at) return undefined;
    let text = '';
    for (const token of image.subarray(at, at + length)) text += tokens[token];
    found.push(text);
    at += length;
  }
  return markers.at - at < 8 ? found : undefined;
}

function align(value: number, to: number): number {
  return Math.ceil(value / to) * to;
}
