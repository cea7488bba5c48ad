//! A program for tests: Futures written by hand whose results come back in every way that rustc knows: one register, two, a block of
//! bytes in a register, through memory; with a discriminant of their own, or one hidden in the value. It says how often each was polled.
//!
//! Built by `node test/native/build.mjs`.
#![no_std]
#![no_main]
use core::ffi::{c_char, c_int};
use core::future::Future;
use core::num::NonZeroU64;
use core::pin::{pin, Pin};
use core::task::{Context, Poll, Waker};

#[link(name = "c")]
extern "C" {
    fn printf(format: *const c_char, ...) -> c_int;
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}

/// `core` was compiled to unwind, and names this; nothing here unwinds.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

macro_rules! futures {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(
            /// Pending so many times, then ready.
            pub struct $name { left: u32, value: $type }

            impl Future for $name {
                type Output = $type;
                #[inline(never)]
                fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<$type> {
                    if self.left == 0 {
                        return Poll::Ready(self.value);
                    }
                    self.left -= 1;
                    Poll::Pending
                }
            }
        )*

        #[no_mangle]
        pub extern "C" fn main() -> c_int {
            let mut context = Context::from_waker(Waker::noop());
            let mut left = 0;
            $(
                left += 1;
                let mut polls = 0;
                let mut future = pin!($name { left, value: $value });
                while core::hint::black_box(future.as_mut()).poll(&mut context).is_pending() {
                    polls += 1;
                }
                unsafe { printf(concat!("polls ", stringify!($name), "=%d\n\0").as_ptr().cast(), polls + 1) };
            )*
            0
        }
    };
}

futures! {
    Nothing: () = ();
    Truth: bool = true;
    Word: u64 = 7;
    Text: &'static str = "text";
    Niche: NonZeroU64 = NonZeroU64::MIN;
    Maybe: Option<u64> = Some(3);
    Number: f32 = 1.5;
    Wide: u128 = 1;
    Bytes3: (u8, bool, u8) = (1, true, 2);
    Bytes7: [u8; 7] = [7; 7];
    Bytes8: [u8; 8] = [8; 8];
    Bytes11: [u8; 11] = [11; 11];
    Bytes15: [u8; 15] = [15; 15];
    Words3: (u32, u32, u32) = (1, 2, 3);
    Mixed: (u32, u8, u8) = (4, 5, 6);
    Large: [u64; 5] = [9; 5];
}
