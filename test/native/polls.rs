//! A program for tests: async fns on an executor of its own, whose tasks wander between threads that come and go. It counts its polls and says at
//! the end how many there were. What else happens meanwhile is its first argument: threads, fork, signals, exec.
//!
//! Built by `node test/native/build.mjs`, position-independent, no dependencies.
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

static LEAF_CALLS: AtomicUsize = AtomicUsize::new(0);
static PAUSES: AtomicUsize = AtomicUsize::new(0);
static MIDDLE_CALLS: AtomicUsize = AtomicUsize::new(0);
static ROOT_POLLS: AtomicUsize = AtomicUsize::new(0);
static SUM: AtomicUsize = AtomicUsize::new(0);

/// Pending so many times, then ready.
struct Pause(u32);

impl Future for Pause {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u32> {
        PAUSES.fetch_add(1, SeqCst);
        if self.0 == 0 {
            return Poll::Ready(3);
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polled as often as its one Pause.
async fn leaf(id: u32, pauses: u32) -> u32 {
    LEAF_CALLS.fetch_add(1, SeqCst);
    Pause(pauses).await + id
}

/// Polled whenever a leaf of its is, but once for a leaf that is ready and the next one.
async fn middle(id: u32) -> u32 {
    MIDDLE_CALLS.fetch_add(1, SeqCst);
    let mut sum = 0;
    for turn in 0..3 {
        sum += leaf(id, (id + turn) % 4).await;
    }
    sum
}

async fn root(id: u32) {
    let sum = middle(id).await + middle(id + 100).await;
    SUM.fetch_add(sum as usize, SeqCst);
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Nobody;
impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Polls what is in the queue until it is empty.
fn work(queue: &Mutex<VecDeque<Task>>) {
    let waker = Waker::from(Arc::new(Nobody));
    let mut context = Context::from_waker(&waker);
    loop {
        let next = queue.lock().unwrap().pop_front();
        let Some(mut task) = next else { return };
        ROOT_POLLS.fetch_add(1, SeqCst);
        if task.as_mut().poll(&mut context).is_pending() {
            queue.lock().unwrap().push_back(task);
        }
    }
}

/// So many tasks on so many threads of their own.
fn round(tasks: u32, threads: u32) {
    let queue: Mutex<VecDeque<Task>> = Mutex::new((0..tasks).map(|id| Box::pin(root(id)) as Task).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&queue));
        }
    });
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn signal(number: i32, handler: usize) -> usize;
    fn raise(number: i32) -> i32;
    fn getpid() -> i32;
    fn kill(pid: i32, number: i32) -> i32;
    fn setitimer(which: i32, new: *const [i64; 4], old: *mut [i64; 4]) -> i32;
    fn mmap(address: usize, length: usize, protection: i32, flags: i32, file: i32, offset: i64) -> usize;
    fn mprotect(address: usize, length: usize, protection: i32) -> i32;
}

const SIGUSR1: i32 = 10;
const SIGSEGV: i32 = 11;
const SIGALRM: i32 = 14;
const SIGCHLD: i32 = 17;
/** A real-time signal: none is lost, however many wait. */
const QUEUED: i32 = 40;

static USR1: AtomicI32 = AtomicI32::new(0);
static ALRM: AtomicI32 = AtomicI32::new(0);
static CHLD: AtomicI32 = AtomicI32::new(0);
static GOT: AtomicI32 = AtomicI32::new(0);
static SEGV: AtomicI32 = AtomicI32::new(0);
static PAGE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(number: i32) {
    match number {
        SIGUSR1 => USR1.fetch_add(1, SeqCst),
        SIGALRM => ALRM.fetch_add(1, SeqCst),
        SIGCHLD => CHLD.fetch_add(1, SeqCst),
        QUEUED => GOT.fetch_add(1, SeqCst),
        _ => {
            unsafe { mprotect(PAGE.load(SeqCst), 4096, 3) };
            SEGV.fetch_add(1, SeqCst)
        }
    };
}

/// Makes a child that polls tasks of its own, which are not this process's; how it ended.
fn child() -> i32 {
    let mut status = 0;
    unsafe {
        let pid = fork();
        if pid == 0 {
            let before = ROOT_POLLS.load(SeqCst);
            let queue = Mutex::new((0..5).map(|id| Box::pin(root(id)) as Task).collect());
            work(&queue);
            _exit(if ROOT_POLLS.load(SeqCst) - before > 20 { 7 } else { 8 });
        }
        while waitpid(pid, &mut status, 0) != pid {}
    }
    status
}

fn with_signals() {
    for number in [SIGUSR1, SIGSEGV, SIGALRM, SIGCHLD, QUEUED] {
        unsafe { signal(number, on_signal as *const () as usize) };
    }
    unsafe {
        PAGE.store(mmap(0, 4096, 0, 0x22, -1, 0), SeqCst);
        setitimer(0, &[0, 20_000, 0, 20_000], std::ptr::null_mut());
    }
    for turn in 0..5 {
        let sender = std::thread::spawn(|| {
            for _ in 0..40 {
                unsafe { kill(getpid(), QUEUED) };
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        });
        round(4, 2);
        sender.join().unwrap();
        unsafe {
            raise(SIGUSR1);
            mprotect(PAGE.load(SeqCst), 4096, 0);
            (PAGE.load(SeqCst) as *mut u32).write_volatile(turn);
        }
        let end = std::time::Instant::now();
        while end.elapsed().as_millis() < 25 {}
    }
    println!("child {:#x}", child());
    unsafe { setitimer(0, &[0; 4], std::ptr::null_mut()) };
    println!("usr1 {} segv {} chld {}", USR1.load(SeqCst), SEGV.load(SeqCst), CHLD.load(SeqCst));
    println!("queued {}", GOT.load(SeqCst));
    println!("alrm {}", if ALRM.load(SeqCst) > 0 { "some" } else { "none" });
}

fn with_forks() {
    for _ in 0..3 {
        round(4, 1);
        println!("child {:#x}", child());
        round(4, 3);
    }
    let spawned = std::process::Command::new("/bin/true").status().unwrap();
    println!("spawned {:?}", spawned.code());
}

fn tell() {
    let [leafs, pauses, middles] = [&LEAF_CALLS, &PAUSES, &MIDDLE_CALLS].map(|each| each.load(SeqCst));
    println!("polls Pause={pauses} leaf={pauses} middle={} root={}", pauses - leafs + middles, ROOT_POLLS.load(SeqCst));
    println!("calls leaf={leafs} middle={middles} sum={}", SUM.load(SeqCst));
}

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    match mode.as_str() {
        "threads" => (0..5).for_each(|_| round(10, 4)),
        "fork" => with_forks(),
        "signals" => with_signals(),
        "exec" => {
            use std::os::unix::process::CommandExt;
            round(4, 2);
            tell();
            let error = std::process::Command::new(std::env::current_exe().unwrap()).arg("threads").exec();
            panic!("{error}");
        }
        _ => round(10, 1),
    }
    tell();
}
