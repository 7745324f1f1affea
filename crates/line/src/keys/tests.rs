//! The task that asks for keys, in virtual time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use linetender_wire::Redacted;
use linetender_wire::http::KeyRefused;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Asked, Key, KeyRing, Keys, NoKey, Refused, Source, Without};

type Given = Result<Option<Key>, NoKey>;

/// Answers as the test says, by how often it was asked before.
struct Says<F> {
    answer: F,
    asked: Mutex<Vec<(Instant, Option<Refused>)>>,
    changes: Mutex<Option<watch::Sender<u64>>>,
}

impl<F> std::fmt::Debug for Says<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Says")
    }
}

impl<F, Answer> Keys for Says<F>
where
    F: Fn(usize, Option<Refused>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Given> + Send + 'static,
{
    fn key(self: Arc<Self>, refused: Option<Refused>) -> Asked {
        let before = self.asked().len();
        self.asked.lock().unwrap().push((Instant::now(), refused.clone()));
        Box::pin((self.answer)(before, refused))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.lock().unwrap().as_ref().expect("not for ever").subscribe()
    }
}

impl<F> Says<F> {
    fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().iter().map(|(at, _)| *at).collect()
    }

    fn change(&self) {
        self.changes.lock().unwrap().as_ref().unwrap().send_modify(|changes| *changes += 1);
    }
}

/// Somebody who says this, the ring of a line, and its task.
fn ring<F, Answer>(says: F) -> (Arc<Says<F>>, Arc<KeyRing>, JoinSet<()>)
where
    F: Fn(usize, Option<Refused>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Given> + Send + 'static,
{
    let changes = Mutex::new(Some(watch::Sender::new(0)));
    let keys = Arc::new(Says { answer: says, asked: Mutex::default(), changes });
    let source = Source(Arc::<Says<F>>::clone(&keys));
    let (ring, task) = KeyRing::new(&source);
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run());
    (keys, ring, tasks)
}

fn key(number: usize) -> Key {
    Key::bearer(&format!("ring-token-{number:06}")).unwrap()
}

fn login() -> NoKey {
    NoKey::Login { words: Redacted::head("run `linetender login x`", 200) }
}

fn later(after: Option<Duration>) -> NoKey {
    NoKey::Later { words: Redacted::head("does not answer", 200), after }
}

/// What is in the slot was refused.
fn refused(ring: &KeyRing) -> KeyRefused {
    KeyRefused { key: ring.slot.read(), status: 401, challenge: "Bearer".into() }
}

