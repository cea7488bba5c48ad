//! Tasks of tokio that come and go, until it is killed: `live_tokio ct` on one thread, `mt` on three, `local` in a LocalSet.
use coverage::book::{Live, here, holds, live, spawned};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet, yield_now};

const SHORT: Duration = Duration::from_micros(700);

/// In a LocalSet as in a runtime: with `local` every task is spawned into the set.
static LOCAL: std::sync::OnceLock<bool> = std::sync::OnceLock::new();

fn spawn<F>(future: Live<F>) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let slot = future.number();
    let handle = match LOCAL.get() {
        Some(true) => tokio::task::spawn_local(future),
        _ => tokio::spawn(future),
    };
    spawned(slot);
    handle
}

async fn sleeper() {
    loop {
        here(line!()); tokio::time::sleep(SHORT).await;
        here(line!()); yield_now().await;
    }
}
async fn parked() {
    here(line!()); pending::<()>().await;
}
async fn receiver(mut from: mpsc::Receiver<u64>) {
    loop {
        here(line!()); from.recv().await;
        here(line!()); inner(1).await;
    }
}
async fn sender(to: mpsc::Sender<u64>) {
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
            here(line!()); tokio::time::sleep(SHORT).await;
            *guard += 1;
            holds::<Mutex<u64>>(None);
        }
        here(line!()); tokio::time::sleep(SHORT).await;
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
        here(line!()); tokio::time::sleep(SHORT).await;
    }
}
async fn inner(n: u64) -> u64 {
    let kept = [n; 8];
    tokio::time::sleep(SHORT).await;
    kept[(n % 8) as usize]
}
async fn joiner() {
    loop {
        here(line!()); tokio::join!(inner(1), inner(2));
        here(line!()); inner(3).await;
    }
}
async fn selector(notify: Arc<Notify>) {
    loop {
        here(line!()); tokio::select! {
            _ = notify.notified() => {}
            _ = inner(3) => {}
        }
        notify.notify_waiters();
        here(line!()); yield_now().await;
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
async fn answers(to: oneshot::Sender<u64>) {
    here(line!()); inner(4).await;
    let _ = to.send(1);
}
/// Spawns, awaits, aborts, and leaves results untaken for a while.
async fn churner() {
    let mut untaken = vec![];
    for round in 0u64.. {
        let (to, from) = oneshot::channel();
        let one = spawn(live("answers", answers(to)));
        here(line!()); let _ = from.await;
        here(line!()); one.await.unwrap();
        let doomed = spawn(live("parked", parked()));
        here(line!()); yield_now().await;
        doomed.abort();
        let mut set = JoinSet::new();
        for n in 0..3 {
            let future = live("brief", brief(n));
            let slot = future.number();
            match LOCAL.get() {
                Some(true) => set.spawn_local(future),
                _ => set.spawn(future),
            };
            spawned(slot);
        }
        here(line!()); while set.join_next().await.is_some() {}
        untaken.push(spawn(live("boxed", boxed(round))));
        if untaken.len() > 6 {
            untaken.clear();
        }
    }
}

async fn program() {
    let (mutex, notify) = (Arc::new(Mutex::new(0)), Arc::new(Notify::new()));
    let (to, from) = mpsc::channel(2);
    let mut handles = vec![spawn(live("receiver", receiver(from)))];
    for _ in 0..3 {
        handles.push(spawn(live("sleeper", sleeper())));
        handles.push(spawn(live("parked", parked())));
        handles.push(spawn(live("sender", sender(to.clone()))));
        handles.push(spawn(live("locker", locker(mutex.clone()))));
        handles.push(spawn(live("selector", selector(notify.clone()))));
    }
    handles.push(spawn(live("dropper", dropper(mutex.clone()))));
    handles.push(spawn(live("joiner", joiner())));
    handles.push(spawn(live("churner", churner())));
    // `ready` is printed when all of them wait or run.
    tokio::time::sleep(Duration::from_millis(20)).await;
    println!("ready");
    pending::<()>().await;
    drop(handles);
}

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let _ = LOCAL.set(mode == "local");
    let mut builder = match mode.as_str() {
        "mt" => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.worker_threads(3).enable_all().build().unwrap();
    if mode == "local" {
        tokio::task::LocalSet::new().block_on(&runtime, program());
    } else {
        runtime.block_on(program());
    }
}
