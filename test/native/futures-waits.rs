//! A program for tests: tasks of tokio that wait for each other by the locks and channels of the `futures` crate. It says of each by its own
//! book what it waits for, and who has that, and waits to be looked at. Its first argument says what is wrong: `clean` (nothing), `mutexes` (two
//! tasks have one mutex each and want the other's), `free` (a mutex was let go, and who waits for it was not polled since), `channels` (a task waits for a message of one that waits for a oneshot of the first).
//!
//! Built by `node test/native/build.mjs`.
use futures::channel::{mpsc, oneshot};
use futures::future::FutureExt;
use futures::lock::{Mutex, MutexGuard};
use futures::sink::SinkExt;
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex as Book};
use std::time::Duration;
use tokio::runtime::Builder;

/// For ever, for a test.
const LONG: Duration = Duration::from_secs(10_000);

/// What each task waits for: the kind, and where it lies or which channel it is.
static WAITS: Book<BTreeMap<u64, (&'static str, &'static str, usize)>> = Book::new(BTreeMap::new());
/// Who has what.
static HELD: Book<BTreeMap<usize, Vec<u64>>> = Book::new(BTreeMap::new());

fn own_id() -> u64 {
    tokio::task::id().to_string().parse().unwrap()
}
fn waits(name: &'static str, kind: &'static str, at: usize) {
    WAITS.lock().unwrap().insert(own_id(), (name, kind, at));
}
fn holds(at: usize) {
    HELD.lock().unwrap().entry(at).or_default().push(own_id());
}
fn place<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of) as usize
}
async fn sleeps(name: &'static str) {
    waits(name, "timer", 0);
    tokio::time::sleep(LONG).await;
}
/// Spawns a task, and gives it the time to begin: so locks are taken in this order.
async fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// Has the mutex while it sleeps.
async fn owner(mutex: Arc<Mutex<(u64, u64)>>) {
    let mut guard = mutex.lock().await;
    holds(place(&mutex));
    guard.0 += 1;
    sleeps("owner").await;
    guard.0 += 1;
}
async fn locker(mutex: Arc<Mutex<(u64, u64)>>) {
    waits("locker", "Mutex", place(&mutex));
    mutex.lock().await.0 += 1;
}
async fn owned(mutex: Arc<Mutex<u64>>) {
    let at = place(&mutex);
    let mut guard = mutex.lock_owned().await;
    holds(at);
    *guard += 1;
    sleeps("owned").await;
    *guard += 1;
}
async fn owned_locker(mutex: Arc<Mutex<u64>>) {
    waits("owned_locker", "Mutex", place(&mutex));
    *mutex.lock_owned().await += 1;
}
async fn mapped(mutex: Arc<Mutex<(u64, u64)>>) {
    let mut guard = MutexGuard::map(mutex.lock().await, |both| &mut both.1);
    holds(place(&mutex));
    *guard += 1;
    sleeps("mapped").await;
    *guard += 1;
}
async fn next(mut from: mpsc::Receiver<u64>, key: usize) {
    waits("next", "mpsc", key);
    while from.next().await.is_some() {}
}
async fn received(mut from: mpsc::UnboundedReceiver<u64>, key: usize) {
    waits("received", "mpsc", key);
    while from.recv().await.is_ok() {}
}
async fn adapted(from: mpsc::UnboundedReceiver<u64>, key: usize) {
    waits("adapted", "mpsc", key);
    let mut from = from.map(|each| each + 1).enumerate().fuse();
    while from.next().await.is_some() {}
}
async fn each(from: mpsc::UnboundedReceiver<u64>, key: usize) {
    waits("each", "mpsc", key);
    from.for_each(|_| async {}).await;
}
async fn selector(mut from: mpsc::UnboundedReceiver<u64>, key: usize) {
    waits("selector", "mpsc", key);
    let mut timer = std::pin::pin!(tokio::time::sleep(LONG).fuse());
    futures::select! {
        _ = from.select_next_some() => {}
        _ = timer => {}
    }
}
async fn has_sender(mut to: mpsc::Sender<u64>, key: usize) {
    holds(key);
    sleeps("has_sender").await;
    to.send(1).await.unwrap();
}
async fn has_unbounded(to: mpsc::UnboundedSender<u64>, key: usize) {
    holds(key);
    sleeps("has_unbounded").await;
    to.unbounded_send(1).unwrap();
}
/// Without a buffer it waits until its message is taken.
async fn sender(mut to: mpsc::Sender<u64>, key: usize) {
    waits("sender", "mpsc", key);
    to.send(1).await.unwrap();
}
/// The first message has its own place.
async fn feeder(mut to: mpsc::Sender<u64>, key: usize) {
    to.feed(1).await.unwrap();
    waits("feeder", "mpsc", key);
    to.feed(2).await.unwrap();
}
async fn has_receiver(mut from: mpsc::Receiver<u64>, key: usize) {
    holds(key);
    sleeps("has_receiver").await;
    from.next().await;
}
async fn one(from: oneshot::Receiver<u64>, key: usize) {
    waits("one", "oneshot", key);
    let _ = from.await;
}
async fn has_one(to: oneshot::Sender<u64>, key: usize) {
    holds(key);
    sleeps("has_one").await;
    let _ = to.send(1);
}
async fn remote(key: usize) {
    holds(key);
    sleeps("remote").await;
}
/// What a stream of Futures waits for is what these wait for.
async fn several(mutex: Arc<Mutex<u64>>) {
    waits("several", "Mutex", place(&mutex));
    let mut all = FuturesUnordered::new();
    all.push(async { *mutex.lock().await += 1 });
    all.next().await;
}

