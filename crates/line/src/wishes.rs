//! What callers asked a server to keep doing: it is asked again of every generation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::dial::Link;

/// Standing wishes of the legacy era: a log level, and resources to be told about.
#[derive(Debug, Default)]
pub(crate) struct Wishes(Mutex<Wanted>);

#[derive(Clone, Debug, Default)]
struct Wanted {
    /// The params of the last `logging/setLevel`.
    level: Option<String>,
    /// The params of each `resources/subscribe` that was not taken back, by resource.
    resources: BTreeMap<String, String>,
}

/// The most resources that are subscribed to again; a server is not asked for more than that in one go.
const RESOURCES: usize = 1024;

impl Wishes {
    /// A request was answered with a result: if it is a standing wish, it is remembered.
    pub(crate) fn granted(&self, method: &str, params: Option<&str>) {
        let Some(params) = params else { return };
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match method {
            "logging/setLevel" => wanted.level = Some(params.to_owned()),
            "resources/subscribe" if wanted.resources.len() < RESOURCES => {
                wanted.resources.extend(uri(params).map(|uri| (uri, params.to_owned())));
            }
            "resources/unsubscribe" => {
                if let Some(uri) = uri(params) {
                    wanted.resources.remove(&uri);
                }
            }
            _ => {}
        }
    }

    /// Asks a new generation for all of them. What it refuses is lost with it: the next one is asked again.
    pub(crate) async fn repeat(&self, link: &Arc<Link>) {
        let wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let level = wanted.level.iter().map(|params| ("logging/setLevel", params));
        let resources = wanted.resources.values().map(|params| ("resources/subscribe", params));
        for (method, params) in level.chain(resources) {
            if let Some(answer) = link.ask(method, Some(params)) {
                let _ = answer.await;
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
        let wanted = wishes.0.lock().unwrap().clone();
        assert_eq!(wanted.level.as_deref(), Some(r#"{"level":"error"}"#));
        assert_eq!(wanted.resources.into_values().collect::<Vec<_>>(), [r#"{"uri":"b"}"#]);
    }
}
