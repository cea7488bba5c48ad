//! A program for tests: tasks of tokio that wait for each other. It says of each by its own book what it waits for, and who has that, and waits
//! to be looked at. Its first argument says what is wrong: `clean` (nothing), `mutexes` (two tasks have one mutex each and want the other's),
//! `channels` (a task waits for a message of one that waits for its end), `lost` (a task's wakers are gone); `boxes`: another executor boxes tasks of its own beside tokio's;
//! `kept` (senders that no task has), `sockets` (tasks wait for sockets), `queue` (readers and
//! a writer wait behind a queued writer, and a task waits for a closure), `threads` (tasks block their threads). Its second is `ct` or `mt`.
//!
//! Built by `node test/native/build.mjs`.
use std::any::Any;
use std::collections::BTreeMap;
use std::future::{poll_fn, Future};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex as Book};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Builder;
use tokio::sync::{broadcast, mpsc, oneshot, watch, Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

/// For ever, for a test.
const LONG: Duration = Duration::from_secs(10_000);

/// What each task waits for: the kind, where it lies, and those that are known to end the wait.
static WAITS: Book<BTreeMap<u64, (&'static str, &'static str, usize)>> = Book::new(BTreeMap::new());
/// Who has what.
static HELD: Book<BTreeMap<usize, Vec<u64>>> = Book::new(BTreeMap::new());

fn own_id() -> u64 {
    tokio::task::id().to_string().parse().unwrap()
}
fn waits(name: &'static str, kind: &'static str, at: usize) {
    WAITS.lock().unwrap().insert(own_id(), (name, kind, at));
}
fn holds(at: usize) {
    HELD.lock().unwrap().entry(at).or_default().push(own_id());
}
fn place<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of) as usize
}

