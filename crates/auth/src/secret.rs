//! A token, code, verifier or client secret: a text that nothing prints.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time;
use linetender_wire::Secrets;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that `Debug` does not show, and that is masked in every text of this process for as long as a clone of it lives.
#[derive(Clone)]
pub struct Secret(Arc<Held>);

struct Held {
    text: Box<str>,
    /// Masks it.
    _masked: Secrets,
}

impl Secret {
    /// Takes charge of this text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        let mut masked = Secrets::default();
        masked.keep(&text);
        Self(Arc::new(Held { text, _masked: masked }))
    }

    /// The same, with the content of each file that it names as `${file:PATH}`.
    ///
    /// # Errors
    /// If a file cannot be read, in words for the user.
    pub fn with_files(&self) -> Result<Self, String> {
        crate::headers::filled(self)
    }

    /// Random, and long enough that nobody guesses it: 43 characters that need no encoding in a URL.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self::new(crate::encode::base64url(&bytes)))
    }

    /// The text itself, for the one place that has to send or store it.
    pub fn expose(&self) -> &str {
        &self.0.text
    }
}

/// In a time that says nothing about where they differ.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.expose())
    }
}

impl Eq for Secret {}

impl Secret {
    /// Whether it is this text.
    pub(crate) fn is(&self, text: &str) -> bool {
        constant_time::verify_slices_are_equal(self.expose().as_bytes(), text.as_bytes()).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

// For the store's files, which are the user's alone.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_not_printed_and_is_masked_elsewhere() {
        let secret = Secret::new("kiwi-4711-kiwi-0815");
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(!linetender_wire::hide("it said kiwi-4711-kiwi-0815 there").contains("4711"));
        assert!(secret.is("kiwi-4711-kiwi-0815") && !secret.is("kiwi-4711-kiwi-0816") && !secret.is(""));
        assert_ne!(Secret::random().unwrap(), Secret::random().unwrap());
    }
}
