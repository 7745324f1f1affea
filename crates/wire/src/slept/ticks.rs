//! Looking at the clocks now and then, for systems that wake nobody when they wake up themselves.

use std::time::Duration;

use tokio::sync::watch;

use super::SHORTEST;
use crate::tasks::spawn_last;

/// How often. A timer stands still while the machine sleeps: so long after it woke up it is known.
const OFTEN: Duration = Duration::from_secs(2);

/// The one task that looks, for as long as anybody watches.
pub(super) fn start(apart: impl Fn() -> Duration + Send + 'static) -> watch::Receiver<()> {
    let (told, slept) = watch::channel(());
    let mut last = apart();
    spawn_last(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(OFTEN) => {}
                () = told.closed() => return,
            }
            let now = apart();
            if now.saturating_sub(last) >= SHORTEST {
                last = now;
                told.send_replace(());
            }
        }
    });
    slept
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{OFTEN, start};

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_is_told_of_soon_after_it_woke_up_and_nothing_else_is() {
        let asleep = Arc::new(AtomicU64::new(500));
        let clocks = Arc::clone(&asleep);
        let mut slept = start(move || Duration::from_millis(clocks.load(Ordering::Relaxed)));
        let soon = OFTEN + Duration::from_millis(1);
        assert!(tokio::time::timeout(soon * 100, slept.changed()).await.is_err(), "it was awake");
        // Between two clocks that are read one after the other is always a little.
        asleep.fetch_add(20, Ordering::Relaxed);
        assert!(tokio::time::timeout(soon * 2, slept.changed()).await.is_err());
        for _ in 0..2 {
            asleep.fetch_add(8 * 3600 * 1000, Ordering::Relaxed);
            assert!(tokio::time::timeout(soon, slept.changed()).await.is_ok(), "it slept for hours");
            assert!(tokio::time::timeout(soon * 2, slept.changed()).await.is_err(), "that is told once");
        }
    }
}
