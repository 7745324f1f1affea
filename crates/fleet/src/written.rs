//! Entries of lines as they are written down, where they are.

use linetender_core::lease::{Entry, Fence, Held, Node};
use serde::{Deserialize, Serialize};

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
