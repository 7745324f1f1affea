//! Who is told that the machine slept: by how far two clocks have come apart, whenever there is a reason to look at them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::SHORTEST;
use super::system::{apart, start};

/// One watch for all lines of a rig: there may be thousands of them, and descriptors are few. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SleepWatch(Arc<Mutex<Option<watch::Receiver<()>>>>);

/// Watches for sleep. Where the system refuses what tells of it, nobody is told.
#[derive(Debug)]
pub struct Slept {
    /// How far the clocks were apart when somebody last looked.
    apart: Duration,
    /// Changes whenever there is a reason to look.
    set: Option<watch::Receiver<()>>,
}

impl SleepWatch {
    /// Begins to watch.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn watch(&self) -> Slept {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The task that has the timer ends with its runtime, and lines may be opened on another one after that.
        let running = started.take().filter(|set| set.has_changed().is_ok());
        *started = running.or_else(start);
        Slept { apart: apart(), set: started.clone() }
    }
}

impl Slept {
    /// Watches nothing: in a simulated world only that world sleeps.
    pub const fn never() -> Self {
        Self { apart: Duration::ZERO, set: None }
    }

    /// Waits until the machine has slept; how long. Whoever stops waiting misses nothing.
    pub async fn wait(&mut self) -> Duration {
        loop {
            let Some(set) = &mut self.set else { return std::future::pending().await };
            if set.changed().await.is_err() {
                self.set = None;
            } else if let Some(slept) = self.since(apart()) {
                return slept;
            }
        }
    }

    /// How long the machine slept since somebody last looked, by how far the clocks are apart now.
    fn since(&mut self, apart: Duration) -> Option<Duration> {
        let slept = apart.saturating_sub(self.apart);
        (slept >= SHORTEST).then(|| {
            self.apart = apart;
            slept
        })
    }
}

#[cfg(all(test, not(linetender_portable)))]
mod tests {
    use std::time::Duration;

    use tokio::sync::watch;

    use super::{SleepWatch, Slept};

    #[test]
    fn a_sleep_is_told_once_and_the_time_between_two_looks_is_none() {
        let mut slept = Slept { apart: Duration::from_secs(100), set: None };
        assert_eq!(
            slept.since(Duration::from_millis(100_020)),
            None,
            "the clocks are read one after the other"
        );
        assert_eq!(slept.since(Duration::from_secs(28_900)), Some(Duration::from_secs(28_800)));
        assert_eq!(slept.since(Duration::from_millis(28_900_010)), None);
    }

    /// Timers of this process, whoever has them.
    #[cfg(target_os = "linux")]
    fn timers() -> usize {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors
            .filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.ends_with("anon_inode:[timerfd]")))
            .count()
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_machine_that_is_awake_can_be_watched_by_thousands_with_one_timer() {
        let (before, watch) = (timers(), SleepWatch::default());
        let mut watched: Vec<_> = (0..2_000).map(|_| watch.watch()).collect();
        assert!(watched.iter().all(|slept| slept.set.is_some()), "the kernel has such timers");
        // Other tests of this process may have a few of their own.
        assert!(timers() < before + 100, "{} timers, {before} before", timers());
        let soon = tokio::time::timeout(Duration::from_millis(50), watched[7].wait());
        assert!(soon.await.is_err(), "it did not sleep");
    }

    #[test]
    fn a_watch_outlives_the_runtime_that_it_was_begun_on() {
        let (watch, runtime) = (SleepWatch::default(), || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
        });
        let first = runtime().block_on(async { watch.watch() });
        let again = runtime();
        let second = again.block_on(async { watch.watch() });
        assert!(first.set.unwrap().has_changed().is_err(), "its task ended with its runtime");
        assert!(second.set.unwrap().has_changed().is_ok());
    }

    #[tokio::test]
    async fn whoever_did_not_wait_when_the_clock_was_set_looks_at_the_next_wait() {
        let (told, set) = watch::channel(());
        // The clocks of a machine that never slept are as good as those of one that slept all its life but this.
        let mut watched: Vec<_> =
            (0..3).map(|_| Slept { apart: Duration::ZERO, set: Some(set.clone()) }).collect();
        told.send_replace(());
        for slept in &mut watched {
            let wait = tokio::time::timeout(Duration::from_millis(50), slept.wait()).await;
            assert_eq!(wait.is_ok(), super::apart() >= super::SHORTEST, "by the clocks alone");
            assert!(!slept.set.as_mut().unwrap().has_changed().unwrap(), "it was heard");
        }
    }
}
