//! What callers asked a server to keep doing: it is asked again of every generation.

use std::collections::BTreeMap;
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

    /// A request was answered with a result: if it is a standing wish, it is remembered.
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
                    self.want_not(&uri);
                }
            }
            _ => {}
        }
    }

    /// A resource is wanted; its params, should somebody have to be asked. `None` if too many are.
    pub(crate) fn subscribe(&self, uri: &str) -> Option<String> {
        let params = about(uri);
        self.want(uri.to_owned(), params.clone()).then_some(params)
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

    /// It is not wanted any more.
    pub(crate) fn want_not(&self, uri: &str) {
        if self.wanted().resources.remove(uri).is_some() {
            self.changed.notify_one();
        }
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

    /// Asks a new legacy generation for all of them. What it refuses is lost with it: the next one is asked again.
    pub(crate) async fn repeat(&self, link: &Live) {
        let wanted = self.wanted().clone();
        let level = wanted.level.iter().map(|params| ("logging/setLevel", params));
        let resources = wanted.resources.values().map(|params| ("resources/subscribe", params));
        for (method, params) in level.chain(resources) {
            if let Some(answer) = link.ask(method, Some(params)) {
                // One that a server never answers must not keep the next from being asked.
                let _ = tokio::time::timeout(ANSWER, answer).await;
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
        assert!((0..super::RESOURCES - 1).all(|n| wishes.subscribe(&format!("more-{n}")).is_some()));
        assert_eq!(wishes.subscribe("one too many"), None);
        assert!(wishes.subscribe("b").is_some(), "it is remembered already");
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
