// Tasks of every shape that embassy's programs have: channel, mutex, join, select, timers, pools of more than one.
use crate::stats::{Id, Stat, guards, here, moment, task};
use core::hint::black_box;
use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_futures::yield_now;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex as Raw;
use embassy_sync::channel::Channel;
use embassy_sync::mutex::Mutex;
use embassy_sync::signal::Signal;
use embassy_time::{Duration, Ticker, Timer};

static NUMBERS: Channel<Raw, u64, 2> = Channel::new();
static SUM: Mutex<Raw, u64> = Mutex::new(0);
static NEVER: Signal<Raw, u64> = Signal::new();

/// Rounds of every task.
const ROUNDS: u64 = 10;

async fn leaf(k: u64) -> u64 {
    let _s = Stat::begin(Id::leaf);
    let before = black_box(k) * 3;
    for _ in 0..k % 3 {
        yield_now().await;
        moment();
    }
    before + black_box(k)
}
async fn step(k: u64) -> u64 {
    let _s = Stat::begin(Id::step);
    let a = leaf(k).await;
    let b = leaf(k + 1).await;
    a + b
}
async fn pause(us: u64) {
    let _s = Stat::begin(Id::pause);
    Timer::after(Duration::from_micros(us)).await;
}
async fn loser() -> u64 {
    let _s = Stat::begin(Id::loser);
    loop {
        yield_now().await;
    }
}

#[embassy_executor::task]
pub async fn producer(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::producer);
        for i in 0..2 * ROUNDS {
            here(line!()); let value = step(i).await;
            here(line!()); NUMBERS.send(value).await;
            moment();
        }
    })
    .await;
}
#[embassy_executor::task(pool_size = 2)]
pub async fn consumer(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::consumer);
        for _ in 0..ROUNDS {
            here(line!()); let value = NUMBERS.receive().await;
            here(line!()); *SUM.lock().await += value;
            moment();
        }
    })
    .await;
}
#[embassy_executor::task]
pub async fn joiner(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::joiner);
        for i in 0..ROUNDS {
            here(line!()); let (a, b) = join(leaf(i), join(step(i), leaf(i + 2))).await;
            black_box(a + b.0 + b.1);
        }
    })
    .await;
}
#[embassy_executor::task]
pub async fn selector(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::selector);
        for i in 0..ROUNDS {
            here(line!()); match select(loser(), leaf(i)).await {
                Either::First(v) | Either::Second(v) => black_box(v),
            };
        }
        here(line!()); match select(NEVER.wait(), pause(40_000)).await {
            Either::First(v) => drop(black_box(v)),
            Either::Second(()) => {}
        }
    })
    .await;
}
/// A pool of three, of which two are used.
#[embassy_executor::task(pool_size = 3)]
pub async fn locker(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::locker);
        for i in 0..ROUNDS {
            here(line!()); let mut sum = SUM.lock().await;
            guards(1);
            here(line!()); *sum += leaf(i).await;
            drop(sum);
            guards(0);
            // The guard that was dropped keeps its place while this waits.
            here(line!()); yield_now().await;
        }
        here(line!()); pause(30_000).await;
    })
    .await;
}
#[embassy_executor::task]
pub async fn ticker(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::ticker);
        let mut ticks = Ticker::every(Duration::from_millis(20));
        for _ in 0..ROUNDS {
            here(line!()); ticks.next().await;
        }
    })
    .await;
}
#[embassy_executor::task]
pub async fn napper(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::napper);
        for _ in 0..ROUNDS {
            here(line!()); pause(25_000).await;
        }
    })
    .await;
}
#[embassy_executor::task]
pub async fn brief(number: usize) {
    task(number, async {
        let _s = Stat::begin(Id::brief);
        here(line!()); black_box(leaf(2).await);
    })
    .await;
}
/// In the program, but nothing spawns it.
#[embassy_executor::task(pool_size = 2)]
pub async fn unspawned(number: usize) {
    task(number, async {
        black_box(leaf(1).await);
    })
    .await;
}
