//! Containers of a server: a plain `docker run` or `podman run`.
//!
//! Such a program is a client. The container belongs to a daemon, or to nobody, and may outlive the client: killing the client's
//! process tree leaves a server behind, and the next start would make it two. So the client writes the container's id to a
//! file of ours (`--cidfile`), and the container is killed by its id before the next start and at the end.
//!
//! That file and a lock beside it are also the record for the time after our own death. Whoever runs the server holds the lock;
//! the kernel gives it back when this process is killed. The next start of the same server finds a record that nobody holds,
//! and ends what may still run. A record that is held belongs to a living process, and is left alone.

mod command;
mod record;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::child::Program;
use super::client::{self, ContainerRun};
use crate::redact::Redacted;
use crate::seam::Event;
use crate::seen::Seen;
use record::Record;

/// Longer than the end of a client takes that lost its linetender, beyond the times that it is given.
const CLIENT_ENDS: Duration = Duration::from_secs(1);

/// How long ending a container may take, with all commands for it. A daemon gives a container about ten seconds to die.
const WITHIN: Duration = Duration::from_secs(15);

/// After a container is dead, how long its end may be waited for: its name is free then.
const CLEARED: Duration = Duration::from_secs(5);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// How many characters of an id are shown, as the clients do.
const SHOWN: usize = 12;

/// What such a client says in its last words, of a container that is gone or has ended.
const GONE: [&str; 3] = ["no such container", "no container with", "no such object"];
const ENDED: [&str; 3] = ["is not running", "only kill running", "container state improper"];

/// Clients that could not write to a file of ours (a sandboxed one sees other folders): their containers are not followed.
static REFUSED: Mutex<Option<HashSet<OsString>>> = Mutex::new(None);

/// How a program is started.
#[derive(Debug)]
pub enum Start {
    /// As configured.
    Plain,
    /// As configured, although it is a container: it cannot be followed, for this reason.
    Unfollowed(String),
    /// As a container that is followed.
    Followed(Program, Container),
}

/// A container of one start, until it has ended.
#[derive(Debug)]
pub struct Container {
    client: Program,
    removes: bool,
    record: Record,
}

/// An id, as far as it is shown.
pub(super) fn short(id: &str) -> &str {
    id.get(..SHOWN).unwrap_or(id)
}

/// Makes the start of a program ready: ends the containers that an earlier start of the same server left behind, each of
/// which is told of, and makes room for the id of the next one. `close`: how long a client may live that lost its parent.
///
/// # Errors
/// If one of them may still run and cannot be ended.
pub async fn prepare(
    program: &Program,
    close: Duration,
    events: &mpsc::Sender<Event>,
) -> Result<Start, Seen> {
    let Some(run) = ContainerRun::of(&program.argv) else { return Ok(Start::Plain) };
    let client = Program { argv: run.client(&program.argv).to_vec(), ..program.clone() };
    let unfollowed = |error: io::Error| Ok(Start::Unfollowed(error.to_string()));
    let records = match record::Records::of(program) {
        Ok(records) => records,
        Err(error) => return unfollowed(error),
    };
    let left = match records.left_behind() {
        Ok(left) => left,
        Err(error) => return unfollowed(error),
    };
    // A client that was being started when its linetender died may yet be about to name its container.
    let named_by = Instant::now() + close + CLIENT_ENDS;
    for record in left {
        let container = Container { client: client.clone(), removes: run.removes, record };
        container.named(named_by).await;
        let Some(id) = container.record.id() else {
            container.forget();
            continue;
        };
        let _ = events.send(Event::ContainerLeft { id: short(&id).to_owned(), reason: None }).await;
        container.end().await?;
    }
    if refused().as_ref().is_some_and(|refused| refused.contains(&program.argv[0])) {
        return Ok(Start::Unfollowed("its client cannot write to linetender's folder".to_owned()));
    }
    let record = match records.create() {
        Ok(record) => record,
        Err(error) => return unfollowed(error),
    };
    let argv = run.with_cidfile(&program.argv, record.cidfile().as_os_str());
    let started = Program { argv, ..program.clone() };
    Ok(Start::Followed(started, Container { client, removes: run.removes, record }))
}

