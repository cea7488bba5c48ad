//! Futures that are never ready, because their output has no values: a loop without an end, which has the output `!`
//! in edition 2024, and one written by hand. It prints how often each was polled.
use std::convert::Infallible;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

struct Yield(bool);

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

struct Endless(u64);

impl Future for Endless {
    type Output = Infallible;
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Infallible> {
        self.0 += 1;
        Poll::Pending
    }
}

fn boxed<'a, F: Future + 'a>(future: F) -> Pin<Box<dyn Future<Output = F::Output> + 'a>> {
    Box::pin(future)
}

#[inline(never)]
fn drive(mut poll: impl FnMut(&mut Context<'_>) -> bool, times: u64) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        assert!(black_box(&mut poll)(&mut context));
    }
}

fn main() {
    let mut turns = 0u64;
    {
        // Behind `dyn`, so that its poll is a function of its own.
        let mut forever = black_box(boxed(async {
            loop {
                turns += 1;
                black_box(Yield(false)).await
            }
        }));
        drive(|context| forever.as_mut().poll(context).is_pending(), 20);
    }
    let mut endless = Endless(0);
    {
        let mut endless = pin!(&mut endless);
        drive(|context| endless.as_mut().poll(context).is_pending(), 30);
    }
    println!("polls forever={turns} endless={}", endless.0);
}
