// A Future whose type has a name of more than 64 KiB, and those in it. The program counts the polls of each kind, and prints them.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

pub struct Leaf;

impl Future for Leaf {
    type Output = u32;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        POLLS[0].fetch_add(1, Relaxed);
        Poll::Ready(1)
    }
}

pub struct Both<A>(A, A);

impl<A: Future<Output = u32> + Unpin> Future for Both<A> {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        POLLS[1].fetch_add(1, Relaxed);
        let (Poll::Ready(a), Poll::Ready(b)) = (Pin::new(&mut self.0).poll(cx), Pin::new(&mut self.1).poll(cx)) else {
            return Poll::Pending;
        };
        Poll::Ready(a + b)
    }
}

pub struct Named<A, B>(A, std::marker::PhantomData<B>);

impl<A: Future<Output = u32> + Unpin, B: Unpin> Future for Named<A, B> {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        POLLS[2].fetch_add(1, Relaxed);
        Pin::new(&mut self.0).poll(cx)
    }
}

type Twice<A> = (A, A);
type Eight<A> = Twice<Twice<Twice<A>>>;
type Long = Twice<Eight<Eight<Eight<Eight<[u8; 16]>>>>>;

static POLLS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

fn main() {
    let mut cx = Context::from_waker(Waker::noop());
    let named = || Named::<_, Long>(Both(Leaf, Leaf), std::marker::PhantomData);
    let mut future = Both(named(), named());
    println!("ready {:?}", Pin::new(&mut future).poll(&mut cx));
    let [leaf, both, named] = POLLS.each_ref().map(|count| count.load(Relaxed));
    println!("polls Leaf={leaf} Both={both} Named={named}");
}
