// What the Rust programs of `procs` share: system calls, counters, and which async fns live in which task.
use core::arch::{asm, global_asm};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

pub const FUNCTIONS: usize = 8;
pub const FUTURES: usize = 4;
pub const TASKS: usize = 8;

/// What a program tells the kernel before it ends.
#[repr(C)]
pub struct Counts {
    functions: [u64; FUNCTIONS],
    called: [u64; FUTURES],
    polled: [u64; FUTURES],
    /// Polls of tasks by the executor.
    tasks: u64,
}
#[unsafe(link_section = ".data.first")]
static mut COUNTS: Counts = Counts { functions: [0; FUNCTIONS], called: [0; FUTURES], polled: [0; FUTURES], tasks: 0 };
/// How many of each async fn live in each task. All of these are polled whenever the task is.
static mut LIVE: [[u64; FUTURES]; TASKS] = [[0; FUTURES]; TASKS];
static mut CURRENT: usize = 0;

#[cfg(target_arch = "riscv64")]
global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    ".option push", ".option norelax", "lla gp, __global_pointer$", ".option pop",
    "li s0, 0", "call main", "li a7, 0", "ecall",
);
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    "xor ebp, ebp", "call main", "mov rdi, rax", "xor eax, eax", "int 0x80",
);

pub const EXIT: usize = 0;
pub const YIELD: usize = 1;
pub const REPORT: usize = 2;
pub const FORK: usize = 3;
pub const EXEC: usize = 4;
pub const WAIT: usize = 5;

#[inline]
pub fn system_call(number: usize, a: u64, b: u64) -> u64 {
    let result;
    #[cfg(target_arch = "riscv64")]
    unsafe {
        asm!("ecall", in("a7") number, inlateout("a0") a => result, in("a1") b);
    }
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("int 0x80", inlateout("rax") number as u64 => result, in("rdi") a, in("rsi") b);
    }
    result
}

#[inline]
pub fn count(function: usize) {
    unsafe {
        let place = (&raw mut COUNTS.functions as *mut u64).add(function);
        place.write_volatile(place.read_volatile() + 1);
    }
}

#[inline]
pub fn report() {
    system_call(REPORT, &raw const COUNTS as u64, 0);
}

/// In the child nothing is counted yet, but what lives goes on living.
#[inline]
pub fn fork() -> u64 {
    let child = system_call(FORK, 0, 0);
    if child == 0 {
        for i in 0..size_of::<Counts>() / 8 {
            unsafe { (&raw mut COUNTS as *mut u64).add(i).write_volatile(0) };
        }
    }
    child
}

/// Held across the whole body of an async fn.
pub struct Live {
    future: usize,
    task: usize,
}
#[inline]
pub fn live(future: usize) -> Live {
    unsafe {
        let task = (&raw const CURRENT).read_volatile();
        add((&raw mut COUNTS.called as *mut u64).add(future), 1);
        add((&raw mut COUNTS.polled as *mut u64).add(future), 1);
        add((&raw mut LIVE as *mut u64).add(task * FUTURES + future), 1);
        Live { future, task }
    }
}
impl Drop for Live {
    #[inline]
    fn drop(&mut self) {
        unsafe { add((&raw mut LIVE as *mut u64).add(self.task * FUTURES + self.future), u64::MAX) };
    }
}
#[inline]
unsafe fn add(place: *mut u64, value: u64) {
    unsafe { place.write_volatile(place.read_volatile().wrapping_add(value)) };
}

/// An executor is about to poll a task.
#[inline]
pub fn polls(task: usize) {
    unsafe {
        (&raw mut CURRENT).write_volatile(task);
        add(&raw mut COUNTS.tasks, 1);
        for future in 0..FUTURES {
            let live = (&raw const LIVE as *const u64).add(task * FUTURES + future).read_volatile();
            add((&raw mut COUNTS.polled as *mut u64).add(future), live);
        }
    }
}

/// Is pending once, and ready to be polled at once.
pub struct Rest(pub bool);

impl Future for Rest {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

// rustc asks for these, and with the library's they would bring that library's debug information.
#[cfg(target_arch = "x86_64")]
global_asm!(".global _RNvCsfgHYwM92fyn_7___rustc17___rust_probestack", "_RNvCsfgHYwM92fyn_7___rustc17___rust_probestack: ret");
macro_rules! resumed {
    ($jump:literal) => {
        global_asm!(
            ".weak _RNvNtNtCsbzFhQ9P3Ot2_4core9panicking11panic_const28panic_const_async_fn_resumed",
            "_RNvNtNtCsbzFhQ9P3Ot2_4core9panicking11panic_const28panic_const_async_fn_resumed:", $jump,
        );
    };
}
#[cfg(target_arch = "riscv64")]
resumed!("1: j 1b");
#[cfg(target_arch = "x86_64")]
resumed!("2: jmp 2b");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
