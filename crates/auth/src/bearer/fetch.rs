//! The key set of an issuer: fetched when it is first needed, again when it is old or lacks a key, one fetch at a time.
//!
//! While a set that is old is fetched anew, and while its issuer is down, the one that is there counts on, for a day at most.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use linetender_wire::http::Asker;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::jwks::{Document, Key, KeySet};
use crate::address::Address;
use crate::discover::{self, Found};
use crate::tasks;

/// After this time a set in use is fetched anew.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// After this time a set that could not be fetched anew counts no longer: nobody knows which of its keys were withdrawn.
const LONGEST_USE: Duration = Duration::from_secs(24 * 60 * 60);

/// Between two fetches for keys that are missing, and after one that failed. Anybody can name a key that does not exist, and
/// must not make us ask the issuer each time.
const PAUSE: Duration = Duration::from_secs(10);

/// How long one fetch may take, with the metadata that lead to it.
const WITHIN: Duration = Duration::from_secs(10);

/// How keys are fetched.
#[derive(Clone)]
pub(super) enum Way {
    /// From the issuer, as this machine is set up.
    Web,
    /// From a test, in its own time: a socket would not wait for that.
    #[cfg(test)]
    Scripted(Arc<super::tests::kit::Script>),
}

/// The keys of an issuer.
pub(super) struct Keys {
    issuer: Address,
    /// As it is spelt in tokens and metadata.
    named: String,
    jwks: Option<Address>,
    algorithms: Vec<Algorithm>,
    #[cfg_attr(not(test), expect(dead_code, reason = "there is one way, but for tests"))]
    way: Way,
    state: RwLock<State>,
    /// How many fetches ended.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    is_fetching: bool,
    /// No fetch before this.
    not_before: Option<Instant>,
    /// Why the last fetch failed, if it did.
    failed: Option<String>,
}

struct Held {
    set: Arc<KeySet>,
    fetched: Instant,
}

/// What came of asking for another set.
pub(super) enum Fetched {
    /// One was fetched for the asker.
    Now,
    /// A fetch that was under way has ended well.
    WithOthers,
    /// Not yet again.
    JustBefore,
    /// It failed, now or just before: the words, and when to try again.
    Not(String, Duration),
}

impl Keys {
    pub(super) fn new(
        issuer: &str,
        jwks: Option<&str>,
        algorithms: Vec<Algorithm>,
        way: Way,
    ) -> Result<Self, String> {
        let read = |url: &str, whose| Address::configured(url, whose).map_err(|error| error.to_string());
        Ok(Self {
            issuer: read(issuer, "the issuer")?,
            named: issuer.to_owned(),
            jwks: jwks.map(|jwks| read(jwks, "the key set")).transpose()?,
            algorithms,
            way,
            state: RwLock::default(),
            ended: watch::Sender::new(0),
        })
    }

