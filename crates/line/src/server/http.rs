//! A server that is somewhere else.

use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use linetender_core::{RetryReason, Settings as Policy};
use linetender_wire::Elsewhere;
use linetender_wire::http::network::Network;
use linetender_wire::http::{Approach, Endpoint, KeySlot, Pings, Settings, Surroundings, Way};
use linetender_wire::{Redacted, Seen};

use super::identity::put;
use crate::keys::Source;

/// Which transport a server at an address speaks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum HttpTransport {
    /// Streamable HTTP; or, at an address that does not know that, HTTP+SSE. Which one is remembered while the server is held.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// HTTP+SSE of MCP 2024-11-05, which later revisions deprecate.
    Sse,
}

/// Whether a server whose transport is not configured was found to speak HTTP+SSE. All generations of its line know.
#[derive(Clone, Debug, Default)]
struct FoundSse(Arc<AtomicBool>);

/// It is no part of how a server is configured.
impl PartialEq for FoundSse {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FoundSse {}

/// How it is reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Address {
    /// Where it is, or what is wrong with its address: that is told when it is dialled.
    endpoint: Result<Endpoint, Seen>,
    headers: HeaderMap,
    pub(super) transport: HttpTransport,
    found_sse: FoundSse,
    roots: Vec<Vec<u8>>,
    settings: Settings,
    /// Another network than the system's.
    elsewhere: Option<Elsewhere<dyn Network>>,
    /// What its generations learned of it.
    pings: Pings,
    /// Where its credentials come from, if they change.
    pub(super) keys: Option<Source>,
}

impl Address {
    pub(crate) fn at(url: &str) -> Self {
        let endpoint = Endpoint::new(url).map_err(|broken| broken.seen());
        let (headers, settings) = (HeaderMap::new(), Settings::default());
        let (roots, pings) = (Vec::new(), Pings::default());
        let (transport, found_sse) = (HttpTransport::default(), FoundSse::default());
        Self { endpoint, headers, transport, found_sse, roots, settings, elsewhere: None, pings, keys: None }
    }

    /// Where it is, if its address can be read.
    pub(super) fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref().ok()
    }

    pub(crate) fn header(&mut self, name: &str, value: &str) {
        let words = match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(mut value)) => {
                // It is a credential more often than not: nothing may print it.
                value.set_sensitive(true);
                self.headers.append(name, value);
                return;
            }
            (Ok(name), Err(_)) => format!("the value of header {name} contains control characters"),
            // What stands there may be a value, so it is not repeated.
            (Err(_), _) => {
                "the name of a header is invalid: letters, digits and hyphens are allowed".to_owned()
            }
        };
        self.endpoint = Err(Seen::Unreachable { words: Redacted::head(&words, 200), config: true });
    }

    pub(crate) fn trust(&mut self, certificate: Vec<u8>) {
        self.roots.push(certificate);
    }

    pub(crate) fn http2(&mut self) {
        self.settings.http2_only = true;
    }

    pub(crate) fn elsewhere(&mut self, network: Elsewhere<dyn Network>) {
        self.elsewhere = Some(network);
    }

    /// Which transport it is spoken to in first.
    fn way(&self) -> Way {
        match self.transport {
            HttpTransport::Sse => Way::EventStream,
            HttpTransport::Auto if self.found_sse.0.load(Ordering::Relaxed) => Way::EventStream,
            HttpTransport::Auto | HttpTransport::Streamable => Way::Streamable,
        }
    }

    /// Which transport may be tried where this one is not known.
    pub(crate) fn way_besides(&self, way: Way) -> Option<Way> {
        match (self.transport, way) {
            (HttpTransport::Auto, Way::Streamable) => Some(Way::EventStream),
            (HttpTransport::Auto, Way::EventStream) => Some(Way::Streamable),
            (HttpTransport::Streamable | HttpTransport::Sse, _) => None,
        }
    }

    /// A handshake succeeded in this transport.
    pub(crate) fn found(&self, way: Way) {
        self.found_sse.0.store(way == Way::EventStream, Ordering::Relaxed);
    }

    pub(super) fn identify(&self, hash: &mut impl Hasher) {
        put(hash, if self.transport == HttpTransport::Sse { "sse" } else { "http" });
        put(hash, self.endpoint.as_ref().map(ToString::to_string).unwrap_or_default());
        for (name, value) in &self.headers {
            put(hash, name.as_str());
            hash.write_usize(value.len());
            hash.write(value.as_bytes());
        }
        if let Some(Source(keys)) = &self.keys {
            put(hash, "keys");
            put(hash, &*keys.identity());
        }
    }

    /// `key` is where its requests find the credential that changes.
    pub(crate) fn approach(
        &self,
        policy: &Policy,
        seed: u64,
        key: Option<KeySlot>,
    ) -> Result<Approach, Seen> {
        /// What this machine says about networks does not change while we run.
        static AROUND: OnceLock<Surroundings> = OnceLock::new();
        let around = match &self.elsewhere {
            Some(network) => &Surroundings::elsewhere_on(network.clone()),
            None => AROUND.get_or_init(Surroundings::read),
        };
        Ok(Approach {
            pings: self.pings.clone(),
            way: self.way(),
            endpoint: self.endpoint.clone()?,
            headers: self.headers.clone(),
            key,
            around: if self.roots.is_empty() { around.clone() } else { around.trusting(self.roots.clone()) },
            settings: self.settings,
            sizes: policy.limits,
            close: policy.close,
            refusal_within: policy.call.refusal_within,
            redirects_calls: policy.retry_on.contains(RetryReason::Protocol),
            repeats_after_auth: policy.retry_on.contains(RetryReason::Auth),
            // A little less than the handshake may take: this says more.
            endpoint_within: policy.dial.handshake / 10 * 9,
            seed,
        })
    }
}
