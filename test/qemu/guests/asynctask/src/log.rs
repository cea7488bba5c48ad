// The guest's own book of who woke whom, and of the polls of its tasks, in order and with the time of each.
use crate::stats::TASKS;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use core::task::{Context, Waker};

/// Who wakes where no task is polled.
pub const NOBODY: u64 = 100;
pub const INTERRUPT: u64 = 101;
/// Stands for the waker in an entry that is a poll.
const POLL: u64 = 102;

const ENTRIES: usize = 4096;
static LOG: [[AtomicU64; 3]; ENTRIES] = [const { [const { AtomicU64::new(0) }; 3] }; ENTRIES];
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// What the wakers of each task point to.
static HEADERS: [AtomicUsize; TASKS] = [const { AtomicUsize::new(0) }; TASKS];
static CURRENT: AtomicU64 = AtomicU64::new(NOBODY);
/// A task that is awaited is about to end; who awaits it.
static ENDS: AtomicU64 = AtomicU64::new(NOBODY);
static AWAITER: AtomicU64 = AtomicU64::new(NOBODY);

/// In ticks of the CSR `time`; 0 where there is none.
fn now() -> u64 {
    #[cfg(target_arch = "riscv64")]
    unsafe {
        let now: u64;
        core::arch::asm!("rdtime {}", out(reg) now);
        now
    }
    #[cfg(not(target_arch = "riscv64"))]
    0
}
fn note(by: u64, task: u64) {
    // A task that wakes itself all the time fills it when nobody traces.
    let Some(entry) = LOG.get(NEXT.fetch_add(1, Relaxed)) else { return };
    for (word, value) in entry.iter().zip([by, task, now()]) {
        word.store(value, Relaxed);
    }
}

/// A task's poll begins.
pub fn polls(number: usize, cx: &Context<'_>) {
    HEADERS[number].store(cx.waker().data() as usize, Relaxed);
    CURRENT.store(number as u64, Relaxed);
    note(POLL, number as u64);
}
/// It ends. async-task itself wakes who awaits a task that has ended.
pub fn polled(is_ready: bool) {
    let task = CURRENT.swap(NOBODY, Relaxed);
    let awaiter = AWAITER.load(Relaxed);
    if is_ready && task == ENDS.load(Relaxed) && awaiter != NOBODY {
        note(NOBODY, awaiter);
    }
}
pub fn current() -> u64 {
    CURRENT.load(Relaxed)
}
pub fn ends() {
    ENDS.store(current(), Relaxed);
}
pub fn awaits_it() {
    AWAITER.store(current(), Relaxed);
}
/// Just before the waker is used.
pub fn wakes(waker: &Waker, by: u64) {
    let header = waker.data() as usize;
    let task = HEADERS.iter().position(|each| each.load(Relaxed) == header);
    note(by, task.map_or(NOBODY, |number| number as u64));
}

pub fn report() {
    for [by, task, time] in LOG.iter().take(NEXT.load(Relaxed)) {
        let (by, task, time) = (by.load(Relaxed), task.load(Relaxed), time.load(Relaxed));
        match by {
            POLL => crate::println!("LAB log {} polled at={}", task, time),
            INTERRUPT => crate::println!("LAB log {} woken by=interrupt at={}", task, time),
            NOBODY => crate::println!("LAB log {} woken by=nobody at={}", task, time),
            _ => crate::println!("LAB log {} woken by={} at={}", task, by, time),
        }
    }
}
