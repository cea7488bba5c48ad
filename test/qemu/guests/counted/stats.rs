// The guest's own counts, printed at its end: polls per async fn, and polls per task. Its book of tasks is in memory, for who stops it.
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

/// What the guest knows of a task, for whoever reads its memory.
#[repr(C)]
struct Entry {
    /// 1: live, 2: ended or dropped.
    state: AtomicU64,
    /// An `Id`.
    name: AtomicU64,
    polls: AtomicU64,
    /// Where its `Task` lies; 0 before its first poll.
    place: AtomicU64,
    /// Of the await that it waits at, as of its last poll; 0 before.
    line: AtomicU64,
    /// Guards that it has.
    guards: AtomicU64,
}
impl Entry {
    const fn empty() -> Entry {
        const ZERO: AtomicU64 = AtomicU64::new(0);
        Entry { state: ZERO, name: ZERO, polls: ZERO, place: ZERO, line: ZERO, guards: ZERO }
    }
}
#[unsafe(no_mangle)]
static LAB_BOOK: [Entry; TASKS] = [const { Entry::empty() }; TASKS];
static SPAWNED: AtomicU64 = AtomicU64::new(0);
/// The task that is polled, and the line of the await that it goes to.
static CURRENT: AtomicU64 = AtomicU64::new(0);
static LINE: AtomicU64 = AtomicU64::new(0);

/// In the line of an await: a task says where it will wait.
pub fn here(line: u32) {
    LINE.store(line as u64, Relaxed);
}
/// The task that is polled has so many guards now.
pub fn guards(count: u64) {
    LAB_BOOK[CURRENT.load(Relaxed) as usize].guards.store(count, Relaxed);
}

/// What a task awaits first and last: counts the task's polls.
pub struct Task<F> {
    body: F,
    number: usize,
}
/// Called before the executor is given the task, so that one that was never polled is live too.
pub fn spawned(id: Id) -> usize {
    let number = SPAWNED.fetch_add(1, Relaxed) as usize;
    LAB_BOOK[number].name.store(id as u64, Relaxed);
    LAB_BOOK[number].state.store(1, Relaxed);
    number
}
pub fn task<F: Future>(number: usize, body: F) -> Task<F> {
    Task { body, number }
}
impl<F: Future> Future for Task<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = unsafe { self.get_unchecked_mut() };
        let entry = &LAB_BOOK[this.number];
        NOW.store(entry.polls.fetch_add(1, Relaxed) + 1, Relaxed);
        entry.place.store(&raw const *this as u64, Relaxed);
        CURRENT.store(this.number as u64, Relaxed);
        LINE.store(entry.line.load(Relaxed), Relaxed);
        moment();
        crate::log::polls(this.number, cx);
        let result = unsafe { Pin::new_unchecked(&mut this.body) }.poll(cx);
        crate::log::polled(result.is_ready());
        if result.is_ready() {
            entry.state.store(2, Relaxed);
        } else {
            entry.line.store(LINE.load(Relaxed), Relaxed);
            moment();
        }
        result
    }
}
impl<F> Drop for Task<F> {
    /// A cancelled task is not live.
    fn drop(&mut self) {
        LAB_BOOK[self.number].state.store(2, Relaxed);
    }
}

pub fn live() -> u64 {
    LAB_BOOK.iter().filter(|entry| entry.state.load(Relaxed) == 1).count() as u64
}

/// Whoever debugs writes here at which moment the guest is to come to `lab_moment`.
#[unsafe(no_mangle)]
static LAB_STOP_AT: AtomicU64 = AtomicU64::new(0);
static MOMENTS: AtomicU64 = AtomicU64::new(0);

/// A place to stop at: the book is right here.
pub fn moment() {
    let number = MOMENTS.fetch_add(1, Relaxed) + 1;
    if number == LAB_STOP_AT.load(Relaxed) {
        lab_moment(number);
    }
}
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn lab_moment(number: u64) {
    core::hint::black_box(number);
}

/// The tasks that have not ended, by the guest's own book; then a place to stop at.
pub fn checkpoint(number: u64) {
    for (i, entry) in LAB_BOOK.iter().enumerate() {
        if entry.state.load(Relaxed) == 1 {
            let name = NAMES[entry.name.load(Relaxed) as usize];
            crate::println!("LAB live {} {} {} polls={}", number, i, name, entry.polls.load(Relaxed));
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
        let entry = &LAB_BOOK[i];
        let name = NAMES[entry.name.load(Relaxed) as usize];
        crate::println!("LAB task {} {} polls={}", i, name, entry.polls.load(Relaxed));
    }
}
