//! A modern server says by itself only what it was asked to: one listening request per generation, asked again when it
//! ends, with waits of its own.
// MCP 2026-07-28, "Subscriptions".

use std::sync::Arc;
use std::time::Duration;

use linetender_wire::Reopen;
use linetender_wire::handshake::CAPABILITIES_IN_META;
use linetender_wire::seam::Listener as _;
use serde_json::{Map, Value, json};

use super::link::Live;
use super::wishes::Wishes;
use crate::audience::TASKS_EXTENSION;
use crate::book::Reply;

/// What of the server's lists it can tell us about, in the words of its capabilities and of the request.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Listens for as long as the generation lives.
pub(crate) async fn listen(link: Arc<Live>, wishes: Arc<Wishes>, meta: Value, seed: u64) {
    let capabilities = capabilities(&link);
    let lists = lists(&capabilities);
    let mut tells_of_tasks = capabilities["extensions"].get(TASKS_EXTENSION).is_some();
    let mut reopen = Reopen::new(seed);
    loop {
        let mut wanted = lists.clone();
        let resources = wishes.resources();
        if !resources.is_empty() {
            wanted.insert("resourceSubscriptions".to_owned(), resources.into());
        }
        let tasks = if tells_of_tasks { wishes.tasks() } else { Vec::new() };
        let asks_for_tasks = !tasks.is_empty();
        let mut meta = meta.clone();
        if asks_for_tasks {
            wanted.insert("taskIds".to_owned(), tasks.into());
            declare_tasks(&mut meta[CAPABILITIES_IN_META]);
        }
        if wanted.is_empty() {
            wishes.changed.notified().await;
            continue;
        }
        let params = json!({ "_meta": meta, "notifications": wanted }).to_string();
        let opened = tokio::time::Instant::now();
        let Some(asking) = link.ask_when_room("subscriptions/listen", Some(&params)).await else { return };
        if reopen.opened() {
            link.ear.gap();
        }
        let ended = tokio::select! {
            biased;
            ended = asking => ended,
            // Somebody wants to hear of something else: it is asked anew, with all of it.
            () = wishes.changed.notified() => {
                reopen.anew();
                continue;
            }
        };
        match ended {
            // It does not tell of tasks after all, which must not keep it from telling of its lists.
            Ok(Reply::Answer(frame)) if is_error(&frame) && asks_for_tasks => {
                tells_of_tasks = false;
                continue;
            }
            // It has no such thing, in its own words.
            Ok(Reply::Answer(frame)) if is_error(&frame) => return,
            Ok(Reply::Answer(_) | Reply::Unusable(_) | Reply::Lost(_)) => {}
            Err(_) => return,
        }
        tokio::time::sleep(reopen.wait(opened.elapsed(), None).max(Duration::from_millis(1))).await;
        tokio::select! {
            () = link.ear.stream_wanted() => {}
            () = wishes.changed.notified() => {}
        }
    }
}

fn is_error(frame: &linetender_wire::frame::Frame) -> bool {
    use linetender_wire::frame::{Message, Outcome};
    matches!(frame.message(), Message::Response { outcome: Some((Outcome::Error, _)), .. })
}

// The tasks extension, "Task Status Notifications": whoever does not declare it is refused.
fn declare_tasks(capabilities: &mut Value) {
    let extensions = &mut capabilities["extensions"];
    if !extensions.is_object() {
        *extensions = json!({});
    }
    extensions[TASKS_EXTENSION] = json!({});
}

/// What the server said it can do.
fn capabilities(link: &Live) -> Value {
    let greeting = serde_json::from_str::<Value>(&link.greeting.result).ok();
    greeting.map(|greeting| greeting["capabilities"].clone()).unwrap_or_default()
}

/// Only what the server said it can tell.
fn lists(capabilities: &Value) -> Map<String, Value> {
    let tells = |list: &&(&str, &str)| capabilities[list.0]["listChanged"] == true;
    LISTS.iter().filter(tells).map(|(_, wish)| ((*wish).to_owned(), Value::Bool(true))).collect()
}
