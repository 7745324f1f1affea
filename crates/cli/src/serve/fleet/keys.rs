//! The keys that sessions and principals are sealed with: one a day, which the first gateway makes and all others find.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender_fleet::{Away, Directory};
use tokio::time::Instant;

/// Keys that are known at once: those of yesterday, today and tomorrow, and as many again that were lost.
const KEYS: usize = 6;

/// How often it is asked at most whether there is a key that is not known here: agents show whatever they like.
const ASKS: Duration = Duration::from_secs(1);

/// How long a session waits for a key that all gateways have, and between two tries. Without one it is known to its own gateway alone.
const KEY: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(100);

pub(super) type Key = [u8; 32];

#[derive(Default)]
pub(super) struct Keys {
    /// By the day; of several of a day the last one is in use.
    known: Mutex<Vec<(u64, Key)>>,
    /// For which days it was asked a moment ago whether there are keys that are not known here. Whoever asks holds it: a gateway that has just begun is shown many seals at once, and all of
    /// them wait for the one answer.
    asked: tokio::sync::Mutex<Vec<(u64, Instant)>>,
}

impl Keys {
    /// The key of this day: a new one, if nobody has made one yet; `None` if it cannot be had now.
    pub(super) async fn of(&self, directory: &dyn Directory, day: u64) -> Option<Key> {
        if let Some(key) = self.known(day).first() {
            return Some(*key);
        }
        let mut ours = [0; 32];
        getrandom::fill(&mut ours).ok()?;
        let key = in_time(|| shared(directory, day, &ours)).await??;
        self.learn(day, key);
        Some(key)
    }

    /// Those of this day that there are; nobody makes one here. `again`: those that were known do not fit.
    pub(super) async fn find(&self, directory: &dyn Directory, day: u64, again: bool) -> Vec<Key> {
        let before = self.known(day);
        if !again && !before.is_empty() {
            return before;
        }
        let mut asked = self.asked.lock().await;
        let now = self.known(day);
        asked.retain(|(_, at)| at.elapsed() < ASKS);
        // By the day: strangers who show seals of tomorrow keep nobody from today's.
        if now != before || asked.iter().any(|(of, _)| *of == day) {
            return now;
        }
        let name = name(day);
        // Whoever knows a key can answer without this one: then it is asked once.
        let found = if before.is_empty() {
            in_time(|| directory.recall(&name)).await
        } else {
            directory.recall(&name).await.ok()
        };
        if let Some(Some((_, key))) = found
            && let Ok(key) = key.try_into()
        {
            self.learn(day, key);
        }
        asked.push((day, Instant::now()));
        self.known(day)
    }

    /// The one in use first.
    fn known(&self, day: u64) -> Vec<Key> {
        self.all().iter().rev().filter(|(of, _)| *of == day).map(|(_, key)| *key).collect()
    }

    /// It is used from now on.
    fn learn(&self, day: u64, key: Key) {
        let mut keys = self.all();
        if keys.contains(&(day, key)) {
            return;
        }
        if keys.len() >= KEYS {
            keys.remove(0);
        }
        keys.push((day, key));
    }

    fn all(&self) -> MutexGuard<'_, Vec<(u64, Key)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(day: u64) -> String {
    format!("session-key/{day}")
}

/// Ours, if nobody has made one yet.
async fn shared(directory: &dyn Directory, day: u64, ours: &Key) -> Result<Option<Key>, Away> {
    let name = name(day);
    // Whoever is first makes it; everybody else finds it.
    if directory.note(&name, None, ours).await?.is_some() {
        return Ok(Some(*ours));
    }
    Ok(directory.recall(&name).await?.and_then(|(_, known)| known.try_into().ok()))
}

