// A kernel on two executors: tasks of embassy's in statics, of async-task's on a heap. A number in RAM plants one fault, so that the clean
// guest and the faulty ones are the same ELF:
//
//   -device loader,addr=FAULT_AT,data=N,data-len=4     0: none, or one of `Fault`
//
// When nothing is left to poll, it prints its own book of who waits for whom, comes to `lab_checkpoint`, and idles for ever.
#![no_std]
#![no_main]
extern crate alloc;

#[cfg_attr(target_arch = "riscv64", path = "../../kern/src/arch/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "../../kern/src/arch/x86.rs")]
pub mod arch;
mod book;
#[path = "../../kern/src/console.rs"]
pub mod console;
#[path = "../../asynctask/src/exec.rs"]
pub mod exec;
#[path = "../../asynctask/src/heap.rs"]
pub mod heap;
mod work;

use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use embassy_executor::raw::Executor;

/// What the executor of `asynctask` calls: no log is kept here, and nobody stops the guest in the middle.
mod log {
    pub const INTERRUPT: u64 = 0;
    pub fn wakes(_: &core::task::Waker, _: u64) {}
}
mod stats {
    pub fn moment() {}
}

#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
pub enum Fault {
    None,
    /// Two tasks of embassy's take two mutexes in opposite order.
    EmbassyDeadlock,
    /// Three tasks of async-task's take three mutexes in a circle.
    AsyncTaskDeadlock,
    /// A task of embassy's waits, and its waker is dropped.
    EmbassyLostWake,
    /// The same of a task of async-task's.
    AsyncTaskLostWake,
}

/// In RAM that neither firmware nor kernel uses.
#[cfg(target_arch = "riscv64")]
const FAULT_AT: usize = 0x8600_0000;
#[cfg(target_arch = "x86_64")]
const FAULT_AT: usize = 0x0600_0000;

pub fn fault() -> Fault {
    match unsafe { (FAULT_AT as *const u32).read_volatile() } {
        1 => Fault::EmbassyDeadlock,
        2 => Fault::AsyncTaskDeadlock,
        3 => Fault::EmbassyLostWake,
        4 => Fault::AsyncTaskLostWake,
        _ => Fault::None,
    }
}

struct OneHart;
critical_section::set_impl!(OneHart);
unsafe impl critical_section::Impl for OneHart {
    // Interrupts touch nothing that is locked.
    unsafe fn acquire() -> bool {
        false
    }
    unsafe fn release(_: bool) {}
}

static PENDED: AtomicBool = AtomicBool::new(false);
#[unsafe(export_name = "__pender")]
fn pender(_: *mut ()) {
    PENDED.store(true, SeqCst);
}

static mut EXECUTOR: core::mem::MaybeUninit<Executor> = core::mem::MaybeUninit::uninit();

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(_: usize, _: usize) -> ! {
    heap::init();
    println!("LAB boot arch={} mode={} fault={}", arch::NAME, arch::MODE, fault() as u32);
    arch::timer_init();
    let executor: &'static Executor = unsafe { (*(&raw mut EXECUTOR)).write(Executor::new(core::ptr::null_mut())) };
    let _held = work::spawn_all(executor.spawner());
    loop {
        PENDED.store(false, SeqCst);
        unsafe { executor.poll() };
        let ran = exec::run_one();
        if !ran && !PENDED.load(SeqCst) {
            break;
        }
    }
    book::report();
    if book::left() == 0 {
        println!("LAB done");
        arch::shutdown(0)
    }
    lab_checkpoint(0);
    loop {
        arch::wait_irq(|| true);
    }
}
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn lab_checkpoint(number: u64) {
    core::hint::black_box(number);
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("LAB PANIC {}", info);
    arch::shutdown(1)
}
