// Spin locks that two harts take: each counts how often it was taken, how often an attempt failed, and how often it was
// not free at once. Some are taken in both orders. With one hart the guest ends in a deadlock instead: an interrupt takes
// the lock that the code it interrupts holds. With three, two of them wait for each other.
#![no_std]
#![no_main]
#[path = "arch/riscv.rs"]
mod arch;
mod print;
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use print::{decimal, text};

pub const HARTS: usize = 4;
const ROUNDS: u64 = 8;

pub struct SpinLock<T> {
    locked: AtomicBool,
    taken: AtomicU64,
    failed: AtomicU64,
    contended: AtomicU64,
    data: UnsafeCell<T>,
}
unsafe impl<T: Send> Sync for SpinLock<T> {}

pub struct SpinLockGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> SpinLock<T> {
    pub const fn new(data: T) -> SpinLock<T> {
        SpinLock {
            locked: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            data: UnsafeCell::new(data),
        }
    }
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        if self.locked.swap(true, Acquire) {
            self.contended.fetch_add(1, Relaxed);
            while self.locked.load(Relaxed) || self.locked.swap(true, Acquire) {
                core::hint::spin_loop();
            }
        }
        self.taken.fetch_add(1, Relaxed);
        SpinLockGuard { lock: self }
    }
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        if self.locked.swap(true, Acquire) {
            self.failed.fetch_add(1, Relaxed);
            return None;
        }
        self.taken.fetch_add(1, Relaxed);
        Some(SpinLockGuard { lock: self })
    }
}
impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        unsafe { &*self.lock.data.get() }
    }
}
impl<T> DerefMut for SpinLockGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        unsafe { &mut *self.lock.data.get() }
    }
}
impl<T> Drop for SpinLockGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.locked.store(false, Release);
    }
}

/// Keeps something away before it is taken, as kernels do with preemption: that is an atomic of another copy in it.
pub struct QuietLock<T> {
    data: UnsafeCell<T>,
    taken: AtomicU64,
    locked: AtomicBool,
}
unsafe impl<T: Send> Sync for QuietLock<T> {}

pub struct QuietLockGuard<'a, T> {
    lock: &'a QuietLock<T>,
}

static DEPTH: AtomicU64 = AtomicU64::new(0);
static CURRENT: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

#[inline(always)]
fn keep_away(step: u64) {
    if let Some(depth) = unsafe { CURRENT.load(Relaxed).as_ref() } {
        depth.fetch_add(step, Release);
    }
}

impl<T> QuietLock<T> {
    #[inline]
    pub fn lock(&self) -> QuietLockGuard<'_, T> {
        keep_away(1);
        while self.locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            while self.locked.load(Relaxed) {
                core::hint::spin_loop();
            }
        }
        QuietLockGuard { lock: self }
    }
}
impl<T> Drop for QuietLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Release);
        keep_away(u64::MAX);
    }
}

static QUIET: QuietLock<u64> = QuietLock { data: UnsafeCell::new(0), taken: AtomicU64::new(0), locked: AtomicBool::new(false) };

/// Once before there is anything to keep away, and then.
#[inline(never)]
fn quiet() {
    for round in 0..6 {
        let guard = QUIET.lock();
        unsafe { *guard.lock.data.get() += round };
        guard.lock.taken.fetch_add(1, Relaxed);
        CURRENT.store(&raw const DEPTH as *mut AtomicU64, Relaxed);
    }
}

static TABLE: SpinLock<[u64; 4]> = SpinLock::new([0; 4]);
static FIRST: SpinLock<u64> = SpinLock::new(0);
static SECOND: SpinLock<u64> = SpinLock::new(0);
static CONSOLE: SpinLock<u64> = SpinLock::new(0);
static SHELVES: [SpinLock<u8>; 3] = [const { SpinLock::new(0) }; 3];

static READY: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static ARRIVED: AtomicUsize = AtomicUsize::new(0);
static LEFT: AtomicUsize = AtomicUsize::new(0);

fn wait_for(counter: &AtomicU64, value: u64) {
    while counter.load(Acquire) < value {
        core::hint::spin_loop();
    }
}

/// Holds the lock until the other hart has found that it is not free.
#[inline(never)]
fn holder(round: u64) {
    let mut table = TABLE.lock();
    READY.store(round, Release);
    wait_for(&TABLE.contended, round);
    table[round as usize % 4] += round;
}
#[inline(never)]
fn waiter(round: u64) {
    wait_for(&READY, round);
    TABLE.lock()[0] += 1;
    DONE.store(round, Release);
}

