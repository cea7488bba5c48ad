//! The program's own list of its live tasks, for whoever stops it at any moment and reads its memory.
//!
//! What a task does and what the list says of it cannot change at the same instant. So an entry says when it is in between: a task is `SPAWNING` until its
//! executor has it, and one that has ended may still be there while the thread that polled it has nothing else (`LAB_CURRENT`).
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

const SPAWNING: u64 = 1;
const LIVE: u64 = 2;
const ENDED: u64 = 3;

#[repr(C)]
pub struct Entry {
    phase: AtomicU64,
    /// Its name: where it lies, and how long it is.
    name: AtomicU64,
    length: AtomicU64,
    /// Where its `Live` lies; 0 before its first poll.
    place: AtomicU64,
    /// Of the await that it waits at, as of its last poll; 0 before.
    line: AtomicU64,
    /// 1 while it is polled.
    busy: AtomicU64,
    /// The lock that it has a guard of, or 0.
    holds: AtomicU64,
}
const ENTRIES: usize = 512;
#[unsafe(no_mangle)]
pub static LAB_BOOK: [Entry; ENTRIES] = [const { Entry::empty() }; ENTRIES];
/// What each thread polled last, from 1.
#[unsafe(no_mangle)]
pub static LAB_CURRENT: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

impl Entry {
    const fn empty() -> Entry {
        const ZERO: AtomicU64 = AtomicU64::new(0);
        Entry { phase: ZERO, name: ZERO, length: ZERO, place: ZERO, line: ZERO, busy: ZERO, holds: ZERO }
    }
}

static NEXT: AtomicUsize = AtomicUsize::new(0);
static THREADS: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, SeqCst);
    static SLOT: Cell<usize> = const { Cell::new(0) };
    static LINE: Cell<u64> = const { Cell::new(0) };
}

/// In the line of an await: the task that is polled says where it will wait.
pub fn here(line: u32) {
    LINE.set(line as u64);
}
/// The task that is polled has a guard of this lock now, or of none.
pub fn holds<T>(lock: Option<&T>) {
    LAB_BOOK[SLOT.get()].holds.store(lock.map_or(0, |lock| lock as *const T as u64), SeqCst);
}

/// A Future that is in the list from before it is spawned until it is dropped.
pub struct Live<F> {
    body: F,
    slot: Slot,
}
/// A place in the list, which is given back.
pub struct Slot(usize);

impl Slot {
    /// Entries are used in turn, so that one that has ended stays for a while.
    pub fn new(name: &'static str) -> Slot {
        loop {
            let slot = NEXT.fetch_add(1, SeqCst) % ENTRIES;
            let entry = &LAB_BOOK[slot];
            let phase = entry.phase.load(SeqCst);
            if (phase == 0 || phase == ENDED) && entry.phase.compare_exchange(phase, SPAWNING, SeqCst, SeqCst).is_ok() {
                entry.name.store(name.as_ptr() as u64, SeqCst);
                entry.length.store(name.len() as u64, SeqCst);
                for word in [&entry.place, &entry.line, &entry.busy, &entry.holds] {
                    word.store(0, SeqCst);
                }
                return Slot(slot);
            }
        }
    }
    pub fn number(&self) -> usize {
        self.0
    }
}
impl Drop for Slot {
    fn drop(&mut self) {
        note(self.0);
        LAB_BOOK[self.0].phase.store(ENDED, SeqCst);
    }
}

/// What this thread is about.
fn note(slot: usize) {
    let _ = THREAD.try_with(|thread| LAB_CURRENT[*thread].store(slot as u64 + 1, SeqCst));
}
/// The executor has it.
pub fn spawned(slot: usize) {
    let _ = LAB_BOOK[slot].phase.compare_exchange(SPAWNING, LIVE, SeqCst, SeqCst);
}

pub fn live<F: Future>(name: &'static str, body: F) -> Live<F> {
    Live { slot: Slot::new(name), body }
}

impl<F> Live<F> {
    pub fn number(&self) -> usize {
        self.slot.number()
    }
}
impl<F: Future> Future for Live<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let slot = self.slot.0;
        let entry = &LAB_BOOK[slot];
        let before = (SLOT.replace(slot), LINE.replace(entry.line.load(SeqCst)));
        entry.busy.store(1, SeqCst);
        note(slot);
        spawned(slot);
        entry.place.store(&raw const *self as u64, SeqCst);
        // SAFETY: `body` is never moved.
        let body = unsafe { self.map_unchecked_mut(|this| &mut this.body) };
        let result = body.poll(context);
        if result.is_pending() {
            entry.line.store(LINE.get(), SeqCst);
            entry.busy.store(0, SeqCst);
        }
        SLOT.set(before.0);
        LINE.set(before.1);
        result
    }
}
