//! Notices that another program has changed a file with credentials: a server that waits for them need not wait any longer.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use linetender_wire::aside;
use tokio::sync::watch::Sender;
use tokio::time::{MissedTickBehavior, interval};

use crate::system::Sight;
use crate::tasks;

const EVERY: Duration = Duration::from_secs(1);

/// Until the sender is gone.
pub(super) fn follow(files: Vec<PathBuf>, changed: &Arc<Sender<u64>>) {
    let seen = sight(&files);
    tasks::spawn(look(files, seen, Arc::downgrade(changed)));
}

async fn look(files: Vec<PathBuf>, mut seen: Vec<Option<Sight>>, changed: Weak<Sender<u64>>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(changed) = changed.upgrade() else { return };
        let looked_at = files.clone();
        let Some(now) = aside(move || sight(&looked_at)).await else { continue };
        if now != seen {
            seen = now;
            changed.send_modify(|changes| *changes += 1);
        }
    }
}

fn sight(files: &[PathBuf]) -> Vec<Option<Sight>> {
    let of = |file: &PathBuf| std::fs::metadata(file).ok().map(|about| Sight::of(&about));
    files.iter().map(of).collect()
}
