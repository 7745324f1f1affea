//! What all gateways of a fleet reach: one entry for each line, changed by compare-and-swap, and one for each call that must not run
//! twice.

use std::pin::Pin;

use linetender_core::lease::{Entry, Fence, Held, Node, Revision};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// What a directory promises to say later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Away>> + Send + 'a>>;

/// What is there of a line.
pub type There = Option<(Revision, Entry)>;

/// The directory did not answer. Whether it did what it was asked is not known.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the fleet's directory does not answer: {0}")]
pub struct Away(pub String);

/// Where it is written who owns which line.
pub trait Directory: Send + Sync + 'static {
    /// What is there of a line. It may be old by a moment.
    fn look<'a>(&'a self, line: &'a str) -> Later<'a, There>;

    /// Writes an entry if what is there has this revision, or if nothing is there: its revision; `None` if something else is there.
    fn put<'a>(
        &'a self,
        line: &'a str,
        expected: Option<Revision>,
        entry: Entry,
    ) -> Later<'a, Option<Revision>>;

    /// Every change from now on. A gap ends it: whoever wants more asks again, and looks.
    fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>>;

    /// Notes a call that must not run twice, if it is not noted yet.
    fn begin<'a>(&'a self, call: &'a str, note: &'a [u8]) -> Later<'a, Begun>;

    /// Notes what became of it.
    fn finish<'a>(&'a self, call: &'a str, note: &'a [u8]) -> Later<'a, ()>;
}

/// A change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Changed {
    /// The line.
    pub line: String,
    /// What is there now.
    pub there: There,
}

/// Whether a call was noted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Begun {
    /// It is new.
    New,
    /// It was noted before, and this is what is known of it.
    Known(Vec<u8>),
}

/// An entry as it is written down. What a newer version adds is not lost on an older one: it does not touch others' entries.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Written {
    Held { node: u64, claim: u64, beat: u32, at: u64 },
    Free { at: u64 },
    Unclear { at: u64 },
}

/// An entry as text.
pub(crate) fn encode(entry: Entry) -> String {
    let at = entry.written;
    let written = match entry.held {
        Held::By(Fence { node, claim }, beat) => Written::Held { node: node.0, claim, beat, at },
        Held::Free => Written::Free { at },
        Held::Unclear => Written::Unclear { at },
    };
    serde_json::to_string(&written).unwrap_or_default()
}

/// An entry from its text. What nobody here understands is somebody's: it is waited for, and not touched before.
pub(crate) fn decode(text: &[u8]) -> Entry {
    match serde_json::from_slice(text) {
        Ok(Written::Held { node, claim, beat, at }) => {
            Entry { held: Held::By(Fence { node: Node(node), claim }, beat), written: at }
        }
        Ok(Written::Free { at }) => Entry { held: Held::Free, written: at },
        Ok(Written::Unclear { at }) => Entry { held: Held::Unclear, written: at },
        Err(_) => Entry { held: Held::Unclear, written: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use linetender_core::lease::{Entry, Fence, Held, Node};

    #[test]
    fn entries_survive_being_written() {
        let fence = Fence { node: Node(u64::MAX), claim: 7 };
        for held in [Held::By(fence, 3), Held::Free, Held::Unclear] {
            let entry = Entry { held, written: 1_700_000_000_000 };
            assert_eq!(decode(encode(entry).as_bytes()), entry);
        }
        assert_eq!(decode(b"{\"later\":{}}").held, Held::Unclear);
    }
}
