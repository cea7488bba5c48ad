//! A program for tests: rustc passes what references lead to in their place, so that arguments which are declared to fit in registers
//! lie on the stack. It prints how often its functions were called, and a sum that goes wrong where an argument does.
//!
//! Built by `node test/native/build.mjs`.
#![no_std]
#![no_main]
use core::ffi::{c_char, c_int};

#[link(name = "c")]
extern "C" {
    fn printf(format: *const c_char, ...) -> c_int;
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}

/// `core` was compiled to unwind, and names this; nothing here unwinds.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

struct Pair {
    a: i64,
    b: i64,
}

/// Nothing is written before what its references lead to is read: else that cannot be read by its caller.
#[inline(never)]
fn six(p: &Pair, q: &Pair, r: &Pair, s: &Pair, t: &Pair, u: &Pair) -> i64 {
    let first = p.a.wrapping_mul(q.b) + r.a - s.b + t.a.wrapping_mul(u.b);
    first + p.b + q.a + r.b + s.a + t.b + u.a
}

#[inline(never)]
fn plain(a: i64, b: i64) -> i64 {
    a.wrapping_mul(3) ^ b
}

#[no_mangle]
pub extern "C" fn main(argc: c_int, _: *const *const c_char) -> c_int {
    let (mut sum, mut calls) = (0i64, 0);
    for i in 0..200 * i64::from(argc) {
        let (x, y, z) = (Pair { a: i, b: 2 }, Pair { a: 3, b: i }, Pair { a: i + 1, b: i });
        sum = sum.wrapping_add(plain(six(&x, &y, &z, &y, &x, &z), i));
        sum = sum.rotate_left(5);
        calls += 1;
    }
    unsafe {
        printf(c"calls six=%lld plain=%lld\nsum %lld\n".as_ptr(), calls, calls, sum);
    }
    0
}
