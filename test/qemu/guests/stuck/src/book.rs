// The guest's own book: which task waits for what, and who has it. A task that has ended is in it no more.
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// More than there are tasks, or mutexes.
const MOST: usize = 16;
const NOBODY: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq)]
#[repr(u64)]
enum State {
    Ended,
    Runs,
    /// For a mutex.
    Waits,
    /// For a waker to be used.
    Parked,
}

struct Entry {
    name: AtomicUsize,
    length: AtomicUsize,
    state: AtomicU64,
    /// The address of the mutex.
    mutex: AtomicUsize,
    /// The line of the await.
    line: AtomicU64,
}
static BOOK: [Entry; MOST] = [const {
    Entry {
        name: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        state: AtomicU64::new(0),
        mutex: AtomicUsize::new(0),
        line: AtomicU64::new(0),
    }
}; MOST];
/// The address of each mutex that somebody has, and who.
static HELD: [(AtomicUsize, AtomicU64); MOST] = [const { (AtomicUsize::new(0), AtomicU64::new(NOBODY)) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// One task, by its number.
#[derive(Clone, Copy)]
pub struct Task(usize);

pub fn begins(name: &'static str) -> Task {
    let number = COUNT.fetch_add(1, Relaxed);
    BOOK[number].name.store(name.as_ptr() as usize, Relaxed);
    BOOK[number].length.store(name.len(), Relaxed);
    Task(number).state(State::Runs);
    Task(number)
}
impl Task {
    fn state(self, state: State) {
        BOOK[self.0].state.store(state as u64, Relaxed);
    }
    pub fn wants<M>(self, mutex: &M, line: u32) {
        BOOK[self.0].mutex.store(core::ptr::from_ref(mutex) as usize, Relaxed);
        BOOK[self.0].line.store(line as u64, Relaxed);
        self.state(State::Waits);
    }
    pub fn has<M>(self, mutex: &M) {
        let address = core::ptr::from_ref(mutex) as usize;
        let slot = HELD.iter().find(|(at, _)| [0, address].contains(&at.load(Relaxed)));
        let (at, by) = slot.expect("too many mutexes");
        at.store(address, Relaxed);
        by.store(self.0 as u64, Relaxed);
        self.state(State::Runs);
    }
    pub fn lets_go<M>(self, mutex: &M) {
        let address = core::ptr::from_ref(mutex) as usize;
        for (at, by) in &HELD {
            if at.load(Relaxed) == address {
                by.store(NOBODY, Relaxed);
            }
        }
    }
    pub fn parks(self, line: u32) {
        BOOK[self.0].line.store(line as u64, Relaxed);
        self.state(State::Parked);
    }
    pub fn ends(self) {
        self.state(State::Ended);
    }
}

fn name(number: usize) -> &'static str {
    let (start, length) = (BOOK[number].name.load(Relaxed), BOOK[number].length.load(Relaxed));
    unsafe { core::str::from_utf8_unchecked(core::slice::from_raw_parts(start as *const u8, length)) }
}
fn holder(mutex: usize) -> &'static str {
    let held = HELD.iter().find(|(at, by)| at.load(Relaxed) == mutex && by.load(Relaxed) != NOBODY);
    held.map_or("nobody", |(_, by)| name(by.load(Relaxed) as usize))
}
fn states() -> impl Iterator<Item = (usize, u64)> {
    (0..COUNT.load(Relaxed)).map(|number| (number, BOOK[number].state.load(Relaxed)))
}
/// Tasks that have not ended.
pub fn left() -> usize {
    states().filter(|&(_, state)| state != State::Ended as u64).count()
}
pub fn report() {
    for (number, state) in states() {
        let Entry { mutex, line, .. } = &BOOK[number];
        let (mutex, line) = (mutex.load(Relaxed), line.load(Relaxed));
        crate::println!("LAB begun {}", name(number));
        if state == State::Waits as u64 {
            crate::println!("LAB waits {} mutex={:#x} by={} line={}", name(number), mutex, holder(mutex), line);
        } else if state == State::Parked as u64 {
            crate::println!("LAB parked {} line={}", name(number), line);
        }
    }
    crate::println!("LAB left {}", left());
}
