// A kernel in the manner of xv6: a scheduler on each hart, threads that any hart goes on with, and stacks of 4 KiB side by side. Threads
// are switched in the middle of calls, so most of these end on another hart than where they began. It counts the calls of every
// function in `sched` and `work`, and of `swtch`.
#![no_std]
#![no_main]
#[cfg_attr(target_arch = "riscv64", path = "arch/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "arch/x86.rs")]
mod arch;
mod print;
mod sched;
mod work;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use print::{decimal, hex, text};

pub const HARTS: usize = 4;
pub const THREADS: usize = 8;
pub const ROUNDS: u64 = 16;

macro_rules! counted {
    ($($name:ident)*) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types)]
        pub enum Counted { $($name),* }
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
counted!(scheduler pick sched yield_now sleep wakeup start exit swtch worker outer middle inner descend put take mix);
static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
/// Calls that ended on another hart than where they began.
static MIGRATED: AtomicU64 = AtomicU64::new(0);
static CHECKSUM: AtomicU64 = AtomicU64::new(0);
/// How many harts there are.
pub static ALL: AtomicUsize = AtomicUsize::new(1);
static ARRIVED: AtomicUsize = AtomicUsize::new(0);
static LEFT: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
pub fn count(what: Counted) {
    CALLS[what as usize].fetch_add(1, Relaxed);
}

/// Every hart, on its own stack.
fn run() {
    ARRIVED.fetch_add(1, AcqRel);
    while ARRIVED.load(Acquire) < ALL.load(Acquire) {
        core::hint::spin_loop();
    }
    sched::scheduler();
    LEFT.fetch_add(1, AcqRel);
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(hart: usize) -> ! {
    text("LAB boot arch=");
    text(arch::NAME);
    text(" mode=");
    text(arch::MODE);
    text("\n");
    sched::prepare();
    ALL.store(arch::harts(), Release);
    arch::start_others(hart);
    run();
    while LEFT.load(Acquire) < ALL.load(Acquire) {
        core::hint::spin_loop();
    }
    drained();
    for (name, calls) in NAMES.iter().zip(&CALLS) {
        text("LAB stat ");
        text(name);
        text(" calls=");
        decimal(calls.load(Relaxed));
        text(" polls=0\n");
    }
    text("LAB migrated ");
    decimal(MIGRATED.load(Relaxed));
    text("\nLAB checksum ");
    hex(CHECKSUM.load(Relaxed));
    text("\nLAB done\n");
    arch::shutdown(0)
}

/// Who traces may stop here: nothing that is counted comes after it.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn drained() {
    unsafe { core::arch::asm!("nop", "nop", "nop", "nop") }
}

#[unsafe(no_mangle)]
pub extern "C" fn other_main() -> ! {
    run();
    arch::halt()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    text("LAB PANIC\n");
    arch::shutdown(1)
}

/// The compiler asks for it; the library's would bring that library's debug information.
#[unsafe(no_mangle)]
pub extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    for i in 0..length {
        unsafe { to.add(i).write_volatile(value as u8) };
    }
    to
}
