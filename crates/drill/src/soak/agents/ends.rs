//! Where an agent is: on a line of this process, or on the pipes of a shim.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::process::Stdio;

use linetender::Line;
use linetender::session::{self, Agent};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// An agent's ends.
pub(in crate::soak) enum Ends {
    Joined(Agent),
    /// The shim goes when this is dropped.
    #[cfg_attr(windows, allow(dead_code, reason = "only shims that share a server are soaked"))]
    Piped(Box<Piped>),
}

/// A shim, and its pipes.
pub(in crate::soak) struct Piped {
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    _shim: Child,
}

impl Ends {
    /// One of many on a line.
    pub(in crate::soak) fn join(line: &Line) -> Self {
        Self::Joined(session::join(line))
    }

    /// One on a shim that this starts.
    #[cfg_attr(windows, allow(dead_code, reason = "only shims that share a server are soaked"))]
    pub(in crate::soak) fn start(shim: &mut Command) -> Result<Self, String> {
        let shim = shim.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut shim = shim.spawn().map_err(|error| format!("cannot start a shim: {error}"))?;
        let (Some(to), Some(from)) = (shim.stdin.take(), shim.stdout.take()) else {
            return Err("a shim without pipes".to_owned());
        };
        Ok(Self::Piped(Box::new(Piped { to, from: BufReader::new(from).lines(), _shim: shim })))
    }

    /// `None`: nobody is there.
    pub(super) async fn say(&mut self, text: String) -> Option<()> {
        match self {
            Self::Joined(agent) => agent.to.send(text.into()).await.ok(),
            Self::Piped(piped) => piped.to.write_all(format!("{text}\n").as_bytes()).await.ok(),
        }
    }

    /// `None`: nobody is there.
    pub(super) async fn hear(&mut self) -> Option<String> {
        match self {
            Self::Joined(agent) => {
                let text = agent.from.recv().await?;
                Some(String::from_utf8_lossy(text.text()).into_owned())
            }
            Self::Piped(piped) => piped.from.next_line().await.ok()?,
        }
    }
}
