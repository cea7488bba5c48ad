import t from 'tap';
import { lockRole } from '../../src/probes/kinds/locks/names.js';

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
