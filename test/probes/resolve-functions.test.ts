import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { architectureOf, riscv64 } from '../../src/arch/index.js';
import { DebugInfo, DW_AT, DW_TAG, DW_FORM as F } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import {
  type FunctionProbe,
  type FunctionProbes,
  type ProbeSpec,
  parseProbe,
  resolveFunctions,
} from '../../src/probes/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { scratchFolder } from '../support/command.js';
import { debugOf } from '../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../support/dwarf-writer.js';
import { usually } from '../support/long.js';

const parse = (text: string): ProbeSpec => parseProbe(text) as ProbeSpec;

async function resolve(path: string, ...texts: string[]): Promise<FunctionProbes> {
  const elf = await ElfFile.open(path);
  const arch = architectureOf(elf.machine);
  if (!arch) throw new Error(`no architecture for ${path}`);
  await arch.prepare();
  const debug = elf.has('.debug_info') ? DebugInfo.load(elf) : undefined;
  return resolveFunctions(elf, debug, arch, texts.map(parse));
}

const names = ({ probes }: FunctionProbes): string[] => probes.map(({ ref }) => ref.name);

/** The functions that readelf lists, by address. */
function readelfFunctions(path: string): Map<bigint, { size: number; names: string[] }> {
  const out = execFileSync('readelf', ['-sW', path], { encoding: 'utf8' });
  const found = new Map<bigint, { size: number; names: string[] }>();
  for (const [, value = '', size, name = ''] of out.matchAll(
    /^ *\d+: ([0-9a-f]+) +(\d+) FUNC +\w+ +\w+ +\d+ (\S+)/gm,
  )) {
    const address = BigInt(`0x${value}`);
    const known = found.get(address);
    if (known) known.names.push(name);
    else found.set(address, { size: Number(size), names: [name] });
  }
  return found;
}

const guests = ['rv-o0', 'rv-o2', 'x86-o2', 'x86-o2-legacy', 'rv-o2-dwarf5', 'rvm-o2'];
for (const name of usually(guests, (one) => one === 'x86-o2-legacy' || one === 'rv-o2-dwarf5')) {
  t.test(`${name}: fn:** is every function symbol but the handlers that hardware enters`, async (t) => {
    const path = elfPath(name);
    const known = readelfFunctions(path);
    const { probes, excluded } = await resolve(path, 'fn:**');
    const handler = name.startsWith('x86') ? 'irq_timer' : 'trap_entry';
    t.match(
      excluded.filter(({ address }) => known.has(address)),
      [{ name: handler, reason: /trap handler/ }],
    );
    t.match(excluded.find((one) => one.name === '_start')?.reason, /label/);
    const all = [...probes, ...excluded.filter(({ address }) => known.has(address))];
    t.strictSame(all.map(({ address }) => address).sort(), [...known.keys()].sort());
    for (const probe of probes) {
      const symbol = known.get(probe.address);
      if (probe.size !== symbol?.size) t.fail(`${probe.ref.name} has ${probe.size} bytes, not ${symbol?.size}`);
    }
    t.equal(new Set(probes.map(({ ref }) => ref.key)).size, probes.length);
    const deep = probes.find(({ ref }) => ref.name === 'labkern::work::deep3');
    t.match(deep, { stackArguments: false, ref: { file: '/labkern/src/work.rs' } });
  });
}

t.test('globs match paths, full names and symbols', async (t) => {
  const path = elfPath('rv-o0');
  const deep = Array.from({ length: 8 }, (_, i) => `labkern::work::deep${i}`);
  t.strictSame(names(await resolve(path, 'fn:deep?')).sort(), deep);
  t.strictSame(names(await resolve(path, 'fn:labkern::work::deep*')).sort(), deep);
  t.strictSame(
    names(await resolve(path, 'fn:deep*', '!fn:deep[12]', 'fn:!deep3')).length,
    7,
    '[] is no class in a glob',
  );
  t.strictSame(names(await resolve(path, 'fn:<labkern::console::Uart as core::fmt::Write>::write_str')).length, 1);
  const own = names(await resolve(path, 'fn:**', '!fn:core::**', '!fn:alloc::**', '!fn:<**'));
  t.ok(own.length > 50 && own.every((name) => !/^(core|alloc)::/.test(name)));
  const { unmatched } = await resolve(path, 'fn:deep1', 'fn:nothing_like_it');
  t.strictSame(unmatched, ['fn:nothing_like_it']);
});

