//! The credential of a server's requests, where that changes while the server is held. Each request reads it when it is
//! sent, so a session outlives the key that it was begun with.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::watch;

use crate::secrets::Secrets;

/// Keys whose values are masked although newer ones took their place: a server may still print them.
const MASKED: usize = 8;

/// Where the credential of all requests of one line stands. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct KeySlot(Arc<watch::Sender<Slot>>);

/// What is sent now, and what was.
#[derive(Default)]
struct Slot {
    now: SentKey,
    before: VecDeque<SentKey>,
}

/// A credential as it was sent, or that none was. Two are equal if they were put into their slot at once.
#[derive(Clone, Default)]
pub struct SentKey {
    number: u64,
    content: Option<Arc<Content>>,
}

struct Content {
    headers: Arc<HeaderMap>,
    /// Whether the server has answered anything that carried it.
    accepted: AtomicBool,
    #[expect(dead_code, reason = "masks the values for as long as it lives")]
    secrets: Secrets,
}

/// A request was refused for the credential that it carried, or for want of one.
#[derive(Clone, Eq, PartialEq)]
pub struct KeyRefused {
    /// What it carried.
    pub key: SentKey,
    /// 401, or 403 if the credential is good but not for this.
    pub status: u16,
    /// `WWW-Authenticate` as it was sent, at most [`CHALLENGE_LIMIT`](super::meaning::CHALLENGE_LIMIT) bytes. Show it only
    /// through [`Redacted`](crate::Redacted).
    pub challenge: Box<str>,
}

impl KeySlot {
    /// Nothing is in it yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Slot::default())))
    }

    /// What is sent now.
    pub fn read(&self) -> SentKey {
        self.0.borrow().now.clone()
    }

    /// Sends these headers from now on, or none. They are masked in every text of this process.
    pub fn put(&self, headers: Option<Arc<HeaderMap>>) {
        let content = headers.map(|headers| Arc::new(Content::new(headers)));
        self.0.send_modify(|slot| {
            let key = SentKey { number: slot.now.number + 1, content };
            slot.before.push_back(std::mem::replace(&mut slot.now, key));
            if slot.before.len() > MASKED {
                slot.before.pop_front();
            }
        });
    }

    /// Returns when there is another key than this one. The caller bounds the wait.
    pub async fn other_than(&self, key: &SentKey) {
        let mut slot = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = slot.wait_for(|slot| slot.now.number > key.number && slot.now.content.is_some()).await;
    }
}

impl Default for KeySlot {
    fn default() -> Self {
        Self::new()
    }
}

impl Content {
    fn new(headers: Arc<HeaderMap>) -> Self {
        let mut secrets = Secrets::default();
        for (name, value) in headers.iter() {
            if let Ok(value) = value.to_str() {
                secrets.keep_header(name.as_str(), value);
                secrets.keep(value.split_once(' ').map_or(value, |(_, credential)| credential));
            }
        }
        Self { headers, accepted: AtomicBool::new(false), secrets }
    }
}

impl SentKey {
    /// Its headers, if there was a credential at all.
    pub fn headers(&self) -> Option<&Arc<HeaderMap>> {
        self.content.as_ref().map(|content| &content.headers)
    }

    /// Whether it was put into the slot after that one.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.number > other.number
    }

    /// Whether the server has answered anything that carried it.
    pub fn was_accepted(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.accepted.load(Ordering::Relaxed))
    }

    /// The server has answered something that carried it.
    pub(super) fn accepted(&self) {
        if let Some(content) = &self.content
            && !content.accepted.load(Ordering::Relaxed)
        {
            content.accepted.store(true, Ordering::Relaxed);
        }
    }

    /// The headers of a request: the fixed ones, this credential's in their place where both have one, and above all ours,
    /// which say what the request is.
    pub(super) fn among(&self, fixed: &HeaderMap, mut ours: HeaderMap) -> HeaderMap {
        let Some(headers) = self.headers() else { return with(fixed, ours) };
        if fixed.is_empty() {
            for name in headers.keys() {
                if !ours.contains_key(name) {
                    copy(headers, name, &mut ours);
                }
            }
            return ours;
        }
        let mut all = fixed.clone();
        for name in headers.keys() {
            copy(headers, name, &mut all);
        }
        all.extend(ours);
        all
    }
}

