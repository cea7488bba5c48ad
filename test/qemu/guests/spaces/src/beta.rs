// Another program at the same addresses.
#![no_std]
#![no_main]
mod user;
use core::pin::pin;
use user::{CALLED, Rest, block_on, count, pause, report, twin};

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at1")]
pub extern "C" fn brew(cups: &mut [u64; 6], strength: u64) -> u64 {
    count(1);
    for cup in cups.iter_mut() {
        *cup = cup.wrapping_add(strength);
    }
    let stirred = stir(cups);
    stirred.wrapping_add(twin(strength))
}

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at2")]
pub extern "C" fn stir(cups: &mut [u64; 6]) -> u64 {
    count(2);
    pause();
    cups.reverse();
    cups.iter().fold(7, |sum, cup| sum.rotate_left(5) ^ *cup)
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn simmer(minutes: u64) -> u64 {
    count(4);
    if minutes < 2 {
        return minutes;
    }
    let (half, third) = (simmer(minutes / 2), simmer(minutes / 3));
    half.rotate_left(third as u32 & 7) ^ minutes
}

async fn drip(drops: u64) -> u64 {
    for _ in 0..drops {
        Rest(false).await;
    }
    drops
}

async fn steep(minutes: u64) -> u64 {
    count(CALLED);
    let mut sum = 0;
    for minute in 0..minutes {
        sum += drip(minute).await;
    }
    sum
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn main(seed: u64) -> u64 {
    count(0);
    let mut cups = [seed; 6];
    let mut sum = 0u64;
    for round in 0..15 {
        sum = sum.wrapping_add(brew(&mut cups, round)) ^ simmer(round);
    }
    for minutes in 1..5 {
        block_on(pin!(steep(minutes)));
    }
    report();
    sum
}
