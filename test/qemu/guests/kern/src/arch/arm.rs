// aarch64 QEMU virt: EL1, GICv2, the virtual timer, PL011, PSCI. Pages identically, 1 GiB blocks by TTBR0: devices below
// 0x40000000, RAM above. Begun at EL2 it stays there: with HCR_EL2.E2H where that exists, which makes the names of EL1 those of
// EL2 and its own physical timer the one to use. Begun at EL3 it goes down to the next level, and ends by semihosting.
use core::arch::{asm, global_asm};
pub const NAME: &str = "aarch64";
pub const MODE: &str = "EL1";

global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    "mrs x0, CurrentEL", "cmp x0, #12", "b.ne 5f",
    // SCR_EL3: NS, HCE, RW. TPIDR_EL1 keeps that this was EL3. All interrupts are of group 1.
    "mov x0, #0x531", "msr scr_el3, x0", "mov x0, #1", "msr tpidr_el1, x0",
    "mov x0, #0x08000000", "mov w1, #-1", "str w1, [x0, #0x80]", "mov w1, #3", "str w1, [x0]",
    "mov x0, #0x08010000", "mov w1, #0xff", "str w1, [x0, #4]",
    "mrs x0, id_aa64pfr0_el1", "tst x0, #0xf00", "mov x0, #0x3c5", "mov x1, #0x3c9", "csel x0, x0, x1, eq",
    "msr spsr_el3, x0", "adr x0, _start", "msr elr_el3, x0", "eret",
    "5: adrp x0, __bss_start", "add x0, x0, :lo12:__bss_start", "adrp x1, __bss_end", "add x1, x1, :lo12:__bss_end",
    "1: cmp x0, x1", "b.hs 2f", "str xzr, [x0], #8", "b 1b",
    "2: mrs x0, CurrentEL", "tbz x0, #3, 6f", "mrs x1, id_aa64mmfr1_el1", "tst x1, #0xf00", "b.eq 7f",
    // E2H, RW, TGE.
    "ldr x0, =0x488000000", "msr hcr_el2, x0", "isb",
    // CPACR_EL1.FPEN
    "6: mov x0, #(3 << 20)", "msr cpacr_el1, x0",
    // Attribute 0 is device memory, 1 normal memory. T0SZ 25, inner shareable, write-back; TTBR1 is off.
    "mov x0, #0xff00", "msr mair_el1, x0",
    "ldr x0, =0x200803519", "msr tcr_el1, x0",
    "adrp x0, lab_table", "msr ttbr0_el1, x0", "isb",
    "mrs x0, sctlr_el1", "mov x1, #0x1005", "orr x0, x0, x1", "msr sctlr_el1, x0", "isb",
    "adrp x0, lab_vectors", "add x0, x0, :lo12:lab_vectors", "msr vbar_el1, x0",
    "8: adrp x0, __stack_top", "mov sp, x0", "mov x29, #0", "mov x30, #0", "mov x0, #0", "mov x1, #0",
    "bl rust_main", "3: b 3b",
    // RW, AMO, IMO, FMO; the vector registers are on.
    "7: mov x0, #0x80000000", "orr x0, x0, #0x38", "msr hcr_el2, x0", "mov x0, #0x33ff", "msr cptr_el2, x0",
    "mov x0, #0xff00", "msr mair_el2, x0", "ldr x0, =0x80823519", "msr tcr_el2, x0",
    "adrp x0, lab_table", "msr ttbr0_el2, x0", "isb",
    "mrs x0, sctlr_el2", "mov x1, #0x1005", "orr x0, x0, x1", "msr sctlr_el2, x0", "isb",
    "adrp x0, lab_vectors", "add x0, x0, :lo12:lab_vectors", "msr vbar_el2, x0", "b 8b",
    ".ltorg",
    ".section .data.lab_table,\"aw\",@progbits", ".balign 4096", "lab_table:",
    ".quad 0x60000000000401, 0x40000705", ".fill 510, 8, 0",
    ".text", ".balign 2048", ".global lab_vectors", "lab_vectors:",
    ".rept 5", "b trap_entry", ".balign 128", ".endr",
    "b irq_entry", ".balign 128",
    ".rept 10", "b trap_entry", ".balign 128", ".endr",
    ".type trap_entry,@function", "trap_entry:",
    "mrs x0, CurrentEL", "tbnz x0, #3, 1f", "mrs x0, esr_el1", "mrs x1, elr_el1", "mrs x2, far_el1", "b 2f",
    "1: mrs x0, esr_el2", "mrs x1, elr_el2", "mrs x2, far_el2", "2: bl trap_handler", "b .",
    ".size trap_entry, . - trap_entry",
    ".global irq_entry", ".type irq_entry,@function", "irq_entry:",
    "sub sp, sp, #704",
    "stp x0, x1, [sp]", "stp x2, x3, [sp, #16]", "stp x4, x5, [sp, #32]", "stp x6, x7, [sp, #48]",
    "stp x8, x9, [sp, #64]", "stp x10, x11, [sp, #80]", "stp x12, x13, [sp, #96]", "stp x14, x15, [sp, #112]",
    "stp x16, x17, [sp, #128]", "stp x18, x29, [sp, #144]",
    "mrs x0, CurrentEL", "tbnz x0, #3, 1f", "mrs x0, elr_el1", "mrs x1, spsr_el1", "b 2f",
    "1: mrs x0, elr_el2", "mrs x1, spsr_el2", "2:",
    "stp x30, x0, [sp, #160]", "str x1, [sp, #176]",
    "stp q0, q1, [sp, #192]", "stp q2, q3, [sp, #224]", "stp q4, q5, [sp, #256]", "stp q6, q7, [sp, #288]",
    "stp q16, q17, [sp, #320]", "stp q18, q19, [sp, #352]", "stp q20, q21, [sp, #384]", "stp q22, q23, [sp, #416]",
    "stp q24, q25, [sp, #448]", "stp q26, q27, [sp, #480]", "stp q28, q29, [sp, #512]", "stp q30, q31, [sp, #544]",
    "bl irq_handler",
    "ldp q0, q1, [sp, #192]", "ldp q2, q3, [sp, #224]", "ldp q4, q5, [sp, #256]", "ldp q6, q7, [sp, #288]",
    "ldp q16, q17, [sp, #320]", "ldp q18, q19, [sp, #352]", "ldp q20, q21, [sp, #384]", "ldp q22, q23, [sp, #416]",
    "ldp q24, q25, [sp, #448]", "ldp q26, q27, [sp, #480]", "ldp q28, q29, [sp, #512]", "ldp q30, q31, [sp, #544]",
    "ldp x30, x0, [sp, #160]", "ldr x1, [sp, #176]",
    "mrs x2, CurrentEL", "tbnz x2, #3, 1f", "msr elr_el1, x0", "msr spsr_el1, x1", "b 2f",
    "1: msr elr_el2, x0", "msr spsr_el2, x1", "2:",
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
// Interrupts of the virtual timer, and of the physical one of EL2.
const VIRTUAL: u32 = 27;
const PHYSICAL: u32 = 26;