t.test('what is folded into one address is one probe with all its names', async (t) => {
  const path = elfPath('x86-o2');
  const folded = [...readelfFunctions(path)].filter(([, { names }]) => names.length > 1);
  t.ok(folded.length > 0);
  const { probes } = await resolve(path, 'fn:**');
  for (const [address, { names }] of folded) {
    const probe = probes.find((one) => one.address === address);
    t.equal((probe?.aliases.length ?? 0) + 1, names.length, names.join());
  }
});

t.test("rustc's own functions for allocators, which have no debug info, take no argument on the stack", async (t) => {
  for (const name of ['rv-o2', 'x86-o2']) {
    const { probes } = await resolve(elfPath(name), 'fn:__rustc::**');
    const shims = probes.filter(({ ref }) => /__rust_(no_)?alloc_/.test(ref.name));
    t.equal(shims.length, 2, names({ probes, excluded: [], unmatched: [] }).join());
    for (const shim of shims) t.match(shim, { stackArguments: false }, shim.ref.name);
  }
});

t.test('what cannot be probed says why', async (t) => {
  const path = elfPath('rv-o2');
  await t.rejects(resolve(path, 'fn:deepp7'), { code: 'PROBE_NO_MATCH', hint: /labkern::work::deep7/ });
  for (const [kind, all] of [
    ['fn', 'fn:**'],
    ['count', 'count:**'],
    ['hist(x)', 'hist(x):**'],
  ]) {
    await t.rejects(resolve(path, `${kind}:not_a_name_like_any`), {
      code: 'PROBE_NO_MATCH',
      hint: `--probe '${all}' takes every function`,
    });
  }
  await t.rejects(resolve(path, 'fn:labkern::work::chain_task'), {
    code: 'PROBE_NO_MATCH',
    hint: "-p 'poll:labkern::work::chain_task' has each poll",
  });
  await t.rejects(resolve(path, 'fn:trap_entry'), { code: 'PROBE_UNSAFE', hint: /trap handler/ });
  await t.rejects(resolve(path, 'fn:_start'), { code: 'PROBE_UNSAFE' });
  // An async fn's body that was inlined into chain_task's (docs/derived-polls.md has the same example).
  await t.rejects(resolve(path, 'fn:labkern::work::level1::**'), {
    code: 'PROBE_INLINED',
    hint: /labkern::work::chain_task/,
  });
});

t.test('what is in a library that the program loads is said to be there', async (t) => {
  const path = join(scratchFolder(t), 'sleeps');
  execFileSync('gcc', ['-x', 'c', '-', '-o', path], { input: '#include <unistd.h>\nint main() { return usleep(1); }' });
  await t.rejects(resolve(path, 'fn:usleep'), {
    code: 'PROBE_NO_MATCH',
    message: 'usleep is in a library that the program loads',
  });
});

t.test('without debug info the symbols do, and without symbols the debug info', async (t) => {
  const folder = scratchFolder(t);
  const path = elfPath('rv-o2');
  const [bare, nosyms] = [join(folder, 'bare'), join(folder, 'nosyms')];
  execFileSync('riscv64-linux-gnu-objcopy', ['--strip-debug', path, bare]);
  const whole = await resolve(path, 'fn:**');
  const stripped = await resolve(bare, 'fn:**');
  t.strictSame(
    stripped.probes.map(({ address }) => address),
    whole.probes.map(({ address }) => address),
  );
  const raw = stripped.probes.find(({ ref }) => ref.name === 'deep3');
  t.match(raw, { stackArguments: true, arguments: [{ name: 'a0', type: undefined }], result: undefined });
  execFileSync('riscv64-linux-gnu-objcopy', ['--strip-all', '--keep-section=.debug_*', path, nosyms]);
  t.equal(readelfFunctions(nosyms).size, 0);
  const told = await resolve(nosyms, 'fn:deep?');
  t.equal(told.probes.length, 8);
  const neither = join(folder, 'neither');
  execFileSync('riscv64-linux-gnu-objcopy', ['--strip-all', path, neither]);
  await t.rejects(resolve(neither, 'fn:**'), { code: 'DWARF_MISSING', hint: /strip = false/ });
});

