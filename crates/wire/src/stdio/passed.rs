//! Signals by which this process was told to stop: its servers get them too, as if whoever sent them had started the servers.

use std::sync::LazyLock;

use tokio::sync::watch;

use super::control::{INT, TERM};

/// The orders that pass them on, in the order in which they came.
static PASSED: LazyLock<watch::Sender<Vec<u8>>> = LazyLock::new(|| watch::Sender::new(Vec::new()));

/// Passes on a signal, by its number, to the process group of every server that is being closed, now and later. SIGINT and SIGTERM
/// are passed on; any other signal closes the server's stdin and no more.
pub fn pass_on(signal: u8) {
    let order = match signal {
        2 => INT,
        15 => TERM,
        _ => return,
    };
    PASSED.send_modify(|passed| passed.push(order));
}

/// What was passed on so far, and what will be.
pub(super) fn passed() -> watch::Receiver<Vec<u8>> {
    PASSED.subscribe()
}
