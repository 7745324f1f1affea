use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::{HEAD, ID_LIMIT, Sse, SseEvent, SseItem};

fn event(data: &str, id: Option<&str>, name: Option<&str>) -> SseItem {
    SseItem::Event(SseEvent {
        data: Bytes::copy_from_slice(data.as_bytes()),
        id: id.map(Box::from),
        name: name.map(Box::from),
    })
}

fn data(text: &str) -> SseItem {
    event(text, None, None)
}

/// The items of a stream that came in chunks of `size`, and the reader behind them.
fn read(bytes: &[u8], size: usize, limit: usize) -> (Vec<SseItem>, Sse) {
    let mut sse = Sse::new(limit);
    let mut items = Vec::new();
    for chunk in bytes.chunks(size.max(1)) {
        sse.push(chunk);
        items.extend(std::iter::from_fn(|| sse.take()));
        assert!(sse.held() <= limit + chunk.len(), "{} bytes held", sse.held());
    }
    (items, sse)
}

fn items(text: &str) -> Vec<SseItem> {
    read(text.as_bytes(), usize::MAX, 1000).0
}

#[test]
fn events_end_with_an_empty_line_of_any_kind() {
    for text in ["data: a\n\ndata: b\n\n", "data: a\r\rdata: b\r\r", "data: a\r\n\r\ndata: b\r\n\r\n"] {
        assert_eq!(items(text), [data("a"), data("b")], "{text:?}");
    }
    assert_eq!(items("data: a\r\n\ndata: b\n\r\n"), [data("a"), data("b")]);
}

#[test]
fn several_lines_of_data_are_one_text() {
    assert_eq!(items("data: a\ndata:b\ndata\ndata:  c\n\n"), [data("a\nb\n\n c")]);
}

#[test]
fn a_priming_event_is_reported() {
    assert_eq!(items("id: 7\nretry: 500\n\n"), [event("", Some("7"), None)]);
    assert_eq!(items("id: 7\ndata:\n\n"), [event("", Some("7"), None)]);
    assert_eq!(items("event: ping\n\n: hello\n\n\n\n"), []);
}

