// A program of which two processes run at once.
#![no_std]
#![no_main]
mod user;
use core::pin::pin;
use user::{CALLED, Rest, block_on, count, pause, report, twin};

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at1")]
pub extern "C" fn work(x: u64) -> u64 {
    count(1);
    let mixed = mix(x, x >> 3);
    pause();
    mixed ^ twin(x)
}

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at2")]
pub extern "C" fn mix(a: u64, b: u64) -> u64 {
    count(2);
    let mut sum = a.wrapping_mul(31);
    for i in 0..5 {
        sum = sum.rotate_left(7) ^ (b + i);
    }
    sum
}

/// Calls itself, and lets others run at the bottom.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn descend(depth: u64) -> u64 {
    count(4);
    if depth == 0 {
        pause();
        return 1;
    }
    descend(depth - 1).wrapping_mul(3) ^ depth
}

async fn stroll(steps: u64) -> u64 {
    count(CALLED);
    let mut sum = 0;
    for step in 0..steps {
        Rest(false).await;
        sum += step;
    }
    sum
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn main(seed: u64) -> u64 {
    count(0);
    let mut sum = seed;
    for round in 0..20 {
        sum = sum.wrapping_add(work(sum ^ round)).wrapping_add(descend(round % 4));
    }
    for steps in 1..6 {
        block_on(pin!(stroll(steps)));
    }
    report();
    sum
}
