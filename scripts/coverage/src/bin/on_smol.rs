//! Tasks of smol, which is async-task on threads.
use coverage::counted;
use smol::channel::{Receiver, Sender, bounded};
use smol::future::yield_now;

async fn leaf(n: u64) -> u64 {
    for _ in 0..n % 3 {
        yield_now().await;
    }
    n * 2
}

async fn step(n: u64) -> u64 {
    let half = counted!(leaf(n)).await;
    yield_now().await;
    half + counted!(leaf(n + 1)).await
}

async fn producer(to: Sender<u64>, rounds: u64) {
    for n in 0..rounds {
        let value = counted!(step(n)).await;
        to.send(value).await.unwrap();
    }
}

async fn consumer(from: Receiver<u64>) -> u64 {
    let mut sum = 0;
    while let Ok(value) = from.recv().await {
        sum += counted!(doubled(value)).await;
    }
    sum
}

async fn doubled(value: u64) -> u64 {
    yield_now().await;
    value * 2
}

async fn napper(rounds: u64) {
    for n in 0..rounds {
        smol::Timer::after(std::time::Duration::from_millis(1)).await;
        counted!(leaf(n)).await;
    }
}

async fn root() -> u64 {
    let (to, from) = bounded(4);
    let one = smol::spawn(counted!(producer(to, 60)));
    let two = smol::spawn(counted!(consumer(from)));
    let three = smol::spawn(counted!(napper(20)));
    let (a, b) = smol::future::zip(counted!(leaf(5)), counted!(step(7))).await;
    one.await;
    three.await;
    two.await + a + b
}

fn main() {
    let total = smol::block_on(counted!(root()));
    println!("TOTAL {total}");
    coverage::print();
}