async fn clean() {
    let mutex = Arc::new(Mutex::new((0, 0)));
    start(owner(mutex.clone())).await;
    start(locker(mutex)).await;
    let mutex = Arc::new(Mutex::new((0, 0)));
    start(mapped(mutex.clone())).await;
    start(locker(mutex)).await;
    let mutex = Arc::new(Mutex::new(0));
    start(owned(mutex.clone())).await;
    start(owned_locker(mutex.clone())).await;
    start(several(mutex)).await;
    let (to, from) = mpsc::channel(1);
    start(next(from, 1)).await;
    start(has_sender(to.clone(), 1)).await;
    start(has_sender(to, 1)).await;
    let (to, from) = mpsc::unbounded();
    start(received(from, 2)).await;
    start(has_unbounded(to, 2)).await;
    let (to, from) = mpsc::unbounded();
    start(adapted(from, 3)).await;
    start(has_unbounded(to, 3)).await;
    let (to, from) = mpsc::unbounded();
    start(each(from, 4)).await;
    start(has_unbounded(to, 4)).await;
    let (to, from) = mpsc::unbounded();
    start(selector(from, 5)).await;
    start(has_unbounded(to, 5)).await;
    let (to, from) = mpsc::channel(0);
    start(has_receiver(from, 6)).await;
    start(sender(to, 6)).await;
    let (to, from) = mpsc::channel(0);
    start(has_receiver(from, 7)).await;
    start(feeder(to, 7)).await;
    let (to, from) = oneshot::channel();
    start(one(from, 8)).await;
    start(has_one(to, 8)).await;
    let (work, handle) = remote(9).remote_handle();
    start(work).await;
    start(async {
        waits("handle", "oneshot", 9);
        handle.await
    })
    .await;
}

/// Each has one and wants the other's.
async fn greedy(first: Arc<Mutex<u64>>, second: Arc<Mutex<u64>>) {
    let mut guard = first.lock().await;
    holds(place(&first));
    tokio::time::sleep(Duration::from_millis(50)).await;
    waits("greedy", "Mutex", place(&second));
    *second.lock().await += 1;
    *guard += 1;
}
async fn mutexes() {
    clean().await;
    let (a, b) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    start(greedy(a.clone(), b.clone())).await;
    start(greedy(b.clone(), a)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Waits behind the deadlock.
    start(owned_locker(b)).await;
}

async fn asks(mut from: mpsc::Receiver<u64>, answer: oneshot::Sender<u64>) {
    holds(11);
    waits("asks", "mpsc", 10);
    if let Some(value) = from.next().await {
        let _ = answer.send(value);
    }
}
async fn answers(mut to: mpsc::Sender<u64>, from: oneshot::Receiver<u64>) {
    holds(10);
    waits("answers", "oneshot", 11);
    to.send(from.await.unwrap()).await.unwrap();
}
async fn channels() {
    let (to, from) = mpsc::channel(1);
    let (answer, question) = oneshot::channel();
    start(asks(from, answer)).await;
    start(answers(to, question)).await;
}

/// Lets it go, and is looked at before another task is polled. Where the guard was stays as it is.
async fn releases(mutex: Arc<Mutex<(u64, u64)>>) {
    let mut guard = mutex.lock().await;
    // Its state, until this poll ends.
    waits("releases", "timer", 0);
    // Until the other one waits.
    while WAITS.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    guard.0 += 1;
    drop(guard);
    show();
    std::thread::sleep(LONG);
}
async fn free() {
    let mutex = Arc::new(Mutex::new((0, 0)));
    start(releases(mutex.clone())).await;
    start(locker(mutex)).await;
    tokio::time::sleep(LONG).await;
}

async fn program(what: String) {
    match what.as_str() {
        "mutexes" => mutexes().await,
        "channels" => channels().await,
        "free" => free().await,
        _ => clean().await,
    }
    show();
    tokio::time::sleep(LONG).await;
}

fn show() {
    let held = HELD.lock().unwrap().clone();
    for (id, (name, kind, at)) in WAITS.lock().unwrap().iter() {
        let by: Vec<String> = held.get(at).into_iter().flatten().map(u64::to_string).collect();
        println!("waits {id} {name} {kind} {at:#x} {}", by.join(","));
    }
    println!("ready");
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    Builder::new_current_thread().enable_all().build().unwrap().block_on(program(what));
}
