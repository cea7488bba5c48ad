//! A program for tests: tasks of tokio that wait for every kind of thing. It says which of them live, by its own book, and waits to be looked
//! at. Its first argument is `ct` (one thread), `mt` (a thread pool) or `local` (a LocalSet besides).
//!
//! Built by `node test/native/build.mjs`.
use std::collections::BTreeMap;
use std::future::{pending, Future};
use std::pin::Pin;
use std::sync::{Arc, Mutex as Book};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, Mutex, Notify, Semaphore};
use tokio::task::{yield_now, JoinHandle, LocalSet};

static LIVE: Book<BTreeMap<u64, &'static str>> = Book::new(BTreeMap::new());

/// Kept by a task as long as it lives: taken out when it ends and when it is cancelled.
struct Entry(u64);
fn enter(name: &'static str) -> Entry {
    let id = tokio::task::id().to_string().parse().unwrap();
    LIVE.lock().unwrap().insert(id, name);
    Entry(id)
}
impl Drop for Entry {
    fn drop(&mut self) {
        LIVE.lock().unwrap().remove(&self.0);
    }
}

/// For ever, for a test.
const LONG: Duration = Duration::from_secs(10_000);

async fn sleeper() {
    let _entry = enter("sleeper");
    tokio::time::sleep(LONG).await;
}
async fn receiver(mut from: mpsc::Receiver<u64>) {
    let _entry = enter("receiver");
    while from.recv().await.is_some() {}
}
async fn locker(mutex: Arc<Mutex<u64>>) {
    let _entry = enter("locker");
    let mut guard = mutex.lock().await;
    *guard += 1;
    tokio::time::sleep(LONG).await;
}
async fn one(from: oneshot::Receiver<u64>) {
    let _entry = enter("one");
    let _ = from.await;
}
async fn acquirer(semaphore: Arc<Semaphore>) {
    let _entry = enter("acquirer");
    let _permit = semaphore.acquire().await.unwrap();
    pending::<()>().await;
}
async fn inner(n: u64) -> u64 {
    let kept = [n; 8];
    tokio::time::sleep(LONG).await;
    kept[(n % 8) as usize]
}
async fn joiner() {
    let _entry = enter("joiner");
    tokio::join!(inner(1), inner(2));
}
async fn selector(notify: Arc<Notify>) {
    let _entry = enter("selector");
    tokio::select! {
        _ = notify.notified() => {}
        _ = inner(3) => {}
    }
}
async fn boxed(n: u64) -> u64 {
    let _entry = enter("boxed");
    let held: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(inner(n));
    held.await
}
async fn waits(other: JoinHandle<u64>) {
    let _entry = enter("waits");
    let _ = other.await;
}
async fn cancelled() {
    let _entry = enter("cancelled");
    pending::<()>().await;
}
async fn brief(n: u64) -> u64 {
    let _entry = enter("brief");
    // Dropped unfinished: the memory of its box still looks like a Future.
    let mut left: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(inner(n));
    std::future::poll_fn(|cx| std::task::Poll::Ready(left.as_mut().poll(cx).is_ready())).await;
    yield_now().await;
    n
}

/// Not in the book: the root of `block_on`, but in `mt`, where it is a task that enters itself.
async fn work() {
    let (to, from) = mpsc::channel(4);
    let (mutex, semaphore, notify) = (Arc::new(Mutex::new(0)), Arc::new(Semaphore::new(1)), Arc::new(Notify::new()));
    let (mut senders, mut handles) = (vec![], vec![]);
    tokio::spawn(receiver(from));
    for i in 0..3 {
        tokio::spawn(sleeper());
        tokio::spawn(locker(mutex.clone()));
        tokio::spawn(acquirer(semaphore.clone()));
        tokio::spawn(selector(notify.clone()));
        let (sender, receiver) = oneshot::channel();
        senders.push(sender);
        tokio::spawn(one(receiver));
        tokio::spawn(waits(tokio::spawn(boxed(i))));
    }
    tokio::spawn(joiner());
    for i in 0..40 {
        handles.push(tokio::spawn(brief(i)));
    }
    // The results of the others are not taken.
    for handle in handles.drain(20..) {
        handle.await.unwrap();
    }
    let doomed = tokio::spawn(cancelled());
    yield_now().await;
    doomed.abort();
    let _ = doomed.await;
    tokio::spawn(async {
        let _entry = enter("block");
        pending::<()>().await
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    to.send(1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    for (id, name) in LIVE.lock().unwrap().iter() {
        println!("live {id} {name}");
    }
    println!("untaken {}", handles.len());
    println!("ready");
    tokio::time::sleep(LONG).await;
    drop((senders, handles, to));
}

async fn local() {
    let _entry = enter("local");
    let not_sent = std::rc::Rc::new(1);
    pending::<()>().await;
    drop(not_sent);
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("mt") => Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
            let task = async {
                let _entry = enter("work");
                work().await
            };
            tokio::spawn(task).await.unwrap()
        }),
        Some("local") => {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            LocalSet::new().block_on(&runtime, async {
                for _ in 0..3 {
                    tokio::task::spawn_local(local());
                }
                tokio::task::spawn_blocking(|| std::thread::sleep(LONG));
                work().await
            })
        }
        _ => Builder::new_current_thread().enable_all().build().unwrap().block_on(work()),
    }
}
