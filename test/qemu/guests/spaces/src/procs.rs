// A kernel with processes: fork with pages that are copied when they are written to, exec, exit and wait, on all harts that there are.
// Its three programs are mapped at the kernel's own addresses. Freed pages are used again at once, page tables and programs' text too.
#![no_std]
#![no_main]
#[cfg_attr(target_arch = "riscv64", path = "arch/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "arch/x86.rs")]
mod arch;
mod print;
use core::arch::global_asm;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering::*};
use core::task::{Context, Poll, Waker};
use print::{decimal, hex, text};

const FUNCTIONS: usize = 8;
const FUTURES: usize = 4;
/// Functions, calls and polls of async fns, polls of tasks.
const COUNTERS: usize = FUNCTIONS + 2 * FUTURES + 1;
struct Program {
    elf: &'static [u8],
    name: &'static str,
    functions: [&'static str; FUNCTIONS],
    futures: [&'static str; FUTURES],
}
static PROGRAMS: [Program; 3] = [
    Program {
        elf: include_bytes!(env!("LAB_EMBED_0")),
        name: "init",
        functions: ["main", "fib", "blend", "split", "become", "leave", "start", ""],
        futures: [""; FUTURES],
    },
    Program {
        elf: include_bytes!(env!("LAB_EMBED_1")),
        name: "pond",
        functions: ["main", "ripple", "splash", "spawn", "run", "", "", ""],
        futures: ["producer", "consumer", "relay", "hop"],
    },
    Program {
        elf: include_bytes!(env!("LAB_EMBED_2")),
        name: "mill",
        functions: ["main", "stone", "husk", "turn_all", "", "", "", ""],
        futures: ["grind", "sift", "pair", "sack"],
    },
];

#[derive(Clone, Copy, PartialEq)]
enum State {
    Free,
    Ready,
    Running,
    Waiting,
    Ended,
}
#[derive(Clone, Copy)]
pub struct Process {
    program: usize,
    state: State,
    root: usize,
    frame: *mut arch::Frame,
    number: u64,
    parent: usize,
    status: u64,
    counts: [u64; COUNTERS],
}
const PROCESSES: usize = 8;
const FREE: Process = Process {
    program: 0,
    state: State::Free,
    root: 0,
    frame: core::ptr::null_mut(),
    number: 0,
    parent: 0,
    status: 0,
    counts: [0; COUNTERS],
};
static mut TABLE: [Process; PROCESSES] = [FREE; PROCESSES];
static LOCK: AtomicBool = AtomicBool::new(false);
static LAST: AtomicUsize = AtomicUsize::new(0);
static NUMBERS: AtomicU64 = AtomicU64::new(0);
/// Of each program, of all processes that have ended.
static mut SUMS: [[u64; COUNTERS]; PROGRAMS.len()] = [[0; COUNTERS]; PROGRAMS.len()];
/// Harts that run processes.
static AT_WORK: AtomicU64 = AtomicU64::new(0);

macro_rules! counted {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types)]
        enum Counted { $($name),* }
        static COUNTED: &[&str] = &[$(stringify!($name)),*];
    };
}
counted!(account dispatch pick map_page write_fault fork_space load sys_exit sys_yield sys_report sys_fork sys_exec sys_wait sys_number);
static CALLS: [AtomicU64; 14] = [const { AtomicU64::new(0) }; 14];
macro_rules! count {
    ($name:ident) => {
        CALLS[Counted::$name as usize].fetch_add(1, Relaxed)
    };
}
const CALL_NUMBERS: usize = 7;
static BY_NUMBER: [AtomicU64; CALL_NUMBERS] = [const { AtomicU64::new(0) }; CALL_NUMBERS];

fn locked<R>(work: impl FnOnce() -> R) -> R {
    while LOCK.swap(true, Acquire) {
        core::hint::spin_loop();
    }
    let result = work();
    LOCK.store(false, Release);
    result
}
fn process(index: usize) -> &'static mut Process {
    unsafe { &mut *(&raw mut TABLE as *mut Process).add(index) }
}

// ---- pages ----

