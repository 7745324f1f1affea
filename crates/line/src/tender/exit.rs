//! How long a closed pipe waits for the exit of its process. The exit status says more than "closed its output", and usually
//! follows at once.

use std::time::Duration;

use crate::generation::Link;

/// A process that ends closes its pipes a moment before its end can be seen: that is waited for so long.
const EXIT_FOLLOWS: Duration = Duration::from_millis(5);

/// The process has ended, or nobody can see whether it has: how is reported by its reaper, which may be late on a busy machine. Calls wait meanwhile.
const STATUS_FOLLOWS: Duration = Duration::from_millis(40);

/// Either of them while a server is dialled: no call is under way, and why it does not start is worth more than when.
const REASON_FOLLOWS: Duration = Duration::from_millis(250);

/// A pipe was closed. Returns when the process turns out to live on, or its exit status is overdue.
pub(super) async fn is_told(link: Option<&Link>, dialing: bool) {
    let exited = async |bound| {
        let ends = async {
            match link {
                Some(link) => link.reach.exited().await,
                None => std::future::pending().await,
            }
        };
        tokio::time::timeout(bound, ends).await.is_ok()
    };
    let dialing = || dialing && link.is_none_or(|link| !link.ear.is_open());
    if exited(EXIT_FOLLOWS).await || (dialing() && exited(REASON_FOLLOWS).await) {
        tokio::time::sleep(if dialing() { REASON_FOLLOWS } else { STATUS_FOLLOWS }).await;
    }
}
