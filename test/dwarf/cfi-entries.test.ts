// CIEs and FDEs written by hand: DWARF 5, section 6.4.1, and the LSB core specification, "Exception Frames".
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { DW_EH_PE as PE } from '../../src/dwarf/cfi-codes.js';
import { CfiSection, type Fde } from '../../src/dwarf/cfi-entries.js';
import { CallFrames } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { ByteWriter, writeElf } from '../support/elf-writer.js';

const TEXT = 0x1000;
const FRAMES = 0x3000;
const TABLE = 0x4000;
/** The function that the entries are about. */
const LOW = 0x1100;

type Name = '.eh_frame' | '.debug_frame';

/** An entry's bytes behind its length, with the length before them. */
function entry(body: (w: ByteWriter) => void): Uint8Array {
  const inner = new ByteWriter();
  body(inner);
  return new ByteWriter().uint(inner.length, 4).raw(inner.bytes()).bytes();
}

interface CieSpec {
  readonly version?: number;
  readonly augmentation?: string;
  readonly data?: readonly number[];
  readonly returnAddress?: readonly number[];
  /** Between the augmentation string and the alignments. */
  readonly middle?: readonly number[];
  readonly id?: bigint;
}

function cie(spec: CieSpec = {}): Uint8Array {
  const { version = 1, augmentation = '' } = spec;
  return entry((w) => {
    w.uint(spec.id ?? 0n, 4)
      .u8(version)
      .cstr(augmentation)
      .raw(spec.middle ?? [])
      .uleb(2)
      .sleb(-8)
      .raw(spec.returnAddress ?? [1]);
    if (augmentation.startsWith('z')) w.uleb(spec.data?.length ?? 0).raw(spec.data ?? []);
    // Its first instructions: def_cfa r2, 0.
    w.raw([0x0c, 2, 0]);
  });
}

/** An FDE of .eh_frame whose CIE lies `back` bytes before its own id. */
const fde = (back: number, body: (w: ByteWriter) => void) => entry((w) => body(w.uint(back, 4)));

/** What all tests here but those of offsets want: a CIE and the FDE behind it. */
function pair(spec: CieSpec, body: (w: ByteWriter, at: number) => void): Uint8Array {
  const first = cie(spec);
  const at = first.length + 4;
  return Buffer.concat([first, fde(at, (w) => body(w, FRAMES + at + 4))]);
}

const plain = (w: ByteWriter) => w.uint(LOW, 8).uint(0x20, 8);

function elfWith(frames: Uint8Array, name: Name = '.eh_frame', table: readonly number[] = []): ElfFile {
  return ElfFile.parse(
    writeElf({
      loads: [{ address: BigInt(TEXT), bytes: new Uint8Array(0x1100) }],
      sections: [
        { name: '.text', bytes: new Uint8Array(16), address: BigInt(TEXT) },
        { name, bytes: frames, address: BigInt(FRAMES) },
        { name: '.gcc_except_table', bytes: Uint8Array.from(table), address: BigInt(TABLE) },
      ],
    }),
    'by hand',
  );
}

function read(frames: Uint8Array, name: Name = '.eh_frame'): { fdes: Fde[]; warnings: string[] } {
  const warnings: string[] = [];
  const fdes = [...new CfiSection(elfWith(frames, name), name).fdes((text) => warnings.push(text))];
  return { fdes, warnings };
}

/** The only FDE's range; the warnings if there is none. */
function range(frames: Uint8Array, name: Name = '.eh_frame'): unknown {
  const { fdes, warnings } = read(frames, name);
  return fdes.length === 1 && warnings.length === 0 ? [fdes[0]?.low, fdes[0]?.high] : warnings;
}

const program = ({ section, start, end }: { section: CfiSection; start: number; end: number }) => [
  ...section.bytes.subarray(start, end),
];

