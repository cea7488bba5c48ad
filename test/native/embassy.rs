//! A program for tests: six tasks of embassy-executor under std, with a channel, a signal, a mutex, a join, a select and timers. Each counts
//! its own polls. `--cfg older`: of releases before 0.10, where a task's constructor gives no `Result`.
//!
//! Built by `node test/native/build.mjs`.
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use core::task::{Context, Poll};
use embassy_executor::{Executor, Spawner};
use embassy_futures::{join::join, select::select, yield_now};
use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex as Raw, channel::Channel, mutex::Mutex, signal::Signal};
use embassy_time::{Duration, Timer};

static POLLS: [AtomicU32; 6] = [const { AtomicU32::new(0) }; 6];
const NAMES: [&str; 6] = ["producer", "consumer", "locker", "locker", "both", "waits"];
static LEFT: AtomicU32 = AtomicU32::new(5);
static CHANNEL: Channel<Raw, u32, 2> = Channel::new();
static DONE: Signal<Raw, u32> = Signal::new();
static SHARED: Mutex<Raw, u32> = Mutex::new(0);

struct Counted<F>(usize, F);
impl<F: Future> Future for Counted<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        POLLS[self.0].fetch_add(1, SeqCst);
        unsafe { self.map_unchecked_mut(|this| &mut this.1) }.poll(cx)
    }
}
fn counted<F: Future>(task: usize, inner: F) -> Counted<F> {
    Counted(task, inner)
}
async fn nap(ms: u64) {
    Timer::after(Duration::from_millis(ms)).await;
}
async fn send(n: u32) {
    for i in 0..n {
        CHANNEL.send(i).await;
        if i % 3 == 0 { nap(1).await }
    }
}
async fn receive(n: u32) -> u32 {
    let mut sum = 0;
    for _ in 0..n { sum += CHANNEL.receive().await }
    sum
}
async fn yields(n: u32) {
    for _ in 0..n { yield_now().await }
}
async fn locked(times: u32) {
    for _ in 0..times {
        let mut guard = SHARED.lock().await;
        *guard += 1;
        nap(1).await;
    }
}
fn over() {
    LEFT.fetch_sub(1, SeqCst);
}
#[embassy_executor::task]
async fn producer() { counted(0, async { send(12).await; over() }).await }
#[embassy_executor::task]
async fn consumer() { counted(1, async { let sum = receive(12).await; DONE.signal(sum); over() }).await }
#[embassy_executor::task(pool_size = 2)]
async fn locker(task: usize) { counted(task, async { locked(4).await; over() }).await }
#[embassy_executor::task]
async fn both() { counted(4, async { join(yields(5), nap(2)).await; select(yields(3), nap(1000)).await; over() }).await }
#[embassy_executor::task]
async fn waits() {
    counted(5, async {
        let sum = DONE.wait().await;
        while LEFT.load(SeqCst) > 0 { nap(1).await }
        println!("sum {sum}");
        for (task, polls) in POLLS.iter().enumerate() { println!("task {} polls={}", NAMES[task], polls.load(SeqCst)) }
        std::process::exit(0)
    }).await
}
fn main() {
    let executor: &'static mut Executor = Box::leak(Box::new(Executor::new()));
    executor.run(|spawner: Spawner| {
        macro_rules! start { ($($task:expr),*) => { $( start!(@ $task); )* };
            (@ $task:expr) => { #[cfg(older)] spawner.spawn($task).unwrap(); #[cfg(not(older))] spawner.spawn($task.unwrap()); } }
        start!(producer(), consumer(), locker(2), locker(3), both(), waits());
    })
}
