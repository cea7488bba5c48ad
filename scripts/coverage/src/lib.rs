//! Counts the polls of Futures, as the truth that a tracer is compared with.
pub mod book;

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

pub struct Count {
    pub name: &'static str,
    pub polls: AtomicU64,
    pub ready: AtomicU64,
}

static ALL: Mutex<Vec<&'static Count>> = Mutex::new(Vec::new());

impl Count {
    pub fn register(&'static self) -> &'static Self {
        ALL.lock().unwrap().push(self);
        self
    }
}

/// Polls what it holds, and counts it.
pub struct Counted<F> {
    pub count: &'static Count,
    pub inner: F,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.count.polls.fetch_add(1, Relaxed);
        let count = self.count;
        // SAFETY: `inner` is never moved.
        let inner = unsafe { self.map_unchecked_mut(|this| &mut this.inner) };
        let result = inner.poll(context);
        if result.is_ready() {
            count.ready.fetch_add(1, Relaxed);
        }
        result
    }
}

/// `counted!(step(3))` is `step(3)`, whose polls are counted under the name `step`.
#[macro_export]
macro_rules! counted {
    ($name:ident ( $($argument:expr),* )) => {{
        static COUNT: $crate::Count = $crate::Count {
            name: stringify!($name),
            polls: std::sync::atomic::AtomicU64::new(0),
            ready: std::sync::atomic::AtomicU64::new(0),
        };
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            COUNT.register();
        });
        $crate::Counted { count: &COUNT, inner: $name($($argument),*) }
    }};
}

/// One line for each counted Future.
pub fn print() {
    for count in ALL.lock().unwrap().iter() {
        let (polls, ready) = (count.polls.load(Relaxed), count.ready.load(Relaxed));
        println!("COUNT {} polls={polls} ready={ready}", count.name);
    }
}
