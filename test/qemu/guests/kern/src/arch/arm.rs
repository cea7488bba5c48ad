// aarch64 QEMU virt: EL1, GICv2, the virtual timer, PL011, PSCI. Pages identically, 1 GiB blocks by TTBR0: devices below
// 0x40000000, RAM above.
use core::arch::{asm, global_asm};
pub const NAME: &str = "aarch64";
pub const MODE: &str = "EL1";

global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    "adrp x0, __bss_start", "add x0, x0, :lo12:__bss_start", "adrp x1, __bss_end", "add x1, x1, :lo12:__bss_end",
    "1: cmp x0, x1", "b.hs 2f", "str xzr, [x0], #8", "b 1b",
    // CPACR_EL1.FPEN
    "2: mov x0, #(3 << 20)", "msr cpacr_el1, x0",
    // Attribute 0 is device memory, 1 normal memory. T0SZ 25, inner shareable, write-back; TTBR1 is off.
    "mov x0, #0xff00", "msr mair_el1, x0",
    "ldr x0, =0x200803519", "msr tcr_el1, x0",
    "adrp x0, lab_table", "msr ttbr0_el1, x0", "isb",
    "mrs x0, sctlr_el1", "mov x1, #0x1005", "orr x0, x0, x1", "msr sctlr_el1, x0", "isb",
    "adrp x0, lab_vectors", "add x0, x0, :lo12:lab_vectors", "msr vbar_el1, x0",
    "adrp x0, __stack_top", "mov sp, x0", "mov x29, #0", "mov x30, #0", "mov x0, #0", "mov x1, #0",
    "bl rust_main", "3: b 3b",
    ".ltorg",
    ".section .data.lab_table,\"aw\",@progbits", ".balign 4096", "lab_table:",
    ".quad 0x60000000000401, 0x40000705", ".fill 510, 8, 0",
    ".text", ".balign 2048", ".global lab_vectors", "lab_vectors:",
    ".rept 5", "b trap_entry", ".balign 128", ".endr",
    "b irq_entry", ".balign 128",
    ".rept 10", "b trap_entry", ".balign 128", ".endr",
    ".type trap_entry,@function", "trap_entry:",
    "mrs x0, esr_el1", "mrs x1, elr_el1", "mrs x2, far_el1", "bl trap_handler", "b .",
    ".size trap_entry, . - trap_entry",
    ".global irq_entry", ".type irq_entry,@function", "irq_entry:",
    "sub sp, sp, #704",
    "stp x0, x1, [sp]", "stp x2, x3, [sp, #16]", "stp x4, x5, [sp, #32]", "stp x6, x7, [sp, #48]",
    "stp x8, x9, [sp, #64]", "stp x10, x11, [sp, #80]", "stp x12, x13, [sp, #96]", "stp x14, x15, [sp, #112]",
    "stp x16, x17, [sp, #128]", "stp x18, x29, [sp, #144]", "mrs x0, elr_el1", "mrs x1, spsr_el1",
    "stp x30, x0, [sp, #160]", "str x1, [sp, #176]",
    "stp q0, q1, [sp, #192]", "stp q2, q3, [sp, #224]", "stp q4, q5, [sp, #256]", "stp q6, q7, [sp, #288]",
    "stp q16, q17, [sp, #320]", "stp q18, q19, [sp, #352]", "stp q20, q21, [sp, #384]", "stp q22, q23, [sp, #416]",
    "stp q24, q25, [sp, #448]", "stp q26, q27, [sp, #480]", "stp q28, q29, [sp, #512]", "stp q30, q31, [sp, #544]",
    "bl irq_handler",
    "ldp q0, q1, [sp, #192]", "ldp q2, q3, [sp, #224]", "ldp q4, q5, [sp, #256]", "ldp q6, q7, [sp, #288]",
    "ldp q16, q17, [sp, #320]", "ldp q18, q19, [sp, #352]", "ldp q20, q21, [sp, #384]", "ldp q22, q23, [sp, #416]",
    "ldp q24, q25, [sp, #448]", "ldp q26, q27, [sp, #480]", "ldp q28, q29, [sp, #512]", "ldp q30, q31, [sp, #544]",
    "ldp x30, x0, [sp, #160]", "ldr x1, [sp, #176]", "msr elr_el1, x0", "msr spsr_el1, x1",
    "ldp x0, x1, [sp]", "ldp x2, x3, [sp, #16]", "ldp x4, x5, [sp, #32]", "ldp x6, x7, [sp, #48]",
    "ldp x8, x9, [sp, #64]", "ldp x10, x11, [sp, #80]", "ldp x12, x13, [sp, #96]", "ldp x14, x15, [sp, #112]",
    "ldp x16, x17, [sp, #128]", "ldp x18, x29, [sp, #144]",
    "add sp, sp, #704",
    "eret",
    ".size irq_entry, . - irq_entry",
);

const UART: usize = 0x0900_0000;
pub fn putc(c: u8) {
    unsafe {
        while ((UART + 0x18) as *const u32).read_volatile() & 0x20 != 0 {}
        (UART as *mut u32).write_volatile(c as u32)
    }
}
#[inline]
pub fn critical<R>(f: impl FnOnce() -> R) -> R {
    let old: usize;
    unsafe { asm!("mrs {}, daif", "msr daifset, #2", out(reg) old) };
    let r = f();
    unsafe { asm!("msr daif, {}", in(reg) old) };
    r
}
const TICK: u64 = 62_500; // 1 ms at 62.5 MHz
const GICD: usize = 0x0800_0000;
const GICC: usize = 0x0801_0000;
// The virtual timer's interrupt.
const TIMER: u32 = 27;

fn arm() {
    unsafe { asm!("msr cntv_tval_el0, {}", in(reg) TICK) };
}
pub fn timer_init() {
    arm();
    unsafe {
        (GICD as *mut u32).write_volatile(1);
        ((GICD + 0x100) as *mut u32).write_volatile(1 << TIMER);
        ((GICC + 4) as *mut u32).write_volatile(0xff);
        (GICC as *mut u32).write_volatile(1);
        asm!("msr cntv_ctl_el0, {}", "msr daifclr, #2", in(reg) 1u64);
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn irq_handler() {
    unsafe {
        let id = ((GICC + 0xc) as *const u32).read_volatile();
        if id & 0x3ff == TIMER {
            arm();
            crate::exec::timer_tick();
        }
        ((GICC + 0x10) as *mut u32).write_volatile(id);
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn trap_handler(esr: usize, elr: usize, far: usize) {
    panic!("trap esr={:#x} elr={:#x} far={:#x}", esr, elr, far);
}
/// wfi with interrupts masked, so a wake between the check and the wfi is not lost.
pub fn wait_irq(empty: impl Fn() -> bool) {
    unsafe {
        asm!("msr daifset, #2");
        if empty() {
            asm!("wfi");
        }
        asm!("msr daifclr, #2");
    }
}
/// PSCI SYSTEM_OFF; QEMU's exit status is 0 whatever the code is.
#[inline(never)]
pub fn shutdown(_code: u32) -> ! {
    unsafe { asm!("hvc #0", in("x0") 0x8400_0008u64) };
    loop {
        unsafe { asm!("wfi") }
    }
}
