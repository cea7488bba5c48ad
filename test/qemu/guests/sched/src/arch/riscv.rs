// riscv64 QEMU virt, S-mode under OpenSBI, without paging. `tp` has the hart's number.
use core::arch::{asm, global_asm};
pub const NAME: &str = "riscv64";
pub const MODE: &str = "S";

global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    ".option push", ".option norelax", "la gp, __global_pointer$", ".option pop",
    "la t0, __bss_start", "la t1, __bss_end",
    "1: bgeu t0, t1, 2f", "sd zero, 0(t0)", "addi t0, t0, 8", "j 1b",
    "2: call own_stack", "call rust_main",
    ".global other_hart", "other_hart:",
    ".option push", ".option norelax", "la gp, __global_pointer$", ".option pop",
    "call own_stack", "call other_main",
    "own_stack: mv tp, a0", "la sp, __stacks", "addi t0, a0, 1", "slli t0, t0, 12", "add sp, sp, t0", "ret",
    ".text",
    // a0: where to keep what this one goes on with, a1: what the other goes on with
    ".global swtch", ".type swtch,@function", "swtch:",
    "sd ra, 0(a0)", "sd sp, 8(a0)", "sd s0, 16(a0)", "sd s1, 24(a0)", "sd s2, 32(a0)", "sd s3, 40(a0)", "sd s4, 48(a0)",
    "sd s5, 56(a0)", "sd s6, 64(a0)", "sd s7, 72(a0)", "sd s8, 80(a0)", "sd s9, 88(a0)", "sd s10, 96(a0)", "sd s11, 104(a0)",
    "ld ra, 0(a1)", "ld sp, 8(a1)", "ld s0, 16(a1)", "ld s1, 24(a1)", "ld s2, 32(a1)", "ld s3, 40(a1)", "ld s4, 48(a1)",
    "ld s5, 56(a1)", "ld s6, 64(a1)", "ld s7, 72(a1)", "ld s8, 80(a1)", "ld s9, 88(a1)", "ld s10, 96(a1)", "ld s11, 104(a1)",
    "ret", ".size swtch, . - swtch",
);

#[repr(C)]
pub struct Context {
    pc: usize,
    sp: usize,
    saved: [usize; 12],
}
impl Context {
    pub const EMPTY: Context = Context { pc: 0, sp: 0, saved: [0; 12] };
    #[inline(always)]
    pub fn new(stack: usize, start: usize) -> Context {
        Context { pc: start, sp: stack, ..Context::EMPTY }
    }
}
unsafe extern "C" {
    pub fn swtch(old: *mut Context, new: *const Context);
    fn other_hart();
    static __stacks: u8;
}

/// The end of a thread's stack: they lie behind the harts'.
#[inline(always)]
pub fn thread_stack(thread: usize) -> usize {
    unsafe { &raw const __stacks as usize + (crate::HARTS + thread + 1) * 4096 }
}
#[inline(always)]
pub fn hart() -> usize {
    let hart: usize;
    unsafe { asm!("mv {}, tp", out(reg) hart) };
    hart & (crate::HARTS - 1)
}
pub fn put(c: u8) {
    const UART: usize = 0x1000_0000;
    unsafe {
        while ((UART + 5) as *const u8).read_volatile() & 0x20 == 0 {}
        (UART as *mut u8).write_volatile(c)
    }
}
/// Of SBI's hart state management: an error, and what was asked for.
fn hsm(function: usize, hart: usize, start: usize) -> usize {
    let error;
    unsafe { asm!("ecall", inlateout("a0") hart => error, inlateout("a1") start => _, in("a2") 0, in("a6") function, in("a7") 0x48534d) };
    error
}
pub fn harts() -> usize {
    (0..crate::HARTS).filter(|&hart| hsm(2, hart, 0) == 0).count()
}
pub fn start_others(own: usize) {
    for hart in 0..crate::HARTS {
        if hart != own {
            hsm(0, hart, other_hart as usize);
        }
    }
}
pub fn halt() -> ! {
    loop {
        unsafe { asm!("csrw sie, zero", "wfi") }
    }
}
pub fn shutdown(code: u32) -> ! {
    unsafe { (0x10_0000 as *mut u32).write_volatile(if code == 0 { 0x5555 } else { (code << 16) | 0x3333 }) };
    halt()
}
