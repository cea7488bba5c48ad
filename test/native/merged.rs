// Futures whose poll functions have the same code, of which an optimising compiler makes one: polled by their callers, by an async fn, and as
// `dyn Future`. The program counts the polls, and prints them.
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

macro_rules! alike {
    ($name:ident) => {
        pub struct $name {
            left: u32,
            out: u64,
        }

        impl Future for $name {
            type Output = u64;
            #[inline(never)]
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
                if self.left > 0 {
                    self.left -= 1;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let mut h = self.out;
                for i in 0..8u64 {
                    h = h.wrapping_mul(31).rotate_left(7) ^ i;
                }
                Poll::Ready(h)
            }
        }
    };
}
alike!(ReadFut);
alike!(WriteFut);
alike!(LockFut);

static POLLS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Counts the polls of what it calls directly.
fn drive<F: Future>(future: F, counter: &AtomicU64) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        counter.fetch_add(1, Relaxed);
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
}

#[inline(never)]
fn behind(mut future: Pin<Box<dyn Future<Output = u64>>>, polls: &mut u64) -> u64 {
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        *polls += 1;
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
}

/// Each of its Futures is polled once more than it is pending.
pub async fn outer(n: u32) -> u64 {
    let a = ReadFut { left: n, out: 1 }.await;
    let b = WriteFut { left: n + 1, out: 1 }.await;
    let c = LockFut { left: n + 2, out: 1 }.await;
    for (counter, polls) in POLLS.iter().zip([n + 1, n + 2, n + 3]) {
        counter.fetch_add(polls.into(), Relaxed);
    }
    a ^ b ^ c
}

fn main() {
    let mut sum = 0;
    let mut boxed = 0;
    for i in 0..10 {
        sum ^= drive(ReadFut { left: i % 3, out: 1 }, &POLLS[0]);
    }
    for i in 0..20 {
        sum ^= drive(WriteFut { left: i % 3, out: 2 }, &POLLS[1]);
    }
    for i in 0..40 {
        sum ^= drive(LockFut { left: i % 3, out: 3 }, &POLLS[2]);
    }
    let mut polls = AtomicU64::new(0);
    for i in 0..5 {
        sum ^= drive(outer(i), &polls);
    }
    if std::env::args().count() > 1 {
        sum ^= behind(Box::pin(WriteFut { left: 3, out: 2 }), &mut boxed);
        sum ^= behind(Box::pin(LockFut { left: 6, out: 3 }), &mut boxed);
    }
    let [read, write, lock] = POLLS.each_ref().map(|count| count.load(Relaxed));
    let outer = polls.get_mut();
    println!("polls ReadFut={read} WriteFut={write} LockFut={lock} outer={outer} boxed={boxed}");
    println!("sum {sum}");
}
