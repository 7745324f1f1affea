//! Being told to stop: politely the first time, at once the second.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals by which people and service managers want a program to stop.
pub(crate) struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        Self::of([SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()])
    }

    /// Listens for these alone: to a gateway a hangup means something else.
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