t.test('an entry of each version: what its head says, and where its instructions lie', async (t) => {
  for (const [version, returnAddress, middle, number] of [
    [1, [0x85], [], 0x85],
    [3, [0x85, 1], [], 0x85],
    [4, [0x85, 1], [8, 0], 0x85],
  ] as const) {
    const frames = pair({ version, returnAddress, middle }, (w) => plain(w).raw([0x41, 0x0e, 16]));
    const [found] = read(frames).fdes;
    t.match(found, { low: LOW, high: LOW + 0x20, cie: { codeAlign: 2, dataAlign: -8, returnAddress: number } });
    t.same(found && program(found), [0x41, 0x0e, 16]);
    t.same(found && program({ ...found.cie, section: found.section }), [0x0c, 2, 0]);
    t.match(found?.cie, { isSignalFrame: false, lsda: undefined, hasAugmentationData: false, encoding: 0 });
  }
  for (const version of [0, 2, 5]) t.match(range(pair({ version }, plain)), [new RegExp(`version ${version} is not`)]);
  t.match(range(pair({ version: 4, middle: [4, 0] }, plain)), [/addresses of 4 \+ 0 bytes/]);
  t.match(range(pair({ version: 4, middle: [8, 2] }, plain)), [/addresses of 8 \+ 2 bytes/]);
});

t.test('an address in every format, counted from every base', async (t) => {
  const formats: readonly (readonly [number, (w: ByteWriter, value: number) => unknown])[] = [
    [PE.absptr, (w, value) => w.uint(BigInt.asUintN(64, BigInt(value)), 8)],
    [PE.udata8, (w, value) => w.uint(BigInt.asUintN(64, BigInt(value)), 8)],
    [PE.sdata8, (w, value) => w.uint(BigInt.asUintN(64, BigInt(value)), 8)],
    [PE.sdata4, (w, value) => w.uint(BigInt.asUintN(32, BigInt(value)), 4)],
    [PE.udata4, (w, value) => w.uint(value, 4)],
    [PE.uleb128, (w, value) => w.uleb(value)],
  ];
  const bases: readonly (readonly [number, (here: number) => number])[] = [
    [0, () => 0],
    [PE.pcrel, (here) => here],
  ];
  for (const [format, write] of formats)
    for (const [application, base] of bases) {
      const isUnsigned = [PE.udata4, PE.uleb128].some((one) => one === format);
      const encoding = format | application;
      const frames = pair({ augmentation: 'zR', data: [encoding] }, (w, here) => {
        const distance = LOW - base(here);
        if (isUnsigned && distance < 0) return;
        write(w, distance);
        write(w, 0x20);
        w.uleb(0);
      });
      const cannot = isUnsigned && LOW < base(FRAMES);
      if (!cannot) t.same(range(frames), [LOW, LOW + 0x20], `encoding 0x${encoding.toString(16)}`);
    }
  for (const format of [0x02, 0x05, 0x08, 0x0f]) {
    const frames = pair({ augmentation: 'zR', data: [format] }, plain);
    t.match(range(frames), [new RegExp(`a pointer format 0x${format.toString(16)} is not`)]);
  }
  // What counts from elsewhere, is aligned, or lies in memory: no compiler of 64-bit programs writes it.
  for (const encoding of [0x20, 0x30, 0x40, 0x50, 0x60, 0x80]) {
    const frames = pair({ augmentation: 'zR', data: [encoding] }, plain);
    t.match(range(frames), [new RegExp(`a pointer encoding 0x${encoding.toString(16)} is not`)]);
  }
});

t.test('a length is read in the format alone, and one that is not positive covers nothing', async (t) => {
  const far = pair({ augmentation: 'zR', data: [PE.pcrel | PE.sdata4] }, (w, here) =>
    w
      .uint(BigInt.asUintN(32, BigInt(LOW - here)), 4)
      .uint(0x20, 4)
      .uleb(0),
  );
  t.same(range(far), [LOW, LOW + 0x20]);
  const empty = (length: number) =>
    read(pair({ augmentation: 'zR', data: [PE.sdata4] }, (w) => w.uint(LOW, 4).uint(length, 4).uleb(0)));
  t.same(empty(0), { fdes: [], warnings: [] });
  t.same(empty(0xffff_fff0), { fdes: [], warnings: [] }, 'a negative one');
  t.equal(empty(1).fdes[0]?.high, LOW + 1);
});

