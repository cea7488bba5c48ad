//! A program for tests: tasks of monoio, compio and glommio, a thread each. Of each runtime's tasks three wait for ever and two have ended, those last.
//! One is polled first inside the poll of the task that spawns it, where the runtime does so. It counts polls, and waits to be looked at; with an
//! argument it ends. Of compio it also has three tasks whose wakers are kept: one that ended, one that was cancelled and dropped, and one that was
//! cancelled a moment ago.
//!
//! Built by `node test/native/build.mjs rings`.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll, Waker};
static POLLS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// Pending so often, and woken by itself; then ready, or pending for ever.
struct Steps {
    left: usize,
    ends: bool,
    of: usize,
}
impl Future for Steps {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        POLLS[self.of].fetch_add(1, Ordering::Relaxed);
        if self.left > 0 {
            self.left -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.ends { Poll::Ready(()) } else { Poll::Pending }
    }
}
static WAKERS: Mutex<Vec<Waker>> = Mutex::new(Vec::new());
static OVER: Mutex<Vec<&str>> = Mutex::new(Vec::new());
/// Says when its task's Future is dropped.
struct Says(&'static str);
impl Drop for Says {
    fn drop(&mut self) {
        OVER.lock().unwrap().push(self.0);
    }
}
/// Has its waker kept, and itself woken, and ends if it may.
struct Kept {
    polled: bool,
    ends: bool,
}
impl Future for Kept {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.polled {
            return if self.ends { Poll::Ready(()) } else { Poll::Pending };
        }
        self.polled = true;
        WAKERS.lock().unwrap().push(cx.waker().clone());
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
macro_rules! kept {
    ($name:ident, $ends:literal) => {
        async fn $name() {
            let says = Says(stringify!($name));
            Kept { polled: false, ends: $ends }.await;
            drop(says);
        }
    };
}
kept!(kept_ended, true);
kept!(kept_dropped, false);
kept!(kept_cancelled, false);
/// Lets others be polled.
async fn turns() {
    for _ in 0..3 {
        Kept { polled: false, ends: true }.await;
    }
}
macro_rules! tasks {
    ($waits:ident, $ends:ident, $of:literal) => {
        async fn $waits(left: usize) {
            let kept = [left; 5];
            Steps { left, ends: false, of: $of }.await;
            std::hint::black_box(kept);
        }
        async fn $ends(left: usize) {
            let kept = [left; 3];
            Steps { left, ends: true, of: $of }.await;
            std::hint::black_box(kept);
        }
    };
}
tasks!(monoio_waits, monoio_ends, 0);
tasks!(compio_waits, compio_ends, 1);
tasks!(glommio_waits, glommio_ends, 2);
fn main() {
    let ends = std::env::args().count() > 1;
    let (done, dones) = mpsc::channel();
    let wait = move |done: mpsc::Sender<()>| {
        done.send(()).unwrap();
        if !ends {
            std::thread::sleep(std::time::Duration::from_secs(10000));
        }
    };
    let tell = done.clone();
    std::thread::spawn(move || {
        let mut runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().build().unwrap();
        runtime.block_on(async {
            let waits: Vec<_> = (1..4).map(|n| monoio::spawn(monoio_waits(n))).collect();
            let ends: Vec<_> = (4..6).map(|n| monoio::spawn(monoio_ends(n))).collect();
            for end in ends {
                end.await;
            }
            wait(tell);
            drop(waits);
        });
    });
    let tell = done.clone();
    std::thread::spawn(move || {
        compio::runtime::Runtime::new().unwrap().block_on(async {
            let waits: Vec<_> = (1..4).map(|n| compio::runtime::spawn(compio_waits(n))).collect();
            let ends: Vec<_> = (4..6).map(|n| compio::runtime::spawn(compio_ends(n))).collect();
            for end in ends {
                end.await.ok();
            }
            let dropped = compio::runtime::spawn(kept_dropped());
            let cancelled = compio::runtime::spawn(kept_cancelled());
            compio::runtime::spawn(kept_ended()).await.ok();
            turns().await;
            drop(dropped);
            turns().await;
            drop(cancelled);
            wait(tell);
            drop(waits);
        });
    });
    std::thread::spawn(move || {
        let builder = glommio::LocalExecutorBuilder::default().ring_depth(32).io_memory(1 << 16);
        let executor = builder.make().unwrap();
        executor.run(async {
            let waits: Vec<_> = (1..4).map(|n| glommio::spawn_local(glommio_waits(n)).detach()).collect();
            let ends: Vec<_> = (4..6).map(|n| glommio::spawn_local(glommio_ends(n)).detach()).collect();
            for end in ends {
                end.await;
            }
            wait(done);
            drop(waits);
        });
    });
    for _ in 0..3 {
        dones.recv().unwrap();
    }
    let [monoio, compio, glommio] = POLLS.each_ref().map(|each| each.load(Ordering::Relaxed));
    println!("over {}", OVER.lock().unwrap().join(" "));
    println!("polls monoio={monoio} compio={compio} glommio={glommio}");
    println!("ready");
    if !ends {
        std::thread::sleep(std::time::Duration::from_secs(10000));
    }
    std::process::exit(0);
}