#[tokio::test(start_paused = true)]
async fn whoever_never_answers_is_waited_for_so_long_and_asked_again() {
    let (keys, ring, _tasks) = ring(|before, _| async move {
        match before {
            0 => std::future::pending().await,
            _ => Ok(Some(key(1))),
        }
    });
    let start = Instant::now();
    let why = ring.fresh().await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_secs(20));
    assert!(why.seen().to_string().contains("did not answer within 20 s"), "{why:?}");
    ring.fresh().await.unwrap();
    assert_eq!(keys.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_theirs_is_an_answer_and_the_next_question_is_asked() {
    let (_keys, ring, _tasks) = ring(|before, _| {
        assert!(before != 0, "on purpose, before it waits");
        async move {
            assert!(before != 1, "on purpose, while it waits");
            Ok(Some(key(1)))
        }
    });
    for _ in 0..2 {
        let why = ring.fresh().await.unwrap_err();
        assert!(matches!(why, Without::NoKey(NoKey::Later { .. })), "{why:?}");
        assert!(why.seen().to_string().contains("panicked"), "{why:?}");
    }
    ring.fresh().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_say_what_changed_is_asked_all_the_same() {
    let says = |_, _| async { Ok(Some(key(1))) };
    let keys = Arc::new(Says { answer: says, asked: Mutex::default(), changes: Mutex::new(None) });
    let (ring, task) = KeyRing::new(&Source(Arc::<Says<_>>::clone(&keys) as Arc<dyn Keys>));
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run());
    ring.fresh().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_does_not_make_it_ask_without_end() {
    let long_ago = SystemTime::UNIX_EPOCH;
    let (keys, ring, _tasks) = ring(move |before, _| async move { Ok(Some(key(before).renew_at(long_ago))) });
    ring.is_used(true);
    ring.fresh().await.unwrap();
    tokio::time::sleep(Duration::from_secs(605)).await;
    assert_eq!(keys.asked().len(), 61, "one in ten seconds");
    // A connection that nobody has is not worth a key.
    ring.is_used(false);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(keys.asked().len(), 61);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_renewed_when_it_says_so_and_used_on_if_that_fails() {
    let in_a_minute = || linetender_wire::wall::wall_clock() + Duration::from_secs(60);
    let (keys, ring, _tasks) = ring(move |before, _| async move {
        match before {
            0 => Ok(Some(key(1).renew_at(in_a_minute()))),
            1 => Err(later(None)),
            2 => Ok(Some(key(2))),
            _ => Err(login()),
        }
    });
    ring.is_used(true);
    ring.fresh().await.unwrap();
    let first = ring.slot.read();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(keys.asked().len(), 2);
    assert_eq!(ring.slot.read(), first, "it was not refused, so it is good");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(keys.asked().len(), 3);
    assert!(ring.slot.read().is_newer_than(&first));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(keys.asked().len(), 3, "that one does not expire");
    let news = ring.news().borrow().clone();
    assert_eq!((news.logins, news.losses), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn fifty_that_were_refused_for_one_key_are_told_by_one_answer_and_so_is_whoever_comes_later() {
    let (keys, ring, _tasks) = ring(|before, refused| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        match (before, refused) {
            (0, None) => Ok(Some(key(1))),
            (_, Some(_)) => Err(login()),
            (_, None) => Ok(Some(key(2))),
        }
    });
    ring.fresh().await.unwrap();
    let refused = refused(&ring);
    let mut waiting = JoinSet::new();
    for number in 0..50 {
        let (ring, mut refused) = (Arc::clone(&ring), refused.clone());
        // Challenges may differ: it is the key that was refused.
        refused.challenge = format!("Bearer nonce=\"{number}\"").into();
        waiting.spawn(async move { ring.renewed(&refused, true).await });
    }
    while let Some(told) = waiting.join_next().await {
        assert_eq!(told.unwrap(), Err(Without::NoKey(login())));
    }
    assert_eq!(ring.renewed(&refused, true).await, Err(Without::NoKey(login())));
    assert_eq!(keys.asked().len(), 2);
    assert_eq!(ring.news().borrow().losses, 1);
    assert!(ring.slot.read().headers().is_none(), "whoever has to log in has no key");
    // After a login there is one, and nobody has to ask.
    keys.change();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(ring.news().borrow().logins, 1);
    assert_eq!(ring.renewed(&refused, true).await, Ok(()));
    assert_eq!(keys.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_login_makes_a_question_that_hangs_another_one() {
    let (keys, ring, _tasks) = ring(|before, _| async move {
        match before {
            0 => std::future::pending().await,
            _ => Ok(Some(key(1))),
        }
    });
    let asking = ring.fresh();
    tokio::pin!(asking);
    assert!(tokio::time::timeout(Duration::from_secs(3), &mut asking).await.is_err());
    let start = Instant::now();
    keys.change();
    asking.await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_is_asked_about_a_few_times_and_not_longer_than_somebody_may_wait() {
    let (keys, ring, _tasks) = ring(|before, refused| async move {
        match refused {
            None => Ok(Some(key(before))),
            Some(_) => Err(later((before > 4).then_some(Duration::from_secs(3600)))),
        }
    });
    ring.fresh().await.unwrap();
    let start = Instant::now();
    ring.renewed(&refused(&ring), true).await.unwrap_err();
    assert_eq!((keys.asked().len(), start.elapsed()), (5, Duration::from_secs(7)));
    // Somebody said that it takes longer; and a handshake does not wait at all.
    for patient in [true, false] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ring.renewed(&refused(&ring), patient).await.unwrap_err();
    }
    assert_eq!((keys.asked().len(), start.elapsed()), (7, Duration::from_secs(9)));
    assert_eq!(ring.news().borrow().losses, 3);
}

#[tokio::test(start_paused = true)]
async fn whoever_never_answers_keeps_nobody_for_more_than_a_minute() {
    let (_keys, ring, tasks) = ring(|before, _| async move {
        match before {
            0 => Ok(Some(key(1))),
            _ => std::future::pending().await,
        }
    });
    ring.fresh().await.unwrap();
    let start = Instant::now();
    let refused = refused(&ring);
    let (first, second, fresh) =
        tokio::join!(ring.renewed(&refused, true), ring.renewed(&refused, true), ring.fresh());
    assert!(first.is_err() && first == second, "{first:?} {second:?}");
    assert!(fresh.is_err());
    assert!(start.elapsed() <= Duration::from_secs(70), "{:?}", start.elapsed());
    // The line is closed while somebody waits.
    let asking = ring.fresh();
    let (why, ()) = tokio::join!(asking, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(tasks);
    });
    assert!(why.unwrap_err().seen().to_string().contains("the line was closed"));
}

#[tokio::test(start_paused = true)]
async fn the_same_key_again_and_no_key_are_no_answer_to_a_refusal() {
    for again in [Some(key(1)), None] {
        let given = again.clone();
        let (_keys, ring, _tasks) = ring(move |_, refused| {
            let given = given.clone();
            async move { Ok(if refused.is_some() { given } else { Some(key(1)) }) }
        });
        ring.fresh().await.unwrap();
        let why = ring.renewed(&refused(&ring), true).await.unwrap_err();
        assert!(matches!(why, Without::Refused { .. }), "{why:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn new_keys_that_are_refused_without_end_are_asked_for_once_a_second_at_most() {
    let questions = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&questions);
    let (_keys, ring, _tasks) = ring(move |before, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(Some(key(before))) }
    });
    ring.fresh().await.unwrap();
    for _ in 0..1000 {
        let refused = KeyRefused { status: 403, ..refused(&ring) };
        let _ = ring.renewed(&refused, true).await;
    }
    assert_eq!(questions.load(Ordering::Relaxed), 21);
}

/// The times of the questions, in whole seconds.
fn seconds<F>(keys: &Says<F>, since: Instant) -> Vec<u64> {
    keys.asked().iter().map(|at| (*at - since).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_line_that_rests_looks_for_a_key_after_waits_that_double_up_to_a_minute() {
    let (keys, ring, _tasks) = ring(|before, refused| async move {
        match (before, refused) {
            (_, Some(_)) => Err(login()),
            (12.., None) => Ok(Some(key(2))),
            (_, None) => Ok(Some(key(1))),
        }
    });
    let start = Instant::now();
    ring.fresh().await.unwrap();
    ring.renewed(&refused(&ring), false).await.unwrap_err();
    ring.rests(true);
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert_eq!(seconds(&keys, start), [0, 0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    assert_eq!(ring.news().borrow().logins, 0, "it is the key that was refused");
    tokio::time::sleep(Duration::from_secs(80)).await;
    assert_eq!(ring.news().borrow().logins, 1);
    // Once it connects, or is closed, nobody looks any more.
    ring.rests(false);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(keys.asked().len(), 13);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_answered_is_asked_again_while_the_line_rests() {
    let (_keys, ring, _tasks) = ring(|before, refused| async move {
        match (before, refused) {
            (_, None) => Ok(Some(key(1))),
            (0..4, Some(_)) => Err(later(None)),
            (_, Some(_)) => Ok(Some(key(2))),
        }
    });
    ring.fresh().await.unwrap();
    ring.renewed(&refused(&ring), false).await.unwrap_err();
    ring.rests(true);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(ring.news().borrow().logins, 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ring.news().borrow().logins, 1);
}

#[tokio::test(start_paused = true)]
async fn a_login_that_brings_the_same_key_is_tried_at_once_and_ever_more_seldom_if_it_is_of_no_use() {
    let (keys, ring, _tasks) = ring(|_, refused| async move {
        match refused {
            Some(_) => Err(login()),
            None => Ok(Some(key(1))),
        }
    });
    let (mut tried, start) = (Vec::new(), Instant::now());
    let mut news = ring.news();
    // The store changes all the time.
    while start.elapsed() < Duration::from_secs(200) {
        ring.rests(false);
        ring.fresh().await.unwrap();
        ring.renewed(&refused(&ring), false).await.unwrap_err();
        ring.rests(true);
        let before = news.borrow_and_update().logins;
        while news.borrow_and_update().logins == before {
            keys.change();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tried.push(start.elapsed().as_secs());
    }
    assert_eq!(tried, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
}

#[tokio::test(start_paused = true)]
async fn new_keys_that_the_server_never_takes_are_asked_for_twice_and_then_ever_more_seldom() {
    let (keys, ring, _tasks) = ring(|before, _| async move { Ok(Some(key(before))) });
    let start = Instant::now();
    // Every renewal, of this process or another, is a change, and a new key makes the line dial.
    while start.elapsed() < Duration::from_secs(120) {
        ring.fresh().await.unwrap();
        for _ in 0..2 {
            let _ = ring.renewed(&refused(&ring), false).await;
        }
        keys.change();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let asked = keys.asked.lock().unwrap().clone();
    let refusals = asked.iter().filter(|(_, refused)| refused.is_some());
    let refusals: Vec<_> = refusals.map(|(at, _)| (*at - start).as_secs()).collect();
    assert_eq!(refusals, [0, 0, 1, 3, 7, 15, 31, 63]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_whoever_gives_the_keys_is_no_busy_loop() {
    let (keys, ring, _tasks) = ring(|_, _| async { Ok(Some(key(1))) });
    ring.fresh().await.unwrap();
    drop(keys.changes.lock().unwrap().take());
    tokio::time::sleep(Duration::from_secs(10)).await;
    ring.fresh().await.unwrap();
}

#[test]
fn nothing_prints_a_key() {
    let refused = Refused { key: Some(key(7)), status: 401, challenge: "Bearer".into() };
    let printed = format!("{:?} {refused:?}", key(7));
    assert!(!printed.contains("ring-token"), "{printed}");
}