t.test('augmentations: what each letter says and how long its data is', async (t) => {
  const read4 = (w: ByteWriter) => w.uint(LOW, 4).uint(0x20, 4).uleb(3).raw([9, 9, 9, 0x41]);
  const one = (augmentation: string, data: readonly number[] = []): Fde | undefined => {
    const { fdes, warnings } = read(pair({ augmentation, data }, read4));
    t.same(warnings, [], augmentation);
    return fdes[0];
  };
  const u4 = PE.udata4;
  const clear = { isSignalFrame: false, lsda: undefined, hasAugmentationData: true, encoding: u4 };
  const found = one('zR', [u4]);
  t.match(found, { low: LOW, cie: clear });
  t.same(found && program(found), [0x41], 'the instructions begin behind the data');
  t.match(one('zRS', [u4]), { low: LOW, cie: { ...clear, isSignalFrame: true } });
  t.match(one('zLR', [0x1b, u4]), { low: LOW, cie: { ...clear, lsda: 0x1b } });
  t.match(one('zBR', [u4]), { low: LOW, cie: clear });
  t.match(one('zGR', [u4]), { low: LOW, cie: clear });
  t.match(one('zPR', [PE.udata4, 1, 2, 3, 4, u4]), { low: LOW, cie: clear });
  t.match(one('zPR', [0x80 | PE.pcrel | PE.sdata4, 1, 2, 3, 4, u4]), { low: LOW }, 'its memory is not read');
  t.match(one('zPLR', [PE.absptr, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, u4]), { low: LOW, cie: { lsda: 0x1b } });
  t.match(one('zRx', [u4, 7, 7, 7]), { low: LOW, cie: clear }, 'what is not known ends by the length');

  // Behind an unknown letter nothing is read, so the addresses are those without R.
  const unknown = read(pair({ augmentation: 'zxR', data: [u4] }, (w) => plain(w).uleb(0)));
  t.match(unknown, { warnings: [], fdes: [{ low: LOW, cie: { encoding: PE.absptr } }] });
  for (const [text, isSignalFrame] of [
    ['S', true],
    ['BG', false],
    ['eh', false],
    ['ehS', true],
  ] as const) {
    const middle = text.startsWith('eh') ? [1, 2, 3, 4, 5, 6, 7, 8] : [];
    const { fdes, warnings } = read(pair({ augmentation: text, middle }, plain));
    t.same(warnings, []);
    t.match(fdes, [{ low: LOW, cie: { isSignalFrame, hasAugmentationData: false, codeAlign: 2 } }], text);
  }
  for (const text of ['R', 'SR', 'xS', 'armcc+'])
    t.match(range(pair({ augmentation: text }, plain)), [/augmentation "/]);
  t.match(range(pair({ augmentation: `${'y'.repeat(40)}` }, plain)), [/augmentation "y{20}" is not/]);
  const head = [0, 0, 0, 0, 1, ...Buffer.from('zR\0'), 1, 1, 1];
  const long = (length: number) =>
    Buffer.concat([entry((w) => w.raw([...head, length, u4])), fde(21, (w) => w.uint(LOW, 4).uint(0x20, 4).uleb(0))]);
  t.same(range(long(1)), [LOW, LOW + 0x20]);
  t.match(range(long(2)), [/augmentation data/]);
});

t.test('the entries of .debug_frame', async (t) => {
  const debug = (at: number) => Buffer.concat([cie({ id: 0xffff_ffffn }), fde(at, plain)]);
  t.same(range(debug(0), '.debug_frame'), [LOW, LOW + 0x20]);
  t.match(range(debug(0x7000), '.debug_frame'), [/whose CIE is not there/]);
});

t.test('what ends, what is passed over, and what cannot be used', async (t) => {
  const good = pair({}, plain);
  const end = new Uint8Array(4);
  t.same(range(Buffer.concat([end, good, end])), [LOW, LOW + 0x20], 'empty entries stand between others');
  const two = read(Buffer.concat([good, good]));
  t.same([two.fdes.length, two.warnings], [2, []]);

  const own = cie();
  const toEnd = Buffer.concat([end, fde(8, plain), pair({}, plain)]);
  t.match(read(toEnd), { fdes: [{ low: LOW }], warnings: [/at offset 0x4: .*whose CIE is not there/] });
  const before = Buffer.concat([own, fde(own.length + 8, plain), good]);
  t.match(read(before), { fdes: [{ low: LOW }], warnings: [/at offset 0x.*whose CIE is not there/] });
  const toFde = Buffer.concat([good, fde(good.length - cie().length + 4, plain)]);
  t.match(read(toFde), { fdes: [{ low: LOW }], warnings: [/whose CIE is not there/] });
  const twice = Buffer.concat([cie({ version: 9 }), fde(cie().length + 4, plain), fde(cie().length + 28, plain)]);
  t.match(read(twice).warnings, [/version 9/, /whose CIE is not there/], 'a CIE is read once');

  const elsewhere = read(pair({}, (w) => w.uint(0x8000, 8).uint(0x20, 8)));
  t.same(elsewhere, { fdes: [], warnings: [] }, 'code that is not loaded');
});

t.test('an entry that is cut off ends the section; what stood before it counts', async (t) => {
  const good = pair({}, plain);
  const at = `0x${good.length.toString(16)}`;
  const cut = (...bytes: number[]) => read(Buffer.concat([good, Buffer.from(bytes)]));
  for (const bytes of [
    [1],
    [5, 0, 0, 0, 0, 0, 0, 0],
    [3, 0, 0, 0, 0, 0, 0, 0],
    [0xff, 0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0, 0, 0],
  ]) {
    const { fdes, warnings } = cut(...bytes);
    t.equal(fdes.length, 1);
    t.match(warnings, [new RegExp(`^\\.eh_frame at offset ${at}: `)], bytes.join(' '));
  }
  t.match(cut(5, 0, 0, 0, 0, 0, 0, 0).warnings[0], /an entry of 5 bytes/);
  const whole = cut(4, 0, 0, 0, 0, 0, 0, 0);
  t.same([whole.fdes.length, whole.warnings], [1, []], 'a CIE that is used by nobody is not read');
  // Damage inside an entry leaves the next one.
  const first = cie();
  const inside = Buffer.concat([first, fde(first.length + 4, (w) => w.uint(LOW, 8)), good]);
  t.match(read(inside), { fdes: [{ low: LOW }], warnings: [/at offset 0x/] });
  const { warnings } = read(new Uint8Array(0));
  t.same(warnings, []);
});

t.test('the name of the section is in messages', async (t) => {
  t.match(read(Buffer.from([1]), '.debug_frame').warnings, [/^\.debug_frame at offset 0x0: /]);
});

/** Landing pads at an address, of a function whose language's data are these bytes; of null, one that points to none. */
function pads(bytes: readonly number[] | null, at = LOW, data = bytes === null ? 0 : TABLE): unknown {
  const frames = pair({ augmentation: 'zLR', data: [PE.udata4, PE.udata4] }, (w) =>
    w.uint(LOW, 4).uint(0x20, 4).uleb(4).uint(data, 4),
  );
  const found = CallFrames.load(elfWith(frames, '.eh_frame', bytes ?? [])).landingPads(addr(BigInt(at)));
  return found?.map((pad) => Number(pad) - LOW);
}

t.test(
  'landing pads are those of the call sites, and are known only where all of these lie in the function',
  async (t) => {
    const { omit, uleb128, udata4 } = PE;
    const sites = (encoding: number, ...bytes: number[]) => [omit, omit, encoding, bytes.length, ...bytes];
    const good = sites(uleb128, 2, 4, 0x10, 1, 6, 2, 0, 0, 9, 0x17, 0x18, 3);
    t.same(pads(good), [0x10, 0x18]);
    t.same(pads(good, LOW + 0x1f), [0x10, 0x18]);
    t.same(pads(good, LOW + 0x20), [], 'of nothing there are none');
    t.same(pads(null), []);
    t.same(pads([omit, 0x9b, 40, ...good.slice(2)]), [0x10, 0x18], 'types lie behind');
    t.same(pads(sites(udata4, 2, 0, 0, 0, 4, 0, 0, 0, 0x10, 0, 0, 0, 1)), [0x10]);
    t.same(pads(sites(uleb128)), []);
    for (const [why, bytes] of [
      ['pads with a base of their own', [udata4, 0, 0, 0, 0, ...good.slice(1)]],
      ['a call behind the function', sites(uleb128, 2, 0x1f, 0x10, 1)],
      ['a pad behind the function', sites(uleb128, 2, 4, 0x20, 1)],
      ['calls out of order', sites(uleb128, 6, 2, 0, 0, 2, 4, 0x10, 1)],
      ['a format that is not known', sites(0x05, 2, 4, 0x10, 1)],
      ['a negative number', sites(PE.sdata4, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0, 1)],
      ['less than its length', good.slice(0, -1)],
      ['nothing', []],
    ] as const)
      t.equal(pads(bytes), undefined, why);
    t.equal(pads(good, LOW, 0x1234), undefined, 'in no section');
  },
);
