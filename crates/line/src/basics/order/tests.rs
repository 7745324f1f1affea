#![allow(clippy::disallowed_methods, reason = "a test owns its tasks")]

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::task::{JoinHandle, JoinSet, yield_now};
use tokio::time::{Instant, sleep, timeout};

use super::{Arrival, CallOrder, LONGEST_WAIT, Place};

/// A server that calls are sent to while its gate is open.
#[derive(Default)]
struct Server {
    gate: Notify,
    got: std::sync::Mutex<Vec<u64>>,
}

impl Server {
    fn takes(&self, place: &Place) {
        self.got.lock().unwrap().push(place.number);
        place.mark_sent();
    }

    fn got(&self) -> Vec<u64> {
        self.got.lock().unwrap().clone()
    }
}

fn arrivals(count: usize) -> Vec<Arrival> {
    let mut order = CallOrder::default();
    (0..count).map(|_| order.arrive()).collect()
}

async fn in_turn(place: &Place) {
    let far = Instant::now() + Duration::from_secs(3600);
    place.wait_for_turn(&mut { LONGEST_WAIT }, far).await.unwrap();
}

/// Runs all tasks that can go on.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// A call that waits at the gate before it is sent.
fn held(arrival: Arrival, server: &Arc<Server>) -> JoinHandle<()> {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let place = arrival.place();
        arrival
            .run(async {
                server.gate.notified().await;
                in_turn(&place).await;
                server.takes(&place);
            })
            .await;
    })
}

