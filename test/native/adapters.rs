//! A program for tests: an executor of its own, whose tasks wait in streams of the futures crate that hold Futures beside what they receive from,
//! and for locks of futures-intrusive. It says of each by its own book what it waits for, and who can end that, and waits to be looked at.
//!
//! Built by `node test/native/build.mjs adapters`.
use futures::channel::{mpsc, oneshot};
use futures::stream::{self, StreamExt};
use futures_intrusive::sync::{Mutex, Semaphore};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Of what this waits for nobody knows anything.
struct Unknown;
impl Future for Unknown {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

type Messages = mpsc::Receiver<u64>;
type To = mpsc::Sender<u64>;
type Question = oneshot::Receiver<u64>;
type Answer = oneshot::Sender<u64>;

/// A message or the stop: either lets it answer.
async fn until(from: Messages, stop: Question, answer: Answer) {
    let value = from.take_until(stop).next().await;
    let _ = answer.send(value.unwrap_or(0));
}
/// Nothing is known of the one stream.
async fn until_unknown(from: Messages, stop: Question, answer: Answer) {
    let from = stream::select(from, stream::once(async { Unknown.await; 1 }).boxed());
    let value = from.take_until(stop).next().await;
    let _ = answer.send(value.unwrap_or(0));
}
/// Has the stop, and sends it when it was answered.
async fn stopper(stop: Answer, from: Question) {
    let _ = stop.send(from.await.unwrap());
}
async fn ticker(mut to: To) {
    Unknown.await;
    to.try_send(1).unwrap();
}
/// As `until` and those that it waits for, but all of them wait for each other.
async fn stuck_until(from: Messages, stop: Question, answers: [Answer; 2]) {
    let value = from.take_until(stop).next().await.unwrap_or(0);
    for answer in answers {
        let _ = answer.send(value);
    }
}
async fn stuck_stopper(stop: Answer, from: Question) {
    let _ = stop.send(from.await.unwrap());
}
async fn stuck_ticker(mut to: To, from: Question) {
    to.try_send(from.await.unwrap()).unwrap();
}
/// Has a job beside the channel, and room for one more.
async fn buffers(from: Messages, job: Question) {
    let mut job = Some(job);
    let mut jobs = from.map(|_| job.take().unwrap()).buffer_unordered(2);
    jobs.next().await;
}
/// In order: the last job is done.
async fn buffers_in_order(from: Messages, job: Question) {
    let (to, done) = oneshot::channel();
    to.send(1).unwrap();
    let mut ready = vec![done, job];
    let mut jobs = from.map(|_| ready.pop().unwrap()).buffered(3);
    jobs.next().await;
}
/// These take no more messages until a job is done.
async fn full(from: Messages, job: Question) {
    let mut job = Some(job);
    let mut jobs = from.map(|_| job.take().unwrap()).buffer_unordered(1);
    jobs.next().await;
}
async fn full_in_order(from: Messages, job: Question) {
    let (to, done) = oneshot::channel();
    to.send(1).unwrap();
    let mut ready = vec![done, job];
    let mut jobs = from.map(|_| ready.pop().unwrap()).buffered(2);
    jobs.next().await;
}
/// Each message has a job, before the next one is received.
async fn one_by_one(from: Messages, job: Question) {
    let mut job = Some(job);
    let mut jobs = from.then(|_| job.take().unwrap());
    jobs.next().await;
}
/// It waits for a message, too, which is not told.
async fn concurrent(from: Messages, job: Question, answer: Answer) {
    let mut job = Some(job);
    from.for_each_concurrent(2, |_| {
        let job = job.take().unwrap();
        async move {
            let _ = job.await;
        }
    })
    .await;
    let _ = answer.send(1);
}
async fn sends(to: To, job: Answer) {
    Unknown.await;
    drop((to, job));
}

async fn locks(mutex: Arc<Mutex<u64>>) {
    let mut guard = mutex.lock().await;
    Unknown.await;
    *guard += 1;
}
async fn wants_lock(mutex: Arc<Mutex<u64>>) {
    *mutex.lock().await += 1;
}
async fn acquires(semaphore: Arc<Semaphore>) {
    let permits = semaphore.acquire(2).await;
    Unknown.await;
    drop(permits);
}
async fn wants_permit(semaphore: Arc<Semaphore>) {
    semaphore.acquire(1).await;
}
/// Lets it go in its second poll, which does not end: where the guard was stays as it is.
async fn releases(mutex: Arc<Mutex<u64>>, book: String) {
    let mut guard = mutex.lock().await;
    let mut first = true;
    std::future::poll_fn(|_| if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }).await;
    *guard += 1;
    drop(guard);
    println!("{book}locked {}\nready", mutex.is_locked());
    std::thread::sleep(Duration::from_secs(10_000));
}
async fn wants_released(mutex: Arc<Mutex<u64>>) {
    *mutex.lock().await += 1;
}

