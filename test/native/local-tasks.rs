// Tasks of local-runtime: boxed in a list of its executor, which lies on main's stack.
use local_runtime::time::sleep;
use local_runtime::{block_on, Executor};
use std::time::Duration;

async fn every(millis: u64) {
    loop {
        sleep(Duration::from_millis(millis)).await;
    }
}

async fn once(millis: u64) -> u64 {
    sleep(Duration::from_millis(millis)).await;
    println!("{millis} ms are over");
    millis
}

fn main() {
    block_on(async {
        let executor = Executor::new();
        let first = executor.spawn(every(5));
        let second = executor.spawn(every(7));
        let third = executor.spawn(once(1));
        executor
            .run(async {
                third.await;
                println!("two are left");
                sleep(Duration::from_secs(100)).await;
                drop((first, second));
            })
            .await;
    });
}
