//! Progress of a call, for programs.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::Stream;

/// How many notifications wait for whoever reads them.
const KEPT: usize = 64;

/// One notification of progress.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct Progress {
    /// How far the server has got; it grows with each notification.
    pub progress: Option<f64>,
    /// How far it has to go, if the server knows.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
    /// The notification's params, as raw JSON.
    #[serde(skip)]
    pub raw: String,
}

/// The progress of one call: a [`Stream`], or call [`next`](Self::next). Ends with the call.
#[derive(Debug)]
pub struct ProgressStream(mpsc::Receiver<Progress>);

impl Progress {
    pub(super) fn of(params: &str) -> Self {
        Self { raw: params.to_owned(), ..serde_json::from_str(params).unwrap_or_default() }
    }
}

impl ProgressStream {
    pub(super) fn new() -> (mpsc::Sender<Progress>, Self) {
        let (heard, stream) = mpsc::channel(KEPT);
        (heard, Self(stream))
    }

    /// The next one; `None` once the call has ended.
    pub async fn next(&mut self) -> Option<Progress> {
        self.0.recv().await
    }
}

impl Stream for ProgressStream {
    type Item = Progress;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Progress>> {
        self.0.poll_recv(context)
    }
}