t.test('arguments and results by the calling conventions of C', async (t) => {
  const folder = scratchFolder(t);
  const source = `
struct pair { long a; int b; }; struct big { long a[4]; }; struct small { char a; short b; };
long ints(char a, unsigned short b, long *c, long d) { return a + b + *c + d; }
long many(long a, long b, long c, long d, long e, long f, long g) { return a + b + c + d + e + f + g; }
struct pair two(struct pair p, int q) { p.b += q; return p; }
struct big large(struct big p, int q) { p.a[0] += q; return p; }
int tiny(struct small p, int after) { return p.a + after; }
int real(int a, double b, int c) { return a + (int)b + c; }
int vary(int a, ...) { return a; }
void nothing(void) {}
int main(void) { return 0; }`;
  const build = (compiler: string, name: string, ...flags: string[]): string => {
    const path = join(folder, name);
    execFileSync(compiler, ['-g', ...flags, '-x', 'c', '-', '-o', path], { input: source });
    return path;
  };
  const of = ({ probes }: FunctionProbes, name: string): FunctionProbe => {
    const found = probes.find(({ ref }) => ref.name === name);
    if (!found) throw new Error(`no ${name}`);
    return found;
  };
  const where = (probe: FunctionProbe): string[] =>
    probe.arguments.map(({ name, where: place }) =>
      place.kind === 'registers'
        ? `${name}=${place.parts.map(({ register, size }) => `${register}:${size}`).join('+')}`
        : `${name}=${place.kind}${place.kind === 'pointer' ? ` ${place.register}` : ''}`,
    );
  const result = ({ result: one }: FunctionProbe): string | undefined =>
    one?.where.kind === 'registers' ? one.where.parts.map(({ register }) => register).join('+') : one?.where.kind;

  const gcc = await resolve(build('gcc', 'gcc0', '-O0'), 'fn:**');
  t.strictSame(where(of(gcc, 'ints')), ['a=rdi:1', 'b=rsi:2', 'c=rdx:8', 'd=rcx:8']);
  t.equal(result(of(gcc, 'ints')), 'rax');
  t.match(of(gcc, 'ints'), { stackArguments: false });
  t.equal(of(gcc, 'many').stackArguments, true);
  t.strictSame(where(of(gcc, 'many')).slice(5), ['f=r9:8', 'g=unavailable']);
  t.strictSame(where(of(gcc, 'two')), ['p=rdi:8+rsi:8', 'q=rdx:4']);
  t.equal(result(of(gcc, 'two')), 'rax+rdx');
  // A large structure travels on the stack, and its result through memory, whose address takes the first register.
  t.strictSame(where(of(gcc, 'large')), ['p=unavailable', 'q=rsi:4']);
  t.match(of(gcc, 'large'), { stackArguments: true, result: { where: { kind: 'unavailable' } } });
  t.strictSame(where(of(gcc, 'tiny')), ['p=rdi:4', 'after=rsi:4']);
  t.strictSame(where(of(gcc, 'real')), ['a=rdi:4', 'b=xmm0:8', 'c=rsi:4']);
  t.equal(of(gcc, 'vary').stackArguments, true);
  t.match(of(gcc, 'nothing'), { arguments: [], result: undefined, stackArguments: false });

  // What gcc itself says: `gcc -Q --help=optimizers -O2`.
  const levels = ['-O0', '-O', '-Og', '-O2', '-Os', '-O3'];
  for (const options of [...levels.map((level) => [level]), ['-O2', '-fno-ipa-ra'], ['-O', '-fipa-ra']]) {
    const listed = execFileSync('gcc', ['-Q', '--help=optimizers', ...options], { encoding: 'utf8' });
    const { scratchIsFree } = of(await resolve(build('gcc', 'ra', ...options), 'fn:ints'), 'ints');
    t.equal(scratchIsFree, /-fipa-ra\s+\[disabled\]/.test(listed), options.join(' '));
  }
  const unsaid = await resolve(build('gcc', 'ra', '-O', '-gno-record-gcc-switches'), 'fn:ints');
  t.equal(of(unsaid, 'ints').scratchIsFree, false);

  // Nothing says how long they are, so each call would stop the program.
  const startUp = ['_init', '_fini', 'frame_dummy', 'register_tm_clones'];
  t.strictSame(
    startUp.filter((name) => names(gcc).includes(name)),
    [],
  );
  t.match(gcc.excluded.find(({ name }) => name === 'frame_dummy')?.reason, /a glob does not match: name it/);
  t.strictSame(names(await resolve(join(folder, 'gcc0'), 'fn:frame_dummy', 'fn:_fini')).sort(), [
    '_fini',
    'frame_dummy',
  ]);

  const optimised = await resolve(build('gcc', 'gcc2', '-O2'), 'fn:**');
  // The debug info of optimised code says itself that `c` is in the second integer register, `b` in a floating-point one.
  t.strictSame(where(of(optimised, 'real')), ['a=rdi:4', 'b=xmm0:8', 'c=rsi:4']);

  // Where DWARF only says that a parameter lies in the frame, the convention decides: that of RISC-V for the same types.
  const elf = await ElfFile.open(join(folder, 'gcc0'));
  const riscv = resolveFunctions(elf, DebugInfo.load(elf), riscv64, [parse('fn:**')]);
  t.strictSame(where(of(riscv, 'many')).at(-1), 'g=a6:8');
  t.equal(of(riscv, 'many').stackArguments, false);
  t.strictSame(where(of(riscv, 'large')), ['p=pointer a1', 'q=a2:4']);
  t.strictSame(where(of(riscv, 'two')), ['p=a0:8+a1:8', 'q=a2:4']);
  t.equal(result(of(riscv, 'two')), 'a0+a1');
});