#[test]
fn the_last_id_is_remembered_once_its_event_is_complete() {
    let (_, mut sse) = read(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", 3, 100);
    assert_eq!(sse.last_id(), Some("1"));
    sse.push(b"\n");
    assert_eq!(sse.take(), Some(event("b", Some("2"), None)));
    assert_eq!(sse.last_id(), Some("2"));
    sse.push(b"data: c\n\nid\n\n");
    assert_eq!(sse.take(), Some(data("c")));
    assert_eq!(sse.last_id(), Some("2"));
    assert_eq!(sse.take(), Some(event("", Some(""), None)));
    assert_eq!(sse.last_id(), None);
}

#[test]
fn an_id_that_cannot_be_sent_back_is_no_id() {
    assert_eq!(items("id: a\0b\ndata: x\n\n"), [data("x")]);
    let long = format!("id: {}\ndata: x\n\n", "i".repeat(ID_LIMIT + 1));
    assert_eq!(read(long.as_bytes(), 10, 4000).0, [data("x")]);
}

#[test]
fn retry_is_kept_within_reason() {
    for (text, millis) in [
        ("retry: 1500\n\n", Some(1500)),
        ("retry: 0\n\n", Some(100)),
        ("retry: 999999999999999999999999999\n\n", Some(300_000)),
        ("retry: -1\n\n", None),
        ("retry: 1.5\n\n", None),
        ("retry:\n\n", None),
    ] {
        assert_eq!(read(text.as_bytes(), 100, 100).1.retry(), millis.map(Duration::from_millis), "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_is_passed_over_once() {
    for size in [1, 2, 100] {
        assert_eq!(read("\u{feff}data: a\n\n".as_bytes(), size, 100).0, [data("a")]);
        assert_eq!(read("\u{feff}\u{feff}data: a\n\n".as_bytes(), size, 100).0, []);
    }
}

#[test]
fn comments_are_life_and_nothing_else() {
    let (items, sse) = read(b": a\n:\ndata: x\n: b\n\n", 1, 100);
    assert_eq!((items, sse.comments()), (vec![data("x")], 3));
    // One that never ends is dropped as it comes.
    let (items, sse) = read(&[b":".repeat(5000), b"\ndata: x\n\n".to_vec()].concat(), 64, 100);
    assert_eq!((items, sse.comments()), (vec![data("x")], 1));
}

#[test]
fn an_endless_event_is_told_once_with_its_beginning() {
    let text = format!("data: {{\"id\":7,{}", "x".repeat(100_000));
    let (items, mut sse) = read(text.as_bytes(), 1024, 8192);
    let [SseItem::TooLong { seen, head }] = &items[..] else { panic!("{items:?}") };
    assert!((8193..8193 + 1024).contains(seen));
    assert!(head.starts_with(b"{\"id\":7,") && head.len() == HEAD);
    // The rest of it is dropped, its further lines too; the next event counts.
    sse.push(b"\ndata: more\nid: 5\n\ndata: next\n\n");
    assert_eq!(sse.take(), Some(data("next")));
    assert_eq!(sse.take(), None);
}

#[test]
fn many_short_lines_are_an_endless_event_too() {
    let (items, _) = read(&b"data:\n".repeat(5000), 100, 1000);
    assert!(matches!(items[..], [SseItem::TooLong { .. }]), "{items:?}");
}

#[test]
fn an_answer_that_was_cut_behind_its_last_byte_can_still_be_taken() {
    for text in ["data: {}", "data: {}\n", "data: {}\r"] {
        let (items, mut sse) = read(text.as_bytes(), 2, 100);
        assert_eq!(items, []);
        assert_eq!(sse.finish().map(|event| event.data), Some(Bytes::from("{}")), "{text:?}");
        assert_eq!(sse.finish(), None);
    }
    assert_eq!(read(b"id: 3\n: bye", 2, 100).1.finish(), None);
}

fn without_seen(items: Vec<SseItem>) -> Vec<SseItem> {
    let unsee = |item| match item {
        SseItem::TooLong { head, .. } => SseItem::TooLong { seen: 0, head },
        event @ SseItem::Event(_) => event,
    };
    items.into_iter().map(unsee).collect()
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "data", "id", "event", "retry", ":", ": ", " ", "\r", "\n", "\r\n", "\n\n", "x", "{\"id\":1}", "7", "\u{feff}", "\0",
                "long long long long long long",
            ]),
            0..60,
        ),
        size in 1_usize..9,
    ) {
        let text = parts.concat();
        let (whole, one) = read(text.as_bytes(), usize::MAX, 40);
        let (pieces, other) = read(text.as_bytes(), size, 40);
        prop_assert_eq!(without_seen(whole), without_seen(pieces));
        prop_assert_eq!(one.last_id(), other.last_id());
        prop_assert_eq!(one.retry(), other.retry());
        prop_assert_eq!(one.comments(), other.comments());
    }
}

#[test]
fn an_event_that_is_given_up_is_told_once_and_the_next_one_is_whole() {
    for first in ["data: {\"id\":7,\"x", "data: {\"id\":7,\ndata: x", "data: {\"id\":7,\n"] {
        let mut sse = Sse::new(1 << 20);
        sse.push(first.as_bytes());
        assert_eq!(sse.take(), None);
        let Some(SseItem::TooLong { head, .. }) = sse.give_up() else { panic!("{first}: not told") };
        assert!(head.starts_with(b"{\"id\":7,"), "{head:?}");
        assert_eq!((sse.give_up(), sse.held()), (None, 0), "{first}");
        sse.push(b"xx\ndata: more\n\ndata: next\n\n");
        let Some(SseItem::Event(next)) = sse.take() else { panic!("{first}: the next one is lost") };
        assert_eq!((&*next.data, sse.take()), (b"next".as_slice(), None), "{first}");
    }
}
