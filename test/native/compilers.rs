//! Futures with results of each form, for compilers of several years: how rustc describes the poll function of an
//! `async fn` has changed. It prints how often each was polled.
#![no_std]
#![no_main]
use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

#[link(name = "c")]
extern "C" {
    fn printf(format: *const u8, ...) -> i32;
}

/// Pending so many times.
struct Yields(u32);

impl Future for Yields {
    type Output = ();
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.0 = self.0.wrapping_sub(1);
        if self.0 == u32::MAX { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Counts how often another Future is polled.
struct Counted<'a, F>(F, &'a Cell<u32>);

impl<F: Future> Future for Counted<'_, F> {
    type Output = F::Output;
    #[inline(never)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = unsafe { self.get_unchecked_mut() };
        this.1.set(this.1.get() + 1);
        unsafe { Pin::new_unchecked(&mut this.0) }.poll(context)
    }
}

async fn unit(times: u32) {
    Yields(times).await
}

async fn byte(times: u32) -> u8 {
    Yields(times).await;
    times as u8
}

async fn word(times: u32) -> u64 {
    unit(times).await;
    times as u64
}

async fn pair(times: u32) -> (u64, u64) {
    Yields(times).await;
    (1, times as u64)
}

async fn float(times: u32) -> f64 {
    Yields(times).await;
    times as f64
}

async fn choice(times: u32) -> Result<u32, &'static str> {
    Yields(times).await;
    if times > 2 { Ok(times) } else { Err("few") }
}

struct Wide<T>(T);

impl<T: Copy> Wide<T> {
    async fn copies(&self, times: u32) -> [T; 5] {
        Yields(times).await;
        [self.0; 5]
    }
}

fn waker() -> RawWaker {
    static METHODS: RawWakerVTable = RawWakerVTable::new(|_| waker(), |_| {}, |_| {}, |_| {});
    RawWaker::new(core::ptr::null(), &METHODS)
}

#[inline(never)]
fn run<T>(future: &mut dyn Future<Output = T>) -> T {
    let waker = unsafe { Waker::from_raw(waker()) };
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = unsafe { Pin::new_unchecked(&mut *future) }.poll(&mut context) {
            return value;
        }
    }
}

#[no_mangle]
pub extern "C" fn main(args: u32) -> i32 {
    const NONE: Cell<u32> = Cell::new(0);
    let counts = [NONE; 9];
    let [units, bytes, words, pairs, floats, choices, wide, blocks, all] = &counts;
    let total = run(&mut Counted(
        async {
            let n = args;
            Counted(unit(n), units).await;
            let mut sum = Counted(byte(n + 1), bytes).await as u64;
            sum += Counted(word(n + 2), words).await;
            sum += Counted(pair(n + 3), pairs).await.1;
            sum += Counted(float(n + 4), floats).await as u64;
            for times in n..n + 4 {
                sum += Counted(choice(times), choices).await.unwrap_or(100) as u64;
            }
            sum += Counted(Wide(7u64).copies(n + 5), wide).await[4];
            sum += Counted(Wide(7u8).copies(n + 6), wide).await[4] as u64;
            sum + Counted(async { unit(n).await; 5 }, blocks).await
        },
        all,
    ));
    let [units, bytes, words, pairs, floats, choices, wide, blocks, all] = counts.map(|count| count.get());
    let format = b"polls unit=%u byte=%u word=%u pair=%u float=%u choice=%u copies=%u block=%u all=%u\n%lu\n\0";
    unsafe {
        printf(
            format.as_ptr(),
            units + words + blocks, bytes, words, pairs, floats, choices, wide, blocks, all, total,
        );
    }
    0
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// `core` was compiled to unwind, and names this; nothing here unwinds.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}