const rustc = 'clang LLVM (rustc version 1.96.0)';
const gcc = 'GNU C17 14.2.0 -g -O2';

/** Where a function's parameters are said to be, which have these expressions of DWARF; `undefined`: they have none. */
function placesBy(producer: string, parameters: Readonly<Record<string, readonly number[] | undefined>>): string[] {
  const writer = new DwarfWriter();
  const number: DieSpec = {
    ...{ tag: DW_TAG.base_type, label: 'u64' },
    attributes: [
      [DW_AT.name, F.string, 'u64'],
      [DW_AT.byte_size, F.data1, 8],
      [DW_AT.encoding, F.data1, 7],
    ],
  };
  const fn: DieSpec = {
    tag: DW_TAG.subprogram,
    attributes: [
      [DW_AT.name, F.string, 'f'],
      [DW_AT.low_pc, F.addr, 0x1010],
      [DW_AT.high_pc, F.data1, 8],
      // DW_OP_reg2, the stack pointer.
      [DW_AT.frame_base, F.exprloc, Uint8Array.of(0x52)],
    ],
    children: Object.entries(parameters).map(([name, location]) => ({
      tag: DW_TAG.formal_parameter,
      attributes: [
        [DW_AT.name, F.string, name],
        [DW_AT.type, F.ref4, { ref: 'u64' }],
        ...(location ? [[DW_AT.location, F.exprloc, Uint8Array.from(location)] as const] : []),
      ],
    })),
  };
  const unit = { tag: DW_TAG.compile_unit, attributes: [[DW_AT.producer, F.string, producer]] } as const;
  writer.unit({ version: 5, root: { ...unit, children: [number, fn] } });
  const debug = debugOf(writer);
  const { probes } = resolveFunctions(debug.elf, debug, riscv64, [parse('fn:f')]);
  return (probes[0]?.arguments ?? []).map(({ name, where }) =>
    where.kind === 'registers'
      ? `${name}=${where.parts.map((one) => one.register ?? one.constant)}`
      : `${name}=${where.kind}`,
  );
}

