//! A program for tests: tasks of tokio, of which two have a fault. Its first argument is `faults`, or `clean`: the same tasks without the faults.
//! Its second is `ct` or `mt`. `blocks` stops its thread in a poll for 300 ms; `waits` is aborted before it is ready. It prints of each task
//! `task NAME id=N line=N`, of a poll that sleeps how long and the line where it began (`slept NS from N`), and of each Future that is dropped
//! before its end the line where it waited (`dropped NAME id=N at N`).
//!
//! Built by `node test/native/build.mjs`.
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// Lives in a Future from its first poll to its end.
struct Booked {
    name: &'static str,
    id: tokio::task::Id,
    /// The line where it waits; none at its end.
    at: Option<u32>,
}
impl Booked {
    /// `line` is where the Future is declared.
    fn begin(name: &'static str, line: u32) -> Booked {
        let id = tokio::task::id();
        println!("task {name} id={id} line={line}");
        Booked { name, id, at: Some(line) }
    }
    fn waits_in_next_line(&mut self, line: u32) {
        self.at = Some(line + 1);
    }
    fn end(mut self) {
        self.at = None;
    }
}
impl Drop for Booked {
    fn drop(&mut self) {
        if let Some(line) = self.at {
            println!("dropped {} id={} at {line}", self.name, self.id);
        }
    }
}

async fn calm() {
    let booked = Booked::begin("calm", line!() - 1);
    for _ in 0..5 {
        yield_now().await;
    }
    booked.end();
}

async fn blocks(is_fault: bool) {
    let mut booked = Booked::begin("blocks", line!() - 1);
    booked.waits_in_next_line(line!());
    yield_now().await;
    if is_fault {
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(300));
        println!("slept {} from {}", begin.elapsed().as_nanos(), booked.at.unwrap());
    }
    yield_now().await;
    booked.end();
}

async fn waits(until: oneshot::Receiver<()>) {
    let mut booked = Booked::begin("waits", line!() - 1);
    booked.waits_in_next_line(line!());
    let _ = until.await;
    booked.end();
}

async fn program(is_fault: bool) {
    let calm = tokio::spawn(calm());
    let (to, until) = oneshot::channel();
    let waiting = tokio::spawn(waits(until));
    calm.await.unwrap();
    tokio::spawn(blocks(is_fault)).await.unwrap();
    if is_fault {
        waiting.abort();
    } else {
        to.send(()).unwrap();
    }
    println!("aborted {}", waiting.await.is_err());
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let is_fault = arguments.next().as_deref() == Some("faults");
    let runtime = match arguments.next().as_deref() {
        Some("mt") => Builder::new_multi_thread().worker_threads(2).build(),
        _ => Builder::new_current_thread().build(),
    };
    runtime.unwrap().block_on(program(is_fault));
}
