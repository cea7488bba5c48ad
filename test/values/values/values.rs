// Values of many types, kept in statics and printed by nobody: the test reads them out of the stopped process and compares them
// with what stands here. Prints `ready` when all are in place, and ends with its standard input.
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io::Read;
use std::mem::MaybeUninit;
use std::num::{NonZeroU16, Wrapping};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicI16, AtomicPtr, AtomicUsize};
use std::sync::{Arc, Mutex, RwLock};

#[allow(dead_code)]
pub union Either {
    whole: u32,
    parts: [u8; 4],
}
#[derive(Debug, Clone, Copy)]
#[repr(i8)]
pub enum Level {
    Low = -5,
    Mid = 0,
    High = 100,
}
#[derive(Debug)]
pub enum Shape {
    Dot,
    Circle(f32),
    Rect { w: u16, h: u16 },
    Named(String),
}
#[derive(Debug)]
pub struct Unit;
#[derive(Debug)]
pub struct Wrapper(pub u8);
pub trait Speak {
    fn speak(&self) -> u32;
}
#[derive(Debug)]
pub struct Dog {
    pub age: u8,
}
#[derive(Debug)]
#[repr(align(64))]
pub struct Cat {
    pub lives: u32,
}
impl Speak for Dog {
    fn speak(&self) -> u32 {
        self.age as u32
    }
}
impl Speak for Cat {
    fn speak(&self) -> u32 {
        self.lives
    }
}
pub struct Node {
    pub id: u32,
    pub next: RefCell<Option<Rc<Node>>>,
}
#[derive(Debug)]
pub enum Deep {
    End,
    More(Box<Deep>),
}

pub struct All {
    pub int: (i8, u16, i32, u64, i128, u128, isize),
    pub float: (f32, f64, f32, f64, f64, f64),
    pub text: (char, char, char, &'static str, String, Box<str>, Rc<str>, Arc<str>),
    pub flags: (bool, bool, AtomicBool),
    pub level: [Level; 3],
    pub shapes: Vec<Shape>,
    pub options: (Option<u8>, Option<u8>, Option<Box<u8>>, Option<Box<u8>>, Option<char>, Option<NonZeroU16>, Option<Option<bool>>),
    pub results: (Result<u8, String>, Result<u8, String>),
    pub units: (Unit, Wrapper, (), (u8,)),
    pub grid: [[u8; 3]; 2],
    pub slice: &'static [u16],
    pub boxed_slice: Box<[u16]>,
    pub shared_slice: Rc<[u16]>,
    pub zeros: [u32; 100],
    pub ring: VecDeque<u8>,
    pub empty: Vec<u64>,
    pub units_vec: Vec<()>,
    pub cell: Cell<i32>,
    pub refcell: RefCell<u8>,
    pub mutex: Mutex<Vec<u8>>,
    pub rwlock: RwLock<u8>,
    pub once: (OnceCell<u8>, OnceCell<u8>),
    pub atomics: (AtomicI16, AtomicUsize, AtomicPtr<u8>),
    pub numbers: (NonZeroU16, Wrapping<u8>),
    pub pinned: Pin<Box<u8>>,
    pub maybe: MaybeUninit<u16>,
    pub dog: Box<dyn Speak>,
    pub cat: Box<dyn Speak>,
    pub shared_dog: Rc<dyn Speak>,
    pub shared_cat: Arc<dyn Speak>,
    pub anything: &'static dyn Debug,
    pub weak: (Weak<u8>, Weak<u8>),
    pub rc: Rc<u8>,
    pub cycle: Rc<Node>,
    pub deep: Deep,
    pub either: Either,
    pub function: fn(u32) -> u32,
    pub raw: *const u8,
    pub nested: Option<Vec<Option<(u8, &'static str)>>>,
}

pub static NUMBERS: [u16; 3] = [7, 8, 9];
pub static UNIT: Unit = Unit;
pub static mut ALL: Option<All> = None;

pub fn double(x: u32) -> u32 {
    x * 2
}

fn main() {
    let rc = Rc::new(5u8);
    let mut ring: VecDeque<u8> = VecDeque::with_capacity(8);
    for i in 0..8 {
        ring.push_back(i);
    }
    for i in 8..11 {
        ring.pop_front();
        ring.push_back(i);
    }
    let cycle = Rc::new(Node { id: 1, next: RefCell::new(None) });
    *cycle.next.borrow_mut() = Some(Rc::new(Node { id: 2, next: RefCell::new(Some(cycle.clone())) }));
    let mut deep = Deep::End;
    for _ in 0..100 {
        deep = Deep::More(Box::new(deep));
    }
    let once = OnceCell::new();
    once.set(9).unwrap();
    let all = All {
        int: (-8, 65535, -2147483648, u64::MAX, i128::MIN, u128::MAX, -1),
        float: (0.1, 0.1, 16777216.0, 1e300, f64::NAN, -0.0),
        text: ('a', 'ß', '\u{1f600}', "q\"\\\n\u{7}", String::from("öl"), "box".into(), "rc".into(), "arc".into()),
        flags: (true, false, AtomicBool::new(true)),
        level: [Level::Low, Level::Mid, Level::High],
        shapes: vec![Shape::Dot, Shape::Circle(1.5), Shape::Rect { w: 3, h: 4 }, Shape::Named("n".into())],
        options: (Some(3), None, Some(Box::new(4)), None, Some('z'), NonZeroU16::new(6), Some(None)),
        results: (Ok(1), Err("bad".into())),
        units: (Unit, Wrapper(2), (), (3,)),
        grid: [[1, 2, 3], [4, 5, 6]],
        slice: &NUMBERS,
        boxed_slice: vec![1, 2].into(),
        shared_slice: vec![3, 4, 5].into(),
        zeros: [0; 100],
        ring,
        empty: Vec::new(),
        units_vec: vec![(), (), ()],
        cell: Cell::new(-3),
        refcell: RefCell::new(7),
        mutex: Mutex::new(vec![1, 2]),
        rwlock: RwLock::new(3),
        once: (once, OnceCell::new()),
        atomics: (AtomicI16::new(-2), AtomicUsize::new(3), AtomicPtr::new(16 as *mut u8)),
        numbers: (NonZeroU16::new(300).unwrap(), Wrapping(4)),
        pinned: Box::pin(8),
        maybe: MaybeUninit::new(77),
        dog: Box::new(Dog { age: 3 }),
        cat: Box::new(Cat { lives: 9 }),
        shared_dog: Rc::new(Dog { age: 4 }),
        shared_cat: Arc::new(Cat { lives: 8 }),
        anything: &UNIT,
        weak: (Rc::downgrade(&rc), Weak::new()),
        rc,
        cycle,
        deep,
        either: Either { whole: 0x04030201 },
        function: double,
        raw: 0x1234 as *const u8,
        nested: Some(vec![Some((1, "x")), None]),
    };
    let borrowed: *const RefCell<u8> = unsafe {
        ALL = Some(all);
        match &*(&raw const ALL) {
            Some(all) => &all.refcell,
            None => return,
        }
    };
    let _borrow = unsafe { (*borrowed).borrow_mut() };
    let all = unsafe { (*(&raw const ALL)).as_ref().unwrap() };
    println!("ready {}", all.dog.speak() + all.cat.speak() + all.shared_dog.speak() + all.shared_cat.speak());
    let _ = std::io::stdin().read(&mut [0u8; 1]);
}
