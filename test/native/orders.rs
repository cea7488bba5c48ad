use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;

static LEDGER: Mutex<u64> = Mutex::const_new(0);

/// Asks a slow disk.
async fn load(order: u64) -> u64 {
    sleep(Duration::from_millis(5 * order)).await;
    order * 100
}

/// Holds the lock while it sleeps: the others wait here.
async fn book(amount: u64, pace: Duration) {
    let mut ledger = LEDGER.lock().await;
    sleep(pace).await;
    *ledger += amount;
}

async fn handle(order: u64, pace: Duration) {
    let amount = load(order).await;
    book(amount, pace).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let pace = std::env::args().nth(1).map_or(20, |millis| millis.parse().unwrap());
    let pace = Duration::from_millis(pace);
    let tasks: Vec<_> = (1..=4).map(|order| tokio::spawn(handle(order, pace))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!("booked {}", LEDGER.lock().await);
}
