//! The environment of a server, as one block of text.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use crate::stdio::child::Env;
use crate::windows::wide::{units, wide};

/// `NAME=value`, each with a zero behind it, sorted by name, and a zero behind all of them; `None` for ours, unchanged.
///
/// # Errors
/// If a name or a value has a zero in it.
pub(super) fn block(env: &Env) -> io::Result<Option<Vec<u16>>> {
    let (ours, given) = match env {
        Env::Ours => return Ok(None),
        Env::OursAnd(given) => (std::env::vars_os().collect(), given),
        Env::Only(given) => (Vec::new(), given),
    };
    // Names that differ in case are one variable; of two values under one name the later one holds.
    let mut all: BTreeMap<OsString, (OsString, OsString)> = BTreeMap::new();
    for (name, value) in ours.into_iter().chain(given.iter().cloned()) {
        all.insert(name.to_ascii_uppercase(), (name, value));
    }
    let mut block = Vec::new();
    for (name, value) in all.into_values() {
        block.extend(units(&name)?);
        block.push(u16::from(b'='));
        block.extend(wide(&value)?);
    }
    // Of an empty one the system wants to see both zeros.
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(Some(block))
}

#[cfg(test)]
mod tests {
    use super::block;
    use crate::stdio::child::Env;

    fn text(env: &Env) -> String {
        String::from_utf16(&block(env).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn variables_are_sorted_and_the_later_of_two_holds_whatever_its_case() {
        let given = [("Zoë", "é"), ("path", "1"), ("a", ""), ("PATH", "2")];
        let given = given.map(|(name, value)| (name.into(), value.into())).to_vec();
        assert_eq!(text(&Env::Only(given)), "a=\0PATH=2\0Zoë=é\0\0");
        assert_eq!(text(&Env::Only(Vec::new())), "\0\0");
        assert!(text(&Env::OursAnd(vec![("path".into(), "mine".into())])).contains("\0path=mine\0"));
        assert!(block(&Env::Only(vec![("a".into(), "b\0c".into())])).is_err());
    }
}
