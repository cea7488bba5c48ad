//! A program for tests: an executor of its own with three tasks, of which one has a fault. Its argument names the fault: `clean` (none), `blocks` (a
//! poll takes 300 ms), `late` (a task that is woken and not polled for 1.5 s), `loops` (it wakes itself in each poll and comes to the same
//! await), `idle` (it is polled again and again, and nobody woke it), `dropped` (its Future is dropped before it is ready), `large` (a Future of 64 KiB).
//! It prints how often each task was polled and woken: `task NAME polls=N wakes=N`.
//!
//! Built by `node test/native/build.mjs`.
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

struct Task {
    name: &'static str,
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queue: Arc<Mutex<VecDeque<Arc<Task>>>>,
    polls: AtomicU64,
    wakes: AtomicU64,
}
impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Relaxed);
        let queue = self.queue.clone();
        queue.lock().unwrap().push_back(self);
    }
}
type Queue = Arc<Mutex<VecDeque<Arc<Task>>>>;

fn spawn(queue: &Queue, name: &'static str, future: impl Future<Output = ()> + Send + 'static) -> Arc<Task> {
    let future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
    let (polls, wakes) = Default::default();
    let task = Arc::new(Task { name, future: Mutex::new(Some(future)), queue: queue.clone(), polls, wakes });
    queue.lock().unwrap().push_back(task.clone());
    task
}
fn poll(task: &Arc<Task>) {
    let waker = Waker::from(task.clone());
    let mut slot = task.future.lock().unwrap();
    let Some(future) = slot.as_mut() else { return };
    task.polls.fetch_add(1, Relaxed);
    if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        *slot = None;
    }
}
fn run(queue: &Queue) {
    loop {
        let Some(task) = queue.lock().unwrap().pop_front() else { return };
        poll(&task);
    }
}

/// Pending until it is let go.
#[derive(Default, Clone)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);
impl Gate {
    fn open(&self) {
        let mut inner = self.0.lock().unwrap();
        inner.0 = true;
        if let Some(waker) = inner.1.take() {
            waker.wake();
        }
    }
}
impl Future for Gate {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock().unwrap();
        if inner.0 {
            return Poll::Ready(());
        }
        inner.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}
/// Pending so many times.
struct Yields(u64);
impl Future for Yields {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn steady(rounds: u64) {
    for i in 0..rounds {
        Yields(1).await;
        std::hint::black_box(i);
        Yields(1).await;
    }
}
async fn waits(gate: Gate) {
    gate.await;
}
async fn blocks(gate: Gate) {
    gate.await;
    std::thread::sleep(Duration::from_millis(300));
    Yields(1).await;
}
async fn loops() {
    Yields(500).await;
}
async fn large(gate: Gate) {
    let bytes = [1u8; 64 << 10];
    gate.await;
    std::hint::black_box(&bytes);
}

fn main() {
    let fault = std::env::args().nth(1).unwrap_or_default();
    let queue = Queue::default();
    let (gate, other) = (Gate::default(), Gate::default());
    let mut tasks = vec![spawn(&queue, "steady", steady(20)), spawn(&queue, "waits", waits(gate.clone()))];
    tasks.push(match fault.as_str() {
        "blocks" => spawn(&queue, "blocks", blocks(other.clone())),
        "loops" => spawn(&queue, "loops", loops()),
        "large" => spawn(&queue, "large", large(other.clone())),
        _ => spawn(&queue, "third", waits(other.clone())),
    });
    run(&queue);
    let third = tasks[2].clone();
    match fault.as_str() {
        "idle" => (0..500).for_each(|_| poll(&third)),
        "dropped" => *third.future.lock().unwrap() = None,
        "late" => {
            other.open();
            std::thread::sleep(Duration::from_millis(1500));
        }
        _ => {}
    }
    gate.open();
    other.open();
    run(&queue);
    for Task { name, polls, wakes, .. } in tasks.iter().map(|task| &**task) {
        println!("task {name} polls={} wakes={}", polls.load(Relaxed), wakes.load(Relaxed));
    }
}