impl Container {
    /// Its client was not started: there is nothing to be ended.
    pub fn forget(&self) {
        self.record.forget();
    }

    /// Returns when its id is known, or it is too late for that.
    async fn named(&self, by: Instant) {
        while self.record.id().is_none() && Instant::now() < by {
            sleep(LOOK).await;
        }
    }

    /// Ends it, and forgets it. Its client is gone by then, so that there is an id by now or there is no container.
    ///
    /// # Errors
    /// If it may still run. Then it is not forgotten: the next start tries again.
    pub(super) async fn end(&self) -> Result<(), Seen> {
        if let Some(id) = self.record.id() {
            let ended = timeout_at(Instant::now() + WITHIN, self.kill(&id)).await;
            let late = || Err(format!("its client did not end within {} s", WITHIN.as_secs()));
            ended.unwrap_or_else(|_| late()).map_err(|reason| Seen::ContainerStays {
                id: short(&id).to_owned(),
                reason: Redacted::tail(&reason, 300),
            })?;
        }
        self.forget();
        Ok(())
    }

    async fn kill(&self, id: &str) -> Result<(), String> {
        let said = command::run(&self.client, &["kill", id]).await.map_err(|error| error.to_string())?;
        let is_dead = said.has_any(&ENDED);
        if !said.success && !is_dead {
            return if said.has_any(&GONE) { Ok(()) } else { Err(said.words()) };
        }
        // Some clients do not wait for the end, and a name is free when the container is removed: this one is, by `--rm`. It is
        // dead in any case, so nothing hangs on what these say.
        let cleared = Instant::now() + CLEARED;
        let clear = async {
            if !self.removes {
                if !is_dead {
                    let _ = command::run(&self.client, &["wait", id]).await;
                }
                return;
            }
            while let Ok(said) = command::run(&self.client, &["rm", "--force", id]).await
                && !said.success
                && !said.has_any(&GONE)
            {
                sleep(LOOK).await;
            }
        };
        let _ = timeout_at(cleared, clear).await;
        Ok(())
    }

    /// True if its client, which ended with these words, could not write our file. The next start does without.
    pub(super) fn is_refused(&self, stderr: &str) -> bool {
        let cidfile = self.record.cidfile().to_string_lossy();
        let is_refused = self.record.id().is_none() && stderr.contains(&*cidfile);
        if is_refused {
            refused().get_or_insert_default().extend(self.client.argv.first().cloned());
        }
        is_refused
    }
}

fn refused() -> std::sync::MutexGuard<'static, Option<HashSet<OsString>>> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The container name that another container has, in the words of a client that could not be given it.
pub(super) fn taken_name(program: &Program, stderr: &str) -> Option<String> {
    client::client(program.argv.first()?).filter(|client| client::is_container_client(client))?;
    // docker: `The container name "/mcp" is already in use by container "ID".`; podman: `the container name "mcp" is already in
    // use by ID`.
    let before = stderr.split_once("is already in use")?.0;
    let (_, name) = before.trim_end().strip_suffix('"')?.rsplit_once('"')?;
    Some(name.trim_start_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::taken_name;
    use crate::stdio::child::{Env, Program};

    #[test]
    fn a_name_that_another_container_has_is_read_from_the_clients_words() {
        let of = |program: &str, stderr: &str| {
            let program = Program { argv: vec![program.into()], dir: None, env: Env::Ours };
            taken_name(&program, stderr)
        };
        let docker = "docker: Error response from daemon: Conflict. The container name \"/mcp\" is already in use by container \
                      \"3f2a\". You have to remove (or rename) that container to be able to reuse that name.\n";
        let podman = "Error: creating container storage: the container name \"mcp\" is already in use by 3f2a. You have to remove \
                      that container to be able to reuse that name: that name is already in use\n";
        assert_eq!(of("docker", docker).as_deref(), Some("mcp"));
        assert_eq!(of("/usr/bin/podman", podman).as_deref(), Some("mcp"));
        assert_eq!(of("node", docker), None, "somebody else's words");
        assert_eq!(of("docker", "port 80 is already in use"), None);
        assert_eq!(of("docker", ""), None);
    }
}
