import t from 'tap';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { LockNames } from '../../src/probes/kinds/locks/lock-names.js';
import { lockRole } from '../../src/probes/kinds/locks/names.js';
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