/// Our own headers and what every request carries. Nobody's configuration can take ours away.
pub(super) fn with(fixed: &HeaderMap, ours: HeaderMap) -> HeaderMap {
    if fixed.is_empty() {
        return ours;
    }
    let mut all = fixed.clone();
    all.extend(ours);
    all
}

fn copy(from: &HeaderMap, name: &HeaderName, to: &mut HeaderMap) {
    let mut values = from.get_all(name).iter();
    if let Some(first) = values.next() {
        to.insert(name.clone(), sensitive(first));
    }
    for more in values {
        to.append(name.clone(), sensitive(more));
    }
}

/// Nothing prints it, and HTTP/2 does not index it.
fn sensitive(value: &HeaderValue) -> HeaderValue {
    let mut value = value.clone();
    value.set_sensitive(true);
    value
}

impl PartialEq for SentKey {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for SentKey {}

impl fmt::Debug for SentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentKey({}, {})", self.number, if self.content.is_some() { "[redacted]" } else { "none" })
    }
}

impl fmt::Debug for KeySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySlot({:?})", self.read())
    }
}

/// The challenge is the server's text: whoever prints it does so through [`Redacted`](crate::Redacted).
impl fmt::Debug for KeyRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRefused({:?}, {})", self.key, self.status)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{HeaderMap, HeaderValue};

    use super::{KeySlot, MASKED};

    fn key(value: &str) -> Arc<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_str(value).unwrap());
        Arc::new(headers)
    }

    #[test]
    fn what_is_in_the_slot_is_masked_and_so_is_what_was() {
        let slot = KeySlot::new();
        let value = |number: usize| format!("slot-canary-{number:04}-zq");
        for number in 0..MASKED + 3 {
            slot.put(Some(key(&format!("Bearer {}", value(number)))));
        }
        let (newest, kept, gone) = (value(MASKED + 2), value(2), value(0));
        let text = crate::hide(&format!("{newest} {kept} {gone}")).into_owned();
        assert_eq!(text, format!("[redacted] [redacted] {gone}"));
        let printed = format!("{slot:?} {:?}", slot.read());
        assert!(!printed.contains("canary"), "{printed}");
    }

    #[test]
    fn a_key_takes_the_place_of_a_fixed_header_but_not_of_one_that_says_what_the_request_is() {
        let slot = KeySlot::new();
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer new-key"));
        headers.insert("mcp-session-id", HeaderValue::from_static("stolen"));
        headers.append("x-two", HeaderValue::from_static("a"));
        headers.append("x-two", HeaderValue::from_static("b"));
        slot.put(Some(Arc::new(headers)));
        let (mut fixed, mut ours) = (HeaderMap::new(), HeaderMap::new());
        ours.insert("mcp-session-id", HeaderValue::from_static("ours"));
        let alone = slot.read().among(&fixed, ours.clone());
        fixed.insert("authorization", HeaderValue::from_static("Bearer fixed"));
        let both = slot.read().among(&fixed, ours);
        for request in [alone, both] {
            assert_eq!(request["authorization"], "Bearer new-key");
            assert!(request["authorization"].is_sensitive());
            assert_eq!(request["mcp-session-id"], "ours");
            assert_eq!(request.get_all("x-two").iter().count(), 2);
        }
    }

    #[tokio::test]
    async fn whoever_waits_for_another_key_is_not_woken_by_its_loss() {
        let slot = KeySlot::new();
        slot.put(Some(key("Bearer one")));
        let first = slot.read();
        let waiting = slot.other_than(&first);
        tokio::pin!(waiting);
        slot.put(None);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, &mut waiting).await.is_err());
        slot.put(Some(key("Bearer two")));
        waiting.await;
        assert!(slot.read().is_newer_than(&first));
    }
}
