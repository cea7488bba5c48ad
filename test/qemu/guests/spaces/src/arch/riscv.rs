// riscv64 QEMU virt under OpenSBI, Sv39: an identity mapping for the kernel, the trampoline in all.
use crate::{Process, Trap, alloc_page};
use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicUsize, Ordering::*};
pub const NAME: &str = "riscv64";
pub const MODE: &str = "S";

/// What the trampoline saves and restores: three words of the kernel, then pc, x1 to x31.
#[repr(C)]
pub struct Frame {
    kernel_satp: usize,
    kernel_sp: usize,
    back: usize,
    registers: [usize; 32],
}
const TRAMPOLINE: usize = 0x3f_ffff_f000;
const FRAME: usize = TRAMPOLINE - 4096;

macro_rules! registers {
    ($op:literal, $first:literal $($n:literal $at:literal)*) => { concat!($first $(, $op, " x", $n, ", ", $at, "(a0)\n")*) };
}
macro_rules! all_but_a0 {
    ($op:literal) => {
        registers!($op, "" "1" "32" "2" "40" "3" "48" "4" "56" "5" "64" "6" "72" "7" "80" "8" "88" "9" "96" "11" "112" "12" "120"
            "13" "128" "14" "136" "15" "144" "16" "152" "17" "160" "18" "168" "19" "176" "20" "184" "21" "192" "22" "200"
            "23" "208" "24" "216" "25" "224" "26" "232" "27" "240" "28" "248" "29" "256" "30" "264" "31" "272")
    };
}

global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    ".option push", ".option norelax", "la gp, __global_pointer$", ".option pop",
    "la t0, __bss_start", "la t1, __bss_end",
    "1: bgeu t0, t1, 2f", "sd zero, 0(t0)", "addi t0, t0, 8", "j 1b",
    "2: call own_stack", "call rust_main",
    // a0: the hart's number
    ".global other_hart", "other_hart:",
    ".option push", ".option norelax", "la gp, __global_pointer$", ".option pop",
    "call own_stack", "call other_main",
    "own_stack: mv tp, a0", "la sp, __stacks", "addi t0, a0, 1", "slli t0, t0, 14", "add sp, sp, t0", "li s0, 0", "ret",
    // a0: the frame, a1: satp of the process
    ".global enter_user", "enter_user:",
    "addi sp, sp, -128", "sd ra, 0(sp)", "sd gp, 8(sp)", "sd tp, 16(sp)", "sd s0, 24(sp)", "sd s1, 32(sp)", "sd s2, 40(sp)",
    "sd s3, 48(sp)", "sd s4, 56(sp)", "sd s5, 64(sp)", "sd s6, 72(sp)", "sd s7, 80(sp)", "sd s8, 88(sp)", "sd s9, 96(sp)",
    "sd s10, 104(sp)", "sd s11, 112(sp)",
    "sd sp, 8(a0)", "csrr t0, satp", "sd t0, 0(a0)", "la t0, back", "sd t0, 16(a0)",
    "li t0, 0x3ffffff000", "jr t0",
    "back:",
    "ld ra, 0(sp)", "ld gp, 8(sp)", "ld tp, 16(sp)", "ld s0, 24(sp)", "ld s1, 32(sp)", "ld s2, 40(sp)",
    "ld s3, 48(sp)", "ld s4, 56(sp)", "ld s5, 64(sp)", "ld s6, 72(sp)", "ld s7, 80(sp)", "ld s8, 88(sp)", "ld s9, 96(sp)",
    "ld s10, 104(sp)", "ld s11, 112(sp)", "addi sp, sp, 128", "csrr a0, scause", "ret",
    ".section .trampoline,\"ax\",@progbits", ".balign 4096",
    "csrw satp, a1", "sfence.vma", "li a0, 0x3fffffe000", "csrw sscratch, a0", "ld t0, 24(a0)", "csrw sepc, t0",
    all_but_a0!("ld"), "ld a0, 104(a0)", "sret",
    ".balign 4", ".global user_trap", "user_trap:",
    "csrrw a0, sscratch, a0",
    all_but_a0!("sd"), "csrr t0, sscratch", "sd t0, 104(a0)", "csrr t0, sepc", "sd t0, 24(a0)",
    "ld t1, 0(a0)", "ld sp, 8(a0)", "ld t0, 16(a0)", "csrw satp, t1", "sfence.vma", "jr t0",
    ".text",
);
unsafe extern "C" {
    fn enter_user(frame: *mut Frame, satp: usize) -> usize;
    fn other_hart();
    fn user_trap();
    static trampoline: u8;
    static __free: u8;
}

pub fn put(c: u8) {
    const UART: usize = 0x1000_0000;
    unsafe {
        while ((UART + 5) as *const u8).read_volatile() & 0x20 == 0 {}
        (UART as *mut u8).write_volatile(c)
    }
}
pub fn free_memory() -> usize {
    (unsafe { &raw const __free } as usize + 4095) & !4095
}

const V: usize = 1;
const RWX: usize = 14;
const U: usize = 16;
pub const LEVELS: usize = 3;
pub const USER: usize = U;
pub const WRITE: usize = 4;
/// Left to software: the page is copied when it is written to.
pub const COPIED: usize = 1 << 8;
const AD: usize = 0xc0;

