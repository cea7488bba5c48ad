// A small async program with little else in it. `build.sh` made tiny4.elf.br and tiny5.elf.br from it (DWARF 4 and 5), which are
// committed so that no rustc is needed to test; nothing runs it, and calls into core lead nowhere.
#![no_std]
#![no_main]
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

pub static mut SINK: u32 = 0;

pub enum Shape {
    Dot,
    Line(u16),
    Box { width: u8, height: u64 },
}

pub struct Countdown {
    left: u32,
    shape: Option<Shape>,
}

impl Future for Countdown {
    type Output = u32;
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        if self.left == 0 {
            return Poll::Ready(match self.shape {
                Some(Shape::Line(n)) => n as u32,
                Some(Shape::Box { width, .. }) => width as u32,
                _ => 0,
            });
        }
        self.left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn leaf(n: u32) -> u32 {
    let shape = if n > 2 { Some(Shape::Line(7)) } else { Some(Shape::Box { width: 3, height: 4 }) };
    Countdown { left: n, shape }.await + n
}

async fn root(n: u32) -> u32 {
    let first = leaf(n).await;
    let second = leaf(first & 3).await;
    first + second
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(|p| RawWaker::new(p, &VTABLE), |_| {}, |_| {}, |_| {});

#[inline(never)]
fn poll_dyn(future: Pin<&mut dyn Future<Output = u32>>) -> bool {
    let waker = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &VTABLE)) };
    match future.poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(n) => {
            unsafe { SINK = n };
            true
        }
        Poll::Pending => false,
    }
}

#[no_mangle]
pub extern "C" fn _start() -> ! {
    let mut future = root(3);
    let mut pinned = unsafe { Pin::new_unchecked(&mut future) };
    while !poll_dyn(pinned.as_mut()) {}
    loop {}
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