t.test(
  "a register for the whole function is believed where it is the convention's, because its code may fill it",
  async (t) => {
    // DW_OP_reg13, DW_OP_reg11, DW_OP_lit7 and DW_OP_stack_value.
    const parameters = { x: [0x5d], y: [0x5b], z: [0x37, 0x9f] };
    t.strictSame(placesBy(rustc, parameters), ['x=unavailable', 'y=a1', 'z=7']);
    t.strictSame(placesBy(gcc, parameters), ['x=a3', 'y=a1', 'z=7']);
  },
);

t.test('behind an argument that is nowhere others may have moved up, because LLVM takes unused ones out', async (t) => {
  // DW_OP_fbreg 8 and DW_OP_reg11.
  t.strictSame(placesBy(rustc, { x: [0x91, 8], self: undefined, y: [0x91, 8], z: [0x91, 8] }), [
    ...['x=a0', 'self=unavailable', 'y=unavailable', 'z=unavailable'],
  ]);
  t.strictSame(placesBy(rustc, { self: undefined, y: [0x5b] }), ['self=unavailable', 'y=a1'], 'which is said');
  // The clones of gcc that have lost some have a symbol that says it.
  t.strictSame(placesBy(gcc, { self: undefined, y: [0x91, 8] }), ['self=unavailable', 'y=a1']);
});

t.test('a symbol names one instance of a generic function, however it is mangled', async (t) => {
  for (const [name, pattern] of [
    ['rv-o0', /4exec.*4Lock.*4withuNC/],
    ['x86-o2-legacy', /drop_in_place\$LT\$/],
  ] as const) {
    const known = [...readelfFunctions(elfPath(name))];
    const instances = known.flatMap(
      ([
        address,
        {
          names: [symbol = ''],
        },
      ]) => (pattern.test(symbol) ? [{ address, symbol }] : []),
    );
    t.ok(instances.length > 2, `${instances.length} instances in ${name}`);
    for (const { address, symbol } of instances.slice(0, 3)) {
      const { probes } = await resolve(elfPath(name), `fn:${symbol}`);
      t.strictSame(
        probes.map((probe) => probe.address as bigint),
        [address],
        symbol,
      );
    }
  }
});

t.test(
  'a condition that no function has is said, also where another one takes calls of the same function',
  async (t) => {
    const path = join(scratchFolder(t), 'conditions');
    const input =
      'int f_one(int a) { return a; } int f_two(int b) { return b; } int main(void) { return f_one(1) + f_two(2); }';
    execFileSync('gcc', ['-g', '-x', 'c', '-', '-o', path], { input });
    const refused = { code: 'PROBE_CONDITION', hint: /\bc\b/ };
    await t.rejects(resolve(path, 'fn:f_one if a == 1 || c == 2'), refused, 'half of it');
    await t.rejects(resolve(path, 'fn:f_one if c == 2'), refused);
    const [half, whole] = ['fn:f_one if a == 1 || c == 2', 'fn:f_one if c == 2'];
    for (const probe of [half, whole]) {
      const both = await resolve(path, 'fn:f_one if a == 3', probe);
      t.same([names(both), both.unmatched], [['f_one'], [probe]]);
    }
    const each = await resolve(path, 'fn:f_* if a == 1 || b == 2');
    t.same([names(each), each.unmatched], [['f_one', 'f_two'], []], 'each half makes sense in one of them');
    t.same((await resolve(path, 'fn:f_one', whole)).unmatched, [], 'all calls are taken anyway');
  },
);
