//! Who wants to hear of what: resources in the legacy era, listening requests in the modern one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::say;
use crate::offers;

/// Everything that was asked for.
#[derive(Debug, Default)]
pub(super) struct Listens(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    /// Resources, in the legacy era.
    resources: Vec<Value>,
    /// Listening requests by their id, and what each wants to hear of.
    modern: Vec<(Value, Value)>,
}

impl Listens {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A legacy request that may be about resources.
    pub(super) fn legacy(&self, method: &str, params: &Value) {
        let mut asked = self.asked();
        asked.resources.retain(|uri| *uri != params["uri"]);
        if method == "resources/subscribe" {
            asked.resources.push(params["uri"].clone());
        }
    }

    /// A listening request: it is acknowledged, and has no answer.
    pub(super) fn open(&self, id: &Value, params: &Value) {
        let wanted = params["notifications"].clone();
        let acknowledged = "notifications/subscriptions/acknowledged";
        say(&offers::notification(acknowledged, json!({ "notifications": wanted }), Some(id)));
        self.asked().modern.push((id.clone(), wanted));
    }

    pub(super) fn cancel(&self, id: &Value) {
        self.asked().modern.retain(|(open, _)| open != id);
    }

    pub(super) fn tools_changed(&self, modern: bool) {
        let changed = |id| say(&offers::notification("notifications/tools/list_changed", json!({}), id));
        if !modern {
            return changed(None);
        }
        for (id, wanted) in &self.asked().modern {
            if wanted["toolsListChanged"] == true {
                changed(Some(id));
            }
        }
    }

    /// A task changed; its state.
    pub(super) fn task_changed(&self, state: &Value) {
        for (id, wanted) in &self.asked().modern {
            if wanted["taskIds"].as_array().is_some_and(|tasks| tasks.contains(&state["taskId"])) {
                say(&offers::notification("notifications/tasks", state.clone(), Some(id)));
            }
        }
    }

    pub(super) fn touched(&self, uri: &str, modern: bool) {
        let asked = self.asked();
        // A resource may be part of the one that was asked for.
        let is_of = |wanted: &Value| {
            let rest = wanted.as_str().and_then(|wanted| uri.strip_prefix(wanted));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#', '?']))
        };
        if !modern && asked.resources.iter().any(is_of) {
            say(&offers::updated(uri, None));
        }
        for (id, wanted) in &asked.modern {
            let wants = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(is_of));
            if wants(&wanted["resourceSubscriptions"]) {
                say(&offers::updated(uri, Some(id)));
            }
        }
    }
}
