//! A large program: an ELF of some 50 MB (hundreds of kinds of tasks, each with all of tokio's functions for it) and a heap of as many MB as it is told.
use std::time::Duration;
use tokio::task::JoinHandle;

async fn worker<const N: usize>(rounds: u64) -> u64 {
    let kept = [rounds; 8];
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    kept[N % 8]
}

macro_rules! spawned {
    ($handles:ident, $base:expr; $($n:literal)*) => { $( $handles.push(tokio::spawn(worker::<{ $base + $n }>($n))); )* };
}
macro_rules! forty {
    ($handles:ident; $($base:literal)*) => { $(
        spawned!($handles, $base; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
    )* };
}

async fn program(heap: Vec<Box<[u64]>>) {
    let mut handles: Vec<JoinHandle<u64>> = vec![];
    forty!(handles; 0 40 80 120 160);
    tokio::time::sleep(Duration::from_millis(50)).await;
    println!("ready {} tasks, {} blocks", handles.len(), heap.len());
    tokio::time::sleep(Duration::from_secs(10_000)).await;
}

fn main() {
    let megabytes: usize = std::env::args().nth(1).map_or(100, |text| text.parse().unwrap());
    // Blocks of a kilobyte that point to each other, as data on a heap do.
    let mut heap: Vec<Box<[u64]>> = vec![];
    for _ in 0..megabytes * 1024 {
        let before = heap.last().map_or(0, |block| block.as_ptr() as u64);
        heap.push((0..128).map(|word| if word % 4 == 0 { before } else { word }).collect());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(program(heap));
}
