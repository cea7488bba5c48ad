//! A program for tests: what a thread blocks on, by the `block_on` of several crates. It says where a variable of that Future lies, and waits
//! to be looked at. Its first argument is the executor: `ct`, `mt` (tokio), `main` (as `#[tokio::main]` does it), `smol`, `futures`, `pollster`.
//! With `poll` as its second it is looked at in the middle of a poll, with `boxed` the Future is too large for the stack, with `wrapped` it lies in
//! one written by hand, with `closure` a closure polls it.
//!
//! Built by `node test/native/build.mjs`.
use futures::channel::oneshot;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

/// What nobody sends by.
static KEPT: Mutex<Vec<oneshot::Sender<u64>>> = Mutex::new(vec![]);

/// Says where its variable lies, which it has across the await.
async fn inner(from: oneshot::Receiver<u64>, polls: bool) -> u64 {
    let mut marked = [7u64; 4];
    println!("inner {:#x}", marked.as_mut_ptr() as usize);
    if polls {
        println!("ready");
        std::thread::sleep(Duration::from_secs(10_000));
    }
    from.await.unwrap_or(0) + marked[1]
}

async fn root(name: &str, polls: bool) -> u64 {
    let (to, from) = oneshot::channel();
    KEPT.lock().unwrap().push(to);
    let mut marked = [name.len() as u64; 3];
    println!("root {:#x}", marked.as_mut_ptr() as usize);
    // Looked at when it has waited.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(100));
        println!("ready");
    });
    let sum = inner(from, polls).await;
    sum + marked[2]
}

/// So large that runtimes box it.
async fn large(name: &str) -> u64 {
    let mut much = [name.len() as u64; 4096];
    println!("large {:#x}", much.as_mut_ptr() as usize);
    root(name, false).await + much[4095]
}

/// Counts its polls, as programs do.
struct Wrapped<F>(u64, F);
impl<F: Future> Future for Wrapped<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = unsafe { self.get_unchecked_mut() };
        this.0 += 1;
        unsafe { Pin::new_unchecked(&mut this.1) }.poll(context)
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn by_macro(polls: bool) -> u64 {
    root("main", polls).await
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let more = arguments.next().unwrap_or_default();
    let polls = more == "poll";
    let current = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let threads = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let sum = match name.as_str() {
        "ct" if more == "boxed" => current().block_on(large("ct")),
        "ct" if more == "wrapped" => current().block_on(Wrapped(0, root("ct", polls))),
        "ct" if more == "closure" => {
            let mut future = Box::pin(root("ct", polls));
            current().block_on(poll_fn(move |context| future.as_mut().poll(context)))
        }
        "ct" => current().block_on(root("ct", polls)),
        "mt" => threads().block_on(root("mt", polls)),
        "main" => by_macro(polls),
        "smol" => smol::block_on(root("smol", polls)),
        "futures" => futures::executor::block_on(root("futures", polls)),
        _ => pollster::block_on(root("pollster", polls)),
    };
    println!("{sum}");
}
