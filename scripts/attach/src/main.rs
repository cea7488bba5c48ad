// A server for `scripts/bench attach`: GET /hello, through a few Futures of its own. Prints where it listens.
use axum::{routing::get, Router};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static SERVED: AtomicU64 = AtomicU64::new(0);

async fn row(id: u64) -> u64 {
    tokio::task::yield_now().await;
    id * 2
}

async fn lookup(id: u64) -> u64 {
    row(id).await + row(id + 1).await
}

async fn hello() -> String {
    let id = SERVED.fetch_add(1, Relaxed);
    format!("hello {}", lookup(id).await)
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    axum::serve(listener, Router::new().route("/hello", get(hello))).await.unwrap();
}
