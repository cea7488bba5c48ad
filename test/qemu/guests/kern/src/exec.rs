// Executor: N boxed tasks, Arc wakers, timer list woken from the timer interrupt.
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use core::task::{Context, Poll, Waker};

pub type BoxFut = Pin<Box<dyn Future<Output = ()>>>;

pub struct Task {
    pub id: u64,
    pub name: &'static str,
    pub fut: UnsafeCell<Option<BoxFut>>,
    pub queued: AtomicBool,
    pub polls: AtomicU64,
}
unsafe impl Sync for Task {}
unsafe impl Send for Task {}

pub struct Lock<T>(UnsafeCell<T>);
unsafe impl<T> Sync for Lock<T> {}
impl<T> Lock<T> {
    pub const fn new(t: T) -> Self {
        Lock(UnsafeCell::new(t))
    }
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        crate::arch::critical(|| f(unsafe { &mut *self.0.get() }))
    }
}
static READY: Lock<VecDeque<Arc<Task>>> = Lock::new(VecDeque::new());
static TIMERS: Lock<Vec<(u64, Waker)>> = Lock::new(Vec::new());
static DONE: Lock<Vec<(u64, &'static str, u64)>> = Lock::new(Vec::new());
pub static LIVE: AtomicU64 = AtomicU64::new(0);
pub static SPAWNED: AtomicU64 = AtomicU64::new(0);
pub static POLLS: AtomicU64 = AtomicU64::new(0);
pub static WAKES: AtomicU64 = AtomicU64::new(0);
pub static IRQ_WAKES: AtomicU64 = AtomicU64::new(0);
pub static TICKS: AtomicU64 = AtomicU64::new(0);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        WAKES.fetch_add(1, Relaxed);
        if !self.queued.swap(true, AcqRel) {
            READY.with(|q| q.push_back(self));
        }
    }
}

#[inline(never)]
pub fn spawn(name: &'static str, fut: impl Future<Output = ()> + 'static) -> u64 {
    let id = SPAWNED.fetch_add(1, Relaxed);
    LIVE.fetch_add(1, Relaxed);
    let t = Arc::new(Task {
        id,
        name,
        fut: UnsafeCell::new(Some(Box::pin(fut))),
        queued: AtomicBool::new(true),
        polls: AtomicU64::new(0),
    });
    READY.with(|q| q.push_back(t));
    id
}

/// The one place where a task's `dyn Future` is polled. A task that was woken during its last poll is taken from the
/// queue once more with nothing left to poll: stat poll_task counts that in `calls` but not in `polls`.
#[inline(never)]
pub fn poll_task(t: Arc<Task>) {
    crate::stats::CALLS[crate::stats::Id::poll_task as usize].fetch_add(1, Relaxed);
    t.queued.store(false, Release);
    let w = Waker::from(t.clone());
    let mut cx = Context::from_waker(&w);
    let slot = unsafe { &mut *t.fut.get() };
    if let Some(f) = slot.as_mut() {
        let n = t.polls.fetch_add(1, Relaxed) + 1;
        crate::stats::CUR_POLL.store(n, Relaxed);
        POLLS.fetch_add(1, Relaxed);
        crate::stats::POLLS[crate::stats::Id::poll_task as usize].fetch_add(1, Relaxed);
        match f.as_mut().poll(&mut cx) {
            Poll::Ready(()) => {
                *slot = None;
                LIVE.fetch_sub(1, Relaxed);
                DONE.with(|d| d.push((t.id, t.name, n)));
            }
            Poll::Pending => {}
        }
    }
}

#[inline(never)]
pub fn run() {
    loop {
        match READY.with(|q| q.pop_front()) {
            Some(t) => poll_task(t),
            None => {
                if LIVE.load(Relaxed) == 0 {
                    break;
                }
                crate::arch::wait_irq(|| READY.with(|q| q.is_empty()));
            }
        }
    }
}

pub fn add_timer(deadline: u64, w: Waker) {
    TIMERS.with(|t| t.push((deadline, w)));
}

/// Called from the timer interrupt with interrupts masked.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn timer_tick() {
    let now = TICKS.fetch_add(1, Relaxed) + 1;
    TIMERS.with(|t| {
        let mut i = 0;
        while i < t.len() {
            if t[i].0 <= now {
                let (_, w) = t.swap_remove(i);
                IRQ_WAKES.fetch_add(1, Relaxed);
                w.wake();
            } else {
                i += 1;
            }
        }
    });
}

pub fn report() {
    DONE.with(|d| {
        d.sort();
        for (id, name, polls) in d.iter() {
            crate::println!("LAB task {} {} polls={}", id, name, polls);
        }
    });
    crate::println!(
        "LAB exec spawned={} polls={} wakes={} irq_wakes={} ticks={}",
        SPAWNED.load(Relaxed), POLLS.load(Relaxed), WAKES.load(Relaxed), IRQ_WAKES.load(Relaxed), TICKS.load(Relaxed)
    );
}
