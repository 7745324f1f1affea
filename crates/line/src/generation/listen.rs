//! A modern server says by itself only what it was asked to: one listening request per generation, asked again when it
//! ends, with waits of its own.
// MCP 2026-07-28, "Subscriptions".

use std::sync::Arc;
use std::time::Duration;

use linetender_wire::Reopen;
use linetender_wire::seam::Listener as _;
use serde_json::{Map, Value, json};

use super::link::Link;
use super::wishes::Wishes;
use crate::book::Reply;

/// What of the server's lists it can tell us about, in the words of its capabilities and of the request.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Listens for as long as the generation lives.
pub(crate) async fn listen(link: Arc<Link>, wishes: Arc<Wishes>, meta: Value, seed: u64) {
    let lists = lists(&link);
    let mut reopen = Reopen::new(seed);
    loop {
        let mut wanted = lists.clone();
        let resources = wishes.resources();
        if !resources.is_empty() {
            wanted.insert("resourceSubscriptions".to_owned(), resources.into());
        }
        if wanted.is_empty() {
            wishes.changed.notified().await;
            continue;
        }
        let params = json!({ "_meta": meta, "notifications": wanted }).to_string();
        let opened = tokio::time::Instant::now();
        let Some(asking) = link.ask("subscriptions/listen", Some(&params)) else { return };
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
            // It has no such thing, in its own words.
            Ok(Reply::Answer(frame)) if is_error(&frame) => return,
            Ok(Reply::Answer(_) | Reply::Unusable(_) | Reply::Lost(_)) => {}
            Err(_) => return,
        }
        tokio::time::sleep(reopen.wait(opened.elapsed(), None).max(Duration::from_millis(1))).await;
    }
}

fn is_error(frame: &linetender_wire::frame::Frame) -> bool {
    use linetender_wire::frame::{Message, Outcome};
    matches!(frame.message(), Message::Response { outcome: Some((Outcome::Error, _)), .. })
}

/// Only what the server said it can tell.
fn lists(link: &Link) -> Map<String, Value> {
    let greeting =
        link.greeting.get().and_then(|greeting| serde_json::from_str::<Value>(&greeting.result).ok());
    let capabilities = greeting.map(|greeting| greeting["capabilities"].clone()).unwrap_or_default();
    let tells = |list: &&(&str, &str)| capabilities[list.0]["listChanged"] == true;
    LISTS.iter().filter(tells).map(|(_, wish)| ((*wish).to_owned(), Value::Bool(true))).collect()
}