async fn sleeps(name: &'static str) {
    waits(name, "timer", 0);
    tokio::time::sleep(LONG).await;
}
/// Has the mutex while it sleeps.
async fn owner(mutex: Arc<Mutex<u64>>) {
    let mut guard = mutex.lock().await;
    holds(place(&mutex));
    *guard += 1;
    sleeps("owner").await;
    *guard += 1;
}
async fn locker(mutex: Arc<Mutex<u64>>) {
    waits("locker", "Mutex", place(&mutex));
    *mutex.lock().await += 1;
}
async fn owned(mutex: Arc<Mutex<u64>>) {
    let at = place(&mutex);
    let mut guard = mutex.lock_owned().await;
    holds(at);
    *guard += 1;
    sleeps("owned").await;
    *guard += 1;
}
async fn owned_locker(mutex: Arc<Mutex<u64>>) {
    waits("owned_locker", "Mutex", place(&mutex));
    *mutex.lock_owned().await += 1;
}
async fn permit(semaphore: Arc<Semaphore>) {
    let _permit = semaphore.acquire().await.unwrap();
    holds(place(&semaphore));
    sleeps("permit").await;
}
async fn acquirer(semaphore: Arc<Semaphore>) {
    waits("acquirer", "Semaphore", place(&semaphore));
    let _permits = semaphore.acquire_many(2).await.unwrap();
}
async fn reader(lock: Arc<RwLock<u64>>) {
    let guard = lock.read().await;
    holds(place(&lock));
    sleeps("reader").await;
    println!("{}", *guard);
}
async fn writer(lock: Arc<RwLock<u64>>) {
    waits("writer", "RwLock", place(&lock));
    *lock.write().await += 1;
}
async fn receiver(mut from: mpsc::Receiver<u64>, key: usize) {
    waits("receiver", "mpsc", key);
    while from.recv().await.is_some() {}
}
async fn has_sender(to: mpsc::Sender<u64>, key: usize) {
    holds(key);
    sleeps("has_sender").await;
    to.send(1).await.unwrap();
}
async fn sender(to: mpsc::Sender<u64>, key: usize) {
    to.send(1).await.unwrap();
    waits("sender", "mpsc", key);
    to.send(2).await.unwrap();
}
async fn has_receiver(mut from: mpsc::Receiver<u64>, key: usize) {
    holds(key);
    sleeps("has_receiver").await;
    from.recv().await;
}
async fn one(from: oneshot::Receiver<u64>, key: usize) {
    waits("one", "oneshot", key);
    let _ = from.await;
}
async fn has_one(to: oneshot::Sender<u64>, key: usize) {
    holds(key);
    sleeps("has_one").await;
    let _ = to.send(1);
}
type Question = (u64, oneshot::Sender<u64>);
/// The sender of the answer is in a message that nobody has received.
async fn questioner(to: mpsc::Sender<Question>, key: usize) {
    let (answer, from) = oneshot::channel();
    to.send((1, answer)).await.unwrap();
    waits("questioner", "oneshot", key);
    let _ = from.await;
}
/// Has received more than a block of the channel holds.
async fn clerk(mut from: mpsc::Receiver<Question>, key: usize) {
    for _ in 0..40 {
        from.recv().await;
    }
    holds(key);
    sleeps("clerk").await;
    from.recv().await;
}
async fn asked() {
    let (to, from) = mpsc::channel(64);
    for question in 0..40 {
        to.send((question, oneshot::channel().0)).await.unwrap();
    }
    tokio::spawn(clerk(from, 7)).await_started().await;
    for _ in 0..3 {
        tokio::spawn(questioner(to.clone(), 7));
    }
}
async fn joiner(other: JoinHandle<()>) {
    let id: u64 = other.id().to_string().parse().unwrap();
    waits("joiner", "task", id as usize);
    HELD.lock().unwrap().entry(id as usize).or_default().push(id);
    other.await.unwrap();
}
async fn set_joiner() {
    let mut set = JoinSet::new();
    let key = 1_000_000;
    waits("set_joiner", "tasks", key);
    for _ in 0..2 {
        let id = set.spawn(sleeps("of_set")).id().to_string().parse().unwrap();
        HELD.lock().unwrap().entry(key).or_default().push(id);
    }
    while set.join_next().await.is_some() {}
}
async fn notified(notify: Arc<Notify>) {
    waits("notified", "Notify", place(&notify));
    notify.notified().await;
}
/// Has what the Notify is a part of.
struct Shared {
    changes: u64,
    notify: Notify,
}
async fn has_notify(shared: Arc<Shared>) {
    holds(&raw const shared.notify as usize);
    sleeps("has_notify").await;
    println!("{}", shared.changes);
    shared.notify.notify_one();
}
async fn notified_within(shared: Arc<Shared>) {
    waits("notified_within", "Notify", &raw const shared.notify as usize);
    shared.notify.notified().await;
}
async fn watcher(mut from: watch::Receiver<u64>, key: usize) {
    waits("watcher", "watch", key);
    let _ = from.changed().await;
}
async fn has_watch(to: watch::Sender<u64>, key: usize) {
    holds(key);
    sleeps("has_watch").await;
    let _ = to.send(1);
}
/// Comes to the barrier later.
async fn has_barrier(barrier: Arc<Barrier>) {
    holds(place(&barrier));
    sleeps("has_barrier").await;
    barrier.wait().await;
}
/// Polls its branches by reference, and may lose one.
async fn branches(mut from: broadcast::Receiver<u64>, key: usize) {
    waits("branches", "mpsc", key);
    tokio::select! {
        _ = from.recv() => {}
        _ = tokio::time::sleep(LONG) => {}
    }
}
async fn listener(mut from: broadcast::Receiver<u64>, key: usize) {
    waits("listener", "mpsc", key);
    let _ = from.recv().await;
}
async fn has_broadcast(to: broadcast::Sender<u64>, key: usize) {
    holds(key);
    sleeps("has_broadcast").await;
    let _ = to.send(1);
}
async fn arrives(barrier: Arc<Barrier>) {
    waits("arrives", "Barrier", place(&barrier));
    barrier.wait().await;
}
async fn initialiser(cell: Arc<OnceCell<u64>>) {
    holds(place(&cell));
    cell.get_or_init(|| async {
        sleeps("initialiser").await;
        1
    })
    .await;
}
async fn wants_value(cell: Arc<OnceCell<u64>>) {
    waits("wants_value", "OnceCell", place(&cell));
    cell.get_or_init(|| async { 2 }).await;
}
/// Waits for two things, of which the second ends by itself.
async fn selector(mutex: Arc<Mutex<u64>>) {
    waits("selector", "Mutex", place(&mutex));
    tokio::select! {
        mut guard = mutex.lock() => *guard += 1,
        _ = tokio::time::sleep(LONG) => {}
    }
}
/// Let go before it waits: no owner.
async fn dropped(mutex: Arc<Mutex<u64>>) {
    let guard = mutex.lock().await;
    let value = *guard;
    drop(guard);
    sleeps("dropped").await;
    println!("{value}");
}

