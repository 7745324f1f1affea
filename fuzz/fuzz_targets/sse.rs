//! A hostile event stream, in pieces: nothing panics, nothing grows, and chunks make no difference.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run sse -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use linetender_wire::http::sse::{HEAD, ID_LIMIT, RETRY, Sse, SseItem};

/// Small, so that it is often broken.
const LIMIT: usize = 48;

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let (whole, one) = read(bytes, bytes.len().max(1));
    let (pieces, other) = read(bytes, usize::from(size).max(1));
    assert_eq!(whole, pieces);
    assert_eq!(
        (one.last_id(), one.retry(), one.comments()),
        (other.last_id(), other.retry(), other.comments())
    );
    assert!(one.last_id().is_none_or(|id| id.len() <= ID_LIMIT && !id.contains('\0')));
    assert!(one.retry().is_none_or(|wait| (RETRY.0.into()..=RETRY.1.into()).contains(&wait.as_millis())));
});

fn read(bytes: &[u8], size: usize) -> (Vec<SseItem>, Sse) {
    let mut sse = Sse::new(LIMIT);
    let mut items = Vec::new();
    for piece in bytes.chunks(size) {
        sse.push(piece);
        while let Some(item) = sse.take() {
            items.push(match item {
                SseItem::Event(event) => {
                    assert!(event.data.len() <= LIMIT);
                    SseItem::Event(event)
                }
                SseItem::TooLong { seen, head } => {
                    assert!(seen > LIMIT && head.len() <= HEAD);
                    SseItem::TooLong { seen: 0, head }
                }
            });
        }
        assert!(sse.held() <= LIMIT + piece.len());
    }
    let last = sse.finish().map(SseItem::Event);
    items.extend(last);
    (items, sse)
}
