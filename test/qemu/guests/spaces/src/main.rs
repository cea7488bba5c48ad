// A kernel that runs two programs in three processes, each in an address space of its own. Only a trampoline page is mapped in all of
// them, so the programs can be linked at the kernel's own addresses, and are.
#![no_std]
#![no_main]
#[cfg_attr(target_arch = "riscv64", path = "arch/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "arch/x86.rs")]
mod arch;
mod print;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use print::{decimal, hex, text};

const COUNTERS: usize = 7;
/// The others are of an async fn: its calls, its polls.
const FUNCTIONS: usize = COUNTERS - 2;
struct Program {
    elf: &'static [u8],
    name: &'static str,
    functions: [&'static str; FUNCTIONS],
    future: &'static str,
}
static PROGRAMS: [Program; 2] = [
    Program { elf: include_bytes!(env!("LAB_EMBED_0")), name: "alpha", functions: ["main", "work", "mix", "twin", "descend"], future: "stroll" },
    Program { elf: include_bytes!(env!("LAB_EMBED_1")), name: "beta", functions: ["main", "brew", "stir", "twin", "simmer"], future: "steep" },
];

#[derive(Clone, Copy, PartialEq)]
enum State {
    Ready,
    Running,
    Done,
}
pub struct Process {
    program: usize,
    state: State,
    root: usize,
    frame: *mut arch::Frame,
    counts: [u64; COUNTERS],
    checksum: u64,
    switches: u64,
}
const PROCESSES: usize = 3;
const RUNS: [usize; PROCESSES] = [0, 1, 0];
const EMPTY: Process =
    Process { program: 0, state: State::Done, root: 0, frame: core::ptr::null_mut(), counts: [0; COUNTERS], checksum: 0, switches: 0 };
static mut TABLE: [Process; PROCESSES] = [EMPTY; PROCESSES];
static LOCK: AtomicBool = AtomicBool::new(false);
static LAST: AtomicU64 = AtomicU64::new(0);
/// Calls of `account`, `dispatch`, `pick`, `map_page`.
static CALLS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static PAGES: AtomicU64 = AtomicU64::new(0);

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

/// A zeroed page.
pub fn alloc_page() -> usize {
    let number = PAGES.fetch_add(1, Relaxed) as usize;
    let page = arch::free_memory() + number * 4096;
    for i in 0..512 {
        unsafe { (page as *mut u64).add(i).write_volatile(0) };
    }
    page
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn map_page(root: usize, at: usize, page: usize) {
    CALLS[3].fetch_add(1, Relaxed);
    arch::map(root, at, page, true);
}

unsafe fn word(bytes: *const u8, length: usize) -> usize {
    let mut value = 0;
    for i in (0..length).rev() {
        value = value << 8 | unsafe { *bytes.add(i) } as usize;
    }
    value
}

/// Maps a program's segments, and a stack.
fn load(index: usize, program: usize) {
    let elf = PROGRAMS[program & 1].elf.as_ptr();
    let root = arch::new_space();
    let mut stack = 0;
    unsafe {
        let headers = elf.add(word(elf.add(32), 8));
        for i in 0..word(elf.add(56), 2) {
            let header = headers.add(i * word(elf.add(54), 2));
            if word(header, 4) != 1 {
                continue;
            }
            let (offset, at, filled, size) =
                (word(header.add(8), 8), word(header.add(16), 8), word(header.add(32), 8), word(header.add(40), 8));
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
            stack = ((at + size) & !4095) + 0x10000;
        }
        map_page(root, stack - 4096, alloc_page());
        let entry = word(elf.add(24), 8);
        let slot = process(index);
        slot.program = program;
        slot.root = root;
        slot.frame = arch::new_frame(root, entry, stack, index as u64 + 1);
        slot.state = State::Ready;
    }
}

/// The next process that can run, none where all others run already.
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at3")]
pub extern "C" fn pick() -> usize {
    CALLS[2].fetch_add(1, Relaxed);
    locked(|| {
        let last = LAST.load(Relaxed) as usize;
        for i in 1..=PROCESSES {
            let index = (last + i) % PROCESSES;
            if process(index).state == State::Ready {
                process(index).state = State::Running;
                LAST.store(index as u64, Relaxed);
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
    CALLS[0].fetch_add(1, Relaxed);
    let process = process(index);
    process.switches += 1;
    process.switches
}

pub enum Trap {
    Timer,
    Call { number: u64, a: u64, b: u64 },
    Fault { cause: u64, pc: u64, at: u64, writes: bool },
}

/// Does what the process wants; whether it goes on.
#[inline(never)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.at2")]
pub extern "C" fn dispatch(index: usize, number: u64, a: u64, b: u64) -> bool {
    CALLS[1].fetch_add(1, Relaxed);
    let process = process(index);
    match number {
        0 => {
            process.checksum = a;
            process.state = State::Done;
            return false;
        }
        2 if (a as usize) < COUNTERS => unsafe { (&raw mut process.counts as *mut u64).add(a as usize).write(b) },
        _ => {}
    }
    number == 2
}

/// Runs processes until all are done.
pub fn schedule() {
    loop {
        let index = pick();
        if index == PROCESSES {
            if (0..PROCESSES).all(|i| locked(|| process(i).state == State::Done)) {
                return;
            }
            arch::idle();
            continue;
        }
        loop {
            let trap = arch::run(process(index));
            account(index);
            match trap {
                Trap::Call { number, a, b } => {
                    if dispatch(index, number, a, b) {
                        continue;
                    }
                }
                Trap::Timer => {}
                Trap::Fault { cause, pc, .. } => {
                    text("LAB PANIC fault of process ");
                    decimal(index as u64);
                    text(" cause ");
                    hex(cause);
                    text(" pc ");
                    hex(pc);
                    text("\n");
                    arch::shutdown(1);
                }
            }
            break;
        }
        locked(|| {
            if process(index).state == State::Running {
                process(index).state = State::Ready;
            }
        });
    }
}

fn stat(program: &str, name: &str, calls: u64, polls: u64) {
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
    let mut checksum = 0u64;
    for (p, program) in PROGRAMS.iter().enumerate() {
        let sum = |counter: usize| {
            let mut calls = 0;
            for i in 0..PROCESSES {
                if process(i).program == p {
                    calls += unsafe { *(&raw const process(i).counts as *const u64).add(counter) };
                }
            }
            calls
        };
        for counter in 0..FUNCTIONS {
            stat(program.name, unsafe { program.functions.as_ptr().add(counter).read() }, sum(counter), 0);
        }
        stat(program.name, program.future, sum(FUNCTIONS), sum(FUNCTIONS + 1));
    }
    for (i, name) in ["account", "dispatch", "pick", "map_page"].iter().enumerate() {
        stat("kernel", name, CALLS[i].load(Relaxed), 0);
    }
    for i in 0..PROCESSES {
        text("LAB process ");
        decimal(i as u64);
        text(" ");
        text(PROGRAMS[process(i).program & 1].name);
        text(" root=");
        hex(process(i).root as u64);
        text(" checksum=");
        hex(process(i).checksum);
        text("\n");
        checksum = checksum.rotate_left(9) ^ process(i).checksum;
    }
    text("LAB checksum ");
    hex(checksum);
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
    for (index, program) in RUNS.iter().enumerate() {
        load(index, *program);
    }
    arch::start_others(hart);
    arch::start_timer();
    schedule();
    report();
    arch::shutdown(0)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    text("LAB PANIC\n");
    arch::shutdown(1)
}
