//! A program for tests: an executor of its own that boxes its tasks. Of its tasks some wait, some have ended, and some were dropped before they
//! ended: their memory still looks like theirs. It says how many of each there are, and waits to be looked at.
//!
//! Built by `node test/native/build.mjs`.
use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    exec: Arc<Exec>,
    id: usize,
}
#[derive(Default)]
struct Exec {
    queue: Mutex<VecDeque<Arc<Task>>>,
    cv: Condvar,
}
impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let e = self.exec.clone();
        e.queue.lock().unwrap().push_back(self);
        e.cv.notify_one();
    }
}
impl Exec {
    fn spawn(self: &Arc<Self>, id: usize, f: impl Future<Output = ()> + Send + 'static) {
        let t = Arc::new(Task {
            future: Mutex::new(Some(Box::pin(f))),
            exec: self.clone(),
            id,
        });
        self.queue.lock().unwrap().push_back(t);
    }
    fn run_ready(&self) {
        loop {
            let Some(t) = self.queue.lock().unwrap().pop_front() else {
                return;
            };
            let w = Waker::from(t.clone());
            let mut cx = Context::from_waker(&w);
            let mut s = t.future.lock().unwrap();
            if let Some(f) = s.as_mut() {
                // It keeps a finished job, as a handle does that nobody has dropped.
                if f.as_mut().poll(&mut cx).is_ready() && t.id < JOBS {
                    *s = None;
                }
            }
            std::hint::black_box(t.id);
        }
    }
}
#[derive(Default)]
struct Gate {
    wakers: Mutex<Vec<Waker>>,
    open: Mutex<bool>,
}
struct Wait(Arc<Gate>);
impl Future for Wait {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if *self.0.open.lock().unwrap() {
            Poll::Ready(())
        } else {
            self.0.wakers.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        }
    }
}
async fn long(g: Arc<Gate>, n: u64) {
    let b = [n; 12];
    Wait(g).await;
    std::hint::black_box(b);
}
async fn short(g: Arc<Gate>, n: u64) {
    let b = [n; 9];
    Wait(g).await;
    std::hint::black_box(b);
}
/// The ids of jobs begin here.
const JOBS: usize = 9000;
/// Has no state of its own: it is over with what it holds.
struct Job<F>(F);
impl<F: Future<Output = ()>> Future for Job<F> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        unsafe { self.map_unchecked_mut(|job| &mut job.0) }.poll(cx)
    }
}
async fn nested(g: Arc<Gate>) {
    let f: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(long(g, 3));
    f.await
}
fn main() {
    let e = Arc::new(Exec::default());
    let (a, b) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    for i in 0..120 {
        e.spawn(i, short(a.clone(), i as u64));
        if i % 12 == 0 {
            e.spawn(1000 + i, long(b.clone(), i as u64));
        }
    }
    for i in 0..4 {
        e.spawn(2000 + i, nested(b.clone()));
    }
    let c = Arc::new(Gate::default());
    for i in 0..60 {
        e.spawn(3000 + i, long(c.clone(), i as u64));
        if i % 9 == 0 {
            e.spawn(4000 + i, long(b.clone(), 1));
        }
    }
    let jobs: Vec<Arc<Task>> = (0..3)
        .map(|i| {
            let gate = if i == 0 { b.clone() } else { a.clone() };
            e.spawn(JOBS + i, Job(long(gate, 5)));
            e.queue.lock().unwrap().back().unwrap().clone()
        })
        .collect();
    e.run_ready();
    c.wakers.lock().unwrap().clear();
    *a.open.lock().unwrap() = true;
    let ws: Vec<Waker> = std::mem::take(&mut *a.wakers.lock().unwrap());
    for w in ws {
        w.wake();
    }
    e.run_ready();
    // Kept as values of any type: nobody polls them.
    let kept: Vec<Box<dyn Any>> = (0..3).map(|_| Box::new(Wait(b.clone())) as Box<dyn Any>).collect();
    println!("live long 17\nlive nested 4\nlive Job 1\ndropped 60");
    println!("ready");
    std::thread::sleep(std::time::Duration::from_secs(10000));
    drop((e, b, kept, jobs));
}
