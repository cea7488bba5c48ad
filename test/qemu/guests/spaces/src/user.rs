// What both programs share: system calls, counters, and `twin`, which is the same code at the same address in both.
use core::arch::{asm, global_asm};

pub const COUNTERS: usize = 5;

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

// rustc asks for it, and with the library's it would bring that library's debug information.
#[cfg(target_arch = "x86_64")]
global_asm!(".global _RNvCsfgHYwM92fyn_7___rustc17___rust_probestack", "_RNvCsfgHYwM92fyn_7___rustc17___rust_probestack: ret");

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
