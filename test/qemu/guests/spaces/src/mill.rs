// A program that lies where it is loaded. Its executor polls all tasks in turn; they begin others, which lie where ended ones lay.
#![no_std]
#![no_main]
mod life;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use life::{Rest, TASKS, YIELD, count, live, polls, report, system_call};

const GRIND: usize = 0;
const SIFT: usize = 1;
const PAIR: usize = 2;
const SACK: usize = 3;

const ROOM: usize = 1024;
#[repr(align(16))]
struct Room([u8; ROOM]);
static mut ROOMS: [Room; TASKS] = [const { Room([0; ROOM]) }; TASKS];
static mut LIST: [Option<Pin<&'static mut dyn Future<Output = u64>>>; TASKS] = [const { None }; TASKS];

/// Begins a task in the first free room; none where all are taken.
fn begin<F: Future<Output = u64> + 'static>(future: F) {
    for number in 0..TASKS {
        let place = unsafe { &mut *(&raw mut LIST as *mut Option<Pin<&'static mut dyn Future<Output = u64>>>).add(number) };
        if place.is_some() || size_of::<F>() > ROOM {
            continue;
        }
        let room = unsafe { (&raw mut ROOMS as *mut Room).add(number) as *mut F };
        unsafe { room.write(future) };
        *place = Some(core::hint::black_box(unsafe { Pin::new_unchecked(&mut *room) } as Pin<&mut dyn Future<Output = u64>>));
        return;
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at1")]
pub extern "C" fn stone(weight: &mut u64, turns: u64) -> u64 {
    count(1);
    for turn in 0..turns {
        *weight = weight.rotate_left(3) ^ husk(turn);
    }
    *weight
}
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at2")]
pub extern "C" fn husk(turn: u64) -> u64 {
    count(2);
    turn.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

async fn grind(turns: u64) -> u64 {
    let _live = live(GRIND);
    let mut weight = turns;
    for turn in 0..turns {
        Rest(false).await;
        stone(&mut weight, turn % 3);
    }
    weight
}
async fn sift(turns: u64) -> u64 {
    let _live = live(SIFT);
    for _ in 0..turns {
        Rest(false).await;
    }
    husk(turns)
}
/// Polls two until both are ready.
async fn pair(turns: u64) -> u64 {
    let _live = live(PAIR);
    let (mut one, mut other) = (pin!(grind(turns)), pin!(sift(turns + 2)));
    let (mut first, mut second) = (None, None);
    core::future::poll_fn(move |context| {
        let both: [(&mut Option<u64>, Pin<&mut dyn Future<Output = u64>>); 2] = [(&mut first, one.as_mut()), (&mut second, other.as_mut())];
        for (result, future) in both {
            if result.is_none() {
                if let Poll::Ready(value) = core::hint::black_box(future).poll(context) {
                    *result = Some(value);
                }
            }
        }
        match (first, second) {
            (Some(a), Some(b)) => Poll::Ready(a ^ b),
            _ => Poll::Pending,
        }
    })
    .await
}
/// Begins others when it ends.
async fn sack(turns: u64) -> u64 {
    let _live = live(SACK);
    let sum = sift(turns).await;
    if turns > 0 {
        begin(sack(turns - 1));
    }
    sum
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "Rust" fn turn_all() -> u64 {
    count(3);
    let mut context = Context::from_waker(Waker::noop());
    let (mut sum, mut left) = (0u64, true);
    while left {
        left = false;
        for number in 0..TASKS {
            let place = unsafe { &mut *(&raw mut LIST as *mut Option<Pin<&'static mut dyn Future<Output = u64>>>).add(number) };
            let Some(task) = place else { continue };
            left = true;
            polls(number);
            if let Poll::Ready(result) = task.as_mut().poll(&mut context) {
                *place = None;
                sum = sum.rotate_left(5) ^ result;
            }
        }
        system_call(YIELD, 0, 0);
    }
    sum
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn main(seed: u64) -> u64 {
    count(0);
    begin(grind(4));
    begin(pair(2 + seed % 2));
    begin(sack(3));
    let sum = turn_all();
    report();
    sum
}
