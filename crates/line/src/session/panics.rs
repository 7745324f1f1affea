//! Requests that end with their session, be it by a panic of ours: each is answered, since its agent waits for that and for
//! nothing else.

use linetender_core::{Delivery, Doubt};
use linetender_wire::frame::{self, Message};
use tokio::task::Id;

use super::{Session, replies};
use crate::basics::code::Code;
use crate::basics::error::{CallError, Phase};

/// What the agent is told.
const CAUSE: &str = "internal error in linetender (the task of this request panicked)";

impl Session {
    /// The task of a request panicked: nobody else will answer it.
    pub(super) async fn request_panicked(&mut self, task: Id) {
        let of = self.running.iter().find(|(_, running)| running.id() == task);
        if let Some(id) = of.map(|(id, _)| id.clone()) {
            self.running.remove(&id);
            self.tell_broken(&id, None, CAUSE).await;
        }
    }

    /// The session itself panicked: whatever is open is told, the request that it was about to begin too.
    pub(super) async fn tell_of_panic(&mut self) {
        let heard = self.heard.take();
        let begins = heard.as_ref().and_then(|heard| match heard.message() {
            Message::Request { id, method, .. } if !self.running.contains_key(id) => Some((id, method)),
            _ => None,
        });
        self.tell_open(CAUSE).await;
        if let Some((id, method)) = begins {
            self.tell_broken(id, Some(method), CAUSE).await;
        }
    }

    /// Whatever is open ends here, and its outcome is unknown.
    pub(super) async fn tell_open(&mut self, cause: &str) {
        let running = std::mem::take(&mut self.running);
        let open = running.iter().filter(|(_, task)| !task.is_finished());
        for (id, task) in open {
            task.abort();
            self.tell_broken(id, None, cause).await;
        }
    }

    async fn tell_broken(&self, id: &str, method: Option<&str>, cause: &str) {
        let text = if let Some(open) = &self.open {
            let error = open.line.given_up(cause.to_owned());
            let delivery = Delivery::Unknown(Doubt::Lost);
            let error = CallError { phase: Phase::InLinetender, delivery, stderr: None, ..error };
            // Where the method is not known, the form of a JSON-RPC error is right for all.
            replies::failed(&open.line, method.unwrap_or_default(), id, &error, open.era)
        } else {
            let data = serde_json::json!({ "source": "linetender", "delivery": "not executed" });
            let error = serde_json::json!({ "code": Code::Lost.number(), "message": cause, "data": data });
            frame::error_reply(id, &error.to_string())
        };
        self.tell(text).await;
    }
}
