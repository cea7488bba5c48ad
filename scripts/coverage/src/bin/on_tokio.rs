//! Tasks of tokio: `on_tokio ct` on one thread, `on_tokio mt` on four.
use coverage::counted;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore, mpsc};

async fn leaf(n: u64) -> u64 {
    for _ in 0..n % 3 {
        tokio::task::yield_now().await;
    }
    n * 2
}

async fn step(n: u64) -> u64 {
    let half = counted!(leaf(n)).await;
    tokio::task::yield_now().await;
    half + counted!(leaf(n + 1)).await
}

async fn producer(to: mpsc::Sender<u64>, rounds: u64) {
    for n in 0..rounds {
        let value = counted!(step(n)).await;
        if to.send(value).await.is_err() {
            return;
        }
    }
}

async fn consumer(mut from: mpsc::Receiver<u64>, sum: Arc<Mutex<u64>>) {
    while let Some(value) = from.recv().await {
        counted!(add(sum.clone(), value)).await;
    }
}

async fn add(sum: Arc<Mutex<u64>>, value: u64) {
    *sum.lock().await += value;
}

async fn limited(gate: Arc<Semaphore>, n: u64) -> u64 {
    let _permit = gate.acquire().await.unwrap();
    counted!(step(n)).await
}

async fn napper(rounds: u64) {
    for n in 0..rounds {
        tokio::select! {
            _ = tokio::time::sleep(Duration::from_millis(1)) => {}
            _ = counted!(step(n)) => {}
        }
        let _ = tokio::time::timeout(Duration::from_millis(5), counted!(leaf(n))).await;
    }
}

async fn gather(rounds: u64) -> u64 {
    let gate = Arc::new(Semaphore::new(2));
    let mut set = tokio::task::JoinSet::new();
    for n in 0..rounds {
        set.spawn(counted!(limited(gate.clone(), n)));
    }
    let mut total = 0;
    while let Some(done) = set.join_next().await {
        total += done.unwrap();
    }
    total
}

async fn root() -> u64 {
    let sum = Arc::new(Mutex::new(0));
    let (to, from) = mpsc::channel(4);
    let one = tokio::spawn(counted!(producer(to, 40)));
    let two = tokio::spawn(counted!(consumer(from, sum.clone())));
    let three = tokio::spawn(counted!(napper(20)));
    let total = counted!(gather(30)).await;
    let (a, b) = tokio::join!(counted!(leaf(5)), counted!(step(7)));
    one.await.unwrap();
    two.await.unwrap();
    three.await.unwrap();
    total + a + b + *sum.lock().await
}

fn main() {
    let runtime = match std::env::args().nth(1).as_deref() {
        Some("mt") => tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build(),
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let total = runtime.unwrap().block_on(counted!(root()));
    println!("TOTAL {total}");
    coverage::print();
}
