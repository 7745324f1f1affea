//! The body of a request, which has to come in time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Class, GiveWay, Held, Owner};

/// How long a body may pause.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// How long any body may take, and what it has to bring per second after that.
const GRACE: Duration = Duration::from_secs(30);
const PER_SECOND: u64 = 64 * 1024;

/// Why there is no body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cut {
    /// It is longer than it may be.
    TooLong,
    /// It ended before its end.
    Early,
    /// It did not come in time.
    Late,
    /// There is no room for it.
    OverBudget,
}

/// A body on its way. It can be told to give way.
#[derive(Debug, Default)]
pub(super) struct Upload(Notify);

impl GiveWay for Upload {
    fn give_way(&self) {
        self.0.notify_one();
    }
}

/// The whole body, and the room that it takes.
pub(super) async fn whole(
    body: Body,
    most: usize,
    budget: &Budget,
    owner: Owner,
) -> Result<(Bytes, Held), Cut> {
    let upload = Arc::<Upload>::default();
    let holder: Weak<Upload> = Arc::downgrade(&upload);
    let mut held = budget.hold(Class::Body, owner, holder);
    let text = tokio::select! {
        text = collected(body, most, &mut held) => text?,
        () = upload.0.notified() => return Err(Cut::OverBudget),
    };
    held.becomes(Class::Call);
    Ok((text, held))
}

async fn collected(mut body: Body, most: usize, held: &mut Held) -> Result<Bytes, Cut> {
    if http_body::Body::size_hint(&body).lower() > most as u64 {
        return Err(Cut::TooLong);
    }
    let begun = Instant::now();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    loop {
        let come = first.len().max(all.len());
        let earned = Duration::from_millis(come as u64 * 1000 / PER_SECOND);
        let due = (Instant::now() + PAUSE).min(begun + GRACE + earned);
        let frame = match timeout_at(due, body.frame()).await {
            Err(_) => return Err(Cut::Late),
            Ok(Some(Err(_))) => return Err(Cut::Early),
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return Ok(if all.is_empty() { first } else { all.freeze() }),
        };
        let Ok(data) = frame.into_data() else { continue };
        if come + data.len() > most {
            return Err(Cut::TooLong);
        }
        held.grow(data.len()).map_err(|_| Cut::OverBudget)?;
        if come == 0 {
            // Most bodies come in one piece, which is not copied then.
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, GRACE, PAUSE};
    use crate::budget::{Budget, Owner};
    use crate::front::body;
    use axum::body::Body;
    use bytes::Bytes;
    use std::time::Duration;
    use tokio::time::Instant;

    async fn whole(body: Body, most: usize) -> Result<Bytes, Cut> {
        let budget = Budget::new(usize::MAX);
        super::whole(body, most, &budget, Owner::default()).await.map(|(text, _)| text)
    }

    /// A body that brings so many bytes each time.
    async fn slowly(bytes: usize, every: Duration, times: usize) -> Result<usize, Cut> {
        let (pieces, body) = body::stream();
        let writes = async move {
            for _ in 0..times {
                tokio::time::sleep(every).await;
                if pieces.send(Bytes::from(vec![b'x'; bytes]).into()).await.is_err() {
                    return;
                }
            }
        };
        let (read, ()) = tokio::join!(whole(body, 16 * 1024 * 1024), writes);
        read.map(|text| text.len())
    }

    #[tokio::test(start_paused = true)]
    async fn o08_a_body_that_pauses_or_crawls_is_cut() {
        let begun = Instant::now();
        assert_eq!(slowly(1, PAUSE * 2, 1).await, Err(Cut::Late));
        assert!(begun.elapsed() >= PAUSE, "{:?}", begun.elapsed());
        let begun = Instant::now();
        assert_eq!(slowly(1, Duration::from_secs(1), 3600).await, Err(Cut::Late), "one byte a second");
        assert!(begun.elapsed() < GRACE + PAUSE, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn o08_a_slow_network_is_not_cut() {
        // 16 MiB in 128 s.
        let read = slowly(128 * 1024, Duration::from_secs(1), 128).await;
        assert_eq!(read, Ok(16 * 1024 * 1024));
    }

    #[tokio::test]
    async fn x05_an_ordinary_request_is_read_when_the_budget_is_used_up() {
        let budget = Budget::new(1024 * 1024);
        let read = |bytes| super::whole(Body::from(vec![b' '; bytes]), usize::MAX, &budget, Owner::default());
        let _calls = [read(900 * 1024).await.unwrap(), read(100 * 1024).await.unwrap()];
        assert_eq!(read(100 * 1024).await.unwrap_err(), Cut::OverBudget);
        let calls = [read(30 * 1024).await, read(30 * 1024).await];
        assert!(calls.iter().all(Result::is_ok));
        assert_eq!(read(64 * 1024).await.unwrap_err(), Cut::OverBudget, "of the reserve nothing is left");
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_not_at_all() {
        assert_eq!(whole(Body::from("abc"), 3).await.unwrap(), "abc");
        assert_eq!(whole(Body::empty(), 3).await.unwrap(), "");
        assert_eq!(whole(Body::from("abcd"), 3).await, Err(Cut::TooLong));
        let pieces = [Bytes::from("a"), Bytes::from("b"), Bytes::from("c")];
        assert_eq!(whole(body::pieces(pieces.clone()), 3).await.unwrap(), "abc");
        assert_eq!(whole(body::pieces(pieces), 2).await, Err(Cut::TooLong));
    }
}
