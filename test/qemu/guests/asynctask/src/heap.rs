// First-fit linked-list allocator, guarded by interrupt masking, in RAM that no section of the ELF has.
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HEAP: usize = 4 << 20;
/// Behind the kernel, before the device tree.
#[cfg(target_arch = "riscv64")]
const START: usize = 0x8400_0000;
#[cfg(target_arch = "x86_64")]
const START: usize = 0x400_0000;

#[repr(C)]
struct Node {
    size: usize,
    next: *mut Node,
}
pub struct Heap {
    head: UnsafeCell<*mut Node>,
}
unsafe impl Sync for Heap {}
#[global_allocator]
static ALLOC: Heap = Heap { head: UnsafeCell::new(null_mut()) };
pub static ALLOCS: AtomicU64 = AtomicU64::new(0);
pub static FREES: AtomicU64 = AtomicU64::new(0);

pub fn init() {
    unsafe {
        let n = START as *mut Node;
        (*n).size = HEAP;
        (*n).next = null_mut();
        *ALLOC.head.get() = n;
    }
}
fn round(l: &Layout) -> usize {
    let s = if l.size() < 32 { 32 } else { l.size() };
    (s + 15) & !15
}
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        assert!(l.align() <= 16);
        let want = round(&l);
        crate::arch::critical(|| unsafe {
            let mut link = self.head.get();
            while !(*link).is_null() {
                let n = *link;
                if (*n).size >= want {
                    if (*n).size >= want + 32 {
                        let rest = (n as *mut u8).add(want) as *mut Node;
                        (*rest).size = (*n).size - want;
                        (*rest).next = (*n).next;
                        *link = rest;
                    } else {
                        *link = (*n).next;
                    }
                    ALLOCS.fetch_add(1, Relaxed);
                    return n as *mut u8;
                }
                link = &mut (*n).next;
            }
            null_mut()
        })
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        let sz = round(&l);
        crate::arch::critical(|| unsafe {
            let n = p as *mut Node;
            (*n).size = sz;
            (*n).next = *self.head.get();
            *self.head.get() = n;
            FREES.fetch_add(1, Relaxed);
        })
    }
}
