// Functions whose arguments and results lie in memory. It prints each call as Rust's own Debug has it.
use std::fmt::Debug;
use std::hint::black_box;
use std::sync::Arc;

#[derive(Debug)]
pub struct Item {
    pub id: u32,
    pub name: String,
    pub price: u64,
}

#[derive(Debug)]
pub enum Event {
    Open { user: u32 },
    Text(u16, u8),
    Closed,
}

#[derive(Debug)]
pub struct Large {
    pub words: [u64; 40],
}

#[inline(never)]
pub fn greet(name: &str) -> usize {
    black_box(name).len()
}

#[inline(never)]
pub fn pair(left: &str, right: &str) -> bool {
    black_box(left) == black_box(right)
}

#[inline(never)]
pub fn sum(values: &[u32]) -> u32 {
    black_box(values).iter().sum()
}

#[inline(never)]
pub fn owned(text: String) -> usize {
    black_box(&text).len()
}

#[inline(never)]
pub fn list(all: Vec<u64>) -> u64 {
    black_box(&all).iter().sum()
}

#[inline(never)]
pub fn item(item: &Item) -> u64 {
    black_box(item).price
}

#[inline(never)]
pub fn event(event: &Event) -> u32 {
    match black_box(event) {
        Event::Open { user } => *user,
        Event::Text(a, b) => *a as u32 + *b as u32,
        Event::Closed => 0,
    }
}

#[inline(never)]
pub fn maybe(name: Option<&str>) -> usize {
    black_box(name).map_or(0, str::len)
}

#[inline(never)]
pub fn shared(value: &Arc<(u32, u32)>) -> u32 {
    black_box(value).0
}

#[inline(never)]
pub fn large(value: &Large) -> u64 {
    black_box(value).words[39]
}

#[inline(never)]
pub fn title(n: u32) -> &'static str {
    if black_box(n) == 0 { "nought" } else { "several" }
}

fn told<R: Debug>(call: String, result: R) {
    println!("{call} = {result:?}");
}

/** The last bytes of a page: the next one is not there. */
fn at_a_page_s_end() -> &'static str {
    extern "C" {
        fn mmap(at: *mut u8, length: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
        fn munmap(at: *mut u8, length: usize) -> i32;
    }
    unsafe {
        let two = mmap(std::ptr::null_mut(), 8192, 3, 0x22, -1, 0);
        munmap(two.add(4096), 4096);
        let text = std::slice::from_raw_parts_mut(two.add(4096 - 11), 11);
        text.copy_from_slice(b"at the edge");
        std::str::from_utf8_unchecked(text)
    }
}

fn main() {
    let long = "a text that is longer than what is shown of any text, so it is cut";
    for name in ["alpha", "", "gr\u{fc}n \"quoted\"\n", long, &long[3..10], at_a_page_s_end()] {
        told(format!("greet(name: {name:?})"), greet(black_box(name)));
    }
    told(String::from("pair(left: \"left\", right: \"right side\")"), pair(black_box("left"), black_box("right side")));
    for values in [vec![1u32, 2, 3], vec![], (0..20).collect::<Vec<u32>>()] {
        told(format!("sum(values: &{values:?})"), sum(black_box(&values)));
    }
    told(String::from("owned(text: \"owned text\")"), owned(black_box(String::from("owned text"))));
    told(String::from("list(all: Vec(len=2)[10, 20])"), list(black_box(vec![10, 20])));
    let tea = Item { id: 7, name: "tea".to_string(), price: 350 };
    told(format!("item(item: &{tea:?})"), item(black_box(&tea)));
    for each in [Event::Open { user: 42 }, Event::Text(3, 4), Event::Closed] {
        told(format!("event(event: &{each:?})"), event(black_box(&each)));
    }
    for name in [Some("here"), None, Some("elsewhere")] {
        told(format!("maybe(name: {name:?})"), maybe(black_box(name)));
    }
    let value = Arc::new((5, 6));
    told(format!("shared(value: &Arc(strong=1, weak=0)({value:?}))"), shared(black_box(&value)));
    told(String::from("large(value: ADDRESS)"), large(black_box(&Large { words: [9; 40] })));
    for n in [0, 9] {
        told(format!("title(n: {n})"), title(black_box(n)));
    }
}
