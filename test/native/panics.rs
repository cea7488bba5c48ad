//! A program for tests: Futures that panic when they are polled, caught where they are polled and further out. It says at the end what happened.
//!
//! Built by `node test/native/build.mjs`.
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

static STEPS: AtomicUsize = AtomicUsize::new(0);
static LEAVES: AtomicUsize = AtomicUsize::new(0);
static CAUGHT: AtomicUsize = AtomicUsize::new(0);

/// Written by hand: pending so many times, then it panics or is ready.
struct Step(u32, bool);

impl Future for Step {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        STEPS.fetch_add(1, SeqCst);
        if self.0 > 0 {
            self.0 -= 1;
            return Poll::Pending;
        }
        if self.1 {
            panic!("a step");
        }
        Poll::Ready(1)
    }
}

#[inline(never)]
async fn leaf(pauses: u32, panics: bool) -> u32 {
    LEAVES.fetch_add(1, SeqCst);
    Step(pauses, panics).await
}

/// Its own poll goes on: a Future inside it panics and is caught by what awaits that.
async fn shields(panics: bool) -> u32 {
    let boxed: Pin<Box<dyn Future<Output = u32>>> = Box::pin(leaf(1, panics));
    let caught = Catch(boxed).await.unwrap_or(7);
    caught + leaf(1, false).await
}

async fn passes_on(panics: bool) -> u32 {
    let boxed: Pin<Box<dyn Future<Output = u32>>> = Box::pin(leaf(2, panics));
    boxed.await + 1
}

/// Catches what its Future throws, as tokio and futures do.
struct Catch(Pin<Box<dyn Future<Output = u32>>>);

impl Future for Catch {
    type Output = Result<u32, ()>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(_) => {
                CAUGHT.fetch_add(1, SeqCst);
                Poll::Ready(Err(()))
            }
        }
    }
}

/// Polls to the end, or until it panics.
#[inline(never)]
fn run(future: Pin<&mut dyn Future<Output = u32>>) -> Option<u32> {
    let mut future = future;
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(value)) => return Some(value),
            Err(_) => {
                CAUGHT.fetch_add(1, SeqCst);
                return None;
            }
        }
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut sum = 0;
    for turn in 0..6 {
        let panics = turn % 2 == 1;
        sum += run(pin!(shields(panics))).unwrap_or(100);
        sum += run(pin!(passes_on(panics))).unwrap_or(100);
    }
    println!("sum {sum}");
    println!("polls Step={}", STEPS.load(SeqCst));
    println!("leaves {} caught {}", LEAVES.load(SeqCst), CAUGHT.load(SeqCst));
}
