// Tasks of every fate: detached, held, awaited by another task, cancelled, parked for ever; and boxes that are dropped.
use crate::exec::{sleep_until, spawn, ticks};
use crate::log;
use crate::stats::{Id, Stat, here, moment, spawned, task};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use async_task::Task;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

const ROUNDS: u64 = 10;

/// Pending so many times.
struct Yield(u64);
impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        moment();
        log::wakes(cx.waker(), log::current());
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Both, one after the other in every poll.
struct Join<A: Future, B: Future>(Result<A::Output, A>, Result<B::Output, B>);
fn join<A: Future, B: Future>(a: A, b: B) -> Join<A, B> {
    Join(Err(a), Err(b))
}
impl<A: Future<Output: Copy>, B: Future<Output: Copy>> Future for Join<A, B> {
    type Output = (A::Output, B::Output);
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = unsafe { self.get_unchecked_mut() };
        if let Err(a) = &mut this.0 {
            if let Poll::Ready(v) = unsafe { Pin::new_unchecked(a) }.poll(cx) {
                this.0 = Ok(v);
            }
        }
        if let Err(b) = &mut this.1 {
            if let Poll::Ready(v) = unsafe { Pin::new_unchecked(b) }.poll(cx) {
                this.1 = Ok(v);
            }
        }
        match (&this.0, &this.1) {
            (Ok(a), Ok(b)) => Poll::Ready((*a, *b)),
            _ => Poll::Pending,
        }
    }
}

#[derive(Clone, Default)]
struct Queue(Rc<RefCell<(VecDeque<u64>, Option<Waker>)>>);
impl Queue {
    fn send(&self, value: u64) {
        let mut inner = self.0.borrow_mut();
        inner.0.push_back(value);
        moment();
        if let Some(waker) = inner.1.take() {
            log::wakes(&waker, log::current());
            waker.wake();
        }
    }
    fn receive(&self) -> impl Future<Output = u64> + '_ {
        poll_fn(|cx| {
            let mut inner = self.0.borrow_mut();
            match inner.0.pop_front() {
                Some(value) => Poll::Ready(value),
                None => {
                    inner.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

async fn leaf(k: u64) -> u64 {
    let _s = Stat::begin(Id::leaf);
    let before = black_box(k) * 3;
    Yield(k % 3).await;
    before + black_box(k)
}
async fn step(k: u64) -> u64 {
    let _s = Stat::begin(Id::step);
    let a = leaf(k).await;
    let b = leaf(k + 1).await;
    a + b
}
async fn nap(length: u64) {
    let _s = Stat::begin(Id::nap);
    let end = ticks() + length;
    poll_fn(|cx| {
        if ticks() >= end {
            return Poll::Ready(());
        }
        sleep_until(end, cx.waker().clone());
        Poll::Pending
    })
    .await
}
fn boxed(n: u64) -> Pin<Box<dyn Future<Output = u64>>> {
    Box::pin(async move {
        let _s = Stat::begin(Id::boxed);
        if n == 0 { leaf(1).await } else { n + boxed(n - 1).await }
    })
}

async fn producer(to: Queue) {
    let _s = Stat::begin(Id::producer);
    for i in 0..ROUNDS {
        here(line!()); to.send(step(i).await);
    }
}
async fn consumer(from: Queue) {
    let _s = Stat::begin(Id::consumer);
    for _ in 0..ROUNDS {
        here(line!()); let value = from.receive().await;
        here(line!()); black_box(value + boxed(2).await);
        // Made, polled once, and dropped: its memory still looks like a Future.
        let mut left = boxed(1);
        poll_fn(|cx| Poll::Ready(left.as_mut().poll(cx).is_ready())).await;
    }
}
async fn joiner() {
    let _s = Stat::begin(Id::joiner);
    for i in 0..ROUNDS {
        here(line!()); let (a, (b, c)) = join(leaf(i), join(step(i), leaf(i + 2))).await;
        black_box(a + b + c);
    }
}
async fn helper(k: u64) -> u64 {
    let _s = Stat::begin(Id::helper);
    here(line!()); nap(3).await;
    here(line!()); let result = step(k).await;
    log::ends();
    result
}
/// Awaits another task's result.
async fn awaiter(other: Task<u64>) {
    let _s = Stat::begin(Id::awaiter);
    log::awaits_it();
    here(line!()); black_box(other.await);
}
/// Not counted as an async fn, nor is `parked`: both are dropped outside of their polls.
async fn cancelled() {
    loop {
        here(line!()); Yield(1).await;
    }
}
async fn sleeper(length: u64) {
    let _s = Stat::begin(Id::sleeper);
    for _ in 0..ROUNDS {
        here(line!()); nap(length).await;
    }
}
async fn parked() {
    here(line!()); poll_fn::<(), _>(|_| Poll::Pending).await
}

fn start<F: Future + 'static>(id: Id, body: F) -> Task<F::Output> {
    let number = spawned(id);
    spawn(task(number, body))
}

/// The task that it gives is never woken: it ends when it is dropped.
pub fn spawn_all() -> Vec<Task<()>> {
    let queue = Queue::default();
    start(Id::producer, producer(queue.clone())).detach();
    start(Id::consumer, consumer(queue)).detach();
    start(Id::joiner, joiner()).detach();
    let other = start(Id::helper, helper(4));
    start(Id::awaiter, awaiter(other)).detach();
    let doomed = start(Id::cancelled, cancelled());
    start(Id::sleeper, async move {
        sleeper(2).await;
        // Closed, and its Future dropped, when the executor runs it next.
        drop(doomed);
    })
    .detach();
    start(Id::sleeper, sleeper(3)).detach();
    [start(Id::parked, parked())].into()
}
