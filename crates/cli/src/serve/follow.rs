//! Keeps a gateway going by its file.

use std::convert::Infallible;
use std::time::Duration;

use linetender_gateway::Gateway;
use tokio::signal::unix::SignalKind;

use super::file;
use super::watch::Changes;
use crate::args;
use crate::stop::Signals;

/// How soon a file that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A file that a gateway goes by.
pub(super) struct Follow<'a> {
    args: &'a args::Serve,
    /// What it said when it was looked at last.
    last: Result<String, String>,
    changes: Changes,
}

impl<'a> Follow<'a> {
    /// `text` is what the gateway goes by now, and `changes` are those since before it was read.
    pub(super) fn new(args: &'a args::Serve, text: String, changes: Changes) -> Self {
        Self { args, last: Ok(text), changes }
    }

    /// Reads the file again when it changes, and when somebody asks for it.
    pub(super) async fn keep_up(mut self, gateway: &Gateway, mut asked: Signals) -> Infallible {
        loop {
            let asked = tokio::select! {
                _ = asked.next() => true,
                () = self.changes.next() => false,
                // It may be read again without a change: once there is a descriptor for it, or somebody lets us.
                () = tokio::time::sleep(AGAIN), if self.last.is_err() => false,
            };
            let now = file::text(&self.args.config);
            // Something else in its folder may have changed, such as the log: what is as it was is not told again.
            if asked || now != self.last {
                self.last = now;
                self.apply(gateway);
            }
        }
    }

    fn apply(&self, gateway: &Gateway) {
        let text = match &self.last {
            Ok(text) => text,
            Err(problem) => {
                tracing::error!(problem, "the config cannot be used; nothing is changed");
                return;
            }
        };
        let in_force = gateway.settings();
        match file::read(&self.args.config, text, Some(in_force)) {
            Ok(mut config) => {
                // Where we listen is not for the file to say if we were told so, or if we do not.
                if self.args.stdio || self.args.listen.is_some() {
                    config.gateway.listen = in_force.listen;
                }
                let settings = in_force.differing(&config.gateway);
                if !settings.is_empty() {
                    tracing::warn!(?settings, "these settings of [gateway] take effect at the next start");
                }
                let change = gateway.apply(config);
                tracing::info!(
                    added = ?change.added, replaced = ?change.replaced, removed = ?change.removed, kept = ?change.kept,
                    "the config was read again"
                );
            }
            // Only the headline: the file may hold secrets.
            Err(problem) => tracing::error!(
                file = %self.args.config.display(), line = problem.line(), column = problem.column(), %problem,
                advice = problem.advice(), "the config cannot be used; nothing is changed"
            ),
        }
    }
}

/// The signal that asks for the file to be read again.
pub(super) fn asked() -> Signals {
    Signals::of([SignalKind::hangup()])
}
