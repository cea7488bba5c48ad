// Tasks that take two mutexes, and tasks that wait for a waker. Each tells the book what it waits for, in the line of the await.
use crate::book::{Task, begins};
use crate::{Fault, exec, fault};
use core::cell::UnsafeCell;
use core::future::poll_fn;
use core::hint::black_box;
use core::task::{Poll, Waker};
use embassy_executor::{SpawnError, SpawnToken, Spawner};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex as Raw;
use embassy_sync::mutex::Mutex;

type Account = Mutex<Raw, u64>;
static CHECKING: Account = Mutex::new(100);
static SAVINGS: Account = Mutex::new(100);

type Slot = async_lock::Mutex<u64>;
static INPUT: Slot = async_lock::Mutex::new(1);
static WORK: Slot = async_lock::Mutex::new(2);
static OUTPUT: Slot = async_lock::Mutex::new(3);

/// Pending once, so that the others have their turn.
async fn turn() {
    let mut first = true;
    poll_fn(|cx| {
        if !first {
            return Poll::Ready(());
        }
        first = false;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Where a waker is left for whoever is to wake.
struct Left(UnsafeCell<Option<Waker>>);
unsafe impl Sync for Left {}
static EMBASSY: Left = Left(UnsafeCell::new(None));
static ASYNC_TASK: Left = Left(UnsafeCell::new(None));

/// Pending until the waker that it leaves is used, or for ever if that is only dropped. Where it lay, its data stay.
async fn parked(left: &Left, is_forgotten: bool) {
    let mut first = true;
    poll_fn(|cx| {
        if !first {
            return Poll::Ready(());
        }
        first = false;
        let slot = unsafe { &mut *black_box(left.0.get()) };
        *slot = Some(cx.waker().clone());
        if let Some(waker) = black_box(&mut *slot).take() {
            if !is_forgotten {
                waker.wake();
            }
        }
        Poll::Pending
    })
    .await
}

async fn transfer(task: Task, from: &Account, to: &Account) {
    task.wants(from, line!()); let mut source = from.lock().await;
    task.has(from);
    turn().await;
    task.wants(to, line!()); let mut target = to.lock().await;
    task.has(to);
    *source -= 1;
    *target += 1;
    task.lets_go(from);
    task.lets_go(to);
}

#[embassy_executor::task]
async fn payer() {
    let task = begins("payer");
    transfer(task, &CHECKING, &SAVINGS).await;
    task.ends();
}
#[embassy_executor::task]
async fn saver() {
    let task = begins("saver");
    match fault() {
        Fault::EmbassyDeadlock => transfer(task, &SAVINGS, &CHECKING).await,
        _ => transfer(task, &CHECKING, &SAVINGS).await,
    }
    task.ends();
}
#[embassy_executor::task]
async fn receiver() {
    let task = begins("receiver");
    task.parks(line!()); parked(&EMBASSY, fault() == Fault::EmbassyLostWake).await;
    task.ends();
}

async fn moves(task: Task, from: &Slot, to: &Slot) {
    task.wants(from, line!()); let mut source = from.lock().await;
    task.has(from);
    turn().await;
    task.wants(to, line!()); let mut target = to.lock().await;
    task.has(to);
    core::mem::swap(&mut *source, &mut *target);
    task.lets_go(from);
    task.lets_go(to);
}
async fn reader() {
    let task = begins("reader");
    moves(task, &INPUT, &WORK).await;
    task.ends();
}
async fn computer() {
    let task = begins("computer");
    moves(task, &WORK, &OUTPUT).await;
    task.ends();
}
async fn writer() {
    let task = begins("writer");
    match fault() {
        Fault::AsyncTaskDeadlock => moves(task, &OUTPUT, &INPUT).await,
        _ => moves(task, &INPUT, &OUTPUT).await,
    }
    task.ends();
}
/// Behind them. Of embassy's mutexes two that wait would wake each other in turn: they have room for one waker.
async fn auditor() {
    let task = begins("auditor");
    turn().await;
    task.wants(&OUTPUT, line!()); let output = *OUTPUT.lock().await;
    black_box(output);
    task.ends();
}
async fn listener() {
    let task = begins("listener");
    task.parks(line!()); parked(&ASYNC_TASK, fault() == Fault::AsyncTaskLostWake).await;
    task.ends();
}

fn start<S>(spawner: Spawner, token: Result<SpawnToken<S>, SpawnError>, name: &'static str) {
    let Ok(token) = token else { panic!("no room") };
    token.metadata().set_name(name);
    spawner.spawn(token);
}
/// The task whose handle it gives stays when no waker of it is left.
pub fn spawn_all(spawner: Spawner) -> async_task::Task<()> {
    start(spawner, payer(), "payer");
    start(spawner, saver(), "saver");
    start(spawner, receiver(), "receiver");
    exec::spawn(reader()).detach();
    exec::spawn(computer()).detach();
    exec::spawn(writer()).detach();
    exec::spawn(auditor()).detach();
    exec::spawn(listener())
}
