// Builds small ELF64 files section by section, right or wrong as told: gABI chapters 4 and 5.

/** Little-endian bytes that grow. */
export class ByteWriter {
  readonly #bytes: number[] = [];

  get length(): number {
    return this.#bytes.length;
  }

  bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  uint(value: number | bigint, size: number): this {
    let rest = BigInt.asUintN(size * 8, BigInt(value));
    for (let i = 0; i < size; i++, rest >>= 8n) this.#bytes.push(Number(rest & 0xffn));
    return this;
  }

  u8(value: number): this {
    return this.uint(value, 1);
  }

  uleb(value: number | bigint): this {
    let rest = BigInt(value);
    do {
      const low = Number(rest & 0x7fn);
      rest >>= 7n;
      this.u8(rest === 0n ? low : low | 0x80);
    } while (rest !== 0n);
    return this;
  }

  sleb(value: number | bigint): this {
    let rest = BigInt(value);
    for (;;) {
      const low = Number(rest & 0x7fn);
      rest >>= 7n;
      const last = (rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0);
      this.u8(last ? low : low | 0x80);
      if (last) return this;
    }
  }

  cstr(text: string): this {
    return this.raw(Buffer.from(`${text}\0`));
  }

  raw(bytes: Uint8Array | readonly number[]): this {
    for (const byte of bytes) this.#bytes.push(byte);
    return this;
  }

  /** Overwrites what stands at an offset. */
  patch(at: number, value: number | bigint, size: number): void {
    let rest = BigInt(value);
    for (let i = 0; i < size; i++, rest >>= 8n) this.#bytes[at + i] = Number(rest & 0xffn);
  }
}

export interface SectionSpec {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly type?: number;
  readonly flags?: number;
  readonly address?: bigint;
  readonly link?: number;
  readonly info?: number;
  readonly entrySize?: number;
}

export interface ElfSpec {
  readonly type?: number;
  readonly machine?: number;
  readonly sections?: readonly SectionSpec[];
  /** PT_LOAD segments. */
  readonly loads?: readonly { readonly address: bigint; readonly bytes: Uint8Array; readonly memorySize?: number }[];
}

/** An ELF64 file: header, program headers, segments, sections, .shstrtab, section headers. */
export function writeElf(spec: ElfSpec): Uint8Array {
  const sections = spec.sections ?? [];
  const loads = spec.loads ?? [];
  const names = new ByteWriter().u8(0);
  const nameAt = [...sections.map((s) => s.name), '.shstrtab'].map((name) => {
    const at = names.length;
    names.cstr(name);
    return at;
  });
  const all: SectionSpec[] = [...sections, { name: '.shstrtab', bytes: names.bytes(), type: 3 }];
  const body = new ByteWriter();
  const base = 64 + loads.length * 56;
  const place = (bytes: Uint8Array): number => {
    const at = base + body.length;
    body.raw(bytes);
    return at;
  };
  const loadAt = loads.map((l) => place(l.bytes));
  const sectionAt = all.map((s) => place(s.bytes));
  const out = new ByteWriter();
  out.raw([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  out
    .uint(spec.type ?? 2, 2)
    .uint(spec.machine ?? 243, 2)
    .uint(1, 4)
    .uint(0x1000, 8);
  out
    .uint(loads.length > 0 ? 64 : 0, 8)
    .uint(base + body.length, 8)
    .uint(0, 4);
  out
    .uint(64, 2)
    .uint(56, 2)
    .uint(loads.length, 2)
    .uint(64, 2)
    .uint(all.length + 1, 2)
    .uint(all.length, 2);
  loads.forEach((l, i) => {
    const at = loadAt[i] as number;
    out.uint(1, 4).uint(5, 4).uint(at, 8).uint(l.address, 8).uint(l.address, 8);
    out
      .uint(l.bytes.length, 8)
      .uint(l.memorySize ?? l.bytes.length, 8)
      .uint(0x1000, 8);
  });
  out.raw(body.bytes());
  out.raw(new Uint8Array(64));
  all.forEach((s, i) => {
    out
      .uint(nameAt[i] as number, 4)
      .uint(s.type ?? 1, 4)
      .uint(s.flags ?? 0, 8)
      .uint(s.address ?? 0n, 8);
    out
      .uint(sectionAt[i] as number, 8)
      .uint(s.bytes.length, 8)
      .uint(s.link ?? 0, 4)
      .uint(s.info ?? 0, 4);
    out.uint(1, 8).uint(s.entrySize ?? 0, 8);
  });
  return out.bytes();
}
