import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { type KnownLock, LockNames } from '../../src/probes/kinds/locks/lock-names.js';
import { lockRole } from '../../src/probes/kinds/locks/names.js';
import { TakenLocks } from '../../src/probes/kinds/locks/taken-locks.js';
import { scratchFolder } from '../support/command.js';
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
  const found = names.of(symbol.address, type, { name: 'lock', address: symbol.address });
  t.match(found?.names, ['orders::LEDGER.s.waiters', 'orders::LEDGER'], 'a glob may match both');
});

t.test('what guards the waiters of a mutex is not that mutex, and what wraps a lock alone is that lock', async (t) => {
  const source = `
template <class T> struct SpinLock { int word; T data; };
template <class T> struct SpinMutex { SpinLock<T> inner; };
struct AMutex { SpinLock<int> waiters; long value; };
SpinMutex<int> console;
AMutex ledger;
int main() { return console.inner.word + ledger.waiters.word; }`;
  const program = join(scratchFolder(t), 'locks');
  execFileSync('g++', ['-g', '-x', 'c++', '-', '-o', program], { input: source });
  const elf = await ElfFile.open(program);
  const names = new LockNames({ elf, debug: DebugInfo.load(elf), nextKey: () => 1 });
  const nameOf = (symbol: string): string | undefined => {
    const address = [...elf.symbols].find(({ name }) => name === symbol)?.address ?? addr(0);
    return names.of(address, { name: 'SpinLock<int>', size: 8 }, { name: 'lock', address })?.names[0];
  };
  t.equal(nameOf('ledger'), 'ledger.waiters');
  t.equal(nameOf('console'), 'console');
});

t.test('a lock on the heap is the same one, whichever of the types that begin there takes it', async (t) => {
  const elf = { symbols: { at: () => undefined } } as unknown as ElfFile;
  const names = new LockNames({ elf, debug: undefined, nextKey: () => 1 });
  const as = (name: string) => names.of(addr(0x1000), { name, size: 16 }, { name: 'lock', address: addr(0x10) });
  const [outer, inner] = [as('spin::Mutex<u8>'), as('spin::mutex::SpinMutex<u8>')];
  t.equal(as('spin::Mutex<u8>'), outer, 'no further one is made');
  t.equal(as('spin::mutex::SpinMutex<u8>'), inner);
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
