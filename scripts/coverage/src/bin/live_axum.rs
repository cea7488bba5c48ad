//! A server of axum under load, until it is killed. The list has its connections, which axum spawns a task for, and the handlers that answer on them.
use axum::extract::{Path, State};
use axum::serve::Listener;
use axum::{Router, routing::get};
use coverage::book::{Slot, here, holds, live, spawned};
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// A connection that is in the list. A task has it once it has been read from.
struct Conn {
    stream: TcpStream,
    slot: Slot,
}
macro_rules! through {
    ($name:ident($($argument:ident: $type:ty),*) -> $result:ty) => {
        fn $name(mut self: Pin<&mut Self>, context: &mut Context<'_>, $($argument: $type),*) -> Poll<$result> {
            spawned(self.slot.number());
            Pin::new(&mut self.stream).$name(context, $($argument),*)
        }
    };
}
impl AsyncRead for Conn {
    through!(poll_read(buffer: &mut ReadBuf<'_>) -> std::io::Result<()>);
}
impl AsyncWrite for Conn {
    through!(poll_write(buffer: &[u8]) -> std::io::Result<usize>);
    through!(poll_flush() -> std::io::Result<()>);
    through!(poll_shutdown() -> std::io::Result<()>);
}

struct Accept(TcpListener);
impl Listener for Accept {
    type Io = Conn;
    type Addr = std::net::SocketAddr;
    async fn accept(&mut self) -> (Conn, Self::Addr) {
        let (stream, address) = self.0.accept().await.unwrap();
        (Conn { stream, slot: Slot::new("conn") }, address)
    }
    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

async fn lookup(n: u64) -> u64 {
    tokio::time::sleep(Duration::from_millis(n % 3)).await;
    n + 1
}
async fn bump(sum: Arc<Mutex<u64>>, by: u64) -> String {
    here(line!()); let mut sum_now = sum.lock().await;
    holds(Some(&*sum));
    here(line!()); *sum_now += lookup(by).await;
    let text = sum_now.to_string();
    drop(sum_now);
    holds::<Mutex<u64>>(None);
    here(line!()); tokio::time::sleep(Duration::from_millis(1)).await;
    text
}
async fn handler(State(sum): State<Arc<Mutex<u64>>>, Path(n): Path<u64>) -> String {
    live("bump", bump(sum, n)).await
}
async fn slow() -> &'static str {
    here(line!()); tokio::time::sleep(Duration::from_millis(8)).await;
    "slow"
}
async fn slowly() -> &'static str {
    live("slow", slow()).await
}

/// Some requests over one connection, then another one.
fn ask(port: u16, path: &str) {
    loop {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        for n in 0..20 {
            write!(stream, "GET {path}{n} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut buffer = [0; 1024];
            let length = stream.read(&mut buffer).unwrap();
            assert!(buffer[..length].starts_with(b"HTTP/1.1 200"));
        }
    }
}

async fn program() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = Router::new()
        .route("/bump/{n}", get(handler))
        .route("/slow/{n}", get(slowly))
        .with_state(Arc::new(Mutex::new(0)));
    for path in ["/bump/", "/bump/", "/bump/", "/slow/", "/slow/"] {
        std::thread::spawn(move || ask(port, path));
    }
    // Connections on which nothing is asked.
    let idle: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(50));
        println!("ready");
    });
    axum::serve(Accept(listener), app).await.unwrap();
    drop(idle);
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(program());
}
