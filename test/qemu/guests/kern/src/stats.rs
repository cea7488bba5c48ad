// Ground truth: exact number of polls per async fn / hand-written future, printed at the end.
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! ids {
    ($($id:ident),* $(,)?) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub enum Id { $($id),*, __N }
        pub static NAMES: &[&str] = &[$(stringify!($id)),*];
    };
}
ids!(
    chain_task, level1, level2, level3, leaf_io, joiner, selector, loser, sleeper, fib_box, generic_add_u8,
    generic_add_u32, producer, consumer, method, trait_method, block_fn, closure, pollfn, yield_n, sleep, join2,
    select2, recv, irq_wait, deep_calls, poll_task
);
pub const N: usize = Id::__N as usize;
pub static CALLS: [AtomicU64; N] = [const { AtomicU64::new(0) }; N];
pub static POLLS: [AtomicU64; N] = [const { AtomicU64::new(0) }; N];
pub static CHECKSUM: AtomicU64 = AtomicU64::new(0);

/// Poll sequence number of the task being polled now (set by the executor).
pub static CUR_POLL: AtomicU64 = AtomicU64::new(0);

/// Held across the whole body of an async fn. An async fn body that is live is polled exactly once per poll of
/// its task in this kernel (join polls every unfinished branch, select polls both branches), so
/// polls = last - first + 1.
pub struct Stat {
    id: Id,
    first: u64,
}
impl Stat {
    #[inline]
    pub fn begin(id: Id) -> Stat {
        CALLS[id as usize].fetch_add(1, Relaxed);
        Stat { id, first: CUR_POLL.load(Relaxed) }
    }
}
impl Drop for Stat {
    #[inline]
    fn drop(&mut self) {
        POLLS[self.id as usize].fetch_add(CUR_POLL.load(Relaxed) - self.first + 1, Relaxed);
    }
}
#[inline]
pub fn poll_hit(id: Id, first: bool) {
    if first {
        CALLS[id as usize].fetch_add(1, Relaxed);
    }
    POLLS[id as usize].fetch_add(1, Relaxed);
}
pub fn report() {
    for i in 0..N {
        crate::println!("LAB stat {} calls={} polls={}", NAMES[i], CALLS[i].load(Relaxed), POLLS[i].load(Relaxed));
    }
    let h = (crate::heap::ALLOCS.load(Relaxed), crate::heap::FREES.load(Relaxed));
    crate::println!("LAB heap allocs={} frees={}", h.0, h.1);
    crate::exec::report();
    crate::println!("LAB checksum {:#x}", CHECKSUM.load(Relaxed));
}
