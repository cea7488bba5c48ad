import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { addOffset, addr } from '../../src/base/addr.js';
import { DebugInfo, DW_AT, DW_TAG, DW_FORM as F } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { type KnownLock, LockNames } from '../../src/probes/kinds/locks/lock-names.js';
import { lockRole } from '../../src/probes/kinds/locks/names.js';
import { TakenLocks } from '../../src/probes/kinds/locks/taken-locks.js';
import { scratchFolder } from '../support/command.js';
import { debugOf } from '../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../support/dwarf-writer.js';
import { pollsProgram } from '../support/native.js';

t.test('functions of locks are known by their paths', async (t) => {
  for (const [path, does] of [
    ['spin::mutex::Mutex<u8>::lock', 'take'],
    ['<spin::mutex::spin::SpinMutex<app::Console>>::try_lock', 'try'],
    ['<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::unlock', 'release'],
    ['std::sys::sync::mutex::futex::Mutex::lock', 'take'],
    ['<std::sync::poison::mutex::MutexGuard<u8> as core::ops::drop::Drop>::drop', 'release'],
    ['spin::rwlock::RwLock<u8>::read', 'take'],
    ['acquire', 'take'],
    ['_raw_spin_lock_irqsave', 'take'],
    ['_raw_spin_unlock_irqrestore', 'release'],
    ['pthread_mutex_trylock', 'try'],
  ] as const)
    t.equal(lockRole(path)?.does, does, path);
  t.match(lockRole('spin::rwlock::RwLock<u8>::read'), { isShared: true });
  t.match(lockRole('<app::SpinLockGuard<app::Mutex<u8>> as core::ops::drop::Drop>::drop'), { isGuard: true });
});

t.test('others are not', async (t) => {
  for (const path of [
    'app::lock',
    'app::Clock::lock_step',
    'app::BlockDevice::read',
    'app::Mutex<u8>::new',
    '<app::Mutex<u8> as core::ops::drop::Drop>::drop',
    'app::Unlocked::lock_count',
    'std::io::Stdin::lock',
    'app::Mutex<u8>::constructor',
    'release_all',
  ])
    t.equal(lockRole(path), undefined, path);
});

t.test('the lock inside of the semaphore of an async mutex is not that mutex', async (t) => {
  const elf = await ElfFile.open(pollsProgram(t, 'orders'));
  const names = new LockNames({ elf, debug: DebugInfo.load(elf), nextKey: () => 1 });
  const symbol = [...elf.symbols].find(({ name }) => /orders.*LEDGER/.test(name));
  if (!symbol) return t.fail('the static is there');
  const type = { name: 'tokio::loom::std::mutex::Mutex<tokio::sync::batch_semaphore::Waitlist>', size: undefined };
  const found = names.of(symbol.address, type, symbol.address);
  t.match(found?.names, ['orders::LEDGER.s.waiters', 'orders::LEDGER'], 'a glob may match both');
});

/** Names the locks of a program of C++, by the static and the bytes from its start. */
async function namesIn(t: Parameters<typeof scratchFolder>[0], source: string) {
  const program = join(scratchFolder(t), 'locks');
  execFileSync('g++', ['-g', '-x', 'c++', '-', '-o', program], { input: source });
  const elf = await ElfFile.open(program);
  const names = new LockNames({ elf, debug: DebugInfo.load(elf), nextKey: () => 1 });
  const addresses = new Map([...elf.symbols].map(({ name, address }) => [name, address]));
  return (symbol: string, type: string, offset = 0, isPart = false): KnownLock | undefined => {
    const start = addresses.get(symbol) ?? addr(0);
    return names.of(addOffset(start, offset), { name: type, size: undefined }, start, isPart);
  };
}

t.test('what guards the waiters of a mutex is not that mutex, and what wraps a lock alone is that lock', async (t) => {
  const lockAt = await namesIn(
    t,
    `
template <class T> struct SpinLock { int word; T data; };
template <class T> struct SpinMutex { SpinLock<T> inner; };
struct AMutex { SpinLock<int> waiters; long value; };
SpinMutex<int> console;
AMutex ledger;
int main() { return console.inner.word + ledger.waiters.word; }`,
  );
  t.equal(lockAt('ledger', 'SpinLock<int>')?.names[0], 'ledger.waiters');
  t.equal(lockAt('console', 'SpinLock<int>')?.names[0], 'console');
});

