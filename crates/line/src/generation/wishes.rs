//! What callers asked a server to keep doing: it is asked again of every generation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::link::Live;

/// Standing wishes: a log level, and resources and tasks to be told about.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    wanted: Mutex<Wanted>,
    /// Which resources or tasks are wanted has changed: whoever listens in the modern way has to ask anew.
    pub(crate) changed: Notify,
    /// Wishes that were too many.
    dropped: AtomicU64,
}

#[derive(Clone, Debug, Default)]
struct Wanted {
    /// The params of the last `logging/setLevel`.
    level: Option<String>,
    /// The params of each `resources/subscribe` that was not taken back, by resource.
    resources: BTreeMap<String, String>,
    /// Tasks, and how many streams want to hear of each.
    tasks: BTreeMap<String, usize>,
    /// What the present legacy generation has yet to be told.
    untold: BTreeSet<Ask>,
}

/// Something to tell a legacy server. What is not wanted any more comes first, so that it cannot pile up.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Ask {
    Unsubscribe(String),
    Level,
    Subscribe(String),
}

/// The most resources that are subscribed to again; a server is not asked for more than that in one go.
pub(crate) const RESOURCES: usize = 1024;

/// The most tasks that a server is asked to tell of.
const TASKS: usize = 1024;

/// What is longer of a wish is not kept.
const LONG: usize = 8 * 1024;

/// The params of a request about a resource.
fn about(uri: &str) -> String {
    format!(r#"{{"uri":{}}}"#, linetender_wire::frame::respell(uri))
}

/// How long a new generation may take to answer one wish. The others do not wait for it any longer.
const ANSWER: Duration = Duration::from_secs(5);

impl Wishes {
    /// Whether anybody wants to hear of a resource.
    pub(crate) fn has_resources(&self) -> bool {
        !self.wanted().resources.is_empty()
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered with a result: if it is a standing wish, it is remembered. The present generation knows it.
    pub(crate) fn granted(&self, method: &str, params: Option<&str>) {
        let Some(params) = params else { return };
        match method {
            // Whatever else its params had is the agent's, who decides how long that is; there may be a thousand of these.
            "logging/setLevel" if params.len() <= LONG => self.wanted().level = Some(params.to_owned()),
            "resources/subscribe" => {
                if let Some(uri) = uri(params).filter(|uri| uri.len() <= LONG) {
                    let short = (params.len() <= LONG).then(|| params.to_owned());
                    let params = short.unwrap_or_else(|| about(&uri));
                    self.want(uri, params);
                }
            }
            "resources/unsubscribe" => {
                if let Some(uri) = uri(params) {
                    self.forget(&uri);
                }
            }
            _ => {}
        }
    }

    /// A resource is wanted, and the server has to be told; whether it is remembered: not if too many are.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let is_remembered = self.want(uri.to_owned(), about(uri));
        if is_remembered {
            let mut wanted = self.wanted();
            wanted.untold.remove(&Ask::Unsubscribe(uri.to_owned()));
            wanted.untold.insert(Ask::Subscribe(uri.to_owned()));
            drop(wanted);
            self.changed.notify_one();
        }
        is_remembered
    }

    /// Whether one more resource would be remembered.
    pub(crate) fn has_room_for(&self, uri: &str) -> bool {
        let wanted = self.wanted();
        wanted.resources.len() < RESOURCES || wanted.resources.contains_key(uri)
    }

    /// Whether it is remembered.
    fn want(&self, uri: String, params: String) -> bool {
        let mut wanted = self.wanted();
        if wanted.resources.len() >= RESOURCES && !wanted.resources.contains_key(&uri) {
            drop(wanted);
            // An agent decides how often that happens: it is said for the first, and each time there are twice as many.
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(
                    limit = RESOURCES,
                    dropped,
                    "subscription limit reached; the rest is not renewed after a restart"
                );
            }
            return false;
        }
        if wanted.resources.insert(uri, params).is_none() {
            self.changed.notify_one();
        }
        true
    }

    /// An agent asks the server for it itself.
    pub(crate) fn is_asked_for(&self, uri: &str) {
        self.wanted().untold.remove(&Ask::Unsubscribe(uri.to_owned()));
    }

    /// It is not wanted any more, and the server knows, or is asked by an agent itself.
    pub(crate) fn forget(&self, uri: &str) {
        let mut wanted = self.wanted();
        wanted.untold.remove(&Ask::Subscribe(uri.to_owned()));
        if wanted.resources.remove(uri).is_some() {
            drop(wanted);
            self.changed.notify_one();
        }
    }

    /// It is not wanted any more, and the server has to be told if it was told before.
    pub(crate) fn want_not(&self, uri: &str) {
        let mut wanted = self.wanted();
        if wanted.resources.remove(uri).is_none() {
            return;
        }
        if !wanted.untold.remove(&Ask::Subscribe(uri.to_owned())) {
            wanted.untold.insert(Ask::Unsubscribe(uri.to_owned()));
        }
        drop(wanted);
        self.changed.notify_one();
    }

    /// One more stream wants to hear of a task; `false` if there are too many.
    pub(crate) fn watch(&self, task: &str) -> bool {
        let mut wanted = self.wanted();
        if let Some(streams) = wanted.tasks.get_mut(task) {
            *streams += 1;
            return true;
        }
        let room = wanted.tasks.len() < TASKS;
        if room {
            wanted.tasks.insert(task.to_owned(), 1);
            self.changed.notify_one();
        }
        room
    }

    /// One stream less does.
    pub(crate) fn unwatch(&self, task: &str) {
        let mut wanted = self.wanted();
        let Some(streams) = wanted.tasks.get_mut(task) else { return };
        *streams -= 1;
        if *streams == 0 {
            wanted.tasks.remove(task);
            self.changed.notify_one();
        }
    }

    /// The tasks that are wanted.
    pub(crate) fn tasks(&self) -> Vec<String> {
        self.wanted().tasks.keys().cloned().collect()
    }

    /// The resources that are wanted.
    pub(crate) fn resources(&self) -> Vec<String> {
        self.wanted().resources.keys().cloned().collect()
    }

    /// Tells a legacy generation all of them, and what changes, for as long as it lives. What it refuses is lost with it: the next
    /// one is asked again.
    pub(crate) async fn tell(&self, link: &Live) {
        self.wanted().begin();
        loop {
            let next = self.wanted().next_untold();
            let Some((method, params)) = next else {
                self.changed.notified().await;
                continue;
            };
            // An agent that subscribes uses the server.
            link.ledger.usage.mark();
            let Some(answer) = link.ask_when_room(method, Some(&params)).await else { return };
            // One that a server never answers must not keep the next from being asked.
            let _ = tokio::time::timeout(ANSWER, answer).await;
        }
    }
}