async fn clean() {
    let mutex = Arc::new(Mutex::new(0));
    tokio::spawn(dropped(mutex.clone())).await_started().await;
    tokio::spawn(owner(mutex.clone())).await_started().await;
    tokio::spawn(locker(mutex.clone()));
    tokio::spawn(selector(mutex.clone()));
    let mutex = Arc::new(Mutex::new(0));
    tokio::spawn(owned(mutex.clone())).await_started().await;
    tokio::spawn(owned_locker(mutex.clone()));
    let semaphore = Arc::new(Semaphore::new(2));
    tokio::spawn(permit(semaphore.clone())).await_started().await;
    tokio::spawn(permit(semaphore.clone())).await_started().await;
    tokio::spawn(acquirer(semaphore.clone()));
    let lock = Arc::new(RwLock::new(0));
    tokio::spawn(reader(lock.clone())).await_started().await;
    tokio::spawn(reader(lock.clone())).await_started().await;
    tokio::spawn(writer(lock));
    let (to, from) = mpsc::channel(1);
    tokio::spawn(receiver(from, 1));
    tokio::spawn(has_sender(to.clone(), 1));
    tokio::spawn(has_sender(to, 1));
    let (to, from) = mpsc::channel(1);
    tokio::spawn(has_receiver(from, 2));
    tokio::spawn(sender(to, 2));
    let (to, from) = oneshot::channel();
    tokio::spawn(one(from, 3));
    tokio::spawn(has_one(to, 3));
    tokio::spawn(joiner(tokio::spawn(sleeps("sleeper"))));
    tokio::spawn(set_joiner());
    let notify = Arc::new(Notify::new());
    tokio::spawn(notified(notify));
    let (to, from) = broadcast::channel(4);
    tokio::spawn(listener(from, 5));
    tokio::spawn(branches(to.subscribe(), 5));
    tokio::spawn(has_broadcast(to, 5));
    let shared = Arc::new(Shared { changes: 0, notify: Notify::new() });
    tokio::spawn(notified_within(shared.clone()));
    tokio::spawn(has_notify(shared));
    let (to, from) = watch::channel(0);
    tokio::spawn(watcher(from, 6));
    tokio::spawn(has_watch(to, 6));
    let barrier = Arc::new(Barrier::new(3));
    tokio::spawn(arrives(barrier.clone()));
    tokio::spawn(has_barrier(barrier));
    let cell = Arc::new(OnceCell::new());
    tokio::spawn(initialiser(cell.clone())).await_started().await;
    tokio::spawn(wants_value(cell));
}

