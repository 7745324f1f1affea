//! Being told to stop: politely the first time, at once the second.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::log;

/// After the second signal, how long the runtime has for an end of its own: the journal's last entry, for one.
const GRACE: Duration = Duration::from_secs(1);

/// The signals by which a shim is told to stop.
pub(crate) const SHIM: [SignalKind; 3] =
    [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()];

/// Those of a gateway: to it a hangup means something else.
pub(crate) const GATEWAY: [SignalKind; 2] = [SignalKind::terminate(), SignalKind::interrupt()];

/// Ends the process after a second signal, whatever its runtime does: a thread of its own listens, with a runtime that
/// nothing else runs on. The servers' reapers see that we are gone, and clean up.
pub(crate) fn insist(kinds: impl IntoIterator<Item = SignalKind> + Send + 'static) {
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
pub(crate) struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    /// Listens for these from now on.
    pub(crate) fn of(kinds: impl IntoIterator<Item = SignalKind>) -> Self {
        Self(kinds.into_iter().filter_map(|kind| Some((kind, signal(kind).ok()?))).collect())
    }

    /// The next of them, by its number.
    pub(crate) async fn next(&mut self) -> u8 {
        std::future::poll_fn(|context| {
            for (kind, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(u8::try_from(kind.as_raw_value()).unwrap_or(0));
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
