// Gives a stripped ELF (x86_64, little-endian) a symbol table: its functions as the unwind tables know them
// (.eh_frame of the Linux Standard Base, part 10.6.1, whose FDEs have `DW_EH_PE_pcrel | DW_EH_PE_sdata4`). Parts of
// functions that are no entry (`.cold`) are left out: they are known by a first row whose CFA is not rsp+8.

const SYMTAB = 2;
const STRTAB = 3;
const FUNC = 2;
const GLOBAL_FUNC = (1 << 4) | FUNC;

/** The ELF with symbols; undefined if it has some, or no unwind table in the usual form. */
export function withSymbols(bytes) {
  const sections = sectionsOf(bytes);
  if (sections.some(({ type }) => type === SYMTAB)) return undefined;
  const frame = sections.find(({ name }) => name === '.eh_frame');
  const text = sections.findIndex(({ name }) => name === '.text');
  if (frame === undefined || text < 0) return undefined;
  const found = functions(bytes, frame).filter(({ start }) => isIn(start, sections[text]));
  return found.length === 0 ? undefined : append(bytes, sections, found, text);
}

const isIn = (address, { at, size }) => address >= at && address < at + size;

function sectionsOf(bytes) {
  const offset = Number(bytes.readBigUInt64LE(40));
  const count = bytes.readUInt16LE(60);
  const heads = Array.from({ length: count }, (_, i) => {
    const base = offset + 64 * i;
    return {
      nameAt: bytes.readUInt32LE(base),
      type: bytes.readUInt32LE(base + 4),
      at: Number(bytes.readBigUInt64LE(base + 16)),
      offset: Number(bytes.readBigUInt64LE(base + 24)),
      size: Number(bytes.readBigUInt64LE(base + 32)),
    };
  });
  const names = heads[bytes.readUInt16LE(62)];
  return heads.map((head) => {
    const from = names.offset + head.nameAt;
    return { ...head, name: bytes.toString('latin1', from, bytes.indexOf(0, from)) };
  });
}

/** Starts and sizes, sorted. A record is its length, the distance back to its CIE (0: it is one), and the rest. */
function functions(bytes, frame) {
  const found = new Map();
  for (let at = frame.offset, length; at + 4 <= frame.offset + frame.size; at += 4 + length) {
    length = bytes.readUInt32LE(at);
    if (length === 0 || bytes.readUInt32LE(at + 4) === 0) continue;
    const start = frame.at + (at + 8 - frame.offset) + bytes.readInt32LE(at + 8);
    const size = bytes.readUInt32LE(at + 12);
    if (size > 0 && isEntry(bytes, at)) found.set(start, { start, size });
  }
  return [...found.values()].sort((one, other) => one.start - other.start);
}

/** The first instruction of its table moves on, or there is none: the CFA is still what a call leaves. */
function isEntry(bytes, fde) {
  const end = fde + 4 + bytes.readUInt32LE(fde);
  // Behind length, CIE, start, size: the length of the augmentation data, then these.
  const first = fde + 17 + bytes[fde + 16];
  for (let i = first; i < end; i++) {
    const op = bytes[i];
    if (op === 0) continue;
    return op >> 6 === 1 || (op >= 2 && op <= 4);
  }
  return true;
}

function append(bytes, sections, found, text) {
  const names = found.map(({ start }) => `f_${start.toString(16)}\0`);
  // One table of strings for sections and symbols: it begins as that of the sections did.
  const known = sections[bytes.readUInt16LE(62)];
  const before = Buffer.concat([
    bytes.subarray(known.offset, known.offset + known.size),
    Buffer.from('.symtab\0.strtab\0', 'latin1'),
  ]);
  const strings = Buffer.concat([before, Buffer.from(names.join(''), 'latin1')]);
  const table = Buffer.alloc(24 * (found.length + 1));
  let name = before.length;
  for (const [i, { start, size }] of found.entries()) {
    const base = 24 * (i + 1);
    table.writeUInt32LE(name, base);
    table[base + 4] = GLOBAL_FUNC;
    table.writeUInt16LE(text, base + 6);
    table.writeBigUInt64LE(BigInt(start), base + 8);
    table.writeBigUInt64LE(BigInt(size), base + 16);
    name += names[i].length;
  }
  const padding = Buffer.alloc((8 - (bytes.length % 8)) % 8);
  const tableAt = bytes.length + padding.length;
  const stringsAt = tableAt + table.length;
  const headsAt = Math.ceil((stringsAt + strings.length) / 8) * 8;
  const heads = Buffer.alloc(64 * (sections.length + 2));
  bytes.copy(heads, 0, Number(bytes.readBigUInt64LE(40)), Number(bytes.readBigUInt64LE(40)) + 64 * sections.length);
  const write = (index, { nameAt, type, offset, size, link, info, entry }) => {
    const base = 64 * index;
    heads.writeUInt32LE(nameAt, base);
    heads.writeUInt32LE(type, base + 4);
    heads.writeBigUInt64LE(BigInt(offset), base + 24);
    heads.writeBigUInt64LE(BigInt(size), base + 32);
    heads.writeUInt32LE(link, base + 40);
    heads.writeUInt32LE(info, base + 44);
    heads.writeBigUInt64LE(8n, base + 48);
    heads.writeBigUInt64LE(BigInt(entry), base + 56);
  };
  const { length } = sections;
  const nameAt = known.size;
  const strtab = nameAt + '.symtab\0'.length;
  write(length, { nameAt, type: SYMTAB, offset: tableAt, size: table.length, link: length + 1, info: 1, entry: 24 });
  write(length + 1, {
    nameAt: strtab,
    type: STRTAB,
    offset: stringsAt,
    size: strings.length,
    link: 0,
    info: 0,
    entry: 0,
  });
  const gap = Buffer.alloc(headsAt - stringsAt - strings.length);
  const whole = Buffer.concat([bytes, padding, table, strings, gap, heads]);
  whole.writeBigUInt64LE(BigInt(headsAt), 40);
  whole.writeUInt16LE(length + 2, 60);
  whole.writeUInt16LE(length + 1, 62);
  return whole;
}
