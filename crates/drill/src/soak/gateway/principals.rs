//! Whom agents act for: each principal has a token, groups, and a marker that is in everything it says. Whatever an agent hears
//! is looked through for what is another's.

mod ear;
mod intruder;
mod judge;
mod resident;
mod tally;

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender_auth::TokenFile;

use super::house::{Seen, Server};
pub(super) use ear::Ear;
pub(super) use intruder::{Intruder, leaver};
pub(super) use judge::{Looks, at_the_end};
pub(super) use resident::Resident;
pub(super) use tally::Tally;

/// The file of tokens, beside the config file.
pub(super) const TOKENS: &str = "tokens.toml";

/// Every principal is in one of these groups, by its number, and in one of those.
pub(super) const GROUPS: [&str; 3] = ["red", "green", "blue"];
pub(super) const PARITIES: [&str; 2] = ["even", "odd"];

/// The group of whoever may see everything.
const OPERATORS: &str = "operators";

/// How a token begins, and how much comes after that.
const TOKEN: &str = "lt_";
const RANDOM: usize = 43;

/// How many sessions and tasks of others an intruder chooses from.
const KNOWN: usize = 256;

/// Everybody.
pub(super) struct Principals {
    /// Of each, by its number; the last one is an operator.
    tokens: Vec<String>,
    /// What comes after the beginning of any token that was ever made.
    secrets: Mutex<HashSet<String>>,
    /// Tokens that open nothing, and why.
    spent: Vec<(&'static str, String)>,
    file: TokenFile,
    board: Mutex<Board>,
    tally: Mutex<Tally>,
}

/// What an intruder may have learnt: whose it is, at which address, and its name.
#[derive(Default)]
struct Board {
    sessions: VecDeque<(usize, String, String)>,
    tasks: VecDeque<(usize, String, String)>,
}

/// What an agent is let in by.
#[derive(Clone)]
pub(super) struct Pass {
    pub(super) all: Arc<Principals>,
    pub(super) number: usize,
}

impl Principals {
    /// So many, an operator, and two tokens that open nothing.
    pub(super) async fn make(count: usize, folder: &Path) -> Result<Arc<Self>, String> {
        let file = TokenFile::at(folder.join(TOKENS));
        let mut tokens = Vec::new();
        for number in 0..count {
            let groups = [GROUPS[number % 3], PARITIES[number % 2]];
            tokens.push(add(&file, &format!("p{number}"), &groups, None).await?);
        }
        tokens.push(add(&file, "operator", &[OPERATORS], None).await?);
        let expired = add(&file, "late", &[OPERATORS], Some(Duration::from_secs(1))).await?;
        let removed = add(&file, "gone", &[OPERATORS], None).await?;
        file.remove("gone").await.map_err(|error| error.to_string())?;
        let secrets = tokens.iter().chain([&expired, &removed]).map(|token| secret(token)).collect();
        let spent = vec![("an expired token", expired), ("a removed token", removed)];
        let (secrets, board, tally) = (Mutex::new(secrets), Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { tokens, secrets, spent, file, board, tally }))
    }

    pub(super) fn count(&self) -> usize {
        self.tokens.len() - 1
    }

    pub(super) fn pass(self: &Arc<Self>, number: usize) -> Pass {
        Pass { all: Arc::clone(self), number }
    }

    /// Of whoever may see everything.
    pub(super) fn operator(self: &Arc<Self>) -> Pass {
        self.pass(self.count())
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a token stands in this text.
    fn has_secret(&self, text: &str) -> bool {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        text.match_indices(TOKEN).any(|(at, _)| {
            let from = at + TOKEN.len();
            text.get(from..from + RANDOM).is_some_and(|random| secrets.contains(random))
        })
    }
}

impl Pass {
    pub(super) fn authorization(&self) -> String {
        format!("Bearer {}", self.all.tokens[self.number])
    }

    /// What is in everything that it says, and in nothing that is another's.
    pub(super) fn marker(&self) -> String {
        marker(self.number)
    }

    fn is_operator(&self) -> bool {
        self.number == self.all.count()
    }

    /// Whether it may see a server at all.
    pub(super) fn sees(&self, server: &Server) -> bool {
        match server.seen {
            Seen::Whole | Seen::AllBut(_) => true,
            Seen::By(group) => self.is_operator() || GROUPS[self.number % 3] == group,
        }
    }

    /// The tool of a server that it may not see, though it sees others.
    fn hidden_tool(&self, server: &Server) -> Option<&'static str> {
        match server.seen {
            Seen::AllBut(hides) if !self.is_operator() => Some(hides[self.number % 2].1),
            _ => None,
        }
    }

    /// It has a session at this address, which an intruder may learn of.
    pub(super) fn opened(&self, path: &str, session: &str) {
        let mut board = self.all.board();
        board.sessions.push_back((self.number, path.to_owned(), session.to_owned()));
        if board.sessions.len() > KNOWN {
            board.sessions.pop_front();
        }
    }

    fn began(&self, path: &str, task: &str) {
        let mut board = self.all.board();
        board.tasks.push_back((self.number, path.to_owned(), task.to_owned()));
        if board.tasks.len() > KNOWN {
            board.tasks.pop_front();
        }
    }
}

fn marker(number: usize) -> String {
    format!("~p{number:03}~")
}

/// Whose markers are in a text.
fn marked(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices("~p").filter_map(move |(at, _)| {
        let (number, rest) = text.get(at + 2..)?.split_at_checked(3)?;
        number.parse().ok().filter(|_| rest.starts_with('~'))
    })
}

async fn add(
    file: &TokenFile,
    name: &str,
    groups: &[&str],
    lasts: Option<Duration>,
) -> Result<String, String> {
    let groups: Vec<_> = groups.iter().map(ToString::to_string).collect();
    let made = file.add(name, &groups, lasts).await.map_err(|error| error.to_string())?;
    Ok(made.token.expose().to_owned())
}

fn secret(token: &str) -> String {
    token.trim_start_matches(TOKEN).chars().take(RANDOM).collect()
}

#[cfg(test)]
mod tests {
    use super::{marked, marker};

    #[test]
    fn a_marker_is_found_wherever_it_stands_and_nothing_else_is() {
        let text = format!("x{}y note://{} ~p1~ ~pabc~ ~p12", marker(7), marker(64));
        assert_eq!(marked(&text).collect::<Vec<_>>(), [7, 64]);
    }
}