    /// The set that counts.
    pub(super) fn held(&self) -> Option<Arc<KeySet>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).held().map(|held| Arc::clone(&held.set))
    }

    /// Its version, unless it should be fetched anew: then somebody has to call [`refresh_if_due`](Self::refresh_if_due).
    pub(super) fn version(&self) -> Option<u64> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.is_due() { None } else { state.held().map(|held| held.set.version) }
    }

    /// Fetches an old set anew, beside whatever is checked meanwhile.
    pub(super) fn refresh_if_due(self: &Arc<Self>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.is_due() {
            self.start(&mut state);
        }
    }

    /// Fetches the set because a key is missing, or waits for the fetch that is under way.
    pub(super) async fn fetched(self: &Arc<Self>) -> Fetched {
        let (mut ended, is_ours) = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            let wait = state.pause();
            if !state.is_fetching && !wait.is_zero() {
                return state.failed.clone().map_or(Fetched::JustBefore, |words| Fetched::Not(words, wait));
            }
            let is_ours = !state.is_fetching;
            if is_ours {
                if state.held().is_some() {
                    state.not_before = Some(Instant::now() + PAUSE);
                }
                self.start(&mut state);
            }
            // Before the lock is released: its end is not missed.
            (self.ended.subscribe(), is_ours)
        };
        // The sender is ours, so there is always an end.
        let _ = ended.changed().await;
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match (&state.failed, is_ours) {
            (Some(words), _) => Fetched::Not(words.clone(), state.pause().max(Duration::from_secs(1))),
            (None, true) => Fetched::Now,
            (None, false) => Fetched::WithOthers,
        }
    }

    /// In a task of its own, which bounds itself: the caller that started it may hang up, and others wait for it too.
    fn start(self: &Arc<Self>, state: &mut State) {
        state.is_fetching = true;
        let mut fetch = Fetch { keys: Arc::clone(self), got: None };
        tasks::spawn(async move {
            let got = timeout(WITHIN, fetch.keys.fetch()).await;
            let got = got.unwrap_or_else(|_| Err(format!("no answer within {} s", WITHIN.as_secs())));
            fetch.end(got);
        });
    }

    async fn fetch(&self) -> Result<Vec<Key>, String> {
        #[cfg(test)]
        if let Way::Scripted(script) = &self.way {
            let document = script.fetch().await?;
            return document.usable(&self.algorithms);
        }
        let asker = Asker::of_this_machine();
        let at = match &self.jwks {
            Some(at) => at.clone(),
            None => self.discovered(&asker).await?,
        };
        match discover::get::<Document>(&asker, &at).await {
            Ok(Found::Here(document)) => document
                .usable(&self.algorithms)
                .map_err(|why| format!("the key set at {at} cannot be used: {why}")),
            Ok(Found::Nothing) => Err(format!("there is no key set at {at}")),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn discovered(&self, asker: &Asker) -> Result<Address, String> {
        let words = |error: crate::Error| error.to_string();
        let issuer = &self.issuer;
        let found = discover::issuer_of(asker, issuer, issuer, &self.named).await.map_err(words)?;
        let found = found.ok_or_else(|| format!("the issuer {issuer} publishes no metadata"))?;
        let at =
            found.jwks_uri.ok_or_else(|| format!("the metadata of {issuer} name no key set (jwks_uri)"))?;
        Address::found(&at, "the key set", issuer).map_err(words)
    }

    fn end(&self, got: Result<Vec<Key>, String>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.is_fetching = false;
        match got {
            Ok(keys) => state.take(keys, &self.named),
            Err(words) => state.fail(words, &self.named),
        }
        // Under the lock: whoever starts the next fetch does not take this end for that one's.
        self.ended.send_modify(|ended| *ended += 1);
    }
}

/// A fetch under way. It ends even if it panics: others wait for it.
struct Fetch {
    keys: Arc<Keys>,
    got: Option<Result<Vec<Key>, String>>,
}

impl Fetch {
    fn end(&mut self, got: Result<Vec<Key>, String>) {
        self.got = Some(got);
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        let bug = || Err("linetender failed while it fetched them (a bug)".to_owned());
        self.keys.end(self.got.take().unwrap_or_else(bug));
    }
}

impl State {
    fn held(&self) -> Option<&Held> {
        self.held.as_ref().filter(|held| held.fetched.elapsed() < LONGEST_USE)
    }

    fn is_due(&self) -> bool {
        let is_old = self.held.as_ref().is_some_and(|held| held.fetched.elapsed() >= FRESH);
        is_old && !self.is_fetching && self.pause().is_zero()
    }

    /// How long no fetch is started.
    fn pause(&self) -> Duration {
        self.not_before.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default()
    }

    fn take(&mut self, keys: Vec<Key>, issuer: &str) {
        self.failed = None;
        let before = self.held.take();
        let version = before.as_ref().map_or(0, |before| before.set.version);
        let set = match before {
            Some(before) if before.set.has_just(&keys) => before.set,
            _ => {
                tracing::info!(issuer, keys = keys.len(), "issuer's keys fetched");
                Arc::new(KeySet::new(keys, version + 1))
            }
        };
        self.held = Some(Held { set, fetched: Instant::now() });
    }

    fn fail(&mut self, words: String, issuer: &str) {
        self.not_before = Some(Instant::now() + PAUSE);
        // Once for each time that it fails in a row.
        if self.failed.is_none() {
            let has_keys = self.held().is_some();
            tracing::warn!(issuer, has_keys, words, "issuer's keys cannot be fetched; will retry");
        }
        self.failed = Some(words);
    }
}