fn poll_once<T>(work: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn work_begins_in_the_order_of_arrival_whichever_task_runs_first() {
    let server = Arc::<Server>::default();
    let mut tasks = JoinSet::new();
    for arrival in arrivals(50).into_iter().rev() {
        let server = Arc::clone(&server);
        tasks.spawn(async move {
            let place = arrival.place();
            arrival.run(async { server.takes(&place) }).await;
        });
    }
    tasks.join_all().await;
    assert_eq!(server.got(), (0..50).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn calls_that_were_held_are_sent_in_the_order_of_arrival_whichever_wakes_first() {
    let server = Arc::<Server>::default();
    let mut all = arrivals(40);
    let order = Arc::clone(&all[0].0.queue);
    let mut tasks: Vec<_> = all.drain(..).map(|arrival| held(arrival, &server)).collect();
    settle().await;
    // Each is woken by itself, in an order that has nothing to do with that of arrival.
    for _ in 0..40 {
        server.gate.notify_one();
        server.gate.notify_last();
        settle().await;
    }
    for task in tasks.drain(..) {
        task.await.unwrap();
    }
    assert_eq!(server.got(), (0..40).collect::<Vec<_>>());
    assert!(!order.is_listed(), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_lost_goes_before_later_ones_that_were_held() {
    let server = Arc::<Server>::default();
    let [first, second]: [Arrival; 2] = arrivals(2).try_into().unwrap();
    let (lost, again) = (first.place(), Arc::new(Notify::new()));
    let first = tokio::spawn({
        let (server, again) = (Arc::clone(&server), Arc::clone(&again));
        async move {
            let place = first.place();
            first
                .run(async {
                    server.takes(&place);
                    again.notified().await;
                    in_turn(&place).await;
                    server.takes(&place);
                })
                .await;
        }
    });
    settle().await;
    let second = held(second, &server);
    settle().await;
    lost.return_to_queue();
    server.gate.notify_one();
    settle().await;
    assert_eq!(server.got(), [0], "the second overtook the first");
    again.notify_one();
    let _ = tokio::join!(first, second);
    assert_eq!(server.got(), [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_frees_later_ones_at_once_however_it_ends() {
    for ends in ["before its work", "cancelled while it waits", "refused", "panics"] {
        let server = Arc::<Server>::default();
        let [first, second]: [Arrival; 2] = arrivals(2).try_into().unwrap();
        let began = Instant::now();
        let first = match ends {
            "before its work" => {
                let second = held(second, &server);
                settle().await;
                drop(first);
                settle().await;
                server.gate.notify_one();
                second.await.unwrap();
                assert_eq!((server.got(), began.elapsed()), (vec![1], Duration::ZERO), "{ends}");
                continue;
            }
            "cancelled while it waits" => tokio::spawn(first.run(pending())),
            "refused" => tokio::spawn(first.run(yield_now())),
            _ => tokio::spawn(first.run(async {
                yield_now().await;
                panic!("as it is meant to");
            })),
        };
        let second = held(second, &server);
        settle().await;
        first.abort();
        server.gate.notify_one();
        timeout(Duration::from_millis(1), second).await.unwrap().unwrap();
        assert_eq!((server.got(), began.elapsed()), (vec![1], Duration::ZERO), "{ends}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_an_earlier_one_no_longer_than_it_may_and_the_next_ones_not_at_all() {
    let server = Arc::<Server>::default();
    let [slow, second, third, fourth]: [Arrival; 4] = arrivals(4).try_into().unwrap();
    let began = Instant::now();
    let slow = tokio::spawn(slow.run(sleep(Duration::from_secs(300))));
    let (second, third) = (held(second, &server), held(third, &server));
    settle().await;
    server.gate.notify_waiters();
    second.await.unwrap();
    third.await.unwrap();
    assert_eq!((server.got(), began.elapsed()), (vec![1, 2], LONGEST_WAIT));
    let fourth = held(fourth, &server);
    settle().await;
    server.gate.notify_one();
    fourth.await.unwrap();
    assert_eq!((server.got(), began.elapsed()), (vec![1, 2, 3], LONGEST_WAIT));
    slow.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_earlier_ones_only_so_long_in_all_and_never_beyond_its_own_end() {
    let [slow, other, last]: [Arrival; 3] = arrivals(3).try_into().unwrap();
    let mut waiting: Vec<_> = [&slow, &other].map(Arrival::place).into();
    let mut slow = Box::pin(slow.run(pending::<()>()));
    let mut other = Box::pin(other.run(pending::<()>()));
    assert!(poll_once(&mut slow).is_pending() && poll_once(&mut other).is_pending());
    let place = last.place();
    let (began, mut left) = (Instant::now(), LONGEST_WAIT);
    let wait = async {
        let soon = began + Duration::from_millis(400);
        assert!(place.wait_for_turn(&mut left, soon).await.is_err(), "its own time is over");
        left = Duration::from_millis(600);
        place.wait_for_turn(&mut left, began + Duration::from_secs(60)).await.unwrap();
        assert_eq!((began.elapsed(), left), (LONGEST_WAIT, Duration::ZERO));
        // The one that it overtook is lost again: this call has no time left for it.
        waiting.remove(0).return_to_queue();
        place.wait_for_turn(&mut left, began + Duration::from_secs(60)).await.unwrap();
        assert_eq!(began.elapsed(), LONGEST_WAIT);
    };
    last.run(wait).await;
}

#[test]
fn a_call_that_the_server_can_take_at_once_takes_no_lock() {
    let mut order = CallOrder::default();
    let arrivals: Vec<_> = (0..3).map(|_| order.arrive()).collect();
    let queue = Arc::clone(&order.queue);
    let locked = queue.lists.lock().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let calls = std::thread::spawn(move || {
        for arrival in arrivals {
            let place = arrival.place();
            let mut call = Box::pin(arrival.run(async move {
                in_turn(&place).await;
                place.mark_sent();
            }));
            assert!(poll_once(&mut call).is_ready());
        }
        tell.send(()).unwrap();
    });
    let done = told.recv_timeout(Duration::from_secs(30));
    drop(locked);
    calls.join().unwrap();
    assert_eq!(done, Ok(()), "it waited for the lock");
}

#[tokio::test]
async fn agents_do_not_wait_for_each_other() {
    let (mut one, mut other) = (CallOrder::default(), CallOrder::default());
    let mut waits = Box::pin(one.arrive().run(pending::<()>()));
    assert!(poll_once(&mut waits).is_pending());
    let arrival = other.arrive();
    let place = arrival.place();
    let mut goes = Box::pin(arrival.run(async move { in_turn(&place).await }));
    assert!(poll_once(&mut goes).is_ready());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_one_agent_keep_their_order_on_several_threads_while_they_are_held_and_lost() {
    for round in 0..50_u64 {
        let lock = Arc::new(Mutex::new(Vec::new()));
        let mut order = CallOrder::default();
        let mut tasks = JoinSet::new();
        for number in 0..40_u64 {
            let (arrival, lock) = (order.arrive(), Arc::clone(&lock));
            tasks.spawn(async move {
                let place = arrival.place();
                let ends = (number + round) % 7 == 3;
                arrival
                    .run(async {
                        for _ in 0..(number * 31 + round) % 5 {
                            yield_now().await;
                        }
                        if ends {
                            return;
                        }
                        in_turn(&place).await;
                        // Nothing is awaited from the turn on.
                        lock.try_lock().unwrap().push(number);
                        place.mark_sent();
                    })
                    .await;
            });
        }
        tasks.join_all().await;
        let want: Vec<_> = (0..40).filter(|number| (number + round) % 7 != 3).collect();
        assert_eq!(*lock.lock().await, want, "round {round}");
        assert!(!order.queue.is_listed(), "{:?}", order.queue);
    }
}
