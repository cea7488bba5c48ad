// A kernel for waiting times: tasks that wait at a few lines, for the timer or for each other, and note when each await began
// and ended. Each await stands with its notes on one line, whose number they have.
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
use alloc::vec::Vec;
use core::arch::asm;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use exec::{spawn, Lock};
use futs::sleep;

/// Nanoseconds of `time`, which counts at 10 MHz.
#[cfg(target_arch = "riscv64")]
fn now() -> u64 {
    let ticks: u64;
    unsafe { asm!("rdtime {}", out(reg) ticks) };
    ticks * 100
}

struct Note {
    line: u32,
    began: u64,
    ended: u64,
}
static NOTES: Lock<Vec<Note>> = Lock::new(Vec::new());

#[inline(never)]
fn note(line: u32, began: u64) {
    let ended = now();
    NOTES.with(|notes| notes.push(Note { line, began, ended }));
}

/// A place for one value, and who waits for it.
#[derive(Default)]
pub struct Mailbox {
    value: Option<u64>,
    waker: Option<Waker>,
}
type SharedBox = Rc<RefCell<Mailbox>>;

#[inline(never)]
fn put(mailbox: &SharedBox, value: u64) {
    let waker = {
        let mut mailbox = mailbox.borrow_mut();
        mailbox.value = Some(value);
        mailbox.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
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

/// Waits at two lines, for different times.
async fn napper() {
    for _ in 0..6 {
        let began = now(); sleep(1).await; note(line!(), began);
        let began = now(); sleep(4).await; note(line!(), began);
    }
}

/// Waits at one line, inside a line of its caller.
async fn nested(ticks: u64) {
    let began = now(); sleep(ticks).await; note(line!(), began);
    let began = now(); sleep(2).await; note(line!(), began);
}

async fn caller() {
    for _ in 0..5 {
        let began = now(); nested(3).await; note(line!(), began);
    }
}

async fn sender(mailbox: SharedBox) {
    for value in 1..=5 {
        let began = now(); sleep(5).await; note(line!(), began);
        put(&mailbox, value);
    }
}

/// Waits for another task.
async fn receiver(mailbox: SharedBox) {
    loop {
        let began = now(); let value = Take(mailbox.clone()).await; note(line!(), began);
        if value == 5 {
            break;
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(_a0: usize, _a1: usize) -> ! {
    heap::init();
    println!("LAB boot arch={} mode={}", arch::NAME, arch::MODE);
    arch::timer_init();
    spawn("napper", napper());
    spawn("caller", caller());
    let mailbox = SharedBox::default();
    spawn("receiver", receiver(mailbox.clone()));
    spawn("sender", sender(mailbox));
    exec::run();
    NOTES.with(|notes| {
        for Note { line, began, ended } in notes.iter() {
            println!("LAB await line={} began={} ended={}", line, began, ended);
        }
    });
    println!("LAB done");
    arch::shutdown(0)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("LAB PANIC {}", info);
    arch::shutdown(1)
}
