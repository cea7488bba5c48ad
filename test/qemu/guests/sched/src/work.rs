//! What threads do: calls that give way in their middle, on stacks of any depth, and a queue between them.
use crate::arch::hart;
use crate::sched::{lock, sleep, unlock, wakeup, yield_now};
use crate::{CHECKSUM, Counted, MIGRATED, ROUNDS, count};
use core::sync::atomic::Ordering::*;

const ROOM: usize = 2;
const EMPTY: usize = 1;
const FULL: usize = 2;
static mut QUEUE: [u64; ROOM] = [0; ROOM];
static mut USED: usize = 0;

#[inline(never)]
pub fn worker(thread: usize) {
    count(Counted::worker);
    let mut sum = 0;
    for round in 0..ROUNDS {
        sum += match thread & 3 {
            0 => outer(round),
            1 => put(round * 7 + 1),
            2 => take(),
            _ => descend(round % 4),
        };
    }
    CHECKSUM.fetch_add(sum, AcqRel);
}

#[inline(never)]
fn outer(n: u64) -> u64 {
    count(Counted::outer);
    let began = hart();
    let value = middle(n) + mix(n, 3);
    if hart() != began {
        MIGRATED.fetch_add(1, Relaxed);
    }
    value
}

#[inline(never)]
fn middle(n: u64) -> u64 {
    count(Counted::middle);
    let first = inner(n);
    yield_now();
    first + inner(n + 1)
}

#[inline(never)]
fn inner(n: u64) -> u64 {
    count(Counted::inner);
    if n & 1 == 0 {
        yield_now();
    }
    mix(n, 5)
}

/// Gives way at the bottom, and once more on the way back.
#[inline(never)]
fn descend(n: u64) -> u64 {
    count(Counted::descend);
    if n == 0 {
        yield_now();
        return 1;
    }
    let value = descend(n - 1);
    if n == 2 {
        yield_now();
    }
    mix(value, n)
}

#[inline(never)]
fn mix(a: u64, b: u64) -> u64 {
    count(Counted::mix);
    a.wrapping_mul(31).wrapping_add(b)
}

#[inline(never)]
fn put(value: u64) -> u64 {
    count(Counted::put);
    lock();
    unsafe {
        while USED == ROOM {
            sleep(FULL);
        }
        QUEUE[USED & 1] = value;
        USED += 1;
    }
    wakeup(EMPTY);
    unlock();
    value
}

#[inline(never)]
fn take() -> u64 {
    count(Counted::take);
    lock();
    let value = unsafe {
        while USED == 0 {
            sleep(EMPTY);
        }
        USED -= 1;
        QUEUE[USED & 1]
    };
    wakeup(FULL);
    unlock();
    value
}
