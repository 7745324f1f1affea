//! Shaking hands in either era, without I/O: what to say, and what the answer means.
//!
//! Legacy servers (up to 2025-11-25) want `initialize`; modern ones (2026-07-28) have no handshake, but
//! `server/discover`. Which one a server is, is a property of the server: it is asked once and remembered.

mod hello;
#[cfg(test)]
mod tests;

pub use hello::{
    CAPABILITIES_IN_META, CLIENT_IN_META, Hello, LEGACIES, LEGACY, MODERN, SUBSCRIPTION_IN_META,
    VERSION_IN_META,
};

use crate::redact::Redacted;
use crate::seen::Seen;

/// The two kinds of MCP.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions, ping.
    Legacy,
    /// From 2026-07-28: stateless.
    Modern,
}

/// Which era to try.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Eras {
    /// Ask: modern first, then legacy.
    #[default]
    Auto,
    /// Only this one.
    Only(Era),
}

/// The era to try first after this end, if `before` was that until now. A server that ends when it is asked for its era is asked as
/// a legacy one the next time; one that turns out to be of another era is asked anew.
pub const fn era_after(seen: &Seen, before: Option<Era>) -> Option<Era> {
    match seen {
        Seen::EndedOnProbe { .. } => Some(Era::Legacy),
        Seen::OtherEra => None,
        _ => before,
    }
}

/// What a server said of itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Greeting {
    /// Its era.
    pub era: Era,
    /// The result of `initialize` or `server/discover`, as it was spelt.
    pub result: Box<str>,
}

impl Greeting {
    /// Whether a result can be a greeting of this era. Some old servers answer a method that they do not know with an
    /// empty result: that is not what a modern one says of itself.
    // MCP 2026-07-28, "Discovery": supportedVersions and capabilities MUST be there; one of them will do.
    pub fn can_be(era: Era, result: &str) -> bool {
        #[derive(serde::Deserialize)]
        struct Discovered<'a> {
            #[serde(borrow, rename = "supportedVersions")]
            versions: Option<&'a serde_json::value::RawValue>,
            #[serde(borrow)]
            capabilities: Option<&'a serde_json::value::RawValue>,
        }
        match era {
            Era::Legacy => result.trim_start().starts_with('{'),
            Era::Modern => serde_json::from_str::<Discovered<'_>>(result).is_ok_and(|said| {
                said.versions.is_some_and(|list| list.get().starts_with('['))
                    || said.capabilities.is_some_and(|object| object.get().starts_with('{'))
            }),
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Next {
    /// Send this request and wait for its answer.
    Ask {
        /// `initialize` or `server/discover`.
        method: &'static str,
        /// Raw JSON.
        params: String,
    },
    /// It is done. A legacy server still has to be told so.
    Done(Greeting),
    /// It cannot be done.
    Failed(Seen),
}

/// A handshake under way.
#[derive(Clone, Debug)]
pub struct Handshake {
    hello: Hello,
    eras: Eras,
    asking: Era,
    /// Whether the other era was asked for before this one.
    switched: bool,
    /// What came of `initialize`, if that was asked first: a legacy server's own reason is worth more than that it does not know
    /// the modern question.
    reason: Option<Seen>,
    /// Whether a version that the server lists was refused by it already.
    insisted: bool,
}

/// JSON-RPC codes that only a modern server uses.
const MODERN_CODES: [i64; 3] = [-32020, -32021, UNSUPPORTED_VERSION];
const UNSUPPORTED_VERSION: i64 = -32022;

impl Handshake {
    /// Begins with what is allowed, or with what was remembered.
    pub fn new(hello: Hello, eras: Eras, remembered: Option<Era>) -> Self {
        let asking = match (eras, remembered) {
            (Eras::Only(era), _) | (Eras::Auto, Some(era)) => era,
            (Eras::Auto, None) => Era::Modern,
        };
        Self { hello, eras, asking, switched: false, reason: None, insisted: false }
    }

    /// What to say now.
    pub fn ask(&self) -> Next {
        match self.asking {
            Era::Legacy => Next::Ask { method: "initialize", params: self.hello.initialize() },
            Era::Modern => Next::Ask { method: "server/discover", params: self.hello.discover() },
        }
    }

    /// The era that is being asked for.
    pub const fn asking(&self) -> Era {
        self.asking
    }

    /// It answered with a result.
    pub fn accepted(&mut self, result: &str) -> Next {
        if Greeting::can_be(self.asking, result) {
            Next::Done(Greeting { era: self.asking, result: result.into() })
        } else {
            let seen = Seen::Handshake { said: Redacted::head(result, 200) };
            self.other_after(seen.clone()).unwrap_or_else(|| self.failed(seen))
        }
    }

    /// It answered with an error.
    // MCP 2026-07-28, stdio, "Backward Compatibility": a recognized modern error means modern; any other means legacy.
    pub fn refused(&mut self, error: &str) -> Next {
        let said: serde_json::Value = serde_json::from_str(error).unwrap_or_default();
        let code = said["code"].as_i64();
        let modern = code.is_some_and(|code| MODERN_CODES.contains(&code));
        let stays = modern && self.asking == Era::Modern;
        let seen = Seen::Handshake { said: Redacted::head(error, 400) };
        let other = match (stays, modern) {
            (true, _) => None,
            (false, true) => self.other(),
            (false, false) => self.other_after(seen.clone()),
        };
        if let Some(next) = other {
            next
        } else if code == Some(UNSUPPORTED_VERSION) && self.may_insist(&said["data"]["supported"]) {
            self.insisted = true;
            self.ask()
        } else {
            self.failed(seen)
        }
    }

    fn failed(&self, seen: Seen) -> Next {
        Next::Failed(self.reason.clone().unwrap_or(seen))
    }

    /// The other era, if it may be tried and was not, after this was seen of the first: should the other fail too, that is the reason.
    pub fn other_after(&mut self, seen: Seen) -> Option<Next> {
        let first = self.asking == Era::Legacy && !self.switched;
        let other = self.other()?;
        self.reason = Some(seen).filter(|_| first);
        Some(other)
    }

    /// It talks, or should by now, but does not answer the question for its era.
    pub fn silent(&mut self) -> Option<Next> {
        if self.may_fall_back() { self.other() } else { None }
    }

    /// The other era, if it may be tried and was not.
    pub fn other(&mut self) -> Option<Next> {
        if self.switched || self.eras != Eras::Auto {
            return None;
        }
        self.switched = true;
        self.asking = match self.asking {
            Era::Legacy => Era::Modern,
            Era::Modern => Era::Legacy,
        };
        Some(self.ask())
    }

    /// It ended while it was asked for its era: some old servers do that. The next generation asks for the other.
    pub fn ended(&self) -> Option<Era> {
        self.may_fall_back().then_some(Era::Legacy)
    }

    fn may_fall_back(&self) -> bool {
        self.asking == Era::Modern && self.eras == Eras::Auto && !self.switched
    }

    /// Whether the server lists the version that it was asked in. It is the only modern one we speak, so there is no other
    /// to try; and whoever refuses it twice will refuse it always.
    // MCP 2026-07-28, "Versioning": a client SHOULD retry with a version that both sides support.
    fn may_insist(&self, supported: &serde_json::Value) -> bool {
        let listed = supported.as_array().is_some_and(|versions| versions.iter().any(|one| one == MODERN));
        self.asking == Era::Modern && listed && !self.insisted
    }
}