/// The entry of a 4 KiB page, its tables made where they are missing and wanted.
pub fn entry(root: usize, at: usize, make: bool) -> *mut usize {
    let mut table = root;
    for level in [2, 1] {
        let entry = (table + ((at >> (12 + 9 * level)) & 511) * 8) as *mut usize;
        unsafe {
            if *entry & V == 0 {
                if !make {
                    return core::ptr::null_mut();
                }
                *entry = alloc_page() >> 12 << 10 | V;
            }
            table = page_of(*entry);
        }
    }
    (table + ((at >> 12) & 511) * 8) as *mut usize
}
pub fn map(root: usize, at: usize, page: usize, user: bool) {
    unsafe { *entry(root, at, true) = page >> 12 << 10 | V | RWX | AD | if user { U } else { 0 } };
}
pub fn page_of(entry: usize) -> usize {
    entry >> 10 << 12
}
/// The page that is mapped at an address, 0 where none is.
pub fn mapped(root: usize, at: usize) -> usize {
    let entry = entry(root, at, false);
    if entry.is_null() || unsafe { *entry } & V == 0 { 0 } else { page_of(unsafe { *entry }) }
}
pub fn new_space() -> usize {
    let root = alloc_page();
    map(root, TRAMPOLINE, unsafe { &raw const trampoline } as usize, false);
    root
}
pub fn new_frame(root: usize, pc: usize, sp: usize, argument: u64) -> *mut Frame {
    let frame = alloc_page() as *mut Frame;
    map(root, FRAME, frame as usize, false);
    unsafe {
        (*frame).registers[0] = pc;
        (*frame).registers[2] = sp;
        (*frame).registers[10] = argument as usize;
    }
    frame
}
/// A fork's frame, which comes back with 0.
pub fn copied_frame(root: usize, from: *mut Frame) -> *mut Frame {
    let frame = new_frame(root, 0, 0, 0);
    for i in 0..32 {
        unsafe { (&raw mut (*frame).registers as *mut usize).add(i).write((&raw const (*from).registers as *const usize).add(i).read()) };
    }
    set_result(frame, 0);
    frame
}
pub fn set_result(frame: *mut Frame, value: u64) {
    unsafe { (*frame).registers[10] = value as usize };
}
/// The page to be freed with a space, beyond its own.
pub fn page_of_frame(_frame: *mut Frame) -> usize {
    0
}
fn satp(root: usize) -> usize {
    8 << 60 | root >> 12
}

static KERNEL: AtomicUsize = AtomicUsize::new(0);
pub fn start_paging() {
    let root = new_space();
    for gib in 0..4usize {
        unsafe { ((root + gib * 8) as *mut usize).write(gib << 28 | V | RWX | AD) };
    }
    KERNEL.store(root, Release);
    use_space();
}
fn use_space() {
    let trap = TRAMPOLINE + (user_trap as usize - unsafe { &raw const trampoline } as usize);
    unsafe { asm!("csrw satp, {}", "sfence.vma", "csrw stvec, {}", in(reg) satp(KERNEL.load(Acquire)), in(reg) trap) };
}
fn sbi(extension: usize, function: usize, a: usize, b: usize, c: usize) -> usize {
    let error;
    unsafe {
        asm!("ecall", inlateout("a0") a => error, inlateout("a1") b => _, in("a2") c, in("a6") function, in("a7") extension)
    };
    error
}
pub fn start_others(own: usize) {
    for hart in 0..8 {
        if hart != own {
            sbi(0x48534d, 0, hart, other_hart as usize, 0);
        }
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn other_main(_hart: usize) -> ! {
    use_space();
    start_timer();
    crate::schedule();
    loop {
        unsafe { asm!("csrw sie, zero", "wfi") }
    }
}
fn arm() {
    let now: usize;
    unsafe { asm!("rdtime {}", out(reg) now) };
    sbi(0x54494d45, 0, now + 500_000, 0, 0);
}
/// Every 50 ms: a traced kernel takes that long between two instructions of a program. Interrupts come in user mode only.
pub fn start_timer() {
    arm();
    unsafe { asm!("csrs sie, {}", in(reg) 1usize << 5) };
}
/// Until the timer's next turn.
pub fn idle() {
    arm();
    unsafe { asm!("wfi") };
}
pub fn run(process: &mut Process) -> Trap {
    // The trap has left the mode before it in sstatus: user mode, also the first time.
    unsafe { asm!("csrc sstatus, {}", in(reg) 1usize << 8) };
    let cause = unsafe { enter_user(process.frame, satp(process.root)) };
    let registers = unsafe { &mut (*process.frame).registers };
    match cause {
        8 => {
            registers[0] += 4;
            Trap::Call { number: registers[17] as u64, a: registers[10] as u64, b: registers[11] as u64 }
        }
        _ if cause == 1 << 63 | 5 => {
            arm();
            Trap::Timer
        }
        _ => {
            let at: u64;
            unsafe { asm!("csrr {}, stval", out(reg) at) };
            Trap::Fault { cause: cause as u64, pc: registers[0] as u64, at, writes: cause == 15 }
        }
    }
}
pub fn shutdown(code: u32) -> ! {
    unsafe { (0x10_0000 as *mut u32).write_volatile(if code == 0 { 0x5555 } else { (code << 16) | 0x3333 }) };
    loop {
        unsafe { asm!("wfi") }
    }
}
