//! When a session's own code panics: every open request is answered, since its agent waits for that and for nothing else.

use linetender_core::{Delivery, Doubt};
use linetender_wire::frame::{self, Message};
use tokio::task::Id;

use super::{Session, replies};
use crate::error::CallError;

/// What the agent is told.
const CAUSE: &str = "linetender: internal error (the task of this request panicked)";

impl Session {
    /// The task of a request panicked: nobody else will answer it.
    pub(super) async fn request_panicked(&mut self, task: Id) {
        let of = self.running.iter().find(|(_, running)| running.id() == task);
        if let Some(id) = of.map(|(id, _)| id.clone()) {
            self.running.remove(&id);
            self.tell_broken(&id, None).await;
        }
    }

    /// The session itself panicked: whatever is open is told, the request that it was about to begin too.
    pub(super) async fn tell_of_panic(&mut self) {
        let running = std::mem::take(&mut self.running);
        let open = running.iter().filter(|(_, task)| !task.is_finished());
        for (id, task) in open {
            task.abort();
            self.tell_broken(id, None).await;
        }
        let Some(heard) = self.heard.take() else { return };
        if let Message::Request { id, method, .. } = heard.message()
            && !running.contains_key(id)
        {
            self.tell_broken(id, Some(method)).await;
        }
    }

    async fn tell_broken(&self, id: &str, method: Option<&str>) {
        let text = if let Some(open) = &self.open {
            let error = open.line.given_up(CAUSE.to_owned());
            let delivery = Delivery::Unknown(Doubt::Lost);
            let error = CallError { phase: "in linetender", delivery, stderr: None, ..error };
            // Where the method is not known, the form of a JSON-RPC error is right for all.
            replies::failed(&open.line, method.unwrap_or_default(), id, &error, open.era)
        } else {
            let data = serde_json::json!({ "source": "linetender", "delivery": "not executed" });
            let error = serde_json::json!({ "code": 7005, "message": CAUSE, "data": data });
            frame::error_reply(id, &error.to_string())
        };
        self.tell(text).await;
    }
}