t.test('a lock that wraps two is neither of them', async (t) => {
  const lockAt = await namesIn(
    t,
    `
struct RawMutex { int word; };
struct SpinMutex { RawMutex raw; long value; };
struct DataMutex { RawMutex raw; struct Data { RawMutex inner; } data; };
struct RWLock { int count; RawMutex readers; RawMutex global; };
struct MixedLock { RawMutex raw; SpinMutex other; };
RWLock table; MixedLock mixed; SpinMutex console; DataMutex guard;
int main() { return table.count + mixed.raw.word + console.raw.word + guard.raw.word; }`,
  );
  const nameOf = (symbol: string, offset: number): string | undefined => lockAt(symbol, 'RawMutex', offset)?.names[0];
  t.strictSame([nameOf('table', 4), nameOf('table', 8)], ['table.readers', 'table.global']);
  t.strictSame([nameOf('mixed', 0), nameOf('mixed', 8)], ['mixed.raw', 'mixed.other']);
  t.equal(nameOf('console', 0), 'console');
  t.strictSame([nameOf('guard', 0), nameOf('guard', 4)], ['guard', 'guard.data.inner'], 'of data that it guards');
});

t.test('a word belongs to a lock in a union, or deep inside; that none is there, only its type can say', async (t) => {
  const lockAt = await namesIn(
    t,
    `
struct Spin { int word; };
struct Holder { long kept; union { long none; Spin unnamed; }; union Slot { long none; Spin spin; } slot; };
template <int N> struct Deep { Deep<N - 1> in; };
template <> struct Deep<0> { int pad; Spin spin; };
template <int N> struct Other { long first; int second; };
union All { ${Array.from({ length: 300 }, (_, i) => `Other<${i}> other${i};`).join(' ')} struct { long pad; Spin spin; } last; };
struct Counter { long pad; int count; char text[2]; };
Holder holder; Deep<9> deep; All all; Counter counter;
alignas(8) char arena[64];
int main() { return holder.slot.spin.word + deep.in.in.in.in.in.in.in.in.in.pad + all.other0.second + counter.count + arena[0]; }`,
  );
  const nameOf = (symbol: string, offset: number): string | undefined => lockAt(symbol, 'Spin', offset, true)?.names[0];
  t.equal(nameOf('holder', 8), 'holder.unnamed');
  t.equal(nameOf('holder', 16), 'holder.slot.spin');
  t.equal(nameOf('deep', 4), `deep${'.in'.repeat(9)}.spin`);
  t.equal(nameOf('all', 8), 'all+0x8', 'its members are more than are looked into');
  t.equal(nameOf('arena', 16), 'arena+0x10', 'bytes may be anything');
  t.equal(nameOf('counter', 8), undefined);
  t.equal(nameOf('holder', 0), undefined);
  t.equal(lockAt('counter', 'Spin', 8)?.names[0], 'counter+0x8', 'a function was called with it as its lock');
});

t.test(
  'a lock in an enum has the name of its field; of a type that is not known, or is damaged, its place',
  async (t) => {
    const type = (label: string, size: number, children: readonly DieSpec[] = []): DieSpec => ({
      tag: DW_TAG.structure_type,
      label,
      attributes: [
        [DW_AT.name, F.string, label],
        [DW_AT.byte_size, F.data1, size],
      ],
      children,
    });
    const member = (name: string, ref: string, offset: number): DieSpec => ({
      tag: DW_TAG.member,
      attributes: [
        [DW_AT.name, F.string, name],
        [DW_AT.type, F.ref4, { ref }],
        [DW_AT.data_member_location, F.data1, offset],
      ],
    });
    const statics = ['Option', 'Loop', 'Declared'].map((name, i) => ({
      name: name.toUpperCase(),
      at: (i + 1) << 12,
      type: name,
    }));
    const variables = statics.map(
      ({ name, at, type }): DieSpec => ({
        tag: DW_TAG.variable,
        attributes: [
          [DW_AT.name, F.string, name],
          [DW_AT.type, F.ref4, { ref: type }],
          // DW_OP_addr
          [DW_AT.location, F.exprloc, Uint8Array.of(3, 0, at >> 8, 0, 0, 0, 0, 0, 0)],
        ],
      }),
    );
    const some = {
      tag: DW_TAG.variant,
      attributes: [[DW_AT.discr_value, F.data1, 1]],
      children: [member('Some', 'Some', 0)],
    } as const;
    // As rustc writes an enum: a variant's member is a struct of the variant's fields.
    const none = { tag: DW_TAG.variant, attributes: [[DW_AT.discr_value, F.data1, 0]], children: [] } as const;
    const writer = new DwarfWriter();
    writer.unit({
      version: 5,
      root: {
        tag: DW_TAG.compile_unit,
        children: [
          type('Spin', 8),
          type('Some', 16, [member('__0', 'Spin', 8)]),
          type('Option', 16, [{ tag: DW_TAG.variant_part, children: [none, some] }]),
          type('Loop', 8, [member('itself', 'Loop', 0)]),
          { tag: DW_TAG.structure_type, label: 'Declared', attributes: [[DW_AT.declaration, F.flag_present, 1]] },
          ...variables,
        ],
      },
    });
    const symbols = {
      at: (address: bigint) => {
        const { name, at } = statics.find(({ at }) => (Number(address) & ~0xfff) === at) ?? {};
        return name === undefined ? undefined : { name, address: addr(at ?? 0), size: 16, type: 'object' };
      },
    };
    const elf = { symbols, budget: undefined } as unknown as ElfFile;
    const names = new LockNames({ elf, debug: debugOf(writer), nextKey: () => 1 });
    const nameOf = (at: number): string | undefined =>
      names.of(addr(at), { name: 'Spin', size: 8 }, addr(0), true)?.names[0];
    t.equal(nameOf(0x1008), 'OPTION.0');
    t.equal(nameOf(0x1000), undefined, 'its discriminant is no lock');
    t.equal(nameOf(0x2004), 'LOOP+0x4');
    t.equal(nameOf(0x3004), 'DECLARED+0x4');
  },
);

