//! Foreign bytes, in pieces: nothing panics, nothing grows, and a frame gives back the bytes it was made of.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run lines -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use linetender_wire::frame::{self, Limits, Message};
use linetender_wire::{Item, Lines, Redacted};

const LIMITS: Limits = Limits { length: 4096, depth: 16 };

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    // Every other time they are an agent's, whose batches are told of too.
    let agents = size % 2 == 1;
    let mut lines = Lines::new(LIMITS);
    if agents {
        lines = lines.with_batches();
    }
    for piece in bytes.chunks(usize::from(size).max(1)) {
        lines.buffer().extend_from_slice(piece);
        while let Some(item) = lines.take() {
            look(&item, bytes);
            while let Some(batch) = lines.batch() {
                assert!(agents && batch.frames.len() + batch.bad.len() <= frame::BATCH);
                assert_eq!(batch.refusals().count(), batch.bad.len());
                for frame in batch.frames {
                    look(&Item::Frame(frame), bytes);
                }
            }
        }
        assert!(lines.buffer().len() <= LIMITS.length + piece.len());
    }
    while let Some(item) = lines.finish() {
        look(&item, bytes);
    }
});

fn look(item: &Item, all: &[u8]) {
    match item {
        Item::Frame(frame) => {
            // A response in which another reader may read something else is made anew, and nothing else ever is.
            let same = all.windows(frame.text().len()).any(|window| window == frame.text());
            assert!(same || matches!(frame.message(), Message::Response { .. }), "bytes were changed");
            assert_eq!(frame::parse(frame.text(), LIMITS).as_ref(), Ok(frame), "it reads as something else");
            if let Message::Request { id, .. } | Message::Response { id: Some(id), .. } = frame.message() {
                assert_eq!(frame.with_id(id).text(), frame.text(), "a rewrite changed another byte");
                let renamed = frame.with_id("\"somebody else's\"");
                let limits = Limits { length: usize::MAX, depth: usize::MAX };
                assert_eq!(
                    frame::parse(renamed.text(), limits).as_ref(),
                    Ok(&renamed),
                    "its members lie elsewhere"
                );
            }
            let _ = frame.payload();
        }
        Item::Noise(noise) => {
            let shown = Redacted::head(&String::from_utf8_lossy(noise), 100);
            assert!(shown.as_str().chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')));
        }
        Item::Unreadable { .. } => {}
    }
}
