// A kernel for budgets: a boot in two phases, then a few tasks that all end. It counts nothing, but times its phases itself.
// A number in RAM plants one fault, so that the clean guest and the faulty ones are the same ELF:
//
//   -device loader,addr=FAULT_AT,data=N,data-len=4     0: none, or one of `Fault`
#![no_std]
#![no_main]
extern crate alloc;

#[cfg_attr(target_arch = "riscv64", path = "arch/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "arch/x86.rs")]
pub mod arch;
pub mod console;
pub mod exec;
pub mod futs;
pub mod heap;
pub mod stats;

use alloc::rc::Rc;
use core::arch::asm;
use core::cell::RefCell;
use core::future::Future;
use core::hint::black_box;
use core::pin::Pin;
use core::sync::atomic::Ordering::Relaxed;
use core::task::{Context, Poll, Waker};
use exec::{spawn, LIVE};
use futs::{sleep, yield_n};

#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
pub enum Fault {
    None,
    /// A poll computes for milliseconds instead of giving way.
    BlockingPoll,
    /// A sender does not wake the receiver.
    LostWake,
    /// A task panics.
    Panic,
    /// A phase of the boot takes three times as long.
    SlowPhase,
    /// A task waits for what never comes.
    LeakedTask,
}

/// In RAM that neither firmware nor kernel uses.
#[cfg(target_arch = "riscv64")]
const FAULT_AT: usize = 0x8600_0000;
#[cfg(target_arch = "x86_64")]
const FAULT_AT: usize = 0x0600_0000;

fn fault() -> Fault {
    match unsafe { (FAULT_AT as *const u32).read_volatile() } {
        1 => Fault::BlockingPoll,
        2 => Fault::LostWake,
        3 => Fault::Panic,
        4 => Fault::SlowPhase,
        5 => Fault::LeakedTask,
        _ => Fault::None,
    }
}

/// Nanoseconds: `time` at 10 MHz; the time stamp counter at 1 GHz, as QEMU's is under -icount.
fn now() -> u64 {
    #[cfg(target_arch = "riscv64")]
    unsafe {
        let ticks: u64;
        asm!("rdtime {}", out(reg) ticks);
        ticks * 100
    }
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
}

#[inline(never)]
fn spin(rounds: u64) -> u64 {
    let mut sum = rounds;
    for i in 0..rounds {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
    }
    sum
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn find_devices() {
    black_box(spin(50_000));
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn mount_root() {
    black_box(spin(if fault() == Fault::SlowPhase { 600_000 } else { 200_000 }));
}

async fn worker() {
    for i in 0..20 {
        let long = fault() == Fault::BlockingPoll && i == 10;
        black_box(spin(if long { 1_000_000 } else { 1_000 }));
        yield_n(1).await;
    }
}

/// A place for one value, and who waits for it.
#[derive(Default)]
pub struct Mailbox {
    value: Option<u64>,
    waker: Option<Waker>,
}
type SharedBox = Rc<RefCell<Mailbox>>;

fn put(mailbox: &SharedBox, value: u64) {
    let waker = {
        let mut mailbox = mailbox.borrow_mut();
        mailbox.value = Some(value);
        mailbox.waker.take()
    };
    match waker {
        Some(_) if fault() == Fault::LostWake && value == 5 => {}
        Some(waker) => waker.wake(),
        None => {}
    }
}

pub struct Take(SharedBox);
impl Future for Take {
    type Output = u64;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let mut mailbox = self.0.borrow_mut();
        match mailbox.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                mailbox.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

async fn sender(mailbox: SharedBox) {
    for value in 1..=5 {
        sleep(1).await;
        put(&mailbox, value);
    }
}

async fn receiver(mailbox: SharedBox) {
    while Take(mailbox.clone()).await < 5 {}
}

async fn checker() {
    for i in 0..5u64 {
        sleep(1).await;
        check(i);
    }
}

#[inline(never)]
fn check(round: u64) {
    assert!(fault() != Fault::Panic || round < 2, "the check of round {round} failed");
}

async fn request(number: u64) {
    yield_n(2).await;
    if fault() == Fault::LeakedTask && number == 2 {
        core::future::pending::<()>().await;
    }
}

/// Ends the kernel: whatever still waits then waits for ever.
async fn supervisor() {
    sleep(20).await;
    LIVE.store(1, Relaxed);
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(_a0: usize, _a1: usize) -> ! {
    heap::init();
    println!("LAB boot arch={} mode={} fault={}", arch::NAME, arch::MODE, fault() as u32);
    let times = [now(), { find_devices(); now() }, { mount_root(); now() }];
    println!("LAB took find_devices ns={}", times[1] - times[0]);
    println!("LAB took mount_root ns={}", times[2] - times[1]);
    arch::timer_init();
    spawn("worker", worker());
    let mailbox = SharedBox::default();
    spawn("receiver", receiver(mailbox.clone()));
    spawn("sender", sender(mailbox));
    spawn("checker", checker());
    for number in 0..4 {
        spawn("request", request(number));
    }
    spawn("supervisor", supervisor());
    exec::run();
    exec::report();
    println!("LAB done");
    arch::shutdown(0)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("LAB PANIC {}", info);
    arch::shutdown(1)
}
