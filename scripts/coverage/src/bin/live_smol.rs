//! Tasks of smol that come and go, until it is killed: `live_smol 3` on three threads.
use coverage::book::{Live, here, holds, live, spawned};
use smol::channel::{Receiver, Sender, bounded};
use smol::future::yield_now;
use smol::lock::Mutex;
use smol::{Task, Timer};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

const SHORT: Duration = Duration::from_micros(700);

fn spawn<F>(future: Live<F>) -> Task<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let slot = future.number();
    let task = smol::spawn(future);
    spawned(slot);
    task
}

async fn sleeper() {
    loop {
        here(line!()); Timer::after(SHORT).await;
        here(line!()); yield_now().await;
    }
}
async fn parked() {
    here(line!()); pending::<()>().await;
}
async fn receiver(from: Receiver<u64>) {
    loop {
        here(line!()); from.recv().await.unwrap();
        here(line!()); inner(1).await;
    }
}
async fn sender(to: Sender<u64>) {
    loop {
        here(line!()); to.send(1).await.unwrap();
    }
}
/// Its guard ends with a block.
async fn locker(mutex: Arc<Mutex<u64>>) {
    loop {
        {
            here(line!()); let mut guard = mutex.lock().await;
            holds(Some(&*mutex));
            *guard += 1;
            here(line!()); Timer::after(SHORT).await;
            *guard += 1;
            holds::<Mutex<u64>>(None);
        }
        here(line!()); Timer::after(SHORT).await;
    }
}
/// Its guard is dropped by hand, and keeps its place.
async fn dropper(mutex: Arc<Mutex<u64>>) {
    loop {
        here(line!()); let mut guard = mutex.lock().await;
        holds(Some(&*mutex));
        *guard += 1;
        here(line!()); yield_now().await;
        *guard += 1;
        drop(guard);
        holds::<Mutex<u64>>(None);
        here(line!()); Timer::after(SHORT).await;
    }
}
async fn inner(n: u64) -> u64 {
    let kept = [n; 8];
    Timer::after(SHORT).await;
    kept[(n % 8) as usize]
}
async fn joiner() {
    loop {
        here(line!()); smol::future::zip(inner(1), inner(2)).await;
        here(line!()); smol::future::or(inner(3), pending()).await;
    }
}
async fn boxed(n: u64) -> u64 {
    let held: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(inner(n));
    here(line!()); held.await
}
async fn brief(n: u64) -> u64 {
    // Dropped unfinished: the memory of its box still looks like a Future.
    let mut left: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(inner(n));
    poll_fn(|cx| Poll::Ready(left.as_mut().poll(cx).is_ready())).await;
    drop(left);
    here(line!()); yield_now().await;
    n
}
/// Spawns, awaits, cancels, detaches, and leaves results untaken for a while.
async fn churner() {
    let mut untaken = vec![];
    for round in 0u64.. {
        let one = spawn(live("brief", brief(round)));
        here(line!()); one.await;
        let doomed = spawn(live("parked", parked()));
        here(line!()); yield_now().await;
        drop(doomed);
        spawn(live("boxed", boxed(round))).detach();
        untaken.push(spawn(live("boxed", boxed(round))));
        if untaken.len() > 6 {
            untaken.clear();
        }
        here(line!()); Timer::after(SHORT).await;
    }
}

async fn program() {
    let mutex = Arc::new(Mutex::new(0));
    let (to, from) = bounded(2);
    let mut tasks = vec![spawn(live("receiver", receiver(from)))];
    for _ in 0..3 {
        tasks.push(spawn(live("sleeper", sleeper())));
        tasks.push(spawn(live("parked", parked())));
        tasks.push(spawn(live("sender", sender(to.clone()))));
        tasks.push(spawn(live("locker", locker(mutex.clone()))));
    }
    tasks.push(spawn(live("dropper", dropper(mutex.clone()))));
    tasks.push(spawn(live("joiner", joiner())));
    tasks.push(spawn(live("churner", churner())));
    Timer::after(Duration::from_millis(20)).await;
    println!("ready");
    pending::<()>().await;
    drop(tasks);
}

fn main() {
    let threads = std::env::args().nth(1).unwrap_or("1".into());
    // SAFETY: there are no threads yet.
    unsafe { std::env::set_var("SMOL_THREADS", threads) };
    smol::block_on(program());
}
