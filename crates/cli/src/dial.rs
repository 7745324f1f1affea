//! Starting a server once, for commands that need it for a moment: how long it took, or why it failed.

use std::time::Duration;

use linetender::{Class, Leaf, Line, NextTry, Server, State, Stderr, Why};
use tokio::time::Instant;

/// What is allowed beyond the server's own timeouts before a start is given up: its turn among others is not counted.
const SLACK: Duration = Duration::from_secs(5);

/// How a start went.
#[derive(Debug)]
pub(crate) struct Dialled {
    /// From the start of the server until it took calls, or until it was known that it will not.
    pub(crate) took: Duration,
    /// Why it failed.
    pub(crate) outcome: Result<(), Failure>,
}

/// Why a start failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The headline.
    pub(crate) text: String,
    /// The last lines of stderr.
    pub(crate) stderr: Option<String>,
    /// What kind of failure it is, if that is known.
    pub(crate) class: Option<Class>,
}

/// The same server, whose stderr is quoted in errors and shown nowhere else.
pub(crate) fn quiet(server: &Server) -> Server {
    match server.to_stdio() {
        Some(program) => program.stderr(Stderr::Off).into(),
        None => server.clone(),
    }
}

/// How long a start of this server can take at most, once it has begun.
pub(crate) fn longest(server: &Server) -> Duration {
    let settings = server.settings();
    // A server that fails when it is asked for its era is started a second time.
    (settings.dial.start + settings.dial.handshake + settings.close.worst()) * 2 + SLACK
}

/// Waits until a line of a rig that [dials once](linetender::Rig::dialling_once) is up, or has failed. A line that failed is
/// closed.
pub(crate) async fn dialled(line: &Line, longest: Duration) -> Dialled {
    let mut statuses = line.statuses();
    let mut began = Instant::now();
    line.wake();
    loop {
        let now = statuses.borrow_and_update().clone();
        // Waiting for a turn is no start time.
        if now.next_try() == Some(NextTry::ItsTurn) {
            began = Instant::now();
        }
        if matches!(now.state, State::Up | State::Suspect) {
            return Dialled { took: began.elapsed(), outcome: Ok(()) };
        }
        // What is known while it ends is not yet all: an exit status follows a closed pipe.
        let is_over = !matches!(now.state, State::Ending | State::Draining);
        if let Some(why) = now.cause.filter(|why| is_over && is_final(why)) {
            let took = began.elapsed();
            let _ = tokio::time::timeout(line.policy().close.worst() + SLACK, line.close()).await;
            return Dialled { took, outcome: Err(Failure::of(&why)) };
        }
        let changed = tokio::time::timeout_at(began + longest, statuses.changed()).await;
        if !matches!(changed, Ok(Ok(()))) && line.status().next_try() != Some(NextTry::ItsTurn) {
            let why = line.status().cause.map_or_else(Failure::late, |why| Failure::of(&why));
            return Dialled { took: began.elapsed(), outcome: Err(why) };
        }
    }
}

/// Whether a start failed of this. A server that ends when it is asked for its era is started once more, for the other one; and
/// a cause without leaves only says what is waited for.
fn is_final(why: &Why) -> bool {
    why.leaves.iter().any(|leaf| *leaf != Leaf::Failed(Class::EraProbe))
}

impl Failure {
    fn of(why: &Why) -> Self {
        let class = why.leaves.iter().find_map(|leaf| match leaf {
            Leaf::Failed(class) => Some(*class),
            Leaf::Planned(_) => None,
        });
        Self { text: why.text.clone(), stderr: why.stderr.clone(), class }
    }

    /// All of it on one line: the headline, and the last line of stderr.
    pub(crate) fn in_one(&self) -> String {
        match self.stderr.as_deref().and_then(|stderr| stderr.trim_end().lines().last()) {
            Some(line) => format!("{} (stderr: {line})", self.text),
            None => self.text.clone(),
        }
    }

    fn late() -> Self {
        Self { text: "the server did not start in time".to_owned(), stderr: None, class: None }
    }
}

#[cfg(test)]
mod tests {
    use linetender::{Rig, Server, State};

    use super::{dialled, longest, quiet};

    #[tokio::test]
    async fn a_server_that_fails_is_started_once() {
        let book = std::env::temp_dir().join(format!("linetender-dial-{}", std::process::id()));
        let _ = std::fs::remove_file(&book);
        let words = ["--era", "legacy", "--exit", "7", "--stderr", "no such key", "--book"];
        let argv = [linetender_badserver::program().to_str().unwrap()].into_iter().chain(words);
        let argv = argv.chain([book.to_str().unwrap()]);
        let server = Server::stdio("bad", argv).reaper(linetender_badserver::program());
        let server = quiet(&server.eras(linetender::Eras::Only(linetender::Era::Legacy)).into());
        let line = Rig::new().dialling_once().lazy(server.clone());
        let why = dialled(&line, longest(&server)).await.outcome.unwrap_err();
        assert!(why.text.contains("exited with status 7"), "{why:?}");
        assert!(why.stderr.as_deref().is_some_and(|text| text.contains("no such key")), "{why:?}");
        assert_eq!(line.status().state, State::Closed, "nothing starts it again");
        let starts = std::fs::read_to_string(&book).unwrap().matches("start").count();
        std::fs::remove_file(book).unwrap();
        assert_eq!(starts, 1);
    }
}
