//! A program for tests: tasks of smol that wait for each other. It says of each by its own book what it waits for and who has that, and waits to
//! be looked at.
//!
//! Built by `node test/native/build.mjs`.
use async_lock::{Mutex, RwLock, Semaphore};
use smol::{channel, Task, Timer};
use std::future::pending;
use std::sync::{Arc, Mutex as Book};
use std::time::Duration;

/// For ever, for a test.
const LONG: Duration = Duration::from_secs(10_000);

/// What each task says: its name, what it waits for, and the names of those who can end that.
static BOOK: Book<Vec<&str>> = Book::new(vec![]);
fn says(line: &'static str) {
    BOOK.lock().unwrap().push(line);
}

async fn owner(mutex: Arc<Mutex<u64>>) {
    let mut guard = mutex.lock().await;
    *guard += 1;
    says("owner timer");
    Timer::after(LONG).await;
    *guard += 1;
}
async fn locker(mutex: Arc<Mutex<u64>>) {
    says("locker Mutex owner");
    *mutex.lock().await += 1;
}
async fn permit(semaphore: Arc<Semaphore>) {
    let _permit = semaphore.acquire_arc().await;
    says("permit timer");
    Timer::after(LONG).await;
}
async fn acquirer(semaphore: Arc<Semaphore>) {
    says("acquirer Semaphore permit");
    let _permit = semaphore.acquire().await;
}
async fn reader(lock: Arc<RwLock<u64>>) {
    let guard = lock.read().await;
    says("reader timer");
    Timer::after(LONG).await;
    println!("{}", *guard);
}
async fn writer(lock: Arc<RwLock<u64>>) {
    says("writer RwLock reader");
    *lock.write().await += 1;
}
async fn receiver(from: channel::Receiver<u64>) {
    says("receiver message has_sender has_sender");
    while from.recv().await.is_ok() {}
}
async fn has_sender(to: channel::Sender<u64>) {
    says("has_sender timer");
    Timer::after(LONG).await;
    let _ = to.send(1).await;
}
async fn sender(to: channel::Sender<u64>) {
    to.send(1).await.unwrap();
    says("sender room has_receiver");
    to.send(2).await.unwrap();
}
async fn has_receiver(from: channel::Receiver<u64>) {
    says("has_receiver timer");
    Timer::after(LONG).await;
    let _ = from.recv().await;
}
async fn sleeper() -> u64 {
    says("sleeper timer");
    Timer::after(LONG).await;
    1
}
async fn joiner(other: Task<u64>) {
    says("joiner task sleeper");
    other.await;
}
async fn idle() {
    says("idle nothing");
    pending().await
}
async fn forgets() {
    says("forgets nobody");
    std::future::poll_fn(|_| std::task::Poll::<()>::Pending).await;
}
/// Each has one and wants the other's.
async fn greedy(first: Arc<Mutex<u64>>, second: Arc<Mutex<u64>>) {
    let mut guard = first.lock().await;
    Timer::after(Duration::from_millis(50)).await;
    says("greedy Mutex greedy");
    *second.lock().await += 1;
    *guard += 1;
}
async fn brief(n: u64) -> u64 {
    smol::future::yield_now().await;
    n
}

fn main() {
    let spawn = |future: Task<()>| {
        future.detach();
        std::thread::sleep(Duration::from_millis(10));
    };
    for i in 0..40 {
        smol::spawn(brief(i)).detach();
    }
    let mutex = Arc::new(Mutex::new(0));
    spawn(smol::spawn(owner(mutex.clone())));
    spawn(smol::spawn(locker(mutex)));
    let semaphore = Arc::new(Semaphore::new(1));
    spawn(smol::spawn(permit(semaphore.clone())));
    spawn(smol::spawn(acquirer(semaphore)));
    let lock = Arc::new(RwLock::new(0));
    spawn(smol::spawn(reader(lock.clone())));
    spawn(smol::spawn(writer(lock)));
    let (to, from) = channel::bounded(1);
    spawn(smol::spawn(receiver(from)));
    spawn(smol::spawn(has_sender(to.clone())));
    spawn(smol::spawn(has_sender(to)));
    let (to, from) = channel::bounded(1);
    spawn(smol::spawn(has_receiver(from)));
    spawn(smol::spawn(sender(to)));
    spawn(smol::spawn(joiner(smol::spawn(sleeper()))));
    spawn(smol::spawn(idle()));
    spawn(smol::spawn(forgets()));
    let (a, b) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    spawn(smol::spawn(greedy(a.clone(), b.clone())));
    spawn(smol::spawn(greedy(b, a)));
    std::thread::sleep(Duration::from_millis(200));
    for line in BOOK.lock().unwrap().iter() {
        println!("says {line}");
    }
    println!("ready");
    smol::block_on(Timer::after(LONG));
}