fn level() -> u64 {
    let el: u64;
    unsafe { asm!("mrs {}, CurrentEL", out(reg) el) };
    el >> 2
}
/// At EL2 with HCR_EL2.E2H the virtual timer's names are those of a timer that QEMU 7.2 connects to nothing.
fn is_host() -> bool {
    let mut config: u64 = 0;
    if level() == 2 {
        unsafe { asm!("mrs {}, hcr_el2", out(reg) config) };
    }
    config & 1 << 34 != 0
}
fn arm() {
    unsafe {
        if is_host() {
            asm!("msr cntp_tval_el0, {}", in(reg) TICK)
        } else {
            asm!("msr cntv_tval_el0, {}", in(reg) TICK)
        }
    }
}
pub fn timer_init() {
    crate::println!("LAB level {} host={}", level(), is_host());
    arm();
    unsafe {
        (GICD as *mut u32).write_volatile(1);
        ((GICD + 0x100) as *mut u32).write_volatile(1 << VIRTUAL | 1 << PHYSICAL);
        ((GICC + 4) as *mut u32).write_volatile(0xff);
        (GICC as *mut u32).write_volatile(1);
        if is_host() {
            asm!("msr cntp_ctl_el0, {}", "msr daifclr, #2", in(reg) 1u64)
        } else {
            asm!("msr cntv_ctl_el0, {}", "msr daifclr, #2", in(reg) 1u64)
        }
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn irq_handler() {
    unsafe {
        let id = ((GICC + 0xc) as *const u32).read_volatile();
        if id & 0x3ff == VIRTUAL || id & 0x3ff == PHYSICAL {
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
/// PSCI SYSTEM_OFF, whose exit status is 0 whatever the code is. A machine that begins at EL3 has none, but SYS_EXIT.
#[inline(never)]
pub fn shutdown(_code: u32) -> ! {
    unsafe {
        let secure: u64;
        asm!("mrs {}, tpidr_el1", out(reg) secure);
        if secure != 0 {
            let exit: [u64; 2] = [0x20026, 0];
            asm!("mov x0, #0x18", "hlt #0xf000", in("x1") &exit, out("x0") _)
        } else if level() == 2 {
            asm!("smc #0", in("x0") 0x8400_0008u64)
        } else {
            asm!("hvc #0", in("x0") 0x8400_0008u64)
        }
    }
    loop {
        unsafe { asm!("wfi") }
    }
}
