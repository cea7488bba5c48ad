// Futures held in every way that held-futures.ts knows. The program puts them into one arena, polls what must be polled, and
// prints where each leaf lies and the arena's bytes: what the test expects, and what it reads.
//
//   holder NAME ADDRESS         leaf HOLDER ADDRESS         arena ADDRESS HEX
//
// build.sh makes held.elf.br of it.
#![no_std]
#![no_main]
extern crate alloc;
use alloc::{boxed::Box, vec, vec::Vec};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

#[repr(align(16))]
struct Arena(UnsafeCell<[u8; 4096]>);
unsafe impl Sync for Arena {}
static ARENA: Arena = Arena(UnsafeCell::new([0; 4096]));
static USED: AtomicUsize = AtomicUsize::new(0);
struct Bump;
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let at = (USED.load(Relaxed) + layout.align() - 1) & !(layout.align() - 1);
        USED.store(at + layout.size(), Relaxed);
        (ARENA.0.get() as *mut u8).add(at)
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
#[global_allocator]
static BUMP: Bump = Bump;

/// Never ready; a whole number of odd bytes, so that nothing lies where it does by chance.
pub struct Leaf {
    pub id: u32,
    pub more: [u8; 3],
}
impl Future for Leaf {
    type Output = u32;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        if self.id == u32::MAX { Poll::Ready(self.id) } else { Poll::Pending }
    }
}
fn leaf(id: u32) -> Leaf {
    Leaf { id, more: [1, 2, 3] }
}

pub enum MaybeDone<F: Future> {
    Pending(F),
    Done(F::Output),
    Gone,
}
/// `Gone` and `Done` lie in the niche of a bool: there is no room for a tag.
pub enum Niche {
    Pending { ready: [bool; 4], future: Leaf },
    Done,
    Gone,
}
pub union Slot {
    pub future: ManuallyDrop<Leaf>,
    pub number: u64,
}
/// futures-util's, as far as its layout goes.
pub struct Task<F> {
    pub queued: bool,
    pub future: UnsafeCell<Option<F>>,
    pub next_all: UnsafeCell<*const Task<F>>,
}
pub struct FuturesUnordered<F> {
    pub is_terminated: bool,
    pub head_all: AtomicPtr<Task<F>>,
}

macro_rules! pending_future {
    ($name:ident $(<$life:lifetime>)?, $out:ty, $($field:ident: $ty:ty),*) => {
        pub struct $name $(<$life>)? { $(pub $field: $ty),* }
        impl $(<$life>)? Future for $name $(<$life>)? {
            type Output = $out;
            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<$out> { Poll::Pending }
        }
    };
}
pending_future!(InPlace, (), pad: u16, few: [Option<Leaf>; 4], pair: (u8, MaybeDone<Leaf>, MaybeDone<Leaf>),
    grid: [(u8, [Option<Leaf>; 2]); 3], niche: Niche, other: Niche, result: Result<Leaf, u64>, one: Leaf);
pending_future!(Pointers<'a>, (), thin: Box<Leaf>, some: Option<Box<Leaf>>, none: Option<Box<Leaf>>,
    shared: &'a Leaf, exclusive: &'a mut Leaf, pinned: Pin<&'a mut Leaf>, several: &'a mut (MaybeDone<Leaf>, MaybeDone<Leaf>),
    object: Pin<Box<dyn Future<Output = u32>>>, bare: Box<dyn Future<Output = u32> + Send>, boxes: [Option<Pin<Box<Leaf>>>; 3],
    raw: *mut Leaf);
pending_future!(Lists, (), grown: Vec<Leaf>, fixed: Pin<Box<[MaybeDone<Leaf>]>>, objects: Vec<Pin<Box<dyn Future<Output = u32>>>>,
    unordered: FuturesUnordered<Leaf>, empty: Vec<Leaf>, drained: FuturesUnordered<Leaf>, numbers: Vec<u64>);
pending_future!(Unsure, (), slot: Slot);

pub async fn suspended(argument: Leaf) -> u32 {
    let kept = vec![leaf(101), leaf(102)];
    let alone = leaf(103);
    let mut borrowed = leaf(104);
    let by = &mut borrowed;
    let first = leaf(105).await;
    let second = argument.await;
    first + second + kept[0].id + alone.id + by.id
}