/// Asks again while the directory does not answer: a fleet that has just begun still makes the place for keys.
async fn in_time<T, F: Future<Output = Result<T, Away>>>(ask: impl Fn() -> F) -> Option<T> {
    let until = Instant::now() + KEY;
    loop {
        match ask().await {
            Ok(answer) => return Some(answer),
            Err(_) if Instant::now() < until => tokio::time::sleep(AGAIN).await,
            Err(away) => {
                tracing::debug!(%away, "no key for sessions");
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use linetender_fleet::directory::{Changed, Later, Recalled, There};
    use linetender_fleet::{Entry, Local, Revision};
    use tokio::sync::mpsc;
    use tokio::task::JoinSet;

    use super::*;

    const DAY: u64 = 20_000;

    /// One that answers after a second, and at first not at all.
    #[derive(Clone, Default)]
    struct Slow {
        keeps: Local,
        fails: Arc<AtomicU32>,
        asked: Arc<AtomicU32>,
    }

    impl Directory for Slow {
        fn look<'a>(&'a self, line: &'a str) -> Later<'a, There> {
            self.keeps.look(line)
        }

        fn put<'a>(
            &'a self,
            line: &'a str,
            expected: Option<Revision>,
            entry: Entry,
        ) -> Later<'a, Option<Revision>> {
            self.keeps.put(line, expected, entry)
        }

        fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>> {
            self.keeps.watch()
        }

        fn recall<'a>(&'a self, call: &'a str) -> Later<'a, Recalled> {
            Box::pin(async move {
                self.asked.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                let fails =
                    self.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |fails| fails.checked_sub(1));
                if fails.is_ok() { Err(Away("it begins".to_owned())) } else { self.keeps.recall(call).await }
            })
        }

        fn note<'a>(
            &'a self,
            call: &'a str,
            expected: Option<Revision>,
            note: &'a [u8],
        ) -> Later<'a, Option<Revision>> {
            self.keeps.note(call, expected, note)
        }
    }

    async fn found(keys: &Arc<Keys>, slow: &Slow, many: usize) -> Vec<Vec<Key>> {
        let mut all = JoinSet::new();
        for _ in 0..many {
            let (keys, slow) = (Arc::clone(keys), slow.clone());
            all.spawn(async move { keys.find(&slow, DAY, false).await });
        }
        all.join_all().await
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_show_a_seal_to_a_gateway_that_has_just_begun_wait_for_one_answer() {
        let slow = Slow::default();
        let key = Keys::default().of(&slow, DAY).await.unwrap();
        slow.asked.store(0, Ordering::SeqCst);
        let keys = Arc::new(Keys::default());
        assert_eq!(found(&keys, &slow, 20).await, vec![vec![key]; 20]);
        assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_that_does_not_answer_at_once_is_asked_again() {
        let slow = Slow::default();
        let key = Keys::default().of(&slow, DAY).await.unwrap();
        slow.fails.store(1, Ordering::SeqCst);
        assert_eq!(found(&Arc::new(Keys::default()), &slow, 3).await, vec![vec![key]; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_make_no_keys_and_no_more_than_one_question_a_second() {
        let (slow, keys) = (Slow::default(), Arc::new(Keys::default()));
        assert_eq!(found(&keys, &slow, 50).await, vec![Vec::<Key>::new(); 50]);
        assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
        assert!(slow.keeps.recall(&name(DAY)).await.unwrap().is_none());
        // One that another gateway made, since: it is found a second later.
        let key = Keys::default().of(&slow, DAY).await.unwrap();
        tokio::time::sleep(ASKS).await;
        assert_eq!(found(&keys, &slow, 1).await, [vec![key]]);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_who_show_seals_of_tomorrow_keep_nobody_from_the_key_of_today() {
        let (slow, keys) = (Slow::default(), Arc::new(Keys::default()));
        let key = Keys::default().of(&slow, DAY).await.unwrap();
        assert!(keys.find(&slow, DAY + 1, false).await.is_empty());
        assert_eq!(found(&keys, &slow, 1).await, [vec![key]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_lost_is_known_beside_the_next_one() {
        let (slow, keys) = (Slow::default(), Keys::default());
        let lost = keys.of(&slow, DAY).await.unwrap();
        let anew = Slow::default();
        let key = Keys::default().of(&anew, DAY).await.unwrap();
        assert_eq!(keys.find(&anew, DAY, false).await, [lost]);
        assert_eq!(keys.find(&anew, DAY, true).await, [key, lost]);
        assert_eq!(keys.of(&anew, DAY).await, Some(key), "what all others use");
    }
}
