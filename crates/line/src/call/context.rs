//! What one agent relies on in a server's memory, and the notice that it is gone.

use std::sync::{Arc, PoisonError};

use linetender_core::{CallEffect, ContextUse, Delivery, Doubt, Instant, ServerState};

use super::Call;
use crate::basics::context_loss::ContextLoss;
use crate::basics::error::CallError;
use crate::basics::sync::{Mutex, MutexGuard};
use crate::book::Entry;
use crate::generation::{Live, ServerContext};

/// What one agent relies on in the memory of one server. All clones are of the same agent.
#[derive(Clone, Debug, Default)]
pub struct AgentContext(Arc<Mutex<Reliance>>);

#[derive(Debug, Default)]
struct Reliance {
    uses: ContextUse,
    /// The context that `uses` names.
    server: Option<Arc<ServerContext>>,
    /// The last loss.
    loss: Option<ContextLoss>,
}

impl AgentContext {
    fn lock(&self) -> MutexGuard<'_, Reliance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is about to be sent to this context. Returns the loss that the agent has to be told of, if there is one.
    fn enters(&self, context: Option<&Arc<ServerContext>>, now: Instant) -> Option<ContextLoss> {
        let id = context.map(|context| context.id);
        self.lock().after(|uses| uses.enters(id, now))
    }

    /// This context is over. Returns the loss that the agent has to be told of, if there is one.
    fn loses(&self, context: &ServerContext, now: Instant) -> Option<ContextLoss> {
        self.lock().after(|uses| uses.loses(context.id, now))
    }

    /// A call of a tool that uses its context was answered.
    fn uses(&self, context: &Arc<ServerContext>) {
        let mut reliance = self.lock();
        reliance.uses.uses(context.id);
        if reliance.uses.used() == Some(context.id) {
            reliance.server = Some(Arc::clone(context));
        }
    }

    /// A call of this tool was answered.
    fn ran(&self, tool: &str) {
        if let Reliance { server: None, loss: Some(loss), .. } = &mut *self.lock() {
            loss.ran(tool);
        }
    }

    fn tells(&self, now: Instant) {
        self.lock().uses.tells(now);
    }

    /// The agent gives up a call that has just ended. If that one told it of a loss, it may have read nothing.
    pub(crate) fn was_not_told(&self, now: Instant) {
        self.lock().uses.was_not_told(now);
    }
}

impl Reliance {
    fn after(&mut self, step: impl FnOnce(&mut ContextUse) -> bool) -> Option<ContextLoss> {
        if let Some(server) = self.server.take_if(|server| server.is_one_shot()) {
            self.uses.forgets(server.id);
        }
        let is_pending = step(&mut self.uses);
        // The notice begins: from now on no context is used.
        if self.uses.used().is_none()
            && let Some(server) = self.server.take()
        {
            let (at, cause) = server.end();
            self.loss = Some(ContextLoss::new(cause, at));
        }
        if is_pending { self.loss.clone() } else { None }
    }
}

/// A call at its server. If its caller gives it up, it may all the same have set something up there.
pub(super) struct AtServer<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) link: &'a Live,
    pub(super) entry: Arc<Entry>,
}

impl Drop for AtServer<'_> {
    fn drop(&mut self) {
        if let Some(Delivery::Unknown(Doubt::Cancelled | Doubt::Deadline)) = self.entry.verdict() {
            self.call.may_have_used(self.link);
        }
    }
}

impl Call<'_> {
    /// The agent's use of its server's memory, and the effect of this call. `None` if the call has nothing to do with it.
    fn reliance(&self) -> Option<(&AgentContext, CallEffect)> {
        let is_covered = match self.state() {
            ServerState::None => false,
            ServerState::Unknown => self.method == "tools/call",
            ServerState::Process => matches!(self.method, "tools/call" | "resources/read" | "prompts/get"),
        };
        if !is_covered {
            return None;
        }
        let server = &self.shared.server;
        let is_read_only = |tool: &&str| self.shared.catalogue.borrow().declares_read_only(tool);
        let effect = match self.tool {
            Some(tool) if server.safe_tools.contains(tool) => CallEffect::Safe,
            _ => CallEffect::Unknown,
        };
        let effect =
            if self.tool.is_some_and(|tool| is_read_only(&tool)) { CallEffect::ReadOnly } else { effect };
        Some((self.options.context.as_ref()?, effect))
    }

    pub(super) fn state(&self) -> ServerState {
        self.shared.server.policy.settings().state
    }

    /// The loss that the agent has to be told of before this call may be executed here.
    pub(super) fn loss_before(&self, link: &Live) -> Option<ContextLoss> {
        let (agent, effect) = self.reliance()?;
        let loss = agent.enters(link.context(), self.shared.clock.now())?;
        self.state().holds(effect).then_some(loss)
    }

    /// The same for a call that was lost with this generation's context.
    pub(super) fn loss_of(&self, link: &Live) -> Option<ContextLoss> {
        let (agent, effect) = self.reliance()?;
        let loss = agent.loses(link.context()?, self.shared.clock.now())?;
        self.state().holds(effect).then_some(loss)
    }

    /// The call was answered here.
    pub(super) fn uses(&self, link: &Live) {
        let Some((agent, effect)) = self.reliance() else { return };
        if let Some(tool) = self.tool {
            agent.ran(tool);
        }
        if let Some(context) = link.context().filter(|_| self.state().is_used_by(effect)) {
            agent.uses(context);
        }
    }

    /// The call may have run here.
    fn may_have_used(&self, link: &Live) {
        if let Some((agent, effect)) = self.reliance()
            && let Some(context) = link.context().filter(|_| self.state().is_used_by(effect))
        {
            agent.uses(context);
        }
    }

    /// The caller gets this error.
    pub(super) fn tells(&self, error: &CallError) {
        if let (Some(_), Some(agent)) = (&error.context, &self.options.context) {
            agent.tells(self.shared.clock.now());
        }
    }
}
