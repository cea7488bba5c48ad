//! A program for tests: tasks that are polled inside other polls. Worker threads of tokio are polls that never end, a `LocalSet` and an executor
//! of async-executor poll their tasks in a Future's poll. It counts the polls of each kind of task and the tasks, and prints both. Its argument is
//! the way: `threads`, `place` (a task hands its worker on), `local`, `executor`, `unordered` (not tasks: Futures inside one task),
//! `joins` (two Futures are one task).
//!
//! Built by `node test/native/build.mjs`.
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

/// Tasks and polls by kind.
static BOOK: Mutex<BTreeMap<&'static str, (u32, u32)>> = Mutex::new(BTreeMap::new());

/// Counts its polls: what each task consists of.
struct Counted<F> {
    kind: &'static str,
    inner: F,
}

fn counted<F>(kind: &'static str, inner: F) -> Counted<F> {
    BOOK.lock().unwrap().entry(kind).or_default().0 += 1;
    Counted { kind, inner }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        BOOK.lock().unwrap().entry(self.kind).or_default().1 += 1;
        unsafe { self.map_unchecked_mut(|counted| &mut counted.inner) }.poll(context)
    }
}

/// The last thing that its poll does is another one's: optimised code jumps there, and its own caller is returned to.
struct Jumping(Inside);
struct Inside(u32);

impl Future for Jumping {
    type Output = ();
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        BOOK.lock().unwrap().entry("Jumping").or_default().1 += 1;
        Pin::new(&mut self.0).poll(context)
    }
}
impl Future for Inside {
    type Output = ();
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
fn jumping(times: u32) -> Jumping {
    BOOK.lock().unwrap().entry("Jumping").or_default().0 += 1;
    Jumping(Inside(times))
}

async fn leaf(times: u32) -> u32 {
    let mut sum = 0;
    for i in 0..times {
        tokio::task::yield_now().await;
        sum += i;
    }
    sum
}
async fn first(times: u32) -> u32 {
    leaf(times).await + 1
}
async fn second(times: u32) -> u32 {
    first(times).await + Box::pin(first(times)).await
}
async fn blocking(times: u32) -> u32 {
    leaf(times).await + tokio::task::block_in_place(|| times)
}
async fn parent() {
    let children: Vec<_> = (0..5).map(|n| tokio::spawn(counted("first", first(n)))).collect();
    let others: Vec<_> = (0..5).map(|n| tokio::spawn(counted("second", second(n)))).collect();
    let jumps: Vec<_> = (0..3).map(|n| tokio::spawn(jumping(n))).collect();
    for child in children.into_iter().chain(others) {
        child.await.unwrap();
    }
    for jump in jumps {
        jump.await.unwrap();
    }
}
async fn handing() {
    let tasks: Vec<_> = (0..4).map(|n| tokio::spawn(counted("blocking", blocking(n)))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    tokio::spawn(counted("parent", parent())).await.unwrap();
}
async fn local() {
    let children: Vec<_> = (0..5).map(|n| tokio::task::spawn_local(counted("first", first(n)))).collect();
    for child in children {
        child.await.unwrap();
    }
}
async fn unordered() {
    let mut all: FuturesUnordered<_> = (0..5).map(|n| counted("inside", first(n))).collect();
    while all.next().await.is_some() {}
}
/// Tasks that are a library's Futures, each around two of ours. Both branches of one wake it in each poll.
async fn joins() {
    tokio::spawn(futures::future::join(counted("short", leaf(3)), counted("long", leaf(6)))).await.unwrap();
    let (near, far) = (Box::pin(counted("near", leaf(4))), Box::pin(counted("far", leaf(9))));
    tokio::spawn(futures::future::select(near, far)).await.unwrap();
}
async fn executor() {
    let executor = async_executor::LocalExecutor::new();
    let tasks: Vec<_> = (0..5).map(|n| executor.spawn(counted("first", first(n)))).collect();
    executor
        .run(async {
            for task in tasks {
                task.await;
            }
        })
        .await;
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    let threads = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let one = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    match way.as_str() {
        "threads" => threads().block_on(async { tokio::spawn(counted("parent", parent())).await.unwrap() }),
        "place" => threads().block_on(async { tokio::spawn(counted("handing", handing())).await.unwrap() }),
        "local" => one().block_on(counted("main", async { tokio::task::LocalSet::new().run_until(local()).await })),
        "joins" => one().block_on(joins()),
        "executor" => one().block_on(counted("main", executor())),
        _ => threads().block_on(async { tokio::spawn(counted("main", unordered())).await.unwrap() }),
    }
    for (kind, (tasks, polls)) in BOOK.lock().unwrap().iter() {
        println!("kind {kind} tasks={tasks} polls={polls}");
    }
}
