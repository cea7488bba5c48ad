// Three state machines on main's stack, which cassette polls in turn. Nothing points to them but main's own variables.
use cassette::{yield_now, Cassette};
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

/** How often each has been polled, by its own count. */
struct Book {
    blinks: Cell<u32>,
    reads: Cell<u32>,
    writes: Cell<u32>,
}

async fn blink(book: &Book) {
    loop {
        book.blinks.set(book.blinks.get() + 1);
        yield_now().await;
    }
}

async fn settle(turns: u32) {
    for _ in 0..turns {
        yield_now().await;
    }
}

async fn read(book: &Book) -> u32 {
    let mut sum = 0;
    while sum < 100 {
        book.reads.set(book.reads.get() + 1);
        settle(3).await;
        sum += 7;
    }
    sum
}

async fn write(book: &Book, word: u32) {
    book.writes.set(book.writes.get() + word);
    settle(1_000_000_000).await;
}

#[inline(never)]
fn turned(turn: u32, book: &Book) {
    if turn == 20 || turn == 200 {
        println!("turn {turn}: {} blinks, {} reads, {} writes", book.blinks.get(), book.reads.get(), book.writes.get());
    }
    // Who looks after turn 200 finds it between two polls.
    std::thread::sleep(Duration::from_millis(if turn == 200 { 600_000 } else { 1 }));
}

fn main() {
    let turns = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(100_000);
    let book = Book { blinks: Cell::new(0), reads: Cell::new(0), writes: Cell::new(0) };
    let blinking = pin!(blink(&book));
    let reading = pin!(read(&book));
    let writing = pin!(write(&book, 1));
    let mut blinker = Cassette::new(blinking);
    let mut reader = Cassette::new(reading);
    let mut writer = Cassette::new(writing);
    for turn in 1..=turns {
        blinker.poll_on();
        if !reader.is_done() {
            reader.poll_on();
        }
        writer.poll_on();
        turned(turn, &book);
    }
}
