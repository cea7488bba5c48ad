// The guest's own counts, printed at its end: polls per async fn, and polls per task.
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll};

macro_rules! ids {
    ($($id:ident),* $(,)?) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub enum Id { $($id),*, __N }
        pub static NAMES: &[&str] = &[$(stringify!($id)),*];
    };
}
crate::lab_names!(ids);
const N: usize = Id::__N as usize;
static CALLS: [AtomicU64; N] = [const { AtomicU64::new(0) }; N];
static POLLS: [AtomicU64; N] = [const { AtomicU64::new(0) }; N];
/// How often the task that is polled now has been polled.
static NOW: AtomicU64 = AtomicU64::new(0);

/// Held across the whole body of an async fn, which is polled once in every poll of its task while it lives.
pub struct Stat {
    id: Id,
    first: u64,
}
impl Stat {
    #[inline]
    pub fn begin(id: Id) -> Stat {
        CALLS[id as usize].fetch_add(1, Relaxed);
        Stat { id, first: NOW.load(Relaxed) }
    }
}
impl Drop for Stat {
    #[inline]
    fn drop(&mut self) {
        POLLS[self.id as usize].fetch_add(NOW.load(Relaxed) - self.first + 1, Relaxed);
    }
}

pub const TASKS: usize = 16;
static NAME: [AtomicU64; TASKS] = [const { AtomicU64::new(0) }; TASKS];
static TASK_POLLS: [AtomicU64; TASKS] = [const { AtomicU64::new(0) }; TASKS];
static STATE: [AtomicU64; TASKS] = [const { AtomicU64::new(0) }; TASKS];
static SPAWNED: AtomicU64 = AtomicU64::new(0);

/// What a task awaits first and last: counts the task's polls.
pub struct Task<F> {
    body: F,
    number: usize,
}
/// Called before the executor is given the task, so that one that was never polled is live too.
pub fn spawned(id: Id) -> usize {
    let number = SPAWNED.fetch_add(1, Relaxed) as usize;
    NAME[number].store(id as u64, Relaxed);
    STATE[number].store(1, Relaxed);
    number
}
pub fn task<F: Future>(number: usize, body: F) -> Task<F> {
    Task { body, number }
}
impl<F: Future> Future for Task<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = unsafe { self.get_unchecked_mut() };
        NOW.store(TASK_POLLS[this.number].fetch_add(1, Relaxed) + 1, Relaxed);
        crate::log::polls(this.number, cx);
        let result = unsafe { Pin::new_unchecked(&mut this.body) }.poll(cx);
        crate::log::polled(result.is_ready());
        if result.is_ready() {
            STATE[this.number].store(2, Relaxed);
        }
        result
    }
}
impl<F> Drop for Task<F> {
    /// A cancelled task is not live.
    fn drop(&mut self) {
        STATE[self.number].store(2, Relaxed);
    }
}

pub fn live() -> u64 {
    STATE.iter().filter(|state| state.load(Relaxed) == 1).count() as u64
}

/// The tasks that have not ended, by the guest's own book; then a place to stop at.
pub fn checkpoint(number: u64) {
    for i in 0..TASKS {
        if STATE[i].load(Relaxed) == 1 {
            let name = NAMES[NAME[i].load(Relaxed) as usize];
            crate::println!("LAB live {} {} {} polls={}", number, i, name, TASK_POLLS[i].load(Relaxed));
        }
    }
    crate::println!("LAB checkpoint {} live={}", number, live());
    lab_checkpoint(number);
}
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn lab_checkpoint(number: u64) {
    core::hint::black_box(number);
}

pub fn report() {
    for i in 0..N {
        crate::println!("LAB stat {} calls={} polls={}", NAMES[i], CALLS[i].load(Relaxed), POLLS[i].load(Relaxed));
    }
    for i in 0..SPAWNED.load(Relaxed) as usize {
        let name = NAMES[NAME[i].load(Relaxed) as usize];
        crate::println!("LAB task {} {} polls={}", i, name, TASK_POLLS[i].load(Relaxed));
    }
}
