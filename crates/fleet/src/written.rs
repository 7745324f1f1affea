//! Entries of lines as they are written down, where they are.

use std::time::Duration;

use linetender_core::lease::{Entry, Fence, Held, Node};
use serde::{Deserialize, Serialize};

/// An entry as it is written down. What a newer version adds is not lost on an older one: it does not touch others' entries.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Written {
    Held {
        node: u64,
        claim: u64,
        beat: u32,
        at: u64,
        #[serde(default)]
        lease: u64,
    },
    Free {
        at: u64,
        #[serde(default)]
        lease: u64,
    },
    Unclear {
        at: u64,
        #[serde(default)]
        lease: u64,
    },
}

/// No lease is longer: whatever an entry says, somebody gets the line.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// An entry as text.
pub(crate) fn encode(entry: Entry) -> String {
    let (at, lease) = (entry.written, u64::try_from(entry.lease.as_millis()).unwrap_or(u64::MAX));
    let written = match entry.held {
        Held::By(Fence { node, claim }, beat) => Written::Held { node: node.0, claim, beat, at, lease },
        Held::Free => Written::Free { at, lease },
        Held::Unclear => Written::Unclear { at, lease },
    };
    serde_json::to_string(&written).unwrap_or_default()
}

/// An entry from its text. What nobody here understands is somebody's: it is waited for, and not touched before.
pub(crate) fn decode(text: &[u8]) -> Entry {
    let (held, written, lease) = match serde_json::from_slice(text) {
        Ok(Written::Held { node, claim, beat, at, lease }) => {
            (Held::By(Fence { node: Node(node), claim }, beat), at, lease)
        }
        Ok(Written::Free { at, lease }) => (Held::Free, at, lease),
        Ok(Written::Unclear { at, lease }) => (Held::Unclear, at, lease),
        Err(_) => (Held::Unclear, 0, 0),
    };
    Entry { held, lease: Duration::from_millis(lease).min(LONGEST), written }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, decode, encode};
    use linetender_core::lease::{Entry, Fence, Held, Node};
    use std::time::Duration;

    #[test]
    fn entries_survive_being_written() {
        let fence = Fence { node: Node(u64::MAX), claim: 7 };
        for held in [Held::By(fence, 3), Held::Free, Held::Unclear] {
            let entry = Entry { held, lease: Duration::from_secs(20), written: 1_700_000_000_000 };
            assert_eq!(decode(encode(entry).as_bytes()), entry);
        }
        assert_eq!(decode(b"{\"later\":{}}").held, Held::Unclear);
        assert_eq!(decode(b"{\"free\":{\"at\":7}}").lease, Duration::ZERO, "as an older version writes it");
        assert_eq!(decode(b"{\"free\":{\"at\":7,\"lease\":99999999999999}}").lease, LONGEST);
    }
}
