//! Names that other readers take for the same.
//!
//! We read a member by its exact name, and so do most. Go's `encoding/json` and many that are told to be lenient fold case, some
//! readers take the first of two and some the last, and one written in C ends a name at a zero byte. Where a member decides
//! where a message goes, no sibling may be taken for it: what we decided on must be what everybody else reads.

use std::borrow::Cow;

/// The names of an envelope's members.
pub(super) const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Which of these names somebody might take this one for, and whether it is that very name.
pub(super) fn alike<'n>(name: &[u8], names: &[&'n str]) -> Option<(&'n str, bool)> {
    // Nearly every name is one of them, or of another length: nothing is folded for those.
    if let Some(exact) = names.iter().find(|known| known.as_bytes() == name) {
        return Some((exact, true));
    }
    let plain = name.is_ascii() && !name.contains(&0);
    if plain {
        let same = |known: &&&str| known.as_bytes().eq_ignore_ascii_case(name);
        return names.iter().find(same).map(|known| (*known, false));
    }
    let folded = folded(name);
    names.iter().find(|known| known.eq_ignore_ascii_case(&folded)).map(|known| (*known, false))
}

/// A name as the most lenient reader might read it.
fn folded(name: &[u8]) -> Cow<'_, str> {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let folds = |letter| match letter {
        // Go folds the long s and the Kelvin sign, Java the Turkish letters.
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        other => other,
    };
    String::from_utf8_lossy(&name[..end]).chars().map(folds).collect()
}

#[cfg(test)]
mod tests {
    use super::alike;

    #[test]
    fn a_name_is_alike_if_any_reader_takes_it_for_the_other() {
        let names = ["name", "progressToken", "uri"];
        for (name, expected) in [
            ("name", Some(("name", true))),
            ("Name", Some(("name", false))),
            ("NAME", Some(("name", false))),
            ("name\0x", Some(("name", false))),
            ("progre\u{17f}\u{17f}to\u{212a}en", Some(("progressToken", false))),
            ("ur\u{131}", Some(("uri", false))),
            ("names", None),
            ("\0name", None),
            ("näme", None),
            ("", None),
        ] {
            assert_eq!(alike(name.as_bytes(), &names), expected, "{name:?}");
        }
    }
}
