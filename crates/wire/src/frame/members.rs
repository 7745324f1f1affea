//! The members of an object, where only a few of them are looked at.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// An object's members, unread, in the order they stand.
#[derive(Clone, Debug)]
pub struct Members<'a>(Vec<(Name<'a>, &'a RawValue)>);

/// A member's name: that of nearly every one lies in the text as it is. Half of a surrogate pair can be one, and is no text.
#[derive(Clone, Debug, PartialEq)]
struct Name<'a>(Cow<'a, [u8]>);

impl<'a> Members<'a> {
    /// `None` if it is no object.
    pub fn of(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        each(text, |name, value| members.push((Name(name), value)))?;
        Some(Self(members))
    }

    /// Of two of the same name the last counts, as everywhere.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| *key.0 == *name.as_bytes()).map(|(_, value)| *value)
    }

    /// The string that a member is.
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.get(name)?)
    }

    /// All of them. A name that is no text is none.
    pub fn all(self) -> impl Iterator<Item = (Option<String>, &'a RawValue)> {
        self.0.into_iter().map(|(Name(name), value)| (String::from_utf8(name.into_owned()).ok(), value))
    }
}

/// Hands over the members of an object as they are read, with their names as bytes: half of a surrogate pair can be one.
/// `None` if it is no object; some of it may have been handed over before that was clear.
pub(super) fn each<'a>(text: &'a str, found: impl FnMut(Cow<'a, [u8]>, &'a RawValue)) -> Option<()> {
    struct Visitor<F>(F);
    impl<'de, F: FnMut(Cow<'de, [u8]>, &'de RawValue)> serde::de::Visitor<'de> for Visitor<F> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                (self.0)(name, value);
            }
            Ok(())
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut reader, Visitor(found)).ok()?;
    reader.end().ok()
}

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_bytes<E>(self, name: &'de [u8]) -> Result<Name<'de>, E> {
                Ok(Name(name.into()))
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<Name<'de>, E> {
                Ok(Name(name.to_vec().into()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

/// The string that a value is. Hardly any has to be read for that.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(value.get()).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::Members;

    #[test]
    fn a_string_is_what_a_reader_would_take_it_for() {
        let text =
            r#"{"plain":"größe","escaped":"a\"\u0062","half":"\ud800","number":7,"twice":"a","twice":"b"}"#;
        let members = Members::of(text).unwrap();
        let read = |name| members.string(name).map(std::borrow::Cow::into_owned);
        assert_eq!(read("plain").as_deref(), Some("größe"));
        assert_eq!(read("escaped").as_deref(), Some("a\"b"));
        assert_eq!(read("twice").as_deref(), Some("b"));
        assert_eq!((read("half"), read("number"), read("none")), (None, None, None));
    }
}