impl Wanted {
    /// A new generation knows nothing.
    fn begin(&mut self) {
        let resources = self.resources.keys().cloned().map(Ask::Subscribe);
        self.untold = self.level.iter().map(|_| Ask::Level).chain(resources).collect();
    }

    /// The next request to tell the server.
    fn next_untold(&mut self) -> Option<(&'static str, String)> {
        loop {
            let told = match self.untold.pop_first()? {
                Ask::Unsubscribe(uri) => Some(("resources/unsubscribe", about(&uri))),
                Ask::Level => self.level.clone().map(|params| ("logging/setLevel", params)),
                Ask::Subscribe(uri) => {
                    self.resources.get(&uri).cloned().map(|params| ("resources/subscribe", params))
                }
            };
            if told.is_some() {
                return told;
            }
        }
    }
}

fn uri(params: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Resource {
        uri: String,
    }
    serde_json::from_str::<Resource>(params).ok().map(|resource| resource.uri)
}

#[cfg(test)]
mod tests {
    use super::Wishes;

    #[test]
    fn the_last_level_and_the_open_subscriptions_are_remembered() {
        let wishes = Wishes::default();
        for (method, params) in [
            ("logging/setLevel", r#"{"level":"debug"}"#),
            ("logging/setLevel", r#"{"level":"error"}"#),
            ("resources/subscribe", r#"{"uri":"a"}"#),
            ("resources/subscribe", r#"{"uri":"b"}"#),
            ("resources/unsubscribe", r#"{"uri":"a"}"#),
            ("resources/subscribe", "not json"),
            ("tools/call", "{}"),
        ] {
            wishes.granted(method, Some(params));
        }
        wishes.granted("logging/setLevel", None);
        assert!((0..super::RESOURCES - 1).all(|n| wishes.subscribe(&format!("more-{n}"))));
        assert!(!wishes.subscribe("one too many"));
        assert!(wishes.subscribe("b"), "it is remembered already");
        assert_eq!(wishes.dropped.load(std::sync::atomic::Ordering::Relaxed), 1);
        (0..super::RESOURCES).for_each(|n| wishes.want_not(&format!("more-{n}")));
        let wanted = wishes.wanted().clone();
        assert_eq!(wanted.level.as_deref(), Some(r#"{"level":"error"}"#));
        assert_eq!(wanted.resources.into_values().collect::<Vec<_>>(), [r#"{"uri":"b"}"#]);
    }

    #[test]
    fn a_task_is_wanted_for_as_long_as_any_stream_wants_it_and_they_are_bounded() {
        let wishes = Wishes::default();
        assert!(wishes.watch("a") && wishes.watch("a") && wishes.watch("b"));
        wishes.unwatch("a");
        wishes.unwatch("b");
        wishes.unwatch("never");
        assert_eq!(wishes.tasks(), ["a"]);
        assert!((0..super::TASKS - 1).all(|n| wishes.watch(&format!("more-{n}"))));
        assert!(!wishes.watch("one too many") && wishes.watch("a"));
    }
}
