// x86_64 through QEMU's PVH entry, an identity mapping of 4 GiB. `gs` points to the hart's number.
use core::arch::{asm, global_asm};
pub const NAME: &str = "x86_64";
pub const MODE: &str = "long";

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
    ".byte 0xea", ".long start64", ".word 8",
    ".code64", "start64:", "xor eax, eax", "mov fs, ax", "mov gs, ax",
    "mov eax, 1", "cpuid", "shr ebx, 24", "and ebx, 3",
    "mov eax, ebx", "inc eax", "shl eax, 12", "lea rsp, [rax + __stacks]",
    "lea rax, [rbx*8 + hart_numbers]", "mov [rax], rbx", "xor edx, edx", "mov ecx, 0xc0000101", "wrmsr",
    "xor ebp, ebp", "mov edi, ebx", "test ebx, ebx", "jnz 3f", "call rust_main", "3: call other_main",
    ".section .rodata.boot,\"a\",@progbits", ".balign 8",
    "boot_gdt:", ".quad 0", ".quad 0x00af9b000000ffff", ".quad 0x00cf93000000ffff", ".quad 0x00cf9b000000ffff",
    "boot_gdtr:", ".word 31", ".quad boot_gdt",
    ".section .bss.boot,\"aw\",@nobits", ".balign 4096",
    "boot_pml4: .skip 4096", "boot_pdpt: .skip 4096", "boot_pd: .skip 16384", "hart_numbers: .skip 32",
    ".text",
    // rdi: where to keep this one's stack pointer, rsi: where the other's is
    ".global swtch", ".type swtch,@function", "swtch:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "mov [rdi], rsp", "mov rsp, [rsi]",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx", "ret", ".size swtch, . - swtch",
);

#[repr(C)]
pub struct Context {
    sp: usize,
}
impl Context {
    pub const EMPTY: Context = Context { sp: 0 };
    /// Six registers and where to go, below a return address that nobody uses.
    #[inline(always)]
    pub fn new(stack: usize, start: usize) -> Context {
        unsafe { ((stack - 16) as *mut usize).write(start) };
        Context { sp: stack - 64 }
    }
}
unsafe extern "C" {
    pub fn swtch(old: *mut Context, new: *const Context);
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
    unsafe { asm!("mov {}, gs:[0]", out(reg) hart) };
    hart & (crate::HARTS - 1)
}
fn outb(port: u16, value: u8) {
    unsafe { asm!("out dx, al", in("dx") port, in("al") value) }
}
fn inb(port: u16) -> u8 {
    let value: u8;
    unsafe { asm!("in al, dx", in("dx") port, out("al") value) };
    value
}
pub fn put(c: u8) {
    while inb(0x3fd) & 0x20 == 0 {}
    outb(0x3f8, c)
}
/// As QEMU's firmware configuration device tells (docs/specs/fw_cfg.txt, FW_CFG_NB_CPUS).
pub fn harts() -> usize {
    unsafe { asm!("out dx, ax", in("dx") 0x510u16, in("ax") 5u16) };
    let low = inb(0x511) as usize;
    low | (inb(0x511) as usize) << 8
}
pub fn start_others(_own: usize) {
    if harts() == 1 {
        return;
    }
    let order = 0xfee0_0300 as *mut u32;
    unsafe {
        order.write_volatile(0xc4500);
        for _ in 0..100_000 {
            core::hint::spin_loop();
        }
        order.write_volatile(0xc4600 + 8);
    }
}
pub fn halt() -> ! {
    loop {
        unsafe { asm!("cli", "hlt") }
    }
}
pub fn shutdown(code: u32) -> ! {
    unsafe { asm!("out dx, eax", in("dx") 0xf4u16, in("eax") code) };
    halt()
}
