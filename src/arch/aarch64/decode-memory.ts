// Arm Architecture Reference Manual for A-profile (DDI 0487), C4.1: "Loads and stores".
import { bit, field } from '../instructions.js';

/** A load or store. Registers are general ones, or vectors (`isVector`). */
export interface Memory {
  readonly form: 'memory';
  /** `both`: an atomic operation. */
  readonly access: 'load' | 'store' | 'both' | 'prefetch';
  readonly rt: number;
  /** Of a pair: the second register, whose memory lies behind the first's. */
  readonly rt2: number | undefined;
  /** 31 is sp; undefined for a literal, whose `offset` counts from the instruction. */
  readonly rn: number | undefined;
  /** Undefined if a register is added. */
  readonly offset: number | undefined;
  /** `pre` and `post`: rn becomes rn + offset; `post`: only after the access, which is at rn itself. */
  readonly mode: 'offset' | 'pre' | 'post';
  /** Bytes of one register in memory; 0 if they are not known. */
  readonly size: number;
  /** Of a load that extends a sign: bytes of the result. */
  readonly signed: 4 | 8 | undefined;
  readonly isVector: boolean;
  /** The general register that gets whether a store-exclusive has stored. */
  readonly status: number | undefined;
  /** Registers that it reads beyond these, and its kind if it is exclusive. */
  readonly rm: number | undefined;
  readonly exclusive: 'begins' | 'ends' | undefined;
  /** It writes memory's tags, or reads one (FEAT_MTE). */
  readonly tags: boolean;
}

/** Undefined for what is no load or store that is known: copies of memory. */
export function accessOf(word: number): Memory | undefined {
  if ((word & 0xff20_0000) >>> 0 === 0xd920_0000) return tagged(word);
  if ((word & 0x3a00_0000) >>> 0 === 0x2800_0000) return pair(word);
  if ((word & 0x3b00_0000) >>> 0 === 0x1800_0000) return literal(word);
  if ((word & 0x3f00_0000) >>> 0 === 0x0800_0000) return exclusive(word);
  if ((word & 0x3a00_0000) >>> 0 === 0x3800_0000) return single(word);
  if ((word & 0x3b20_0c00) >>> 0 === 0x1900_0000) return sized(word, { offset: (word << 11) >> 23, mode: 'offset' });
  // Structures of vectors: post-indexed where bit 23 is set.
  if ((word & 0xbe00_0000) >>> 0 === 0x0c00_0000) return structures(word);
  return undefined;
}

const plain = {
  form: 'memory',
  rt2: undefined,
  mode: 'offset',
  signed: undefined,
  isVector: false,
  status: undefined,
  rm: undefined,
  exclusive: undefined,
  tags: false,
} as const;

function pair(word: number): Memory {
  const isVector = bit(word, 26);
  const opc = field(word, 31, 30);
  // stgp, for whose two registers of 8 bytes there is one tag.
  const tags = !isVector && opc === 1 && !bit(word, 22);
  const size = isVector ? 4 << opc : opc === 2 || tags ? 8 : 4;
  const mode = (['offset', 'post', 'offset', 'pre'] as const)[field(word, 24, 23)] as Memory['mode'];
  return {
    ...plain,
    access: bit(word, 22) ? 'load' : 'store',
    rt: field(word, 4, 0),
    rt2: field(word, 14, 10),
    rn: field(word, 9, 5),
    offset: ((word << 10) >> 25) * (tags ? 16 : size),
    mode,
    size,
    // ldpsw.
    signed: !isVector && opc === 1 && !tags ? 8 : undefined,
    isVector,
    tags,
  };
}

/** stg, stzg, st2g, stz2g; ldg, and those of whole blocks: stgm, stzgm, ldgm. */
function tagged(word: number): Memory {
  const [opc, index] = [field(word, 23, 22), field(word, 11, 10)];
  const loads = index === 0 && (opc & 1) === 1;
  return {
    ...plain,
    access: loads ? 'both' : 'store',
    rt: field(word, 4, 0),
    rn: field(word, 9, 5),
    offset: ((word << 11) >> 23) * 16,
    mode: (['offset', 'post', 'offset', 'pre'] as const)[index] as Memory['mode'],
    size: 0,
    tags: true,
  };
}

