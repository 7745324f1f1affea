//! A session id, which is a secret: whoever has it can speak in our name.

use std::fmt;

use http::HeaderValue;

use super::is_visible;

/// The longest session id that is taken. Some servers use signed tokens.
pub const SESSION_LIMIT: usize = 4096;

/// The id of a legacy session, as the server gave it.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct SessionId(HeaderValue);

impl SessionId {
    /// An id that may be sent back; `None` if it breaks the rules for one.
    // MCP 2025-11-25, "Session Management": visible ASCII only.
    pub fn of(value: &HeaderValue) -> Option<Self> {
        Self::new(value.to_str().ok()?)
    }

    /// The same, from text.
    pub fn new(text: &str) -> Option<Self> {
        if text.len() > SESSION_LIMIT || !is_visible(text) {
            return None;
        }
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(…)")
    }
}
