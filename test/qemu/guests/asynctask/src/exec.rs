// The executor: a queue of runnables, and wakers that wait for a tick.
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use async_task::{Runnable, Task};
use core::cell::UnsafeCell;
use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::task::Waker;

struct Shared<T>(UnsafeCell<T>);
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        crate::arch::critical(|| f(unsafe { &mut *self.0.get() }))
    }
}
static READY: Shared<VecDeque<Runnable>> = Shared(UnsafeCell::new(VecDeque::new()));
static SLEEPERS: Shared<Vec<(u64, Waker)>> = Shared(UnsafeCell::new(Vec::new()));
static TICKS: AtomicU64 = AtomicU64::new(0);
static RUNS: AtomicU64 = AtomicU64::new(0);

pub fn spawn<F: Future + 'static>(future: F) -> Task<F::Output>
where
    F::Output: 'static,
{
    let schedule = |runnable| READY.with(|ready| ready.push_back(runnable));
    // One hart: nothing is sent anywhere.
    let (runnable, task) = unsafe { async_task::spawn_unchecked(future, schedule) };
    runnable.schedule();
    task
}
pub fn run_one() -> bool {
    let Some(runnable) = READY.with(|ready| ready.pop_front()) else { return false };
    RUNS.fetch_add(1, Relaxed);
    runnable.run();
    true
}
pub fn is_idle() -> bool {
    READY.with(|ready| ready.is_empty())
}
pub fn sleep_until(tick: u64, waker: Waker) {
    SLEEPERS.with(|sleepers| sleepers.push((tick, waker)));
}
/// In the interrupt's handler: wakes who has slept enough.
pub fn timer_tick() {
    TICKS.fetch_add(1, Relaxed);
    let now = ticks();
    while let Some(waker) = SLEEPERS.with(|sleepers| {
        let at = sleepers.iter().position(|(tick, _)| *tick <= now)?;
        Some(sleepers.swap_remove(at).1)
    }) {
        crate::stats::moment();
        crate::log::wakes(&waker, crate::log::INTERRUPT);
        waker.wake();
    }
}
pub fn ticks() -> u64 {
    TICKS.load(Relaxed)
}
pub fn runs() -> u64 {
    RUNS.load(Relaxed)
}
