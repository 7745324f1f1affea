//! What a server of a soak has besides its tools: a context, a daemon, a child at work, a lock, work to save.
//!
//! Habits are drawn for each block of a soak, independently of its faults: a fault has to be survived whatever the server has.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use linetender::{ServerState, Tree};

use super::policy::Policy;
use super::target::Target;
use crate::dice::Dice;
use crate::scenario::{Fault, Kind, Over, Scenario};

/// The variable by which a process that left its server on purpose is found. It has no other.
const STRANGER_MARK: &str = "LINETENDER_DRILL_STRANGER";

/// One of so many servers has each habit, where nothing else is said.
const RARITY: u64 = 3;

/// The habits of a server, and what the target is told of them. The default are those of a server outside of a soak: it keeps
/// nothing and starts nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Habits {
    /// The server keeps a context, and the target is told this of it.
    pub state: ServerState,
    /// What the target is told to end with the server; its own default, if `None`.
    pub tree: Option<Tree>,
    /// The server starts daemons, which leave its tree on purpose.
    pub has_daemon: bool,
    /// The server has a child at work.
    pub worker: Option<Worker>,
    /// The server, and its child at work, hold a lock while they live.
    pub has_lock: bool,
    /// The server saves its work when it is asked to end, which takes 0.3 s.
    pub saves: bool,
}

/// A child at work, which ends with its server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Worker {
    /// In the server's session.
    Near,
    /// In a session of its own. It has not left: its parent lives as long as the server.
    Apart,
}

impl Habits {
    /// Draws the habits of a server in this scenario, behind this target.
    pub(crate) fn draw(scenario: &Scenario, target: &Target, dice: &mut Dice) -> Self {
        let mut one_of = |number: u64| dice.below(number) == 0;
        let state = match (one_of(2), one_of(2)) {
            (true, _) => ServerState::Unknown,
            (false, true) => ServerState::Process,
            (false, false) => ServerState::None,
        };
        let tree = Some(if one_of(2) { Tree::All } else { Tree::Server });
        let (has_daemon, has_worker, is_near) = (one_of(RARITY), one_of(RARITY), one_of(2));
        let worker = has_worker.then_some(if is_near { Worker::Near } else { Worker::Apart });
        let (has_lock, saves) = (one_of(RARITY), one_of(RARITY));
        Self { state, tree, has_daemon, worker, has_lock, saves }.fitting(scenario, target)
    }

    /// Without those that the scenario's server cannot have, or that would make another fault of its fault.
    pub(crate) fn fitting(self, scenario: &Scenario, target: &Target) -> Self {
        let server = &scenario.server;
        // Real servers keep no book of them; and where calls are counted from the start on, none may come before.
        if server.kind != Kind::Bad || server.warm == 0 {
            return Self::default();
        }
        // There is no process that the target would own. What is declared on other systems is not so on all.
        if server.over == Over::Http || !cfg!(target_os = "linux") {
            return Self { state: self.state, ..Self::default() };
        }
        // The last of its processes is to be the server.
        let worker = self.worker.filter(|_| scenario.fault != Fault::KillLast);
        // With a reaper that was killed ends all that it knew (S55). A program that uses the library is no subreaper, so what
        // has left the tree is lost to it then (X11).
        let kills_reaper = scenario.fault == Fault::KillReaper;
        let tree = self.tree.map(|tree| if kills_reaper { Tree::All } else { tree });
        let has_daemon = self.has_daemon && !(kills_reaper && matches!(target, Target::Line));
        Self { tree, has_daemon, worker, ..self }
    }

    /// The flags of the server.
    pub(crate) fn server_flags(self, over: Over, dir: &Path) -> Vec<String> {
        let mut flags = Vec::new();
        if self == Self::default() {
            return flags;
        }
        flags.push("--contexts".to_owned());
        if over == Over::Http {
            return flags;
        }
        if self.has_daemon {
            flags.extend(["--stranger".to_owned(), stranger_mark(dir)]);
        }
        if let Some(worker) = self.worker {
            flags.extend(["--worker".to_owned(), worker.word().to_owned()]);
        }
        if self.has_lock {
            flags.extend(["--lock".to_owned(), dir.join("lock").display().to_string()]);
        }
        if self.saves {
            flags.push("--saves".to_owned());
        }
        flags
    }

    /// The policy of a target of ours, as TOML.
    pub(crate) fn policy(self, policy: Policy) -> String {
        let text = policy.text();
        if self == Self::default() {
            return text.to_owned();
        }
        let text = text.replace("state = \"none\"", &format!("state = \"{}\"", self.state_word()));
        let mut close = String::new();
        if let Some(tree) = self.tree {
            close = format!("tree = \"{}\"", tree_word(tree));
        }
        // A tenth of the time is not enough for work that takes 0.3 s.
        let text = if self.saves {
            text.replace("stdin = 200, term = 200", "stdin = 2000, term = 2000")
        } else {
            text
        };
        match (close.as_str(), text.contains("close = { ")) {
            ("", _) => text,
            (close, true) => text.replace("close = { ", &format!("close = {{ {close}, ")),
            (close, false) => format!("{text}close = {{ {close} }}\n"),
        }
    }