const PAGES: usize = 4096;
static FRESH: AtomicUsize = AtomicUsize::new(0);
/// The page that was freed last; its first word leads to the one before.
static FREED: AtomicUsize = AtomicUsize::new(0);
/// How many spaces have a page, beyond the first.
static SHARED: [AtomicU16; PAGES] = [const { AtomicU16::new(0) }; PAGES];

fn shared(page: usize) -> &'static AtomicU16 {
    unsafe { &*(&raw const SHARED as *const AtomicU16).add((page - arch::free_memory()) / 4096 % PAGES) }
}
/// A zeroed page.
pub fn alloc_page() -> usize {
    let page = match FREED.load(Relaxed) {
        0 => arch::free_memory() + FRESH.fetch_add(1, Relaxed) * 4096,
        page => {
            FREED.store(unsafe { (page as *const usize).read_volatile() }, Relaxed);
            page
        }
    };
    for i in 0..512 {
        unsafe { (page as *mut u64).add(i).write_volatile(0) };
    }
    page
}
/// One space fewer has it.
pub fn free_page(page: usize) {
    if page < arch::free_memory() {
        return;
    }
    let others = shared(page).load(Relaxed);
    if others > 0 {
        shared(page).store(others - 1, Relaxed);
        return;
    }
    unsafe { (page as *mut usize).write_volatile(FREED.load(Relaxed)) };
    FREED.store(page, Relaxed);
}
fn copy_page(from: usize) -> usize {
    let page = alloc_page();
    for i in 0..512 {
        unsafe { (page as *mut u64).add(i).write_volatile((from as *const u64).add(i).read_volatile()) };
    }
    page
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn map_page(root: usize, at: usize, page: usize) {
    count!(map_page);
    arch::map(root, at, page, true);
}

/// All pages of a table, with their addresses and entries; then each table.
fn walk(table: usize, level: usize, base: usize, each: &mut dyn FnMut(usize, *mut usize), ended: &mut dyn FnMut(usize)) {
    for i in 0..512 {
        let entry = (table + i * 8) as *mut usize;
        let word = unsafe { *entry };
        let at = base | i << (12 + 9 * level);
        match level {
            _ if word & 1 == 0 => {}
            0 => each(at, entry),
            _ => walk(arch::page_of(word), level - 1, at, each, ended),
        }
    }
    ended(table);
}

/// A space with the same pages, which both have until they write to them.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn fork_space(from: usize) -> usize {
    count!(fork_space);
    let root = arch::new_space();
    walk(
        from,
        arch::LEVELS - 1,
        0,
        &mut |at, entry| unsafe {
            if *entry & arch::USER == 0 {
                return;
            }
            *entry = *entry & !arch::WRITE | arch::COPIED;
            let page = arch::page_of(*entry);
            shared(page).store(shared(page).load(Relaxed) + 1, Relaxed);
            map_page(root, at, page);
            *arch::entry(root, at, true) = *entry;
        },
        &mut |_| {},
    );
    root
}

/// A program writes to a page that it may not write to.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn write_fault(root: usize, at: usize) -> bool {
    count!(write_fault);
    let entry = arch::entry(root, at, false);
    if entry.is_null() || unsafe { *entry } & arch::COPIED == 0 {
        return false;
    }
    let page = arch::page_of(unsafe { *entry });
    let others = shared(page).load(Relaxed);
    let own = if others == 0 { page } else { copy_page(page) };
    if others > 0 {
        shared(page).store(others - 1, Relaxed);
    }
    map_page(root, at & !4095, own);
    true
}

// ---- the task that takes ended spaces apart ----

static mut ENDED: [(usize, *mut arch::Frame); 2 * PROCESSES] = [(0, core::ptr::null_mut()); 2 * PROCESSES];
static ENDED_COUNT: AtomicUsize = AtomicUsize::new(0);
/// The task is to be polled.
static WOKEN: AtomicBool = AtomicBool::new(true);
static mut JANITOR: Option<Pin<&'static mut dyn Future<Output = u64>>> = None;
static JANITOR_POLLS: AtomicU64 = AtomicU64::new(0);
static SWEEPS: AtomicU64 = AtomicU64::new(0);
static SWEEP_POLLS: AtomicU64 = AtomicU64::new(0);
static SWEEPING: AtomicU64 = AtomicU64::new(0);