/// So many messages were sent.
fn channel(messages: u64) -> (To, Messages) {
    let (mut to, from) = mpsc::channel(4);
    for each in 0..messages {
        to.try_send(each).unwrap();
    }
    (to, from)
}

fn main() {
    let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    let mut book = String::new();
    macro_rules! task {
        ($name:ident($($with:expr),*) $($kind:ident by $by:literal),*) => {
            tasks.push(Box::pin($name($($with),*)));
            $(book += &format!("waits {} {} {}\n", stringify!($name), stringify!($kind), $by);)*
        };
    }
    let ((to, from), (stop, stops), (answer, question)) = (channel(0), oneshot::channel(), oneshot::channel());
    task!(until(from, stops, answer) message by "ticker", oneshot by "stopper");
    task!(stopper(stop, question) oneshot by "until");
    task!(ticker(to));
    let ((to, from), (stop, stops), (answer, question)) = (channel(0), oneshot::channel(), oneshot::channel());
    task!(until_unknown(from, stops, answer) oneshot by "stopper");
    task!(stopper(stop, question) oneshot by "until_unknown");
    task!(ticker(to));
    let ((to, from), (stop, stops), (a, q), (b, r)) =
        (channel(0), oneshot::channel(), oneshot::channel(), oneshot::channel());
    task!(stuck_until(from, stops, [a, b]) message by "stuck_ticker", oneshot by "stuck_stopper");
    task!(stuck_stopper(stop, q) oneshot by "stuck_until");
    task!(stuck_ticker(to, r) oneshot by "stuck_until");
    let ((to, from), (answer, job)) = (channel(1), oneshot::channel());
    task!(buffers(from, job) message by "sends", oneshot by "sends");
    task!(sends(to, answer));
    let ((to, from), (answer, job)) = (channel(2), oneshot::channel());
    task!(buffers_in_order(from, job) message by "sends", oneshot by "sends");
    task!(sends(to, answer));
    let ((to, from), (answer, job)) = (channel(1), oneshot::channel());
    task!(full(from, job) oneshot by "sends");
    task!(sends(to, answer));
    let ((to, from), (answer, job)) = (channel(2), oneshot::channel());
    task!(full_in_order(from, job) oneshot by "sends");
    task!(sends(to, answer));
    let ((to, from), (answer, job)) = (channel(1), oneshot::channel());
    task!(one_by_one(from, job) oneshot by "sends");
    task!(sends(to, answer));
    let ((to, from), (stop, job), (answer, question)) = (channel(1), oneshot::channel(), oneshot::channel());
    task!(concurrent(from, job, answer) oneshot by "stopper");
    task!(stopper(stop, question) oneshot by "concurrent");
    task!(ticker(to));
    let mutex = Arc::new(Mutex::new(0, false));
    task!(locks(mutex.clone()));
    task!(wants_lock(mutex) Mutex by "locks");
    let semaphore = Arc::new(Semaphore::new(false, 2));
    task!(acquires(semaphore.clone()));
    task!(wants_permit(semaphore) Semaphore by "acquires");
    let mutex = Arc::new(Mutex::new(0, false));
    tasks.push(Box::pin(releases(mutex.clone(), book)));
    tasks.push(Box::pin(wants_released(mutex)));
    let mut cx = Context::from_waker(Waker::noop());
    for task in &mut tasks {
        let _ = task.as_mut().poll(&mut cx);
    }
    let last = tasks.len() - 2;
    let _ = tasks[last].as_mut().poll(&mut cx);
}
