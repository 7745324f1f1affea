//! Being told to stop: politely the first time, at once the second. By signals, or by what the console says on Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::time::Duration;

use crate::log;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

#[cfg(windows)]
pub(crate) use system::by_manager;
pub(crate) use system::{GATEWAY, Kind, RELOAD, SHIM, of_run, reload};
use system::{Signal, listen};

/// After the second signal, how long the runtime has for an end of its own: the journal's last entry, for one.
const GRACE: Duration = Duration::from_secs(1);

/// Ends the process after a second signal, whatever its runtime does: a thread of its own listens, with a runtime that
/// nothing else runs on. The servers' reapers see that we are gone, and clean up.
pub(crate) fn insist(kinds: impl IntoIterator<Item = Kind> + Send + 'static) {
    let work = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        let signal = runtime.block_on(async {
            let mut signals = Signals::of(kinds);
            signals.next().await;
            let signal = signals.next().await;
            tokio::time::sleep(GRACE).await;
            signal
        });
        log::say("linetender: shutdown timed out after a second signal; exiting");
        log::flush();
        #[expect(clippy::disallowed_methods, reason = "the runtime is stuck, so main cannot return")]
        std::process::exit(i32::from(signal) + 128);
    };
    // Without it a stuck runtime needs SIGKILL, and that is all.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(work);
}

/// The signals by which people and service managers want a program to stop.
pub(crate) struct Signals(Vec<(Kind, Signal)>);

impl Signals {
    /// Listens for these from now on.
    pub(crate) fn of(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self(kinds.into_iter().filter_map(|kind| Some((kind, listen(kind).ok()?))).collect())
    }

    /// The next of them, by its number.
    pub(crate) async fn next(&mut self) -> u8 {
        std::future::poll_fn(|context| {
            for (kind, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(system::number(*kind));
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
