// loongarch64 QEMU virt: PLV0, the constant timer, a 16550, ACPI's register that ends the machine. No page tables: windows
// map 0x9000... (cached) and 0x8000... (devices) to the addresses below.
use core::arch::{asm, global_asm};
pub const NAME: &str = "loongarch64";
pub const MODE: &str = "PLV0";

global_asm!(
    ".section .text.boot,\"ax\",@progbits", ".global _start", "_start:",
    // DMW0 and DMW1, PLV0: strongly ordered devices, coherent cached memory.
    "lu52i.d $t0, $zero, -2048", "ori $t0, $t0, 0x1", "csrwr $t0, 0x180",
    "lu52i.d $t0, $zero, -1792", "ori $t0, $t0, 0x11", "csrwr $t0, 0x181",
    // CRMD: paging, interrupts off, PLV0.
    "li.w $t0, 0xb0", "csrwr $t0, 0x0",
    "la.abs $t0, 0f", "jr $t0", "0:",
    // EUEN: the floating-point unit.
    "li.w $t0, 1", "csrwr $t0, 0x2",
    "la.pcrel $t0, __bss_start", "la.pcrel $t1, __bss_end",
    "1: bgeu $t0, $t1, 2f", "st.d $zero, $t0, 0", "addi.d $t0, $t0, 8", "b 1b",
    // EENTRY, and ECFG with one entry for all.
    "2: la.pcrel $t0, lab_vector", "csrwr $t0, 0xc", "csrwr $zero, 0x4",
    "la.pcrel $sp, __stack_top", "move $fp, $zero", "move $ra, $zero", "move $a0, $zero", "move $a1, $zero",
    "bl rust_main", "3: b 3b",
    ".text", ".balign 4096", ".global lab_vector", "lab_vector:",
    "addi.d $sp, $sp, -320", "st.d $t0, $sp, 40",
    // ESTAT's exception code; 0 is an interrupt.
    "csrrd $t0, 0x5", "srli.d $t0, $t0, 16", "andi $t0, $t0, 0x3f", "beqz $t0, irq_entry",
    ".type trap_entry,@function", "trap_entry:",
    "csrrd $a0, 0x5", "csrrd $a1, 0x6", "csrrd $a2, 0x7", "bl trap_handler", "b .",
    ".size trap_entry, . - trap_entry",
    ".global irq_entry", ".type irq_entry,@function", "irq_entry:",
    "st.d $ra, $sp, 0", "st.d $a0, $sp, 8", "st.d $a1, $sp, 16", "st.d $a2, $sp, 24", "st.d $a3, $sp, 32",
    "st.d $a4, $sp, 48", "st.d $a5, $sp, 56", "st.d $a6, $sp, 64", "st.d $a7, $sp, 72",
    "st.d $t1, $sp, 80", "st.d $t2, $sp, 88", "st.d $t3, $sp, 96", "st.d $t4, $sp, 104", "st.d $t5, $sp, 112",
    "st.d $t6, $sp, 120", "st.d $t7, $sp, 128", "st.d $t8, $sp, 136", "st.d $fp, $sp, 144",
    "csrrd $t0, 0x6", "st.d $t0, $sp, 152", "csrrd $t0, 0x1", "st.d $t0, $sp, 160",
    "fst.d $fa0, $sp, 168", "fst.d $fa1, $sp, 176", "fst.d $fa2, $sp, 184", "fst.d $fa3, $sp, 192",
    "fst.d $fa4, $sp, 200", "fst.d $fa5, $sp, 208", "fst.d $fa6, $sp, 216", "fst.d $fa7, $sp, 224",
    "bl irq_handler",
    "fld.d $fa0, $sp, 168", "fld.d $fa1, $sp, 176", "fld.d $fa2, $sp, 184", "fld.d $fa3, $sp, 192",
    "fld.d $fa4, $sp, 200", "fld.d $fa5, $sp, 208", "fld.d $fa6, $sp, 216", "fld.d $fa7, $sp, 224",
    "ld.d $t0, $sp, 152", "csrwr $t0, 0x6", "ld.d $t0, $sp, 160", "csrwr $t0, 0x1",
    "ld.d $ra, $sp, 0", "ld.d $a0, $sp, 8", "ld.d $a1, $sp, 16", "ld.d $a2, $sp, 24", "ld.d $a3, $sp, 32",
    "ld.d $a4, $sp, 48", "ld.d $a5, $sp, 56", "ld.d $a6, $sp, 64", "ld.d $a7, $sp, 72",
    "ld.d $t1, $sp, 80", "ld.d $t2, $sp, 88", "ld.d $t3, $sp, 96", "ld.d $t4, $sp, 104", "ld.d $t5, $sp, 112",
    "ld.d $t6, $sp, 120", "ld.d $t7, $sp, 128", "ld.d $t8, $sp, 136", "ld.d $fp, $sp, 144",
    "ld.d $t0, $sp, 40", "addi.d $sp, $sp, 320",
    "ertn",
    ".size irq_entry, . - irq_entry",
);

const UART: usize = 0x8000_0000_1fe0_01e0;
pub fn putc(c: u8) {
    unsafe {
        while ((UART + 5) as *const u8).read_volatile() & 0x20 == 0 {}
        (UART as *mut u8).write_volatile(c)
    }
}
/// CRMD.IE
const IE: usize = 4;
#[inline]
pub fn critical<R>(f: impl FnOnce() -> R) -> R {
    let mut old = 0usize;
    unsafe { asm!("csrxchg {}, {}, 0x0", inout(reg) old, in(reg) IE) };
    let r = f();
    unsafe { asm!("csrxchg {}, {}, 0x0", inout(reg) old => _, in(reg) IE) };
    r
}
const TICK: usize = 100_000; // 1 ms at 100 MHz
/// TCFG: periodic.
const PERIODIC: usize = 2;
/// ECFG.LIE of the timer.
const TIMER: usize = 1 << 11;

pub fn timer_init() {
    unsafe {
        asm!("csrwr {}, 0x41", inout(reg) TICK | PERIODIC | 1 => _);
        asm!("csrwr {}, 0x4", inout(reg) TIMER => _);
        asm!("csrxchg {}, {}, 0x0", inout(reg) IE => _, in(reg) IE);
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn irq_handler() {
    unsafe { asm!("csrwr {}, 0x44", inout(reg) 1usize => _) };
    crate::exec::timer_tick();
}
#[unsafe(no_mangle)]
pub extern "C" fn trap_handler(estat: usize, era: usize, badv: usize) {
    panic!("trap estat={:#x} era={:#x} badv={:#x}", estat, era, badv);
}
/// idle with interrupts masked, so a wake between the check and the idle is not lost.
pub fn wait_irq(empty: impl Fn() -> bool) {
    unsafe {
        asm!("csrxchg {}, {}, 0x0", inout(reg) 0usize => _, in(reg) IE);
        if empty() {
            asm!("idle 0");
        }
        asm!("csrxchg {}, {}, 0x0", inout(reg) IE => _, in(reg) IE);
    }
}
/// ACPI's sleep control register of the generic event device; QEMU's exit status is 0 whatever the code is.
#[inline(never)]
pub fn shutdown(_code: u32) -> ! {
    unsafe { (0x8000_0000_100e_001c as *mut u8).write_volatile(0x34) };
    loop {
        unsafe { asm!("idle 0") }
    }
}