/// Each has one and wants the other's.
async fn greedy(first: Arc<Mutex<u64>>, second: Arc<Mutex<u64>>, both: Arc<tokio::sync::Barrier>) {
    let mut guard = first.lock().await;
    holds(place(&first));
    both.wait().await;
    waits("greedy", "Mutex", place(&second));
    *second.lock().await += 1;
    *guard += 1;
}
async fn mutexes() {
    clean().await;
    let (a, b) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let one = tokio::spawn(greedy(a.clone(), b.clone(), both.clone()));
    tokio::spawn(greedy(b.clone(), a.clone(), both));
    // These wait behind the deadlock.
    tokio::spawn(joiner(one));
    tokio::time::sleep(Duration::from_millis(50)).await;
    tokio::spawn(locker(b));
}

async fn asks(mut from: mpsc::Receiver<u64>) {
    waits("asks", "mpsc", 4);
    from.recv().await;
}
async fn answers(to: mpsc::Sender<u64>, other: JoinHandle<()>) {
    let id: u64 = other.id().to_string().parse().unwrap();
    holds(4);
    waits("answers", "task", id as usize);
    HELD.lock().unwrap().entry(id as usize).or_default().push(id);
    other.await.unwrap();
    to.send(1).await.unwrap();
}
async fn channels() {
    let (to, from) = mpsc::channel(1);
    let other = tokio::spawn(asks(from));
    tokio::spawn(answers(to, other));
}

/// Says Pending, and keeps no waker.
async fn forgets() {
    waits("forgets", "nobody", 0);
    poll_fn(|_| Poll::<()>::Pending).await;
}
/// Keeps a waker as long as it lives, as it should.
async fn remembers() {
    waits("remembers", "unknown", 0);
    let mut kept: Option<Waker> = None;
    poll_fn(|context| {
        kept.get_or_insert_with(|| context.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}
/// Whoever had its waker has dropped it.
async fn loses() {
    waits("loses", "nobody", 0);
    let mut times = 0;
    poll_fn(|context| {
        let waker = context.waker().clone();
        times += 1;
        if times == 1 {
            std::thread::spawn(move || drop(waker));
        }
        Poll::<()>::Pending
    })
    .await;
}
async fn lost() {
    let handle = tokio::spawn(forgets());
    tokio::spawn(joiner(handle));
    tokio::spawn(loses());
    tokio::spawn(remembers());
}

/// What no task has.
static KEPT: Book<Vec<Box<dyn Any + Send>>> = Book::new(vec![]);
/// How many senders each channel has, by the key that its tasks have.
static SENDERS: Book<BTreeMap<usize, usize>> = Book::new(BTreeMap::new());

fn keep<T: Send + 'static>(key: usize, senders: Vec<T>) {
    *SENDERS.lock().unwrap().entry(key).or_default() += senders.len();
    KEPT.lock().unwrap().extend(senders.into_iter().map(|sender| Box::new(sender) as Box<dyn Any + Send>));
}
async fn kept() {
    let (to, from) = mpsc::channel(1);
    tokio::spawn(receiver(from, 1));
    keep(1, vec![to.clone(), to]);
    let (to, from) = oneshot::channel();
    tokio::spawn(one(from, 2));
    keep(2, vec![to]);
    let (to, from) = watch::channel(0);
    tokio::spawn(watcher(from, 3));
    keep(3, vec![to.clone(), to]);
    let (to, from) = broadcast::channel(4);
    tokio::spawn(listener(from, 4));
    keep(4, vec![to]);
    let (to, from) = mpsc::channel(1);
    tokio::spawn(receiver(from, 5));
    tokio::spawn(has_sender(to.clone(), 5));
    SENDERS.lock().unwrap().insert(5, 1);
    keep(5, vec![to.clone(), to]);
}

async fn reads(mut from: TcpStream) {
    waits("reads", "readable", from.as_raw_fd() as usize);
    let mut buffer = [0; 16];
    let _ = from.read(&mut buffer).await;
}
async fn reads_half(from: TcpStream) {
    waits("reads_half", "readable", from.as_raw_fd() as usize);
    let (mut from, to) = from.into_split();
    let mut buffer = [0; 16];
    let _ = from.read_exact(&mut buffer).await;
    drop(to);
}
async fn writes(mut to: TcpStream) {
    waits("writes", "writable", to.as_raw_fd() as usize);
    let _ = to.write_all(&vec![0; 64 << 20]).await;
}
async fn accepts(listener: TcpListener) {
    waits("accepts", "readable", listener.as_raw_fd() as usize);
    let _ = listener.accept().await;
}
async fn datagrams(socket: UdpSocket) {
    waits("datagrams", "readable", socket.as_raw_fd() as usize);
    let mut buffer = [0; 16];
    let _ = socket.recv_from(&mut buffer).await;
}
/// Reads by hand, as hyper's connections do.
struct Framed {
    got: usize,
    stream: TcpStream,
}
struct Connection {
    other: Arc<TcpStream>,
    framed: Option<Box<Framed>>,
}
impl Future for Connection {
    type Output = usize;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let fd = self.other.as_raw_fd() as usize;
        let framed = self.framed.as_mut().unwrap();
        let mut bytes = [0; 16];
        let mut buffer = ReadBuf::new(&mut bytes);
        let done = Pin::new(&mut framed.stream).poll_read(context, &mut buffer);
        framed.got += buffer.filled().len();
        let got = framed.got + fd;
        done.map(|_| got)
    }
}
async fn by_hand(stream: TcpStream, other: TcpStream) {
    waits("by_hand", "readable", stream.as_raw_fd() as usize);
    let framed = Some(Box::new(Framed { got: 0, stream }));
    Connection { other: Arc::new(other), framed }.await;
}
async fn sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    for what in 0..4 {
        let stream = TcpStream::connect(at).await.unwrap();
        keep(0, vec![listener.accept().await.unwrap().0]);
        match what {
            0 => drop(tokio::spawn(reads(stream))),
            1 => drop(tokio::spawn(reads_half(stream))),
            2 => {
                let other = TcpStream::connect(at).await.unwrap();
                keep(0, vec![listener.accept().await.unwrap().0]);
                tokio::spawn(by_hand(stream, other));
            }
            _ => drop(tokio::spawn(writes(stream))),
        }
    }
    tokio::spawn(accepts(listener));
    tokio::spawn(datagrams(UdpSocket::bind("127.0.0.1:0").await.unwrap()));
}

