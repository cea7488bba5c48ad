//! Threads, the scheduler of each hart, and how they change places.
use crate::arch::{self, Context, hart};
use crate::{Counted, HARTS, THREADS, count};
use core::sync::atomic::{AtomicBool, Ordering::*};

#[derive(Clone, Copy, PartialEq)]
enum State {
    Ready,
    Running,
    Sleeping(usize),
    Done,
}
struct Thread {
    state: State,
    /// Where it ran last.
    hart: usize,
    context: Context,
}
struct Table {
    threads: [Thread; THREADS],
    /// Where each hart's scheduler goes on.
    schedulers: [Context; HARTS],
    /// Which thread each hart runs.
    running: [usize; HARTS],
    last: usize,
}
static mut TABLE: Table = Table {
    threads: [const { Thread { state: State::Ready, hart: HARTS, context: Context::EMPTY } }; THREADS],
    schedulers: [const { Context::EMPTY }; HARTS],
    running: [0; HARTS],
    last: 0,
};
/// Of the table, and held while threads change places: who goes on lets it go.
static LOCK: AtomicBool = AtomicBool::new(false);

#[inline(always)]
fn table() -> &'static mut Table {
    unsafe { &mut *(&raw mut TABLE) }
}
#[inline(always)]
pub fn lock() {
    while LOCK.swap(true, Acquire) {
        core::hint::spin_loop();
    }
}
#[inline(always)]
pub fn unlock() {
    LOCK.store(false, Release);
}
/// The thread that runs here. It may run elsewhere after anything that gives way.
#[inline(always)]
fn own() -> usize {
    table().running[hart()] % THREADS
}

#[inline(always)]
pub fn prepare() {
    for (i, thread) in table().threads.iter_mut().enumerate() {
        thread.context = Context::new(arch::thread_stack(i), start as usize);
    }
}

/// Where there are several harts, a thread goes on elsewhere than where it was.
#[inline(always)]
fn next() -> Option<usize> {
    let table = table();
    let alone = crate::ALL.load(Relaxed) == 1;
    (1..=THREADS).map(|i| (table.last + i) % THREADS).find(|&i| {
        let thread = &table.threads[i];
        thread.state == State::Ready && (alone || thread.hart != hart())
    })
}

/// The next thread that can run here; there is one.
#[inline(never)]
fn pick() -> usize {
    count(Counted::pick);
    next().unwrap_or(0)
}

/// Gives a hart's time to threads until all are done.
#[inline(never)]
pub fn scheduler() {
    count(Counted::scheduler);
    loop {
        lock();
        if table().threads.iter().all(|thread| thread.state == State::Done) {
            unlock();
            return;
        }
        // How often there is nothing to do depends on time.
        if next().is_some() {
            let next = pick() % THREADS;
            let table = table();
            table.last = next;
            table.threads[next].state = State::Running;
            table.threads[next].hart = hart();
            table.running[hart()] = next;
            count(Counted::swtch);
            unsafe { arch::swtch(&raw mut table.schedulers[hart()], &raw const table.threads[next].context) };
        }
        unlock();
        core::hint::spin_loop();
    }
}

/// Gives way, with the table locked and the thread's state set.
#[inline(never)]
fn sched() {
    count(Counted::sched);
    let table = table();
    let own = own();
    count(Counted::swtch);
    unsafe { arch::swtch(&raw mut table.threads[own].context, &raw const table.schedulers[hart()]) };
    // Whatever is below the call keeps it from being the last thing that is done.
    core::hint::black_box(own);
}

#[inline(never)]
pub fn yield_now() {
    count(Counted::yield_now);
    lock();
    table().threads[own()].state = State::Ready;
    sched();
    unlock();
}

/// With the table locked, as it is afterwards.
#[inline(never)]
pub fn sleep(channel: usize) {
    count(Counted::sleep);
    table().threads[own()].state = State::Sleeping(channel);
    sched();
    core::hint::black_box(channel);
}

/// With the table locked.
#[inline(never)]
pub fn wakeup(channel: usize) {
    count(Counted::wakeup);
    for thread in &mut table().threads {
        if thread.state == State::Sleeping(channel) {
            thread.state = State::Ready;
        }
    }
}

/// Where a thread begins: the scheduler has locked the table.
#[inline(never)]
extern "C" fn start() -> ! {
    count(Counted::start);
    let thread = own();
    unlock();
    crate::work::worker(thread);
    exit()
}

#[inline(never)]
fn exit() -> ! {
    count(Counted::exit);
    lock();
    table().threads[own()].state = State::Done;
    sched();
    arch::halt()
}
