// Time for embassy-time: the CSR `time` of QEMU's virt machine, 10 MHz. Timers are looked at between two polls.
use core::arch::asm;
use core::cell::RefCell;
use core::task::Waker;
use critical_section::Mutex;
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

struct Time {
    queue: Mutex<RefCell<Queue>>,
}
embassy_time_driver::time_driver_impl!(static TIME: Time = Time { queue: Mutex::new(RefCell::new(Queue::new())) });

impl Driver for Time {
    fn now(&self) -> u64 {
        let now: u64;
        unsafe { asm!("rdtime {}", out(reg) now) };
        now
    }
    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| self.queue.borrow(cs).borrow_mut().schedule_wake(at, waker));
    }
}

/// Wakes what has expired.
pub fn wake() {
    critical_section::with(|cs| TIME.queue.borrow(cs).borrow_mut().next_expiration(TIME.now()));
}