    /// The flags that tell a shim so.
    pub(crate) fn shim_flags(self, policy: Policy) -> Vec<String> {
        if self == Self::default() || policy.hurries() {
            return policy.flags();
        }
        let mut flags = match self.state {
            ServerState::None => policy.flags(),
            ServerState::Unknown => Vec::new(),
            ServerState::Process => vec!["--stateful".to_owned()],
        };
        flags
            .extend(self.tree.into_iter().flat_map(|tree| ["--tree".to_owned(), tree_word(tree).to_owned()]));
        flags
    }

    const fn state_word(self) -> &'static str {
        match self.state {
            ServerState::None => "none",
            ServerState::Unknown => "unknown",
            ServerState::Process => "process",
        }
    }
}

impl Worker {
    const fn word(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Apart => "apart",
        }
    }
}

const fn tree_word(tree: Tree) -> &'static str {
    match tree {
        Tree::Server => "server",
        Tree::All => "all",
    }
}

/// The only variable of the daemons of an instance in this folder, as `NAME=value`.
pub(crate) fn stranger_mark(dir: &Path) -> String {
    format!("{STRANGER_MARK}={}", dir.display())
}

impl fmt::Display for Habits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state={}", self.state_word())?;
        if let Some(tree) = self.tree {
            write!(f, ",tree={}", tree_word(tree))?;
        }
        if let Some(worker) = self.worker {
            write!(f, ",worker={}", worker.word())?;
        }
        for (has, word) in [(self.has_daemon, "daemon"), (self.has_lock, "lock"), (self.saves, "saves")] {
            if has {
                write!(f, ",{word}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Habits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut habits = Self::default();
        for word in text.split(',') {
            match word {
                "state=none" => habits.state = ServerState::None,
                "state=unknown" => habits.state = ServerState::Unknown,
                "state=process" => habits.state = ServerState::Process,
                "tree=server" => habits.tree = Some(Tree::Server),
                "tree=all" => habits.tree = Some(Tree::All),
                "worker=near" => habits.worker = Some(Worker::Near),
                "worker=apart" => habits.worker = Some(Worker::Apart),
                "daemon" => habits.has_daemon = true,
                "lock" => habits.has_lock = true,
                "saves" => habits.saves = true,
                other => {
                    return Err(format!(
                        "{other} is none of state=none|unknown|process, tree=server|all, worker=near|apart, daemon, lock, saves"
                    ));
                }
            }
        }
        Ok(habits)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linetender::{ServerState, Settings, Tree};

    use super::{Habits, Policy, Target, Worker};
    use crate::dice::Dice;
    use crate::drills::Mix;
    use crate::scenario::{Kind, Over};

    const ALL: Habits = Habits {
        state: ServerState::Process,
        tree: Some(Tree::Server),
        has_daemon: true,
        worker: Some(Worker::Apart),
        has_lock: true,
        saves: true,
    };

    #[test]
    fn habits_are_read_as_they_are_written() {
        assert_eq!(ALL.to_string(), "state=process,tree=server,worker=apart,daemon,lock,saves");
        for habits in [ALL, Habits::default(), Habits { state: ServerState::Unknown, ..Habits::default() }] {
            assert_eq!(habits.to_string().parse(), Ok(habits));
        }
        assert!("daemon,cellar".parse::<Habits>().unwrap_err().starts_with("cellar is none of"));
    }

    #[test]
    fn every_habit_is_drawn_with_every_scenario_that_can_have_it() {
        let (mut dice, shim) = (Dice::new(7), Target::find("shim").unwrap());
        for (scenario, _) in Mix::faults().unwrap().rows {
            let drawn: Vec<_> = (0..200).map(|_| Habits::draw(&scenario, &shim, &mut dice)).collect();
            let has = |what: fn(&Habits) -> bool| drawn.iter().any(what);
            let server = &scenario.server;
            let keeps_a_book = server.kind == Kind::Bad && server.warm > 0;
            let states = [ServerState::None, ServerState::Unknown, ServerState::Process];
            let all_states = states.iter().all(|state| drawn.iter().any(|drawn| drawn.state == *state));
            assert_eq!(all_states, keeps_a_book, "{}", scenario.name);
            let owns = keeps_a_book && server.over == Over::Stdio && cfg!(target_os = "linux");
            for what in [
                (|habits| habits.has_daemon) as fn(&Habits) -> bool,
                |habits| habits.has_lock,
                |habits| habits.saves,
                |habits| habits.worker == Some(Worker::Near),
                |habits| habits.worker == Some(Worker::Apart),
                |habits| habits.tree == Some(Tree::All),
            ] {
                assert_eq!(has(what), owns, "{}", scenario.name);
            }
        }
    }

    #[test]
    fn a_target_is_told_of_them_by_its_policy() {
        for policy in [Policy::Drill, Policy::Strict, Policy::Loose, Policy::Default] {
            let base: Settings = toml::from_str(policy.text()).unwrap();
            let told: Settings = toml::from_str(&ALL.policy(policy)).unwrap();
            let mut wanted = base;
            (wanted.state, wanted.close.tree) = (ServerState::Process, Tree::Server);
            (wanted.close.stdin, wanted.close.term) = (Duration::from_secs(2), Duration::from_secs(2));
            assert_eq!(told, wanted, "{policy:?}");
            assert_eq!(Habits::default().policy(policy), policy.text());
        }
        let flags = ALL.shim_flags(Policy::Default);
        assert_eq!(flags, ["--stateful", "--tree", "server"]);
        assert_eq!(Habits::default().shim_flags(Policy::Default), ["--stateless"]);
    }
}
