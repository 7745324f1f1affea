//! Metrics, made at the scrape from what the holder counts anyway.
//!
//! The text of a scrape is never whole in memory: a thread writes it piece by piece, as fast as it is read.

mod collect;
mod names;
mod plain;
mod snapshot;

use std::fmt;

use bytes::Bytes;
use linetender_holder::Holder;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use collect::Collected;
pub use names::{Kind, METRICS, Metric};
use plain::Plain;
use snapshot::Snapshot;

/// The size of a piece.
const PIECE: usize = 32 * 1024;

/// Pieces that wait to be read.
const PIECES: usize = 2;

/// The format of a scrape.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Format {
    OpenMetrics,
    /// What came before it, and what other tools than Prometheus read.
    Plain,
}

impl Format {
    /// The format that these Accept headers name.
    pub(crate) fn accepted<'a>(mut accept: impl Iterator<Item = &'a str>) -> Self {
        let is_open = |header: &str| header.to_ascii_lowercase().contains("application/openmetrics-text");
        if accept.any(is_open) { Self::OpenMetrics } else { Self::Plain }
    }

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What is counted now, in pieces. `place` is given back when all of it was read.
pub(crate) async fn scrape(
    holder: &Holder,
    format: Format,
    place: OwnedSemaphorePermit,
) -> mpsc::Receiver<Bytes> {
    let trees = holder.processes().await;
    let (to, pieces) = mpsc::channel(PIECES);
    let holder = holder.clone();
    // Nobody waits for it: it ends when its reader has read all, or is gone.
    drop(tokio::task::spawn_blocking(move || {
        let snapshot = Snapshot::of(&holder, trees);
        let mut pieces = Pieces { buffer: String::with_capacity(PIECE * 2), to };
        if write(snapshot, format, &mut pieces).is_ok() {
            let _ = pieces.send();
        }
        drop(place);
    }));
    pieces
}

fn write(snapshot: Snapshot, format: Format, to: &mut dyn fmt::Write) -> fmt::Result {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collected(snapshot)));
    match format {
        Format::OpenMetrics => text::encode(&mut Sized(to), &registry),
        Format::Plain => {
            let mut plain = Plain::new(to);
            text::encode_registry(&mut plain, &registry)
        }
    }
}

/// A writer, for those who want a type.
struct Sized<'a>(&'a mut dyn fmt::Write);

impl fmt::Write for Sized<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }
}

/// Text on its way, cut into pieces.
struct Pieces {
    buffer: String,
    to: mpsc::Sender<Bytes>,
}

impl Pieces {
    /// Waits until there is room; an error if nobody reads any more.
    fn send(&mut self) -> fmt::Result {
        let piece = std::mem::replace(&mut self.buffer, String::with_capacity(PIECE * 2));
        self.to.blocking_send(Bytes::from(piece)).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.buffer.push_str(text);
        if self.buffer.len() >= PIECE { self.send() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
