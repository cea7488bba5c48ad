// What both programs share: system calls, counters, and `twin`, which is the same code at the same address in both.
use core::arch::{asm, global_asm};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

pub const COUNTERS: usize = 7;
/// How often the program's async fn was called, and polled.
pub const CALLED: usize = 5;
const POLLED: usize = 6;

/// Stands at the same address in both programs.
#[unsafe(link_section = ".data.first")]
pub static mut COUNTS: [u64; COUNTERS] = [0; COUNTERS];

#[cfg(target_arch = "riscv64")]
global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    ".option push", ".option norelax", "la gp, __global_pointer$", ".option pop",
    "li s0, 0", "call main", "li a7, 0", "ecall",
);
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    "xor ebp, ebp", "call main", "mov rdi, rax", "xor eax, eax", "int 0x80",
);

// rustc asks for these, and with the library's they would bring that library's debug information.
#[cfg(target_arch = "x86_64")]
global_asm!(".global _RNvCsfgHYwM92fyn_7___rustc17___rust_probestack", "_RNvCsfgHYwM92fyn_7___rustc17___rust_probestack: ret");
macro_rules! resumed {
    ($jump:literal) => {
        global_asm!(
            ".global _RNvNtNtCsbzFhQ9P3Ot2_4core9panicking11panic_const28panic_const_async_fn_resumed",
            "_RNvNtNtCsbzFhQ9P3Ot2_4core9panicking11panic_const28panic_const_async_fn_resumed:", $jump,
        );
    };
}
#[cfg(target_arch = "riscv64")]
resumed!("1: j 1b");
#[cfg(target_arch = "x86_64")]
resumed!("2: jmp 2b");

pub const YIELD: usize = 1;
pub const REPORT: usize = 2;

#[inline]
pub fn system_call(number: usize, a: u64, b: u64) {
    #[cfg(target_arch = "riscv64")]
    unsafe {
        asm!("ecall", in("a7") number, in("a0") a, in("a1") b);
    }
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("int 0x80", in("rax") number, in("rdi") a, in("rsi") b);
    }
}

#[inline]
pub fn count(counter: usize) {
    unsafe {
        let place = (&raw mut COUNTS as *mut u64).add(counter);
        place.write_volatile(place.read_volatile() + 1);
    }
}

/// Lets the other processes run, wherever it is called.
#[inline]
pub fn pause() {
    system_call(YIELD, 0, 0);
}

/// Tells the kernel what was counted.
#[inline]
pub fn report() {
    for counter in 0..COUNTERS {
        system_call(REPORT, counter as u64, unsafe { (&raw const COUNTS as *const u64).add(counter).read_volatile() });
    }
}

/// Is pending once.
pub struct Rest(pub bool);

impl Future for Rest {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        Poll::Pending
    }
}

/// Polls a Future until it is ready, and lets other processes run in between.
#[inline(never)]
pub fn block_on(future: Pin<&mut dyn Future<Output = u64>>) -> u64 {
    // So that the compiler does not know which poll function that is, and inlines none.
    let mut future = core::hint::black_box(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        count(POLLED);
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        pause();
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at3")]
pub extern "C" fn twin(x: u64) -> u64 {
    count(3);
    let mut y = x;
    for _ in 0..4 {
        y = (y ^ (y << 13)).wrapping_mul(0x9e3779b97f4a7c15);
    }
    y
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