function literal(word: number): Memory {
  const isVector = bit(word, 26);
  const opc = field(word, 31, 30);
  return {
    ...plain,
    access: !isVector && opc === 3 ? 'prefetch' : 'load',
    rt: field(word, 4, 0),
    rn: undefined,
    offset: ((word << 8) >> 13) * 4,
    size: isVector ? 4 << opc : opc === 1 ? 8 : 4,
    signed: !isVector && opc === 2 ? 8 : undefined,
    isVector,
  };
}

/** Exclusive and ordered accesses, compare and swap. */
function exclusive(word: number): Memory {
  const [isLoad, isOrdered, hasTwo] = [bit(word, 22), bit(word, 23), bit(word, 21)];
  const rt2 = field(word, 14, 10);
  const isPair = !isOrdered && hasTwo && bit(word, 31);
  const common = { ...plain, rt: field(word, 4, 0), rn: field(word, 9, 5), offset: 0, size: 1 << field(word, 31, 30) };
  // cas, casp: rs gets what was there.
  if (hasTwo && !isPair) {
    const isWide = bit(word, 30);
    const size = isOrdered ? common.size : 2 * (isWide ? 8 : 4);
    return { ...common, access: 'both', size, status: field(word, 20, 16) };
  }
  return {
    ...common,
    access: isLoad ? 'load' : 'store',
    rt2: isPair ? rt2 : undefined,
    status: isLoad || isOrdered ? undefined : field(word, 20, 16),
    exclusive: isOrdered ? undefined : isLoad ? 'begins' : 'ends',
  };
}

function single(word: number): Memory | undefined {
  if (bit(word, 24)) {
    const { size } = sized(word, { offset: 0, mode: 'offset' });
    return sized(word, { offset: field(word, 21, 10) * size, mode: 'offset' });
  }
  const imm9 = (word << 11) >> 23;
  if (!bit(word, 21)) {
    const mode = (['offset', 'post', 'offset', 'pre'] as const)[field(word, 11, 10)] as Memory['mode'];
    return sized(word, { offset: imm9, mode });
  }
  switch (field(word, 11, 10)) {
    case 0b10:
      return sized(word, { offset: undefined, mode: 'offset', rm: field(word, 20, 16) });
    case 0b00:
      // ldadd, swp and so on; ldapr has no rs.
      return {
        ...sized(word, { offset: 0, mode: 'offset' }),
        access: 'both',
        signed: undefined,
        rm: field(word, 20, 16),
      };
    default:
      // ldraa, ldrab: from an address that is authenticated.
      return { ...sized(word, { offset: undefined, mode: bit(word, 11) ? 'pre' : 'offset' }), access: 'load' };
  }
}

/** What bits 31:30, 26 and 23:22 say of a single register. */
function sized(word: number, how: Pick<Memory, 'offset' | 'mode'> & { readonly rm?: number }): Memory {
  const isVector = bit(word, 26);
  const [log, opc] = [field(word, 31, 30), field(word, 23, 22)];
  const isPrefetch = !isVector && log === 3 && opc === 2;
  const isLoad = isVector ? (opc & 1) === 1 : opc !== 0;
  return {
    ...plain,
    access: isPrefetch ? 'prefetch' : isLoad ? 'load' : 'store',
    rt: field(word, 4, 0),
    rn: field(word, 9, 5),
    ...how,
    rm: how.rm,
    size: isVector ? 1 << (log | ((opc & 2) << 1)) : 1 << log,
    signed: isVector || opc < 2 || isPrefetch ? undefined : opc === 2 ? 8 : 4,
    isVector,
  };
}

function structures(word: number): Memory {
  const isPost = bit(word, 23);
  return {
    ...plain,
    access: bit(word, 22) ? 'load' : 'store',
    rt: field(word, 4, 0),
    rn: field(word, 9, 5),
    offset: isPost ? undefined : 0,
    mode: isPost ? 'post' : 'offset',
    size: 0,
    isVector: true,
  };
}
