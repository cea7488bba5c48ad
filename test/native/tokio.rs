//! A program for tests: tasks of tokio that wait for mutexes, semaphores and channels, select, join, and panic. Its first argument says on how
//! many threads (0: on the main thread alone), its second what it does. It counts the polls of tokio's own Futures, by calls that build.mjs adds
//! to tokio's source, and says at the end how many there were.
//!
//! Built by `node test/native/build.mjs`.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, Mutex, Semaphore};

static ACQUIRE: AtomicUsize = AtomicUsize::new(0);
static LOCK: AtomicUsize = AtomicUsize::new(0);
static ONE: AtomicUsize = AtomicUsize::new(0);
static MANY: AtomicUsize = AtomicUsize::new(0);
static SEND: AtomicUsize = AtomicUsize::new(0);
static RECV: AtomicUsize = AtomicUsize::new(0);
static YIELD: AtomicUsize = AtomicUsize::new(0);
/// Where the mutex and the semaphore lie: whose `Acquire` is polled.
static PLACES: OnceLock<(usize, usize)> = OnceLock::new();

/// Called first in `<Acquire as Future>::poll`.
#[no_mangle]
fn acquire_polled(semaphore: usize, permits: usize) {
    let (mutex, own) = *PLACES.get().unwrap();
    let is_in = |start: usize, size: usize| semaphore >= start && semaphore < start + size;
    let whose = if is_in(mutex, size_of::<Mutex<u32>>()) {
        &LOCK
    } else if !is_in(own, size_of::<Semaphore>()) {
        &SEND
    } else if permits == 1 {
        &ONE
    } else {
        &MANY
    };
    whose.fetch_add(1, SeqCst);
    ACQUIRE.fetch_add(1, SeqCst);
}

/// Called first where a channel is looked at by `recv`.
#[no_mangle]
fn recv_polled() {
    RECV.fetch_add(1, SeqCst);
}

/// Pending once, then ready.
async fn pause() {
    tokio::task::yield_now().await;
    YIELD.fetch_add(2, SeqCst);
}

async fn locks(mutex: Arc<Mutex<u32>>, times: u32) {
    for i in 0..times {
        let mut guard = mutex.lock().await;
        *guard += 1;
        if i % 2 == 0 {
            pause().await;
        }
    }
}

async fn permits(semaphore: Arc<Semaphore>, times: u32) {
    for i in 0..times {
        let _permit = semaphore.acquire().await.unwrap();
        if i % 3 == 0 {
            pause().await;
        }
    }
}

async fn pairs(semaphore: Arc<Semaphore>, times: u32) {
    for _ in 0..times {
        let _permits = semaphore.acquire_many(2).await.unwrap();
        pause().await;
    }
}

async fn sends(channel: mpsc::Sender<u32>, times: u32) {
    for i in 0..times {
        channel.send(i).await.unwrap();
    }
}

async fn receives(mut channel: mpsc::Receiver<u32>) -> u32 {
    let mut sum = 0;
    while let Some(value) = channel.recv().await {
        sum += value;
        if value % 4 == 0 {
            pause().await;
        }
    }
    sum
}

async fn selects(mutex: Arc<Mutex<u32>>, semaphore: Arc<Semaphore>, times: u32) -> u32 {
    let mut taken = 0;
    for _ in 0..times {
        tokio::select! {
            biased;
            guard = mutex.lock() => { taken += 1; drop(guard); }
            permit = semaphore.acquire() => { taken += 1; drop(permit); }
        }
        pause().await;
    }
    taken
}

async fn joins(mutex: Arc<Mutex<u32>>, semaphore: Arc<Semaphore>, times: u32) {
    for _ in 0..times {
        let locked = async {
            *mutex.lock().await += 1;
            pause().await;
        };
        let permitted = async {
            let _permit = semaphore.acquire().await;
            pause().await;
        };
        tokio::join!(locked, permitted);
    }
}

async fn sync() {
    let mutex = Arc::new(Mutex::new(0));
    let semaphore = Arc::new(Semaphore::new(2));
    PLACES.set((Arc::as_ptr(&mutex) as usize, Arc::as_ptr(&semaphore) as usize)).unwrap();
    let (sender, receiver) = mpsc::channel(3);
    let mut tasks = vec![];
    for _ in 0..3 {
        tasks.push(tokio::spawn(locks(mutex.clone(), 10)));
        tasks.push(tokio::spawn(permits(semaphore.clone(), 10)));
        tasks.push(tokio::spawn(sends(sender.clone(), 10)));
    }
    drop(sender);
    tasks.push(tokio::spawn(pairs(semaphore.clone(), 10)));
    tasks.push(tokio::spawn(joins(mutex.clone(), semaphore.clone(), 10)));
    let receiving = tokio::spawn(receives(receiver));
    let selecting = tokio::spawn(selects(mutex.clone(), semaphore.clone(), 10));
    for task in tasks {
        task.await.unwrap();
    }
    println!("sum {} taken {} locked {}", receiving.await.unwrap(), selecting.await.unwrap(), *mutex.lock().await);
    let counts = [
        ("Acquire", &ACQUIRE),
        ("lock", &LOCK),
        ("acquire", &ONE),
        ("acquire_many", &MANY),
        ("send", &SEND),
        ("recv", &RECV),
        ("yield_now", &YIELD),
    ];
    let each: Vec<String> = counts.map(|(name, count)| format!("{name}={}", count.load(SeqCst))).into();
    println!("polls {}", each.join(" "));
}

async fn inner(id: u32) -> u32 {
    tokio::task::yield_now().await;
    if id % 2 == 1 {
        panic!("task {id}");
    }
    id
}

async fn may_panic(id: u32) -> u32 {
    inner(id).await + 1
}

async fn panics() {
    let mut caught = 0;
    for id in 0..10 {
        caught += u32::from(tokio::spawn(may_panic(id)).await.is_err());
    }
    println!("caught {caught}");
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let threads: usize = arguments.next().map_or(0, |text| text.parse().unwrap());
    let runtime = match threads {
        0 => tokio::runtime::Builder::new_current_thread().build().unwrap(),
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build().unwrap(),
    };
    match arguments.next().as_deref() {
        Some("panics") => runtime.block_on(panics()),
        _ => runtime.block_on(async { tokio::spawn(sync()).await.unwrap() }),
    }
}