fn ends(root: usize, frame: *mut arch::Frame) {
    let number = ENDED_COUNT.fetch_add(1, Relaxed);
    unsafe { (&raw mut ENDED as *mut (usize, *mut arch::Frame)).add(number % (2 * PROCESSES)).write((root, frame)) };
    WOKEN.store(true, Relaxed);
}
async fn janitor() -> u64 {
    loop {
        let (root, frame) = core::future::poll_fn(|_| match ENDED_COUNT.load(Relaxed) {
            0 => Poll::Pending,
            count => {
                ENDED_COUNT.store(count - 1, Relaxed);
                Poll::Ready(unsafe { (&raw const ENDED as *const (usize, *mut arch::Frame)).add((count - 1) % (2 * PROCESSES)).read() })
            }
        })
        .await;
        sweep(root, frame).await;
    }
}
/// In two polls: first the pages, then the tables.
async fn sweep(root: usize, frame: *mut arch::Frame) {
    SWEEPS.fetch_add(1, Relaxed);
    SWEEP_POLLS.fetch_add(1, Relaxed);
    SWEEPING.store(1, Relaxed);
    free_page(arch::page_of_frame(frame));
    walk(root, arch::LEVELS - 1, 0, &mut |_, entry| free_page(arch::page_of(unsafe { *entry })), &mut |_| {});
    let mut rested = false;
    core::future::poll_fn(|context| {
        if rested {
            return Poll::Ready(());
        }
        rested = true;
        WOKEN.store(true, Relaxed);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    walk(root, arch::LEVELS - 1, 0, &mut |_, _| {}, &mut free_page);
    SWEEPING.store(0, Relaxed);
}
fn janitor_turn() {
    locked(|| {
        let Some(task) = (unsafe { &mut *(&raw mut JANITOR) }) else { return };
        if WOKEN.swap(false, Relaxed) {
            JANITOR_POLLS.fetch_add(1, Relaxed);
            SWEEP_POLLS.fetch_add(SWEEPING.load(Relaxed), Relaxed);
            let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    })
}

// ---- processes ----

unsafe fn word(bytes: *const u8, length: usize) -> usize {
    let mut value = 0;
    for i in (0..length).rev() {
        value = value << 8 | unsafe { *bytes.add(i) } as usize;
    }
    value
}
/// Where programs lie that may lie anywhere.
const LOADED_AT: usize = if cfg!(beyond) {
    if cfg!(target_arch = "riscv64") { 0x8030_0000 } else { 0x30_0000 }
} else if cfg!(target_arch = "riscv64") {
    0x8020_0000
} else {
    0x20_0000
};
const DYNAMIC: usize = 3;

/// The place of a word of a process in memory.
fn place(root: usize, at: usize) -> *mut u64 {
    (arch::mapped(root, at) + (at & 4095)) as *mut u64
}

/// Maps a program's segments, and a stack.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn load(index: usize, program: usize, argument: u64) {
    count!(load);
    let elf = PROGRAMS[program % PROGRAMS.len()].elf.as_ptr();
    let root = arch::new_space();
    let slot = process(index);
    let (mut stack, mut dynamic) = (0, 0);
    unsafe {
        let bias = if word(elf.add(16), 2) == DYNAMIC { LOADED_AT } else { 0 };
        let headers = elf.add(word(elf.add(32), 8));
        for i in 0..word(elf.add(56), 2) {
            let header = headers.add(i * word(elf.add(54), 2));
            let (offset, at, filled, size) =
                (word(header.add(8), 8), bias + word(header.add(16), 8), word(header.add(32), 8), word(header.add(40), 8));
            match word(header, 4) {
                1 => {}
                2 => {
                    dynamic = at;
                    continue;
                }
                _ => continue,
            }
            let mut done = 0;
            while done < size {
                let page = match arch::mapped(root, at + done) {
                    0 => {
                        let page = alloc_page();
                        map_page(root, (at + done) & !4095, page);
                        page
                    }
                    page => page,
                };
                let first = (at + done) & 4095;
                let length = core::cmp::min(4096 - first, size - done);
                for k in 0..length {
                    let byte = if done + k < filled { *elf.add(offset + done + k) } else { 0 };
                    ((page + first + k) as *mut u8).write_volatile(byte);
                }
                done += length;
            }
            stack = core::cmp::max(stack, ((at + size) & !4095) + 0x10000);
        }
        relocate(root, bias, dynamic);
        for page in 1..=4 {
            map_page(root, stack - page * 4096, alloc_page());
        }
        slot.frame = arch::new_frame(root, bias + word(elf.add(24), 8), stack, argument);
    }
    slot.program = program % PROGRAMS.len();
    slot.root = root;
    slot.counts = [0; COUNTERS];
}

/// Adds where it lies to what a program's table says.
unsafe fn relocate(root: usize, bias: usize, dynamic: usize) {
    if dynamic == 0 {
        return;
    }
    let (mut table, mut size, mut at) = (0, 0, dynamic);
    unsafe {
        while place(root, at).read_volatile() != 0 {
            match place(root, at).read_volatile() {
                7 => table = bias + place(root, at + 8).read_volatile() as usize,
                8 => size = place(root, at + 8).read_volatile() as usize,
                _ => {}
            }
            at += 16;
        }
        for entry in (table..table + size).step_by(24) {
            let to = bias + place(root, entry).read_volatile() as usize;
            place(root, to).write_volatile(bias as u64 + place(root, entry + 16).read_volatile());
        }
    }
}

/// The next process that can run, none where all others run already.
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at3")]
pub extern "C" fn pick() -> usize {
    count!(pick);
    locked(|| {
        let last = LAST.load(Relaxed);
        for i in 1..=PROCESSES {
            let index = (last + i) % PROCESSES;
            if process(index).state == State::Ready {
                process(index).state = State::Running;
                LAST.store(index, Relaxed);
                return index;
            }
        }
        PROCESSES
    })
}

/// A process has come back into the kernel.
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at1")]
pub extern "C" fn account(index: usize) -> u64 {
    count!(account);
    process(index).number
}

pub enum Trap {
    Timer,
    Call { number: u64, a: u64, b: u64 },
    Fault { cause: u64, pc: u64, at: u64, writes: bool },
}

/// What a system call leads to.
enum After {
    Returns(u64),
    Yields(u64),
    /// It is another program now, ended, or waits.
    Gone,
    Replaced,
}
type Call = extern "Rust" fn(usize, u64, u64) -> After;
static SYSTEM_CALLS: [Call; CALL_NUMBERS] = [sys_exit, sys_yield, sys_report, sys_fork, sys_exec, sys_wait, sys_number];

/// Prints what a process has counted as this program, and adds it to the others'.
fn settle(process: &mut Process) {
    let program = process.program;
    for counter in 0..COUNTERS {
        unsafe { *(&raw mut SUMS as *mut u64).add(program * COUNTERS + counter) += (&raw const process.counts as *const u64).add(counter).read() };
    }
    text("LAB life ");
    decimal(process.number);
    text(" ");
    text(PROGRAMS[program % PROGRAMS.len()].name);
    text(" root=");
    hex(process.root as u64);
    text(" polls=");
    decimal(process.counts[COUNTERS - 1]);
    text("\n");
    process.counts = [0; COUNTERS];
    ends(process.root, process.frame);
}
/// A parent that waits gets an ended child.
fn reap(parent: usize) {
    if process(parent).state != State::Waiting {
        return;
    }
    for child in 0..PROCESSES {
        if process(child).state == State::Ended && process(child).parent == parent {
            process(child).state = State::Free;
            arch::set_result(process(parent).frame, process(child).status);
            process(parent).state = State::Ready;
            return;
        }
    }
}

#[inline(never)]
extern "Rust" fn sys_exit(index: usize, status: u64, _: u64) -> After {
    count!(sys_exit);
    let process = process(index);
    process.status = status;
    settle(process);
    process.state = State::Ended;
    reap(process.parent);
    After::Gone
}
#[inline(never)]
extern "Rust" fn sys_yield(_: usize, _: u64, _: u64) -> After {
    count!(sys_yield);
    After::Yields(0)
}
#[inline(never)]
extern "Rust" fn sys_report(index: usize, from: u64, _: u64) -> After {
    count!(sys_report);
    let process = process(index);
    for counter in 0..COUNTERS {
        let value = unsafe { place(process.root, from as usize + 8 * counter).read_volatile() };
        unsafe { (&raw mut process.counts as *mut u64).add(counter).write(value) };
    }
    After::Returns(0)
}
#[inline(never)]
extern "Rust" fn sys_fork(index: usize, _: u64, _: u64) -> After {
    count!(sys_fork);
    for child in 0..PROCESSES {
        if process(child).state != State::Free {
            continue;
        }
        let number = NUMBERS.fetch_add(1, Relaxed);
        let slot = process(child);
        *slot = *process(index);
        slot.root = fork_space(process(index).root);
        slot.frame = arch::copied_frame(slot.root, process(index).frame);
        (slot.number, slot.parent, slot.counts, slot.state) = (number, index, [0; COUNTERS], State::Ready);
        return After::Returns(number);
    }
    After::Returns(u64::MAX)
}
#[inline(never)]
extern "Rust" fn sys_exec(index: usize, program: u64, argument: u64) -> After {
    count!(sys_exec);
    settle(process(index));
    load(index, program as usize, argument);
    After::Replaced
}
#[inline(never)]
extern "Rust" fn sys_wait(index: usize, _: u64, _: u64) -> After {
    count!(sys_wait);
    if !(0..PROCESSES).any(|child| process(child).state != State::Free && process(child).parent == index && child != index) {
        return After::Returns(u64::MAX);
    }
    process(index).state = State::Waiting;
    reap(index);
    After::Gone
}
#[inline(never)]
extern "Rust" fn sys_number(index: usize, _: u64, _: u64) -> After {
    count!(sys_number);
    After::Returns(process(index).number)
}

/// Does what the process wants; whether it goes on.
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at2")]
pub extern "C" fn dispatch(index: usize, number: u64, a: u64, b: u64) -> bool {
    count!(dispatch);
    locked(|| {
        let number = number as usize % CALL_NUMBERS;
        unsafe { &*(&raw const BY_NUMBER as *const AtomicU64).add(number) }.fetch_add(1, Relaxed);
        let call = unsafe { (&raw const SYSTEM_CALLS as *const Call).add(number).read_volatile() };
        match call(index, a, b) {
            After::Returns(value) => {
                arch::set_result(process(index).frame, value);
                true
            }
            After::Yields(value) => {
                arch::set_result(process(index).frame, value);
                process(index).state = State::Ready;
                false
            }
            After::Replaced => true,
            After::Gone => false,
        }
    })
}

/// Runs processes until the first one has ended.
pub fn schedule() {
    AT_WORK.fetch_add(1, Relaxed);
    while locked(|| process(0).state != State::Ended) {
        janitor_turn();
        let index = pick();
        if index == PROCESSES {
            arch::idle();
            continue;
        }
        loop {
            let trap = arch::run(process(index));
            account(index);
            let goes_on = match trap {
                Trap::Call { number, a, b } => dispatch(index, number, a, b),
                Trap::Timer => {
                    locked(|| process(index).state = State::Ready);
                    false
                }
                Trap::Fault { cause, pc, at, writes } => {
                    if !writes || !locked(|| write_fault(process(index).root, at as usize)) {
                        text("LAB PANIC fault of process ");
                        decimal(process(index).number);
                        text(" cause ");
                        hex(cause);
                        text(" pc ");
                        hex(pc);
                        text("\n");
                        arch::shutdown(1);
                    }
                    true
                }
            };
            if !goes_on {
                break;
            }
        }
    }
    AT_WORK.fetch_sub(1, Relaxed);
}

fn stat(program: &str, name: &str, calls: u64, polls: u64) {
    if name.is_empty() {
        return;
    }
    text("LAB stat ");
    text(program);
    text(":");
    text(name);
    text(" calls=");
    decimal(calls);
    text(" polls=");
    decimal(polls);
    text("\n");
}

fn report() {
    for (p, program) in PROGRAMS.iter().enumerate() {
        let sum = |counter: usize| unsafe { *(&raw const SUMS as *const u64).add(p * COUNTERS + counter) };
        for (i, name) in program.functions.iter().enumerate() {
            stat(program.name, name, sum(i), 0);
        }
        for (i, name) in program.futures.iter().enumerate() {
            stat(program.name, name, sum(FUNCTIONS + i), sum(FUNCTIONS + FUTURES + i));
        }
    }
    for (name, calls) in COUNTED.iter().zip(&CALLS) {
        stat("kernel", name, calls.load(Relaxed), 0);
    }
    stat("kernel", "janitor", 1, JANITOR_POLLS.load(Relaxed));
    stat("kernel", "sweep", SWEEPS.load(Relaxed), SWEEP_POLLS.load(Relaxed));
    for (number, calls) in BY_NUMBER.iter().enumerate() {
        text("LAB call ");
        decimal(number as u64);
        text(" calls=");
        decimal(calls.load(Relaxed));
        text("\n");
    }
    text("LAB pages ");
    decimal(FRESH.load(Relaxed) as u64);
    text("\nLAB checksum ");
    hex(process(0).status);
    text("\nLAB done\n");
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(hart: usize) -> ! {
    text("LAB boot arch=");
    text(arch::NAME);
    text(" mode=");
    text(arch::MODE);
    text("\n");
    arch::start_paging();
    let mut task = pin!(janitor());
    // It lives as long as the kernel.
    let task: Pin<&mut dyn Future<Output = u64>> = unsafe { core::mem::transmute(core::hint::black_box(task.as_mut() as Pin<&mut dyn Future<Output = u64>>)) };
    unsafe { *(&raw mut JANITOR) = Some(core::mem::transmute(task)) };
    load(0, 0, 0);
    NUMBERS.fetch_add(1, Relaxed);
    process(0).parent = PROCESSES - 1;
    process(0).state = State::Ready;
    arch::start_others(hart);
    arch::start_timer();
    schedule();
    while AT_WORK.load(Acquire) > 0 {
        core::hint::spin_loop();
    }
    report();
    arch::shutdown(0)
}

// rustc asks for these, and with the library's they would bring that library's debug information.
macro_rules! resumed {
    ($jump:literal) => {
        global_asm!(
            ".weak _RNvNtNtCsbzFhQ9P3Ot2_4core9panicking11panic_const28panic_const_async_fn_resumed",
            "_RNvNtNtCsbzFhQ9P3Ot2_4core9panicking11panic_const28panic_const_async_fn_resumed:", $jump,
        );
    };
}
#[cfg(target_arch = "riscv64")]
global_asm!(
    // Where programs have no code: their loops would stop at each turn where a program has a probe.
    ".section .far,\"ax\",@progbits",
    ".weak memcpy", "memcpy: mv t0, a0", "1: beqz a2, 2f", "lbu t1, 0(a1)", "sb t1, 0(t0)", "addi a1, a1, 1", "addi t0, t0, 1",
    "addi a2, a2, -1", "j 1b", "2: ret",
    ".weak memmove", "memmove: bgeu a1, a0, memcpy", "add t0, a0, a2", "add t2, a1, a2", "1: beqz a2, 2f", "addi t0, t0, -1", "addi t2, t2, -1",
    "lbu t1, 0(t2)", "sb t1, 0(t0)", "addi a2, a2, -1", "j 1b", "2: ret",
    ".weak memset", "memset: mv t0, a0", "1: beqz a2, 2f", "sb a1, 0(t0)", "addi t0, t0, 1", "addi a2, a2, -1", "j 1b", "2: ret",
    ".text",
);
#[cfg(target_arch = "riscv64")]
resumed!("1: j 1b");
#[cfg(target_arch = "x86_64")]
resumed!("2: jmp 2b");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    text("LAB PANIC\n");
    arch::shutdown(1)
}
