//! Keeps a gateway going by its file.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linetender_gateway::Gateway;
use linetender_gateway::config::{Config, Settings};
use tokio::time::Instant;

use super::file;
use super::fleet::InFleet;
use super::still::{Look, Pending};
use super::watch::Changes;
use crate::args;
use crate::bearers::AgentTokens;
use crate::keys::KeyMaker;
use crate::stop::{self, Signals};

/// How soon a file that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A file that a gateway goes by.
pub(super) struct Follow<'a> {
    args: &'a args::Serve,
    path: &'a Path,
    /// What it said when it was judged last.
    last: Result<String, String>,
    /// What it says since, if it has not been still for long enough to be judged.
    pending: Option<Pending<Config>>,
    changes: Changes,
    keys: KeyMaker,
    /// Who verifies agents' tokens.
    tokens: Option<AgentTokens>,
    /// The fleet that the gateway is in.
    fleet: Option<Arc<InFleet>>,
}

impl<'a> Follow<'a> {
    /// `text` is what the gateway goes by now, and `changes` are those since before it was read.
    pub(super) fn new(
        args: &'a args::Serve,
        path: &'a Path,
        text: String,
        changes: Changes,
        keys: KeyMaker,
    ) -> Self {
        Self { args, path, last: Ok(text), pending: None, changes, keys, tokens: None, fleet: None }
    }

    /// What the file says of agents' tokens is told to this.
    pub(super) fn with(self, tokens: Option<AgentTokens>) -> Self {
        Self { tokens, ..self }
    }

    /// Servers that the fleet shares are found in this.
    pub(super) fn within(self, fleet: Option<Arc<InFleet>>) -> Self {
        Self { fleet, ..self }
    }

    /// The file.
    pub(super) const fn path(&self) -> &Path {
        self.path
    }

    /// Gives the servers of this file their keys, and those that a fleet shares the way to where they run.
    pub(super) fn fit(&self, config: &mut Config) {
        self.keys.fit(config, self.path);
        if let Some(fleet) = &self.fleet {
            fleet.fit(config);
        }
    }

    /// Reloads the file when it has changed and been still for a while, and at once on SIGHUP.
    pub(super) async fn keep_up(mut self, gateway: &Gateway, mut asked: Signals) -> Infallible {
        loop {
            let due = self.pending.as_ref().map(Pending::due);
            // Each of these leads to a look at the file, so a change that another one overtakes is not lost.
            let asked = tokio::select! {
                _ = asked.next() => true,
                () = self.changes.next() => false,
                () = reached(due) => false,
                // It may become readable without a change: once there is a descriptor for it, or its rights allow it.
                () = tokio::time::sleep(AGAIN), if self.last.is_err() => false,
            };
            let look = file::look(self.path);
            if asked {
                self.pending = None;
                self.last = look.text;
                if let Some(config) = self.judge(gateway) {
                    self.apply(gateway, config);
                }
            } else {
                self.settle(look, gateway);
            }
        }
    }

    /// Applies a changed file that has been still for long enough.
    fn settle(&mut self, look: Look, gateway: &Gateway) {
        let earlier = self.pending.take();
        // Something else in its folder may have changed, such as the log; or the file is again what it was.
        if look.text == self.last {
            return;
        }
        let now = Instant::now();
        let pending = Pending::seen(earlier, look, now);
        if now < pending.due() {
            self.pending = Some(pending);
            return;
        }
        if let Pending { removes: Some(config), look, .. } = pending {
            self.last = look.text;
            return self.apply(gateway, config);
        }
        let before = std::mem::replace(&mut self.last, pending.look.text.clone());
        let Some(config) = self.judge(gateway) else { return };
        let removed = removed(gateway, &config);
        if removed.is_empty() {
            return self.apply(gateway, config);
        }
        tracing::info!(
            ?removed,
            "config file removes running servers; applying it in 3 s unless it changes again"
        );
        self.last = before;
        self.pending = Some(pending.removing(config));
    }

    /// What the file says, if it can be used.
    fn judge(&self, gateway: &Gateway) -> Option<Config> {
        let read = match &self.last {
            Ok(text) => file::read(self.path, text, Some(gateway.settings())),
            Err(problem) => {
                tracing::error!(problem, "config reload failed; keeping the current config");
                return None;
            }
        };
        // Only the headline of a problem: the file may hold secrets.
        read.inspect_err(|problem| {
            tracing::error!(
                file = %self.path.display(), line = problem.line(), column = problem.column(), %problem,
                advice = problem.advice(), "config reload failed; keeping the current config"
            );
        })
        .ok()
    }

    fn apply(&self, gateway: &Gateway, mut config: Config) {
        let in_force = gateway.settings();
        // Where we listen is not for the file to say if we were told so, or if we do not.
        if self.args.stdio || self.args.listen.is_some() {
            config.gateway.listen = in_force.listen;
        }
        config.gateway.insecure |= self.args.insecure;
        let mut settings = in_force.differing(&config.gateway);
        if let Some(tokens) = self.tokens.as_ref().filter(|_| config.gateway.auth.is_on()) {
            settings.retain(|setting| setting != "auth");
            // What the gateway is called stays as it is until a restart, and tokens are issued for that.
            let now = Settings { public_url: in_force.public_url.clone(), ..config.gateway.clone() };
            if let Err(problem) = tokens.change(&now) {
                tracing::error!(
                    problem,
                    "cannot use all of the new gateway.auth; what is wrong with it stays as it was"
                );
            }
        }
        if !settings.is_empty() {
            tracing::warn!(?settings, "[gateway] settings changed; restart linetender to apply them");
        }
        self.fit(&mut config);
        let shared = super::fleet::shared(&config);
        let change = gateway.apply(config);
        if let Some(fleet) = &self.fleet {
            fleet.shares(shared, gateway);
        }
        tracing::info!(
            added = ?change.added, replaced = ?change.replaced, removed = ?change.removed, kept = ?change.kept,
            "config reloaded"
        );
    }
}

/// The servers that run and are not in this config.
fn removed(gateway: &Gateway, config: &Config) -> Vec<String> {
    let lines = gateway.lines();
    let names = lines.iter().map(linetender::Line::name);
    let is_left = |name: &&str| config.servers.iter().any(|entry| entry.server.name() == *name);
    names.filter(|name| !is_left(name)).map(str::to_owned).collect()
}

async fn reached(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The signal that asks for the file to be read again.
pub(super) fn asked() -> Signals {
    Signals::of(stop::RELOAD)
}
