// A kernel on the crate async-task: tasks on a heap behind the ELF's own memory, a queue of runnables. It counts its own polls and prints its list
// of live tasks.
#![no_std]
#![no_main]
extern crate alloc;

/// What `stats` counts: the tasks, then the async fns in them.
#[macro_export]
macro_rules! lab_names {
    ($list:ident) => {
        $list!(producer, consumer, joiner, awaiter, helper, cancelled, sleeper, parked, leaf, step, nap, boxed);
    };
}

#[cfg_attr(target_arch = "riscv64", path = "../../kern/src/arch/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "../../kern/src/arch/x86.rs")]
pub mod arch;
#[path = "../../kern/src/console.rs"]
pub mod console;
pub mod exec;
pub mod heap;
pub mod log;
#[path = "../../counted/stats.rs"]
mod stats;
mod work;

use stats::{checkpoint, live, moment};

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(_: usize, _: usize) -> ! {
    heap::init();
    println!("LAB boot arch={} mode={}", arch::NAME, arch::MODE);
    arch::timer_init();
    let parked = work::spawn_all();
    // Never resumed, in the middle, and when only those are left that wait for time or for nobody.
    checkpoint(0);
    let (mut runs, mut idle) = (0u64, false);
    while live() > 1 {
        moment();
        if exec::run_one() {
            runs += 1;
            if runs == 60 {
                checkpoint(1);
            }
            continue;
        }
        if !idle {
            idle = true;
            checkpoint(2);
        }
        arch::wait_irq(exec::is_idle);
    }
    drop(parked);
    stats::report();
    log::report();
    println!("LAB exec runs={} ticks={}", exec::runs(), exec::ticks());
    println!("LAB done");
    arch::shutdown(0)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("LAB PANIC {}", info);
    arch::shutdown(1)
}