#[inline(never)]
fn forwards() {
    let mut first = FIRST.lock();
    let mut second = SECOND.lock();
    *second += *first;
    *first += 1;
}
#[inline(never)]
fn backwards() {
    let mut second = SECOND.lock();
    let mut first = FIRST.lock();
    *first += *second;
    *second += 1;
}

/// Takes each shelf, of which one is held already.
#[inline(never)]
fn attempts() {
    let held = SHELVES[1].lock();
    for shelf in &SHELVES {
        if let Some(mut own) = shelf.try_lock() {
            *own += 1;
        }
    }
    drop(held);
}

fn both(hart: usize) {
    for round in 1..=ROUNDS {
        if hart == 0 {
            holder(round);
            wait_for(&DONE, round);
        } else {
            waiter(round);
        }
    }
    LEFT.fetch_add(1, AcqRel);
}

fn stat<T>(name: &str, lock: &SpinLock<T>) {
    text("LAB lock ");
    text(name);
    for (what, count) in [(" taken=", &lock.taken), (" failed=", &lock.failed), (" contended=", &lock.contended)] {
        text(what);
        decimal(count.load(Relaxed));
    }
    text("\n");
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_main(hart: usize) -> ! {
    text("LAB boot arch=riscv64 mode=S\n");
    if arch::harts() == 1 {
        stuck();
    }
    arch::start_others(hart);
    if arch::harts() == 3 {
        ahead();
    }
    while ARRIVED.load(Acquire) == 0 {
        core::hint::spin_loop();
    }
    both(0);
    while LEFT.load(Acquire) < 2 {
        core::hint::spin_loop();
    }
    for _ in 0..3 {
        forwards();
    }
    backwards();
    attempts();
    quiet();
    stat("TABLE", &TABLE);
    stat("FIRST", &FIRST);
    stat("SECOND", &SECOND);
    stat("CONSOLE", &CONSOLE);
    stat("SHELVES[0]", &SHELVES[0]);
    stat("SHELVES[1]", &SHELVES[1]);
    stat("SHELVES[2]", &SHELVES[2]);
    text("LAB lock QUIET taken=");
    decimal(QUIET.taken.load(Relaxed));
    text(" failed=0 contended=0\n");
    text("LAB done\n");
    arch::shutdown(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn other_main() -> ! {
    // Of the others one is enough.
    if ARRIVED.fetch_add(1, AcqRel) == 0 {
        if arch::harts() == 3 {
            behind();
        }
        both(1);
    }
    arch::halt()
}

global_asm!(
    ".balign 4", ".global trap_entry", ".type trap_entry,@function", "trap_entry:",
    "addi sp, sp, -64", "call tick", "1: j 1b", ".size trap_entry, . - trap_entry",
);

/// The timer's interrupt: it prints.
#[unsafe(no_mangle)]
pub extern "C" fn tick() {
    *CONSOLE.lock() += 1;
}

/// Prints with interrupts on, so that one comes while the lock is held.
#[inline(never)]
fn stuck() -> ! {
    unsafe extern "C" {
        fn trap_entry();
    }
    *CONSOLE.lock() += 1;
    text("LAB stuck\n");
    unsafe {
        asm!("csrw stvec, {}", in(reg) trap_entry as usize);
        let now: u64;
        asm!("rdtime {}", out(reg) now);
        asm!("ecall", inlateout("a0") now + 1_000_000 => _, inlateout("a1") 0usize => _, in("a6") 0, in("a7") 0x54494D45);
        asm!("csrs sie, {}", "csrsi sstatus, 2", in(reg) 1 << 5);
    }
    let console = CONSOLE.lock();
    while *console < 2 {
        core::hint::spin_loop();
    }
    arch::halt()
}

/// Each holds one lock when both want the other's. A guard that was dropped is in scope all the same.
#[inline(never)]
fn ahead() {
    let shelf = SHELVES[0].lock();
    let mut first = FIRST.lock();
    drop(shelf);
    meet();
    let second = SECOND.lock();
    *first += *second;
}
#[inline(never)]
fn behind() {
    let mut second = SECOND.lock();
    meet();
    let first = FIRST.lock();
    *second += *first;
}
fn meet() {
    READY.fetch_add(1, AcqRel);
    wait_for(&READY, 2);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    text("LAB PANIC\n");
    arch::shutdown(1)
}

/// The compiler asks for it; the library's would bring that library's debug information.
#[unsafe(no_mangle)]
pub extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    for i in 0..length {
        unsafe { to.add(i).write_volatile(value as u8) };
    }
    to
}
