//! An answer on its way: in pieces, so that it is known whether the peer takes them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::Extensions;
use http_body::{Frame, SizeHint};

use super::activity::{Activity, InFlight};
use super::body::Piece;
use super::caller::Caller;
use crate::budget::{Budget, Class, Held, Owner};

/// The largest piece. HTTP/2 takes a piece whole as soon as its peer has room for a byte of it.
const PIECE: usize = 64 * 1024;

/// What is shorter is not counted for as long as a connection of HTTP/1 keeps it.
const TINY: usize = 4 * 1024;

/// What of a connection's answers is not taken yet: together, for many small ones are large.
pub(super) struct Unread {
    held: Mutex<Held>,
    of: Arc<Activity>,
}

impl Unread {
    pub(super) fn new(budget: &Budget, of: &Arc<Activity>, owner: Owner) -> Arc<Self> {
        let holder: Weak<Activity> = Arc::downgrade(of);
        let held = budget.hold(Class::Answer, owner, holder);
        Arc::new(Self { held: Mutex::new(held), of: Arc::clone(of) })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer is never refused for want of room: what others do not read makes way for it. If nobody has more of that than this
    /// connection, it is the one that is in the way.
    fn more(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut held = self.held();
        let before = held.bytes();
        if held.force(bytes).is_err() && before > 0 {
            self.of.give_way();
        }
    }

    fn less(&self, bytes: usize) {
        self.held().shrink(bytes);
    }

    /// The same piece, counted from now until it is written: what is said on a stream waits here, and a connection that has no window
    /// does not ask for it.
    pub(super) fn counts(self: &Arc<Self>, Piece(parts): Piece) -> Piece {
        Piece(parts.map(|part| self.counted(part)))
    }

    /// The same, counted for as long as any of it is kept.
    pub(super) fn counted(self: &Arc<Self>, piece: Bytes) -> Bytes {
        if piece.len() <= TINY {
            return piece;
        }
        self.more(piece.len());
        Bytes::from_owner(Handed { piece, unread: Arc::clone(self) })
    }

    /// That of the connection which a request came on.
    pub(super) fn of(extensions: &Extensions) -> Arc<Self> {
        let of_nobody = || {
            let activity = Activity::new(Caller::Stranger(None));
            Self::new(&Budget::new(usize::MAX), &activity, Owner::default())
        };
        extensions.get::<Arc<Self>>().map_or_else(of_nobody, Arc::clone)
    }
}

/// Says of a response that its pieces are counted already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted;

/// A piece that is handed to the connection, which may keep it for as long as its peer gives no window.
struct Handed {
    piece: Bytes,
    unread: Arc<Unread>,
}

impl AsRef<[u8]> for Handed {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.unread.less(self.piece.len());
    }
}

/// The body of an answer. Its request is in flight for as long as this is kept.
pub(super) struct Sent {
    body: Body,
    rest: Bytes,
    request: InFlight,
    unread: Arc<Unread>,
    /// What of it is not taken yet.
    counted: usize,
    /// Whether somebody else counts what is large of it.
    is_counted: bool,
    is_http2: bool,
}

impl Sent {
    pub(super) fn new(
        body: Body,
        request: InFlight,
        unread: Arc<Unread>,
        is_http2: bool,
        is_counted: bool,
    ) -> Self {
        let known = usize::try_from(http_body::Body::size_hint(&body).lower()).unwrap_or(usize::MAX);
        unread.more(known);
        Self { body, rest: Bytes::new(), request, unread, counted: known, is_counted, is_http2 }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        self.request.offers();
        if self.is_counted {
            return Frame::data(piece);
        }
        self.counted -= piece.len();
        let handed = Handed { piece, unread: Arc::clone(&self.unread) };
        // Over HTTP/1 there is one answer at a time, and a small piece is written with its head.
        let is_worth_it = self.is_http2 || handed.piece.len() > TINY;
        Frame::data(if is_worth_it { Bytes::from_owner(handed) } else { handed.piece.clone() })
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.unread.less(self.counted);
        }
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.is_taken();
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => {
                // Pieces of a stream were not known before.
                let known = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
                if !self.is_counted {
                    let new = (known + data.len()).saturating_sub(self.counted);
                    self.unread.more(new);
                    self.counted += new;
                }
                self.rest = data;
                self.piece()
            }
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}