/// A task of an executor that is not tokio's.
struct Boxed(Book<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);
impl Wake for Boxed {
    fn wake(self: Arc<Self>) {
        poll(&self);
    }
}
fn poll(task: &Arc<Boxed>) {
    let waker = task.clone().into();
    if let Some(future) = task.0.lock().unwrap().as_mut() {
        let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
    }
}
async fn elsewhere(from: oneshot::Receiver<u64>) {
    let _ = from.await;
}
/// Three live by their wakers alone; of one the waker is gone, and with it the task.
async fn boxes() {
    let mut senders = vec![];
    for _ in 0..4 {
        let (to, from) = oneshot::channel();
        poll(&Arc::new(Boxed(Book::new(Some(Box::pin(elsewhere(from)))))));
        senders.push(to);
    }
    let _ = senders.pop();
    tokio::spawn(async move {
        waits("keeper", "timer", 0);
        tokio::time::sleep(LONG).await;
        drop(senders);
    });
}

/// So that locks are taken in the order in which tasks are spawned.
trait Started {
    fn await_started(self) -> impl Future<Output = ()>;
}
impl<T> Started for JoinHandle<T> {
    async fn await_started(self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn queued_reader(lock: Arc<RwLock<u64>>, writer: usize) {
    waits("queued_reader", "RwLock", writer);
    println!("{}", *lock.read().await);
}
/// Like `writer`, and the key of what waits behind it is its own.
async fn queued_writer(lock: Arc<RwLock<u64>>, own: usize) {
    holds(own);
    waits("queued_writer", "RwLock", place(&lock));
    *lock.write().await += 1;
}

/// Those of async-lock. A reader waits for the writer that has the lock or waits for its readers; only the latter for readers.
mod queued {
    use super::*;
    use async_lock::{RwLock, RwLockUpgradableReadGuard};

    type Lock = Arc<RwLock<u64>>;

    pub async fn has_read(lock: Lock, key: usize) {
        let guard = lock.read().await;
        holds(key);
        sleeps("has_read").await;
        println!("{}", *guard);
    }
    pub async fn has_read_arc(lock: Lock, key: usize) {
        let guard = lock.read_arc().await;
        holds(key);
        sleeps("has_read_arc").await;
        println!("{}", *guard);
    }
    pub async fn has_write(lock: Lock, key: usize) {
        let mut guard = lock.write().await;
        holds(key);
        sleeps("has_write").await;
        *guard += 1;
    }
    pub async fn has_upgradable(lock: Lock, key: usize) {
        let guard = lock.upgradable_read().await;
        holds(key);
        sleeps("has_upgradable").await;
        println!("{}", *guard);
    }
    /// Waits for what has one key, and others wait for it by the other.
    pub async fn upgrades(lock: Lock, key: usize, own: usize) {
        let guard = lock.upgradable_read().await;
        holds(own);
        waits("upgrades", "RwLock", key);
        *RwLockUpgradableReadGuard::upgrade(guard).await += 1;
    }
    pub async fn writes(lock: Lock, key: usize, own: usize) {
        holds(own);
        waits("writes", "RwLock", key);
        *lock.write().await += 1;
    }
    pub async fn writes_arc(lock: Lock, key: usize) {
        waits("writes_arc", "RwLock", key);
        *lock.write_arc().await += 1;
    }
    pub async fn reads(lock: Lock, key: usize) {
        waits("reads", "RwLock", key);
        println!("{}", *lock.read().await);
    }
    pub async fn reads_arc(lock: Lock, key: usize) {
        waits("reads_arc", "RwLock", key);
        println!("{}", *lock.read_arc().await);
    }
    pub async fn wants_upgradable(lock: Lock, key: usize) {
        waits("wants_upgradable", "RwLock", key);
        println!("{}", *lock.upgradable_read().await);
    }

    pub async fn queue() {
        let lock = || Arc::new(RwLock::new(0));
        let (behind_writer, behind_upgrade, written, upgradable) = (lock(), lock(), lock(), lock());
        tokio::spawn(has_read(behind_writer.clone(), 10)).await_started().await;
        tokio::spawn(has_read_arc(behind_writer.clone(), 10)).await_started().await;
        tokio::spawn(writes(behind_writer.clone(), 10, 11)).await_started().await;
        tokio::spawn(reads(behind_writer.clone(), 11)).await_started().await;
        tokio::spawn(reads_arc(behind_writer.clone(), 11)).await_started().await;
        tokio::spawn(writes_arc(behind_writer.clone(), 11)).await_started().await;
        tokio::spawn(wants_upgradable(behind_writer.clone(), 11)).await_started().await;
        tokio::spawn(has_read(behind_upgrade.clone(), 20)).await_started().await;
        tokio::spawn(upgrades(behind_upgrade.clone(), 20, 21)).await_started().await;
        tokio::spawn(reads(behind_upgrade.clone(), 21)).await_started().await;
        tokio::spawn(has_write(written.clone(), 30)).await_started().await;
        tokio::spawn(reads(written.clone(), 30)).await_started().await;
        tokio::spawn(writes_arc(written.clone(), 30)).await_started().await;
        tokio::spawn(has_read(upgradable.clone(), 40)).await_started().await;
        tokio::spawn(has_upgradable(upgradable.clone(), 41)).await_started().await;
        tokio::spawn(writes(upgradable.clone(), 41, 42)).await_started().await;
    }
}

async fn wants_closure() {
    waits("wants_closure", "closure", 0);
    tokio::task::spawn_blocking(|| std::thread::sleep(LONG)).await.unwrap();
}
async fn queue() {
    let lock = Arc::new(RwLock::new(0));
    tokio::spawn(reader(lock.clone())).await_started().await;
    tokio::spawn(queued_writer(lock.clone(), 1)).await_started().await;
    tokio::spawn(queued_reader(lock.clone(), 1)).await_started().await;
    tokio::spawn(queued_reader(lock.clone(), 1)).await_started().await;
    tokio::spawn(wants_closure()).await_started().await;
    queued::queue().await;
}

/// What each awaited last is over: no timers, because nobody may drive these while threads are blocked.
mod on_thread {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::{Condvar, Mutex};

    pub async fn holds(lock: Arc<Mutex<u64>>) {
        tokio::task::yield_now().await;
        let guard = lock.lock().unwrap();
        waits("holds", "thread", line!() as usize + 1);
        std::thread::sleep(LONG);
        drop(guard);
    }
    pub async fn locks(lock: Arc<Mutex<u64>>) {
        tokio::task::yield_now().await;
        while lock.try_lock().is_ok() {
            std::thread::yield_now();
        }
        waits("locks", "thread", line!() as usize + 1);
        *lock.lock().unwrap() += 1;
    }
    pub async fn signalled(lock: Arc<Mutex<u64>>, bell: Arc<Condvar>) {
        tokio::task::yield_now().await;
        let guard = lock.lock().unwrap();
        waits("signalled", "thread", line!() as usize + 1);
        drop(bell.wait(guard).unwrap());
    }
    pub async fn reads(mut stream: UnixStream) {
        tokio::task::yield_now().await;
        waits("reads", "thread", line!() as usize + 1);
        stream.read_exact(&mut [0]).unwrap();
    }
}

async fn threads() {
    let lock = Arc::new(Book::new(0));
    let (stream, other) = std::os::unix::net::UnixStream::pair().unwrap();
    tokio::spawn(on_thread::holds(lock.clone()));
    tokio::spawn(on_thread::locks(lock));
    tokio::spawn(on_thread::signalled(Arc::new(Book::new(0)), Arc::default()));
    tokio::spawn(on_thread::reads(stream));
    std::mem::forget(other);
    tokio::spawn(sleeps("sleeper"));
    while WAITS.lock().unwrap().len() < 5 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn program(what: String) {
    match what.as_str() {
        "mutexes" => mutexes().await,
        "channels" => channels().await,
        "lost" => lost().await,
        "boxes" => boxes().await,
        "kept" => kept().await,
        "threads" => threads().await,
        "sockets" => sockets().await,
        "queue" => queue().await,
        "asked" => asked().await,
        _ => clean().await,
    }
    if what == "threads" {
        std::thread::sleep(Duration::from_millis(100));
    } else {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let held = HELD.lock().unwrap().clone();
    for (id, (name, kind, at)) in WAITS.lock().unwrap().iter() {
        let by: Vec<String> = held.get(at).into_iter().flatten().map(u64::to_string).collect();
        println!("waits {id} {name} {kind} {at:#x} {}", by.join(","));
    }
    for (key, count) in SENDERS.lock().unwrap().iter() {
        println!("senders {key:#x} {count}");
    }
    // Held by the root of `block_on`, which is no task.
    let mut rest: Pin<Box<dyn Future<Output = ()>>> = Box::pin(rests());
    println!("ready");
    rest.as_mut().await;
}
async fn rests() {
    tokio::time::sleep(LONG).await;
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    match arguments.next().as_deref() {
        Some("mt") => Builder::new_multi_thread().worker_threads(if what == "threads" { 6 } else { 2 }).enable_all().build().unwrap().block_on(program(what)),
        _ => Builder::new_current_thread().enable_all().build().unwrap().block_on(program(what)),
    }
}
