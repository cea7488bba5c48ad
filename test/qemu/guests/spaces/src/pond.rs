// A program with an executor that polls what was woken. It forks in the middle of a poll, and the child goes on with the same Futures.
// With an odd seed it ends by becoming `mill`.
#![no_std]
#![no_main]
mod life;
use core::cell::Cell;
use core::future::poll_fn;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use life::{EXEC, Rest, WAIT, YIELD, count, fork, live, polls, report, system_call};

const PRODUCER: usize = 0;
const CONSUMER: usize = 1;
const RELAY: usize = 2;
const HOP: usize = 3;
const MILL: u64 = 2;

type Task<'a> = Pin<&'a mut dyn Future<Output = u64>>;
const TASKS: usize = 3;
static mut WOKEN: [bool; TASKS] = [true; TASKS];
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, forget);
unsafe fn clone(task: *const ()) -> RawWaker {
    RawWaker::new(task, &VTABLE)
}
unsafe fn wake(task: *const ()) {
    unsafe { (&raw mut WOKEN as *mut bool).add(task as usize).write_volatile(true) }
}
unsafe fn forget(_: *const ()) {}

/// A channel of one place.
struct Channel {
    item: Cell<Option<u64>>,
    waiter: Cell<Option<Waker>>,
}
impl Channel {
    fn woken(&self) {
        if let Some(waker) = self.waiter.take() {
            waker.wake();
        }
    }
    async fn put(&self, item: u64) {
        poll_fn(|context| {
            if let Some(old) = self.item.take() {
                self.item.set(Some(old));
                self.waiter.set(Some(context.waker().clone()));
                return Poll::Pending;
            }
            self.item.set(Some(item));
            self.woken();
            Poll::Ready(())
        })
        .await
    }
    async fn take(&self) -> u64 {
        poll_fn(|context| match self.item.take() {
            Some(item) => {
                self.woken();
                Poll::Ready(item)
            }
            None => {
                self.waiter.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at1")]
pub extern "C" fn ripple(x: u64) -> u64 {
    count(1);
    x.rotate_left(11).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at2")]
pub extern "C" fn splash(a: u64, b: u64) -> u64 {
    count(2);
    if a & 3 == 0 {
        system_call(YIELD, 0, 0);
    }
    ripple(a) ^ b
}
/// Whether this is the child.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn spawn() -> bool {
    let child = fork();
    if child == 0 {
        return true;
    }
    count(3);
    false
}

async fn producer(channel: &Channel, items: u64) -> u64 {
    let _live = live(PRODUCER);
    for item in 0..items {
        channel.put(ripple(item)).await;
    }
    items
}
async fn consumer(channel: &Channel, items: u64) -> u64 {
    let _live = live(CONSUMER);
    let mut sum = 0;
    for _ in 0..items {
        sum = splash(sum, channel.take().await);
    }
    sum
}
async fn hop(steps: u64) -> u64 {
    let _live = live(HOP);
    for _ in 0..steps {
        Rest(false).await;
    }
    ripple(steps)
}
/// In its second round it forks.
async fn relay(rounds: u64, is_child: &Cell<bool>) -> u64 {
    let _live = live(RELAY);
    let mut sum = 0;
    for round in 0..rounds {
        sum ^= hop(round % 3 + 1).await;
        if round == 1 {
            is_child.set(spawn());
        }
    }
    sum
}

/// Polls all that was woken, until all are ready.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "Rust" fn run(tasks: &mut [Task; TASKS]) -> u64 {
    count(4);
    // So that the compiler does not know which poll functions these are, and inlines none.
    let tasks = core::hint::black_box(tasks);
    let mut results = [None; TASKS];
    while results.iter().any(Option::is_none) {
        for (number, task) in tasks.iter_mut().enumerate() {
            let woken = unsafe { (&raw mut WOKEN as *mut bool).add(number) };
            if unsafe { !woken.read_volatile() } || results[number].is_some() {
                continue;
            }
            unsafe { woken.write_volatile(false) };
            let waker = unsafe { Waker::from_raw(RawWaker::new(number as *const (), &VTABLE)) };
            polls(number);
            if let Poll::Ready(result) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
                results[number] = Some(result);
            }
        }
    }
    results.iter().flatten().fold(0, |sum, result| sum.rotate_left(7) ^ result)
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn main(seed: u64) -> u64 {
    count(0);
    let channel = Channel { item: Cell::new(None), waiter: Cell::new(None) };
    let is_child = Cell::new(false);
    let items = 4 + seed % 3;
    let mut sum = run(&mut [
        pin!(producer(&channel, items)) as Task,
        pin!(consumer(&channel, items)) as Task,
        pin!(relay(4, &is_child)) as Task,
    ]);
    if is_child.get() {
        report();
        return sum.wrapping_mul(3);
    }
    sum ^= system_call(WAIT, 0, 0);
    report();
    if seed & 1 == 1 {
        system_call(EXEC, MILL, sum & 7);
    }
    sum
}
