// x86_64 through QEMU's PVH entry, 4-level paging: an identity mapping for the kernel; the trampoline, and what a trap needs, in all
// address spaces at HIGH. Each hart has a timer, its local APIC's.
use crate::{Process, Trap, alloc_page};
use core::arch::{asm, global_asm};
pub const NAME: &str = "x86_64";
pub const MODE: &str = "long";

/// As pushed by a trap, and popped on the way back.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    /// r15 to r8, rdi, rsi, rbp, rdx, rcx, rbx, rax
    registers: [usize; 15],
    vector: usize,
    error: usize,
    pc: usize,
    cs: usize,
    flags: usize,
    sp: usize,
    ss: usize,
}
/// What a processor and the trampoline use in every address space: one page.
#[repr(C, align(4096))]
struct Area {
    gdt: [u64; 8],
    tss: [u32; 28],
    idt: [[u64; 2]; 129],
    stack: [u64; 64],
    kernel_sp: usize,
    kernel_root: usize,
    frame: Frame,
}
const HARTS: usize = 2;
static mut AREAS: [Area; HARTS] = unsafe { core::mem::zeroed() };
const HIGH: usize = 0xffff_8000_0000_0000;
const AREA_AT: usize = HIGH + 0x1000;

global_asm!(
    ".section .note.pvh,\"a\",@note", ".balign 4", ".long 4, 4, 18", ".asciz \"Xen\"", ".long _start",
    ".section .text.boot,\"ax\",@progbits", ".code32", ".global _start", "_start:",
    "cli",
    "mov eax, offset boot_pdpt", "or eax, 3", "mov [boot_pml4], eax",
    "mov eax, offset boot_pd", "or eax, 3", "mov ecx, 0",
    "1: mov [boot_pdpt + ecx*8], eax", "add eax, 4096", "inc ecx", "cmp ecx, 4", "jne 1b",
    "mov eax, 0x83", "mov ecx, 0",
    "2: mov [boot_pd + ecx*8], eax", "add eax, 0x200000", "inc ecx", "cmp ecx, 2048", "jne 2b",
    "mov esi, offset low", "mov edi, 0x8000", "mov ecx, offset low_end", "sub ecx, esi", "rep movsb",
    "lgdt [boot_gdtr]", ".byte 0xea", ".long protected", ".word 24",
    // The others begin here, at 0x8000, in real mode.
    ".code16", "low:", "cli", "xor ax, ax", "mov ds, ax", ".byte 0x66, 0x0f, 0x01, 0x16", ".word 0x8000 + low_gdtr - low",
    "mov eax, cr0", "or al, 1", "mov cr0, eax", ".byte 0x66, 0xea", ".long protected", ".word 24",
    "low_gdtr: .word 31", ".long boot_gdt", "low_end:",
    ".code32", "protected:", "mov eax, 16", "mov ds, eax", "mov es, eax", "mov ss, eax",
    "mov eax, offset boot_pml4", "mov cr3, eax",
    "mov eax, cr4", "or eax, 0x620", "mov cr4, eax",
    "mov ecx, 0xc0000080", "rdmsr", "or eax, 0x100", "wrmsr",
    "mov eax, cr0", "or eax, 0x80000002", "and eax, 0xfffffffb", "mov cr0, eax",
    ".byte 0xea", ".long which", ".word 8",
    ".code64", "which:", "mov eax, 1", "cpuid", "shr ebx, 24", "jnz other",
    "start64:", "mov rsp, offset __stacks + 0x10000", "xor ebp, ebp", "xor edi, edi", "call rust_main",
    "other:", "mov rsp, offset __stacks + 0x20000", "xor ebp, ebp", "mov edi, 1", "call other_main",
    // rdi: the area as the kernel sees it, rsi: root of the process, rdx: the area in every space
    ".global enter_user", "enter_user:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "mov [rdi + {frame} - 16], rsp", "mov rax, cr3", "mov [rdi + {frame} - 8], rax",
    "movabs rax, {high}", "jmp rax",
    "back:", "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx", "ret",
    "fault_in_kernel: mov rsp, offset __stacks + 0x10000", "call kernel_fault",
    ".section .rodata.boot,\"a\",@progbits", ".balign 8",
    "boot_gdt:", ".quad 0", ".quad 0x00af9b000000ffff", ".quad 0x00cf93000000ffff", ".quad 0x00cf9b000000ffff",
    "boot_gdtr:", ".word 31", ".quad boot_gdt",
    ".section .bss.boot,\"aw\",@nobits", ".balign 4096", ".global boot_pml4",
    "boot_pml4: .skip 4096", "boot_pdpt: .skip 4096", "boot_pd: .skip 16384",
    ".section .trampoline,\"ax\",@progbits", ".balign 4096",
    "lea rsp, [rdx + {frame}]", "mov cr3, rsi",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rbp",
    "pop rdx", "pop rcx", "pop rbx", "pop rax", "add rsp, 16", "iretq",
    ".global trap_timer", "trap_timer: push 0", "push 32", "jmp trap",
    ".global trap_call", "trap_call: push 0", "push 0x80", "jmp trap",
    ".global trap_opcode", "trap_opcode: push 0", "push 6", "jmp trap",
    ".global trap_protection", "trap_protection: push 13", "jmp trap",
    ".global trap_page", "trap_page: push 14", "jmp trap",
    "trap: push rax", "push rbx", "push rcx", "push rdx", "push rbp", "push rsi", "push rdi", "push r8", "push r9", "push r10",
    "push r11", "push r12", "push r13", "push r14", "push r15",
    "test byte ptr [rsp + 144], 3", "jz 1f",
    "mov rcx, [rsp - 8]", "mov rdx, [rsp - 16]", "mov cr3, rcx", "mov rsp, rdx",
    "movabs rax, offset back", "jmp rax",
    "1: movabs rax, offset fault_in_kernel", "jmp rax",
    ".text",
    frame = const core::mem::offset_of!(Area, frame), high = const HIGH,
);
// rustc asks for these, and with the library's they would bring that library's debug information.
global_asm!(
    ".global _RNvCsfgHYwM92fyn_7___rustc17___rust_probestack", "_RNvCsfgHYwM92fyn_7___rustc17___rust_probestack: ret",
    ".global memcpy", "memcpy: mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret",
    ".global memmove", "memmove: cmp rdi, rsi", "jbe memcpy", "mov rax, rdi", "mov rcx, rdx", "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]", "std", "rep movsb", "cld", "ret",
    ".global memset", "memset: mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret",
);
unsafe extern "C" {
    fn enter_user(area: *mut Area, root: usize, at: usize);
    fn trap_timer();
    fn trap_call();
    fn trap_opcode();
    fn trap_protection();
    fn trap_page();
    static trampoline: u8;
    static __free: u8;
    static __stacks: u8;
    static boot_pml4: u8;
}

