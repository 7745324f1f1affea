//! What happens to a line, as a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::{Stream, StreamExt as _};

use super::Event;

/// What happens to a line from now on: a [`Stream`], or call [`next`](Self::next). Ends with the line.
#[derive(Debug)]
pub struct Events(BroadcastStream<Event>);

impl Events {
    pub(super) fn of(events: broadcast::Receiver<Event>) -> Self {
        Self(BroadcastStream::new(events))
    }

    /// The next one; `None` once the line is closed and gone. Nothing is lost if this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.next().await.map(event)
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll_next(context)).map(event))
    }
}

fn event(heard: Result<Event, BroadcastStreamRecvError>) -> Event {
    heard.unwrap_or_else(|BroadcastStreamRecvError::Lagged(missed)| Event::Missed(missed))
}
