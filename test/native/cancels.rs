// Futures that are dropped before they are ready: by a timeout, as the loser of a select!, with their task. Each counts its own.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

struct Count(AtomicU64, AtomicU64);

macro_rules! counted {
    ($($name:ident)*) => {
        $(static $name: Count = Count(AtomicU64::new(0), AtomicU64::new(0));)*
        fn tell() {
            $(println!("{} begun={} dropped={}", stringify!($name).to_lowercase(), $name.0.load(Relaxed), $name.1.load(Relaxed));)*
        }
    };
}
counted!(SLOW LEAF LOSER RECEIVE SERVER);

/// From the first poll until it is ready or dropped.
struct Life(&'static Count, bool);
impl Life {
    fn new(of: &'static Count) -> Life {
        of.0.fetch_add(1, Relaxed);
        Life(of, false)
    }
    fn ends(mut self) {
        self.1 = true;
    }
}
impl Drop for Life {
    fn drop(&mut self) {
        if !self.1 {
            self.0.1.fetch_add(1, Relaxed);
        }
    }
}

async fn leaf(ms: u64) {
    let life = Life::new(&LEAF);
    sleep(Duration::from_millis(ms)).await;
    life.ends();
}

async fn slow(ms: u64) -> u64 {
    let life = Life::new(&SLOW);
    leaf(ms).await;
    life.ends();
    ms
}

async fn receive(from: &mut mpsc::Receiver<u64>) -> Option<u64> {
    let life = Life::new(&RECEIVE);
    let value = from.recv().await;
    life.ends();
    value
}

async fn loser(ms: u64) -> u64 {
    let life = Life::new(&LOSER);
    for _ in 0..3 {
        sleep(Duration::from_millis(ms)).await;
    }
    life.ends();
    ms
}

async fn server(mut from: mpsc::Receiver<u64>) -> u64 {
    let life = Life::new(&SERVER);
    let mut sum = 0;
    loop {
        tokio::select! {
            biased;
            value = loser(500) => sum += value,
            value = receive(&mut from) => match value {
                Some(value) => sum += value,
                None => break,
            },
        }
        let allowed = Duration::from_millis(if sum % 2 == 0 { 1 } else { 1000 });
        sum += timeout(allowed, slow(if sum % 2 == 0 { 1000 } else { 1 })).await.unwrap_or(0);
    }
    life.ends();
    sum
}

async fn run() {
    let (to, from) = mpsc::channel(1);
    let server = tokio::spawn(server(from));
    for i in 0..40 {
        sleep(Duration::from_millis(i % 3)).await;
        to.send(1 + i % 2).await.unwrap();
    }
    drop(to);
    println!("sum {}", server.await.unwrap());
    let tasks: Vec<_> = (0..10).map(|i| tokio::spawn(async move { slow(10_000 + i).await })).collect();
    sleep(Duration::from_millis(50)).await;
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        assert!(task.await.unwrap_err().is_cancelled());
    }
}

fn main() {
    let threads = std::env::args().nth(1).as_deref() == Some("mt");
    let mut builder = match threads {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_time().worker_threads(2).build().unwrap().block_on(run());
    tell();
}
