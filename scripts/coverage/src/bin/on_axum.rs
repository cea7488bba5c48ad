//! A server of axum, which asks itself from another thread.
use axum::extract::{Path, State};
use axum::{Json, Router, routing::get};
use coverage::counted;
use std::io::{Read, Write};
use std::sync::Arc;
use tokio::sync::Mutex;

async fn lookup(n: u64) -> u64 {
    for _ in 0..n % 3 {
        tokio::task::yield_now().await;
    }
    n + 1
}

async fn bump(sum: Arc<Mutex<u64>>, by: u64) -> u64 {
    let mut sum = sum.lock().await;
    *sum += counted!(lookup(by)).await;
    *sum
}

async fn answer(sum: Arc<Mutex<u64>>, n: u64) -> Json<u64> {
    Json(counted!(bump(sum, n)).await)
}

async fn handler(State(sum): State<Arc<Mutex<u64>>>, Path(n): Path<u64>) -> Json<u64> {
    counted!(answer(sum, n)).await
}

async fn plain() -> &'static str {
    tokio::task::yield_now().await;
    "plain"
}

async fn plainly() -> &'static str {
    counted!(plain()).await
}

fn ask(port: u16, path: &str) {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

async fn serve(listener: tokio::net::TcpListener, over: tokio::sync::oneshot::Receiver<()>) {
    let app = Router::new()
        .route("/bump/{n}", get(handler))
        .route("/plain", get(plainly))
        .with_state(Arc::new(Mutex::new(0)));
    tokio::select! {
        _ = axum::serve(listener, app) => {}
        _ = over => {}
    }
}

async fn root() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, over) = tokio::sync::oneshot::channel();
    let client = std::thread::spawn(move || {
        for n in 0..150 {
            ask(port, &format!("/bump/{n}"));
            ask(port, "/plain");
        }
        let _ = tell.send(());
    });
    counted!(serve(listener, over)).await;
    client.join().unwrap();
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(counted!(root()));
    coverage::print();
}