fn outb(p: u16, v: u8) {
    unsafe { asm!("out dx, al", in("dx") p, in("al") v, options(nostack)) }
}
fn inb(p: u16) -> u8 {
    let v: u8;
    unsafe { asm!("in al, dx", in("dx") p, out("al") v, options(nostack)) };
    v
}
pub fn put(c: u8) {
    while inb(0x3fd) & 0x20 == 0 {}
    outb(0x3f8, c)
}
pub fn free_memory() -> usize {
    (unsafe { &raw const __free } as usize + 4095) & !4095
}

const P: usize = 1;
const RIGHTS: usize = 7;
pub const LEVELS: usize = 4;
pub const USER: usize = 4;
pub const WRITE: usize = 2;
/// Left to software: the page is copied when it is written to.
pub const COPIED: usize = 1 << 9;
const ADDRESS: usize = 0x000f_ffff_ffff_f000;

/// The entry of a 4 KiB page, its tables made where they are missing and wanted.
pub fn entry(root: usize, at: usize, make: bool) -> *mut usize {
    let mut table = root;
    for level in [3, 2, 1] {
        let entry = (table + ((at >> (12 + 9 * level)) & 511) * 8) as *mut usize;
        unsafe {
            if *entry & P == 0 {
                if !make {
                    return core::ptr::null_mut();
                }
                *entry = alloc_page() | RIGHTS;
            }
            table = page_of(*entry);
        }
    }
    (table + ((at >> 12) & 511) * 8) as *mut usize
}
pub fn map(root: usize, at: usize, page: usize, user: bool) {
    unsafe { *entry(root, at, true) = page | if user { RIGHTS } else { 3 } };
}
pub fn page_of(entry: usize) -> usize {
    entry & ADDRESS
}
/// The page that is mapped at an address, 0 where none is.
pub fn mapped(root: usize, at: usize) -> usize {
    let entry = entry(root, at, false);
    if entry.is_null() || unsafe { *entry } & P == 0 { 0 } else { page_of(unsafe { *entry }) }
}
fn area(hart: usize) -> *mut Area {
    unsafe { (&raw mut AREAS as *mut Area).add(hart) }
}
fn map_high(root: usize) {
    map(root, HIGH, unsafe { &raw const trampoline } as usize, false);
    for hart in 0..HARTS {
        map(root, AREA_AT + hart * 4096, area(hart) as usize, false);
    }
}
pub fn new_space() -> usize {
    let root = alloc_page();
    map_high(root);
    root
}
pub fn new_frame(_root: usize, pc: usize, sp: usize, argument: u64) -> *mut Frame {
    let frame = alloc_page() as *mut Frame;
    unsafe {
        (*frame).registers[8] = argument as usize;
        (*frame).pc = pc;
        (*frame).cs = 0x1b;
        (*frame).flags = 0x202;
        (*frame).sp = sp;
        (*frame).ss = 0x23;
    }
    frame
}
/// A fork's frame, which comes back with 0.
pub fn copied_frame(_root: usize, from: *mut Frame) -> *mut Frame {
    let frame = alloc_page() as *mut Frame;
    unsafe { *frame = *from };
    set_result(frame, 0);
    frame
}
pub fn set_result(frame: *mut Frame, value: u64) {
    unsafe { (*frame).registers[14] = value as usize };
}
/// The page to be freed with a space, beyond its own.
pub fn page_of_frame(frame: *mut Frame) -> usize {
    frame as usize
}
fn gate(area: *mut Area, vector: usize, handler: unsafe extern "C" fn(), rights: u64) {
    let at = (HIGH + (handler as usize - unsafe { &raw const trampoline } as usize)) as u64;
    let low = (at & 0xffff) | (8 << 16) | (rights << 40) | ((at >> 16 & 0xffff) << 48);
    unsafe { (&raw mut (*area).idt as *mut [u64; 2]).add(vector).write([low, at >> 32]) };
}
pub fn start_paging() {
    map_high(unsafe { &raw const boot_pml4 } as usize);
    use_area(0);
}
fn use_area(hart: usize) {
    let own = area(hart);
    let at = AREA_AT + hart * 4096;
    let tss = (at + core::mem::offset_of!(Area, tss)) as u64;
    let stack = (at + core::mem::offset_of!(Area, frame) + size_of::<Frame>()) as u64;
    unsafe {
        (*own).gdt = [
            0,
            0x00af_9b00_0000_ffff,
            0x00cf_9300_0000_ffff,
            0x00af_fb00_0000_ffff,
            0x00cf_f300_0000_ffff,
            103 | (tss & 0xff_ffff) << 16 | 0x89 << 40 | (tss >> 24 & 0xff) << 56,
            tss >> 32,
            0,
        ];
        (*own).tss[1] = stack as u32;
        (*own).tss[2] = (stack >> 32) as u32;
    }
    gate(own, 6, trap_opcode, 0x8e);
    gate(own, 13, trap_protection, 0x8e);
    gate(own, 14, trap_page, 0x8e);
    gate(own, 32, trap_timer, 0x8e);
    gate(own, 128, trap_call, 0xee);
    let pointer = |limit: u16, at: usize| [limit, at as u16, (at >> 16) as u16, (at >> 32) as u16, (at >> 48) as u16];
    let gdt = pointer(63, at);
    let idt = pointer(129 * 16 - 1, at + core::mem::offset_of!(Area, idt));
    unsafe { asm!("lgdt [{}]", "lidt [{}]", "ltr {:x}", in(reg) &gdt, in(reg) &idt, in(reg) 40u16) };
}
/// A register of the hart's own interrupt controller.
fn apic(register: usize) -> *mut u32 {
    (0xfee0_0000 + register) as *mut u32
}
/// The second hart, where QEMU's firmware configuration device says that there is one (docs/specs/fw_cfg.txt, FW_CFG_NB_CPUS).
pub fn start_others(_own: usize) {
    unsafe { asm!("out dx, ax", in("dx") 0x510u16, in("ax") 5u16) };
    if inb(0x511) == 1 {
        return;
    }
    unsafe {
        apic(0x310).write_volatile(1 << 24);
        apic(0x300).write_volatile(0x4500);
        idle();
        apic(0x300).write_volatile(0x4600 + 8);
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn other_main(hart: usize) -> ! {
    use_area(hart);
    start_timer();
    crate::schedule();
    loop {
        unsafe { asm!("cli", "hlt") }
    }
}
/// Every 50 ms: a traced kernel takes that long between two instructions of a program. Interrupts come in user mode only.
pub fn start_timer() {
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    for (register, value) in [(0xf0, 0x1ff), (0x3e0, 11), (0x320, 0x20020), (0x380, 50_000_000)] {
        unsafe { apic(register).write_volatile(value) };
    }
}
pub fn idle() {
    for _ in 0..10_000 {
        core::hint::spin_loop();
    }
}
pub fn run(process: &mut Process) -> Trap {
    let sp: usize;
    unsafe { asm!("mov {}, rsp", out(reg) sp) };
    let hart = (sp - unsafe { &raw const __stacks } as usize) >> 16;
    let frame = unsafe {
        let own = area(hart);
        (*own).frame = *process.frame;
        enter_user(own, process.root, AREA_AT + hart * 4096);
        *process.frame = (*own).frame;
        &*process.frame
    };
    match frame.vector {
        0x80 => {
            let [number, a, b] = [14, 8, 9].map(|i| frame.registers[i] as u64);
            Trap::Call { number, a, b }
        }
        32 => {
            unsafe { apic(0xb0).write_volatile(0) };
            Trap::Timer
        }
        vector => {
            let at: u64;
            unsafe { asm!("mov {}, cr2", out(reg) at) };
            Trap::Fault { cause: vector as u64, pc: frame.pc as u64, at, writes: vector == 14 && frame.error & 3 == 3 }
        }
    }
}
#[unsafe(no_mangle)]
extern "C" fn kernel_fault() -> ! {
    crate::text("LAB PANIC fault in the kernel\n");
    shutdown(1)
}
pub fn shutdown(code: u32) -> ! {
    unsafe { asm!("out dx, eax", in("dx") 0xf4u16, in("eax") code) };
    loop {
        unsafe { asm!("hlt") }
    }
}
