// A kernel on embassy-executor: tasks in statics, no heap. It counts its own polls and prints its list of live tasks.
#![no_std]
#![no_main]

/// What `stats` counts: the tasks, then the async fns in them.
#[macro_export]
macro_rules! lab_names {
    ($list:ident) => {
        $list!(producer, consumer, joiner, selector, locker, ticker, napper, brief, leaf, step, pause, loser);
    };
}

#[path = "../../kern/src/arch/riscv.rs"]
pub mod arch;
#[path = "../../kern/src/console.rs"]
pub mod console;
#[path = "../../counted/stats.rs"]
mod stats;
mod time;
mod work;

use core::sync::atomic::{AtomicBool, Ordering};
use embassy_executor::Spawner;
use embassy_executor::raw::Executor;
use stats::{Id, checkpoint, live, moment, spawned};

/// What the trap handler calls: the interrupt has ended the wait, the loop below does the rest.
pub mod exec {
    pub fn timer_tick() {}
}

/// No log is kept of wakes, which are embassy's own.
mod log {
    pub fn polls(_: usize, _: &core::task::Context<'_>) {}
    pub fn polled(_: bool) {}
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
    PENDED.store(true, Ordering::SeqCst);
}

macro_rules! spawn {
    ($spawner:ident, $($name:ident),*) => { $( start($spawner, work::$name(spawned(Id::$name)), stringify!($name)); )* };
}
#[cfg(not(older))]
fn start<S>(spawner: Spawner, token: Result<embassy_executor::SpawnToken<S>, embassy_executor::SpawnError>, name: &'static str) {
    match token {
        Ok(token) => {
            token.metadata().set_name(name);
            spawner.spawn(token)
        }
        Err(_) => panic!("no room"),
    }
}
#[cfg(older)]
fn start<S>(spawner: Spawner, token: embassy_executor::SpawnToken<S>, _: &str) {
    if spawner.spawn(token).is_err() {
        panic!("no room");
    }
}

static mut EXECUTOR: core::mem::MaybeUninit<Executor> = core::mem::MaybeUninit::uninit();

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(_: usize, _: usize) -> ! {
    println!("LAB boot arch={} mode={}", arch::NAME, arch::MODE);
    arch::timer_init();
    let executor: &'static Executor = unsafe { (*(&raw mut EXECUTOR)).write(Executor::new(core::ptr::null_mut())) };
    let spawner = executor.spawner();
    spawn!(spawner, producer, consumer, consumer, joiner, selector, locker, locker, ticker, napper, brief);
    // Never resumed, in the middle, and when only those are left that wait for time.
    checkpoint(0);
    let mut round = 0;
    while live() > 0 {
        PENDED.store(false, Ordering::SeqCst);
        time::wake();
        moment();
        unsafe { executor.poll() };
        round += 1;
        if round == 6 {
            checkpoint(1);
        } else if round > 6 && !PENDED.load(Ordering::SeqCst) {
            if round < 1_000_000 {
                round = 1_000_000;
                checkpoint(2);
            }
            arch::wait_irq(|| !PENDED.load(Ordering::SeqCst));
        }
    }
    stats::report();
    println!("LAB done");
    arch::shutdown(0)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("LAB PANIC {}", info);
    arch::shutdown(1)
}