fn print(text: &[u8]) {
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") 1usize => _, in("rdi") 1usize, in("rsi") text.as_ptr(),
            in("rdx") text.len(), out("rcx") _, out("r11") _);
    }
}
fn print_hex(value: usize) {
    let mut text = *b"0x0000000000000000";
    for i in 0..16 {
        text[17 - i] = b"0123456789abcdef"[(value >> (4 * i)) & 15];
    }
    print(&text);
}
fn tell<T: ?Sized>(what: &str, name: &str, at: &T) {
    print(what.as_bytes());
    print(b" ");
    print(name.as_bytes());
    print(b" ");
    print_hex(at as *const T as *const u8 as usize);
    print(b"\n");
}

fn noop(_: *const ()) {}
fn again(_: *const ()) -> RawWaker {
    RawWaker::new(core::ptr::null(), &VTABLE)
}
static VTABLE: RawWakerVTable = RawWakerVTable::new(again, noop, noop, noop);

fn pending(done: &MaybeDone<Leaf>) -> &Leaf {
    match done {
        MaybeDone::Pending(f) => f,
        _ => unreachable!(),
    }
}

#[no_mangle]
pub extern "C" fn _start() -> ! {
    unsafe { core::arch::asm!("and rsp, -16", "call {}", sym run, options(noreturn)) }
}
extern "C" fn run() -> ! {
    let waker = unsafe { Waker::from_raw(again(core::ptr::null())) };
    let mut cx = Context::from_waker(&waker);

    let mut place = Box::new(InPlace {
        pad: 0xffff,
        few: [Some(leaf(1)), None, Some(leaf(2)), None],
        pair: (9, MaybeDone::Pending(leaf(3)), MaybeDone::Done(4)),
        grid: [(1, [None, Some(leaf(5))]), (2, [None, None]), (3, [Some(leaf(6)), Some(leaf(7))])],
        niche: Niche::Pending { ready: [true; 4], future: leaf(8) },
        other: Niche::Gone,
        result: Err(7),
        one: leaf(9),
    });
    let _ = unsafe { Pin::new_unchecked(&mut *place) }.poll(&mut cx);
    tell("holder", "InPlace", &*place);
    for leaf in place.few.iter().flatten() { tell("leaf", "InPlace", leaf); }
    tell("leaf", "InPlace", pending(&place.pair.1));
    for (_, row) in &place.grid { for leaf in row.iter().flatten() { tell("leaf", "InPlace", leaf); } }
    if let Niche::Pending { future, .. } = &place.niche { tell("leaf", "InPlace", future); }
    if matches!(place.other, Niche::Done) { place.pair.1 = MaybeDone::Gone; }
    if let Ok(leaf) = &place.result { tell("leaf", "InPlace", leaf); }
    tell("leaf", "InPlace", &place.one);

    let mut owned = Box::new((leaf(20), leaf(21), leaf(22), (MaybeDone::Pending(leaf(23)), MaybeDone::Pending(leaf(24)))));
    let (shared, exclusive, pinned, several) = &mut *owned;
    several.0 = MaybeDone::Gone;
    let raw: *mut Leaf = Box::into_raw(Box::new(leaf(25)));
    let mut pointers = Box::new(Pointers {
        thin: Box::new(leaf(26)),
        some: Some(Box::new(leaf(27))),
        none: None,
        shared,
        exclusive,
        pinned: Pin::new(pinned),
        several,
        object: Box::pin(leaf(28)),
        bare: Box::new(leaf(29)),
        boxes: [None, Some(Box::pin(leaf(30))), Some(Box::pin(leaf(31)))],
        raw,
    });
    let _ = unsafe { Pin::new_unchecked(&mut *pointers) }.poll(&mut cx);
    tell("holder", "Pointers", &*pointers);
    tell("leaf", "Pointers", &*pointers.thin);
    if let Some(leaf) = &pointers.some { tell("leaf", "Pointers", &**leaf); }
    tell("leaf", "Pointers", &*pointers.exclusive);
    tell("leaf", "Pointers", &*pointers.pinned);
    tell("leaf", "Pointers", pending(&pointers.several.1));
    tell("leaf", "Pointers", &*pointers.object);
    tell("leaf", "Pointers", &*pointers.bare);
    for leaf in pointers.boxes.iter().flatten() { tell("leaf", "Pointers", &**leaf); }

    let last = Box::into_raw(Box::new(Task { queued: true, future: UnsafeCell::new(Some(leaf(40))), next_all: UnsafeCell::new(core::ptr::null()) }));
    let done = Box::into_raw(Box::new(Task { queued: true, future: UnsafeCell::new(None), next_all: UnsafeCell::new(last as *const _) }));
    let head = Box::into_raw(Box::new(Task { queued: false, future: UnsafeCell::new(Some(leaf(41))), next_all: UnsafeCell::new(done as *const _) }));
    let mut grown = Vec::with_capacity(8);
    grown.extend([leaf(42), leaf(43), leaf(44)]);
    let mut lists = Box::new(Lists {
        grown,
        fixed: Box::into_pin(vec![MaybeDone::Pending(leaf(45)), MaybeDone::Done(1), MaybeDone::Pending(leaf(46))].into_boxed_slice()),
        objects: vec![Box::pin(leaf(47)), Box::pin(leaf(48))],
        unordered: FuturesUnordered { is_terminated: false, head_all: AtomicPtr::new(head) },
        empty: Vec::new(),
        drained: FuturesUnordered { is_terminated: true, head_all: AtomicPtr::new(core::ptr::null_mut()) },
        numbers: vec![1, 2, 3],
    });
    let _ = unsafe { Pin::new_unchecked(&mut *lists) }.poll(&mut cx);
    tell("holder", "Lists", &*lists);
    for leaf in &lists.grown { tell("leaf", "Lists", leaf); }
    tell("leaf", "Lists", pending(&lists.fixed[0]));
    tell("leaf", "Lists", pending(&lists.fixed[2]));
    for leaf in &lists.objects { tell("leaf", "Lists", &**leaf); }
    unsafe {
        for task in [head, last] {
            if let Some(leaf) = &*(*task).future.get() { tell("leaf", "Lists", leaf); }
        }
    }

    let mut unsure = Box::new(Unsure { slot: Slot { number: 1 } });
    let _ = unsafe { Pin::new_unchecked(&mut *unsure) }.poll(&mut cx);
    tell("holder", "Unsure", &*unsure);

    let mut future = Box::pin(suspended(leaf(100)));
    let _ = future.as_mut().poll(&mut cx);
    tell("holder", "suspended", unsafe { &*future.as_mut().get_unchecked_mut() });
    let mut boxed = Box::pin(leaf(u32::MAX));
    let _ = boxed.as_mut().poll(&mut cx);

    let start = ARENA.0.get() as usize;
    print(b"arena ");
    print_hex(start);
    print(b" ");
    for i in 0..USED.load(Relaxed) {
        let byte = unsafe { *((start + i) as *const u8) };
        print(&[b"0123456789abcdef"[(byte >> 4) as usize], b"0123456789abcdef"[(byte & 15) as usize]]);
    }
    print(b"\n");
    unsafe { core::arch::asm!("syscall", in("rax") 231usize, in("rdi") 0usize, options(noreturn)) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}
#[no_mangle]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n { core::ptr::write_volatile(to.add(i), *from.add(i)); i += 1; }
    to
}
#[no_mangle]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    if (to as usize) < (from as usize) { return memcpy(to, from, n); }
    let mut i = n;
    while i > 0 { i -= 1; core::ptr::write_volatile(to.add(i), *from.add(i)); }
    to
}
#[no_mangle]
unsafe extern "C" fn memset(to: *mut u8, c: i32, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n { core::ptr::write_volatile(to.add(i), c as u8); i += 1; }
    to
}
#[no_mangle]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    let mut i = 0;
    while i < n { let d = *a.add(i) as i32 - *b.add(i) as i32; if d != 0 { return d; } i += 1; }
    0
}
#[no_mangle]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    memcmp(a, b, n)
}
#[no_mangle]
extern "C" fn rust_eh_personality() {}