t.test('a lock on the heap is the same one, whichever of the types that begin there takes it', async (t) => {
  const elf = { symbols: { at: () => undefined } } as unknown as ElfFile;
  const names = new LockNames({ elf, debug: undefined, nextKey: () => 1 });
  const as = (name: string) => names.of(addr(0x1000), { name, size: 16 }, addr(0x10));
  const [outer, inner] = [as('spin::Mutex<u8>'), as('spin::mutex::SpinMutex<u8>')];
  t.equal(as('spin::Mutex<u8>'), outer, 'no further one is made');
  t.equal(as('spin::mutex::SpinMutex<u8>'), inner);
});

t.test('so many locks have a name of their own; what the others share is no place of one', async (t) => {
  const statics = Array.from({ length: 4100 }, (_, i) => `lock${i}`);
  const lockAt = await namesIn(t, `struct Mutex { int word; }; Mutex ${statics.join(', ')}; int main() {}`);
  const refs = statics.map((name) => lockAt(name, 'Mutex')?.ref);
  t.equal(new Set(refs).size, 4096);
  t.match(refs[4094], { name: 'lock::lock4094', line: 1 });
  t.match(refs[4095], { name: 'lock::others', file: undefined, line: undefined });
  t.equal(refs[4099], refs[4095]);
});

t.test('a symbol without a size has what is behind it, but not all memory', async (t) => {
  const symbol = { name: 'heap', address: addr(0x10_000), size: 0, type: 'object' };
  const elf = { symbols: { at: () => symbol }, budget: undefined } as unknown as ElfFile;
  const names = new LockNames({ elf, debug: undefined, nextKey: () => 1 });
  const nameOf = (at: number): string | undefined => names.of(addr(at), undefined, addr(0x10))?.names[0];
  t.equal(nameOf(0x10_fff), 'heap+0xfff');
  t.equal(nameOf(0x11_000), '0x11000');
});

t.test('a place inside of a lock belongs to the one that was taken last there', async (t) => {
  const taken = new TakenLocks();
  const lock = (name: string, size: number) => ({ ref: { name }, size }) as KnownLock;
  const [small, large, huge] = [lock('small', 16), lock('large', 64), lock('huge', 1 << 20)];
  const around = (place: bigint): string | undefined => taken.around(place)?.ref.name;
  taken.take(0x10f0n, small);
  t.same([0x10efn, 0x10f0n, 0x10ffn, 0x1100n].map(around), [undefined, 'small', 'small', undefined]);
  taken.take(0x10e0n, large);
  t.same([0x10e0n, 0x10f8n, 0x111fn, 0x1120n].map(around), ['large', 'large', 'large', undefined]);
  taken.take(0x10f0n, small);
  t.same([0x10f8n, 0x1100n].map(around), ['small', 'large'], 'the memory of the one may be that of the other now');
  taken.take(0x10f0n, lock('more', 400));
  t.same([0x10f8n, 0x127fn, 0x1280n].map(around), ['more', 'more', undefined], 'another type at its place');
  taken.take(0x1000n, huge);
  t.same([0x10f8n, 0x10_0fffn, 0x10_1000n].map(around), ['huge', 'huge', undefined]);
  const other = (1n << 64n) | 0x10f8n;
  t.equal(around(other), undefined, 'of another address space');
  t.equal(taken.at(0x10e0n), large);
  t.equal(taken.at(0x10e8n), undefined);
});
