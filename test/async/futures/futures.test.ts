// The Futures of the guests against their own source (names, await lines), the ELF's vtables (size, align, poll) and symbol table
// as readelf prints it, and llvm-dwarfdump's text (registers, offsets).
import { readFileSync } from 'node:fs';
import t from 'tap';
import { awaitChain, type FutureSet, type FutureType, findFutures, stateOf } from '../../../src/async/futures/index.js';
import { addOffset, addr } from '../../../src/base/addr.js';
import { DebugInfo, linkageNameOf } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { elfPath, sourcePath } from '../../qemu/guests/guests.js';
import { run } from '../../support/dwarfdump.js';
import { usually } from '../../support/long.js';

interface Region {
  /** Line of `async`, and of the closing brace; lines of `.await` in order. */
  readonly first: number;
  last: number;
  readonly awaits: number[];
  readonly name: string;
}

/** The async functions, blocks and closures of work.rs with their awaits: a brace counter and three patterns. */
function readSource(): Region[] {
  const regions: Region[] = [];
  const open: { region: Region | undefined; depth: number }[] = [];
  let depth = 0;
  readFileSync(sourcePath('src/work.rs'), 'utf8')
    .split('\n')
    .forEach((text, i) => {
      const code = text.replace(/\/\/.*/, '').replace(/"[^"]*"/g, '""');
      const starts = /\basync\s+(?:fn\s+(\w+)|move\s*\{|\{|\|)/.exec(code);
      let pending = starts !== null && code.includes('{') ? starts : null;
      for (let at = 0; at < code.length; at++) {
        if (code.startsWith('.await', at)) open.findLast((o) => o.region !== undefined)?.region?.awaits.push(i + 1);
        if (code[at] === '{') {
          depth++;
          if (pending !== null && at >= pending.index) {
            const region = { first: i + 1, last: 0, awaits: [], name: pending[1] ?? '' };
            regions.push(region);
            open.push({ region, depth });
            pending = null;
          }
        }
        if (code[at] === '}') {
          if (open.at(-1)?.depth === depth) {
            const done = open.pop()?.region;
            if (done !== undefined) done.last = i + 1;
          }
          depth--;
        }
      }
    });
  return regions;
}

const W = 'labkern::work::';
/** Everything that a guest's source makes a Future of, by the names that rsptrace gives. */
const WANTED = [
  '<labkern::work::Disk as labkern::work::BlockDev>::read async_fn',
  'core::future::poll_fn::PollFn impl',
  'core::future::ready::Ready impl',
  'core::pin::Pin impl',
  'labkern::futs::Join2 impl',
  'labkern::futs::Join2 impl',
  'labkern::futs::Recv impl',
  'labkern::futs::Select2 impl',
  'labkern::futs::Sleep impl',
  'labkern::futs::YieldN impl',
  `${W}Disk::seek async_fn`,
  `${W}block_fn::{async_block#0} async_block`,
  `${W}chain_task async_fn`,
  `${W}consumer async_fn`,
  `${W}device_task async_fn`,
  `${W}device_task::{closure#0} async_closure`,
  `${W}fib_box::{async_block#0} async_block`,
  `${W}fib_task async_fn`,
  `${W}generic_add async_fn`,
  `${W}generic_add async_fn`,
  `${W}generic_task async_fn`,
  `${W}irq_wait async_fn`,
  `${W}joiner async_fn`,
  `${W}joiner::{async_block#0} async_block`,
  `${W}leaf_io async_fn`,
  `${W}level1 async_fn`,
  `${W}level2 async_fn`,
  `${W}level3 async_fn`,
  `${W}loser async_fn`,
  `${W}producer async_fn`,
  `${W}selector async_fn`,
  `${W}sleeper async_fn`,
  `${W}spawn_all::{async_block#0} async_block`,
];
/** At opt 2 these keep a poll function of their own: 14 of the 24 that the compiler made. */
const OUT_OF_LINE = [
  'chain_task',
  'consumer',
  'device_task',
  'fib_box::{async_block#0}',
  'fib_task',
  'generic_task',
  'irq_wait',
];

function named(set: FutureSet, future: string, index = 0): FutureType {
  const found = set.all.filter((f) => f.future === future)[index];
  if (found === undefined) throw new Error(`there is no future ${future}`);
  return found;
}

async function load(name: string): Promise<{ elf: ElfFile; debug: DebugInfo; set: FutureSet }> {
  const elf = await ElfFile.open(elfPath(name));
  const debug = DebugInfo.load(elf);
  return { elf, debug, set: findFutures(debug) };
}

const NAMES = ['rv-o0', 'rv-o2', 'rvm-o2', 'x86-o0', 'x86-o2', 'rv-o2-eh', 'rv-o2-fp', 'rv-o2-dwarf5', 'x86-o2-legacy'];
/** Each optimization, and another architecture, DWARF and mangling, which the next test compares. */
const chosen = ['rv-o0', 'x86-o2-legacy'];
for (const name of usually(NAMES, (name) => chosen.includes(name))) {
  t.test(name, async (t) => {
    const { elf, debug, set } = await load(name);
    const opt0 = name.endsWith('o0');

    t.strictSame(
      set.all.map((f) => `${f.future} ${f.kind}`),
      WANTED,
      'every Future of the source, by name and kind',
    );
    t.strictSame(set.warnings, []);
    t.strictSame([...new Set(set.all.map((f) => f.crate))].sort(), ['core', 'labkern']);

    t.test('states are where the source awaits', async (t) => {
      const regions = new Map(readSource().map((r) => [r.first, r]));
      t.equal(regions.size, new Set(WANTED.filter((w) => !w.endsWith(' impl'))).size, 'generic_add has two instances');
      for (const future of set.all) {
        if (future.kind === 'impl') continue;
        t.equal(future.file, '/labkern/src/work.rs');
        const region = regions.get(future.line ?? 0);
        if (region === undefined) throw new Error(`nothing async at line ${future.line}`);
        if (future.kind === 'async_fn') t.equal(future.future.split('::').at(-1), region.name);
        const wanted = [
          ['Unresumed', region.first],
          ['Returned', region.last],
          ['Panicked', region.last],
          ...region.awaits.map((line, i) => [`Suspend${i}`, line]),
        ];
        t.strictSame(
          future.states.map((s) => [s.name, s.line]),
          wanted,
          future.instance,
        );
        t.strictSame(
          future.states.map((s) => s.value),
          wanted.map((_, i) => i),
        );
        for (const state of future.states) {
          t.equal(state.awaitee !== undefined, state.name.startsWith('Suspend'));
          const { awaitee } = state;
          if (awaitee === undefined) continue;
          t.ok(awaitee.offset + awaitee.size <= future.size, 'the awaitee lies inside');
          t.ok(awaitee.future !== undefined && awaitee.future.size === awaitee.size, `${awaitee.typeName} is known`);
        }
      }
    });

    t.test('vtables hold the size, the alignment and the poll of their Future', async (t) => {
      const word = (at: bigint): bigint => {
        const bytes = elf.bytesAt(addr(at), 8);
        return bytes === undefined ? -1n : Buffer.from(bytes).readBigUInt64LE();
      };
      const roots = set.all.filter((f) => f.vtables.length > 0);
      t.equal(roots.length, 12);
      for (const root of roots) {
        for (const vtable of root.vtables) {
          t.equal(word(vtable + 8n), BigInt(root.size));
          t.equal(word(vtable + 16n), BigInt(root.align ?? 0));
          t.ok(
            root.polls.some((p) => p.address === word(vtable + 24n)),
            `${root.future} is polled through its vtable`,
          );
          t.equal(set.byVtable(vtable), root);
        }
      }
      t.equal(set.byVtable(addr(0x10)), undefined);
      t.equal(set.byVtable(addr(0x7f10_2030_4050_6070n)), undefined, 'a word that is no address');
    });

    t.test('poll functions are the symbols that readelf lists', async (t) => {
      const symbols = new Map(
        [
          ...run('readelf', '-sW', elfPath(name)).matchAll(
            /^ +\d+: ([0-9a-f]{16}) +(\w+) FUNC +\w+ +\w+ +\w+ (\S+)$/gm,
          ),
        ].map((m) => [m[3] as string, { address: BigInt(`0x${m[1]}`), size: BigInt(m[2] as string) }]),
      );
      const polls = set.all.flatMap((f) => f.polls.map((poll) => ({ future: f, poll })));
      for (const { future, poll } of polls) {
        const symbol = symbols.get(poll.symbol ?? '');
        t.strictSame(
          { address: poll.address, end: poll.end },
          { address: symbol?.address, end: (symbol?.address ?? 0n) + (symbol?.size ?? 0n) },
        );
        t.equal(set.byPollAddress(poll.address), future);
        const fn = debug.functionAt(poll.address);
        t.equal(fn && linkageNameOf(fn.die), poll.symbol);
      }
      const found = new Set(polls.map(({ poll }) => poll.symbol));
      const wanted = [...symbols.keys()].filter((s) => /6Future4poll|Future\$GT\$4poll17h/.test(s));
      t.strictSame(
        wanted.filter((s) => !found.has(s)),
        [],
        'no <T as Future>::poll is missed',
      );
      // The ninth, Pin's, spells the trait as a back reference.
      if (opt0) t.equal(wanted.length, 8);
      for (const { poll } of polls) t.ok(poll.address < poll.end);

      const own = set.all.filter((f) => f.kind !== 'impl');
      if (opt0)
        t.ok(
          set.all.every((f) => f.polls.length === 1 && f.inlined.length === 0),
          'all 33 are out of line',
        );
      else {
        t.equal(own.filter((f) => f.polls.length === 1).length, 14);
        for (const future of OUT_OF_LINE) t.equal(named(set, W + future).polls.length, 1, future);
        t.ok(
          set.all.every((f) => f.polls.length + f.inlined.length > 0),
          'the rest is inlined, none is lost',
        );
        const [copy] = named(set, `${W}level1`).inlined;
        t.equal(copy?.into, 'labkern::work::chain_task::{async_fn#0}');
        const chain = named(set, `${W}chain_task`);
        t.equal(copy?.line, chain.states.find((s) => s.name === 'Suspend0')?.line, 'the call is the await');
        const [poll] = chain.polls;
        t.ok(copy !== undefined && poll !== undefined && copy.address >= poll.address && copy.address < poll.end);
      }
    });

    t.test('self is in the register that the location list names', async (t) => {
      const text = run('llvm-dwarfdump', '--debug-info', elfPath(name));
      const dumped = new Map<bigint, string>();
      const pattern =
        /DW_AT_low_pc\t\(0x([0-9a-f]{16})\)\n(?:(?!DW_TAG_subprogram)[^\n]*\n){1,14}?0x[0-9a-f]+: +DW_TAG_formal_parameter\n +DW_AT_location\t\(([^\n]*(?:\n +\[[^\n]*){0,1})/g;
      for (const m of text.matchAll(pattern)) dumped.set(BigInt(`0x${m[1]}`), m[2] as string);
      for (const { polls } of set.all) {
        for (const poll of polls) {
          const location = dumped.get(poll.address);
          if (location === undefined) throw new Error(`no parameter at ${poll.address}`);
          const list = /\[0x([0-9a-f]+), [^)]*\): DW_OP_reg(\d+) /.exec(location);
          const wanted = list !== null && BigInt(`0x${list[1]}`) === poll.address ? Number(list[2]) : undefined;
          t.equal(poll.self?.register, wanted, poll.symbol ?? '');
          if (!opt0) t.ok(wanted !== undefined);
        }
      }
    });

    t.test('Poll<T> tells Ready from Pending', async (t) => {
      for (const { future, polls } of set.all) {
        for (const { result, resultSize } of polls) {
          if (result === undefined) throw new Error('no result');
          // Poll<()> is a byte, all others have a 64-bit tag.
          t.strictSame([result.offset, result.size], resultSize === 1 ? [0, 1] : [0, 8]);
          // Select2 is ready with an Either, whose own tag of 0 or 1 leaves 2 for Pending.
          const wanted = future === 'labkern::futs::Select2' ? [true, true, false] : [true, false, false];
          t.strictSame([0n, 1n, 2n].map(result.isReady), wanted);
        }
      }
    });
  });
}

t.test('legacy and v0 mangling, DWARF 4 and 5 give the same Futures', async (t) => {
  const tell = (set: FutureSet): string =>
    JSON.stringify(
      set.all.map((f) => [
        f.future,
        f.instance,
        f.kind,
        f.crate,
        f.file,
        f.line,
        f.size,
        f.align,
        f.states.map((s) => [s.name, s.line, s.locals, s.awaitee?.offset]),
      ]),
    );
  t.equal(tell((await load('x86-o2-legacy')).set), tell((await load('x86-o2')).set));
  t.equal(tell((await load('rv-o2-dwarf5')).set), tell((await load('rv-o2')).set));
});

t.test('one read of the outermost Future gives the await chain', async (t) => {
  const { set } = await load('rv-o2');
  // Offsets as llvm-dwarfdump shows them for rv-o2: chain_task {__state @0x118, __awaitee @0x38}, level1 {@0xdc, @0x28}, ...
  const text = run('llvm-dwarfdump', '--debug-info', elfPath('rv-o2'));
  const offsets = (future: string, awaitee: string): { state: number; awaitee: number } => {
    const at = text.indexOf(`"labkern::work::${future}::{async_fn_env#0}::Unresumed"`);
    const state = /"__state"[\s\S]*?data_member_location\t\((0x[0-9a-f]+)\)/.exec(
      text.slice(text.lastIndexOf('DW_TAG_variant_part', at)),
    );
    const member = new RegExp(
      `"__awaitee"\\)\\n[^\\n]*"${awaitee.replace(/[{}]/g, '\\$&')}"\\)\\n[^\\n]*\\n[^\\n]*data_member_location\\t\\((0x[0-9a-f]+)\\)`,
    ).exec(text.slice(at));
    return { state: Number(state?.[1]), awaitee: Number(member?.[1]) };
  };
  const env = (f: string): string => `labkern::work::${f}::{async_fn_env#0}`;
  const steps = [
    ['chain_task', env('level1')],
    ['level1', env('level2')],
    ['level2', env('level3')],
    ['level3', env('leaf_io')],
    ['leaf_io', 'labkern::futs::YieldN'],
  ] as const;
  const chainTask = named(set, `${W}chain_task`);
  const bytes = new Uint8Array(chainTask.size);
  const where: number[] = [];
  let at = 0;
  for (const [future, awaitee] of steps) {
    const found = offsets(future, awaitee);
    bytes[at + found.state] = 3;
    at += found.awaitee;
    where.push(at);
  }
  t.equal(stateOf(chainTask, bytes)?.name, 'Suspend0');
  const chain = awaitChain(chainTask, bytes);
  t.strictSame(
    chain.map((link) => [link.future?.future, link.offset, link.state?.name]),
    [
      [`${W}level1`, where[0], 'Suspend0'],
      [`${W}level2`, where[1], 'Suspend0'],
      [`${W}level3`, where[2], 'Suspend0'],
      [`${W}leaf_io`, where[3], 'Suspend0'],
      ['labkern::futs::YieldN', where[4], undefined],
    ],
  );
  t.strictSame(awaitChain(chainTask, new Uint8Array(chainTask.size)), [], 'Unresumed awaits nothing');
  t.equal(stateOf(chainTask, bytes.fill(0xee)), undefined, 'other memory is no state');
  t.equal(stateOf(chainTask, new Uint8Array(4)), undefined, 'too few bytes');

  t.test('a boxed Future ends it with a pointer, named by its vtable', async (t) => {
    const fib = named(set, `${W}fib_task`);
    const target = named(set, `${W}fib_box::{async_block#0}`);
    const [state] = fib.states.filter((s) => s.name === 'Suspend0');
    if (state?.awaitee?.box === undefined || fib.discriminant === undefined) throw new Error('no box');
    const memory = Buffer.alloc(fib.size);
    memory.writeUInt8(state.value, fib.discriminant.offset);
    memory.writeBigUInt64LE(0x8040_1230n, state.awaitee.offset);
    memory.writeBigUInt64LE(target.vtables[0] as bigint, state.awaitee.offset + 8);
    const [link, ...rest] = awaitChain(fib, memory, (vtable) => set.byVtable(vtable));
    t.equal(rest.length, 0);
    t.equal(link?.future, target);
    t.equal(link?.pointer, 0x8040_1230n);
    t.equal(link?.offset, undefined);
    t.match(awaitChain(fib, memory)[0], {
      typeName: 'dyn core::future::future::Future<Output=u64>',
      future: undefined,
    });
    t.equal(set.byVtable(addOffset(target.vtables[0] ?? addr(0), 8)), undefined);
  });
});
