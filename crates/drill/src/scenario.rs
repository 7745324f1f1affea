//! Scenarios as data: each row of the fault catalogue is a file in `scenarios/` that says what to start, what is under way,
//! what happens, and what must come of it.
//!
//! There is no little language in them. What a scenario cannot say is said by a test instead, and its file says which.

mod fault;
mod files;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use fault::Fault;

/// Every row of the fault catalogue. A row may have several scenarios; it always has one.
pub const ROWS: &[&str] = &[
    "S01", "S02", "S03", "S04", "S05", "S06", "S07", "S08", "S09", "S10", "S11", "S12", "S13", "S14", "S15",
    "S16", "S17", "S18", "S19", "S20", "S21", "S22", "S23", "S24", "S25", "S26", "S26b", "S29", "S30", "S31",
    "S32", "S33", "S34", "S35", "S36", "S37", // stdio
    "H01", "H02a", "H02b", "H03", "H04", "H05", "H06", "H07", "H08", "H09", "H10", "H11", "H12", "H13",
    "H14", "H15", "H16", "H17", "H18", "H19", "H20", "H21", "H22", "H23", "H24", "H25", "H26", "H32", "H33",
    "H35", "H37", // HTTP
    "A01", "A02", "A03", "A04", "A05", // auth
    "O01", "O02", "O03", "O04", "O05", "O06", // overload and the machine
    "G01", "G02", "G03", "G04", // gateway
    "F01", "F02", "F03", "F04", // fleet
    "X01", "X02", // hostile servers and agents
];

/// How long until the next call works, unless a scenario says otherwise, in milliseconds.
const BACK_WITHIN: u64 = 2000;

/// After how long a call that was told nothing hung, unless a scenario says otherwise, in milliseconds.
const HUNG: u64 = 15_000;

/// Calls that are answered before each fault: service is what earns a line its budget back.
const WARM: u32 = 12;

/// The times that a scenario is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// Those that are being played.
    #[default]
    Any,
    /// A tenth of the defaults: with others it is played by nobody.
    Drill,
    /// The defaults: with others it is played by nobody.
    Default,
    /// The defaults, also where others are played: it is not about times.
    AlwaysDefault,
}

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, which begins with its row: the name of its file.
    #[serde(skip)]
    pub name: String,
    /// Its row of the fault catalogue.
    pub row: String,
    /// What happens, in a few words.
    pub title: String,
    /// Which promises it is about.
    #[serde(default)]
    pub promises: Vec<String>,
    /// Why it is not played.
    pub skip: Option<String>,
    /// The times that it is for.
    #[serde(default)]
    pub times: Times,
    /// Whether any shim or gateway could pass: the suite `board`.
    #[serde(default)]
    pub fair: bool,
    /// The only targets that it is for; all of them, if not said.
    #[serde(default)]
    pub only: Vec<Who>,
    /// What stands behind the target.
    #[serde(default)]
    pub server: Server,
    /// What is under way when it happens.
    #[serde(default)]
    pub load: Vec<Load>,
    /// What happens.
    #[serde(default)]
    pub fault: Fault,
    /// An agent that gives up on each of its calls and tries again, from the fault on.
    pub tries: Option<Tries>,
    /// What must come of it.
    #[serde(default)]
    pub expect: Expect,
}

/// An agent that gives up on each of its calls and tries again. What it gave up is not judged; it must not run twice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tries {
    /// Which tool.
    #[serde(default = "write")]
    pub tool: String,
    /// How long it waits for each call.
    pub gives_up_ms: u64,
    /// How long it waits after each.
    pub pause_ms: u64,
    /// When it stops.
    #[serde(default)]
    pub until: Enough,
}

/// When an agent that keeps trying stops.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Enough {
    /// When a call of its own is answered.
    #[default]
    Back,
    /// When all calls under way have been told.
    Told,
    /// When it has tried so often.
    Times(u32),
}

/// What stands behind the target.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// How it is reached.
    pub over: Over,
    /// Whose it is.
    pub kind: Kind,
    /// The flags of a badserver.
    pub flags: Vec<String>,
    /// The eras of the agent that it is played in.
    pub eras: Vec<Era>,
    /// Which era the server speaks: the agent's, or only the other one, so that the target has to bridge.
    pub speaks: Speaks,
    /// Whether each run wants an instance of its own, because it uses up what an instance has.
    pub fresh: bool,
    /// What is wrong with it until the fault `mend`.
    pub broken: Option<Broken>,
    /// Calls that it answers before each fault.
    pub warm: u32,
    /// Text that is its own, also where it comes as an error: whether such a call ran, nobody says.
    pub own_words: Vec<String>,
}

/// A kind of target.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Our library.
    Line,
    /// Ours, spoken to on pipes.
    Shim,
    /// Ours, spoken to at an address.
    Gateway,
    /// Anybody else's.
    Other,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// It is a process, on pipes.
    #[default]
    Stdio,
    /// It is at an address.
    Http,
}

/// Whose server it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Ours, which misbehaves on purpose and keeps a book.
    #[default]
    Bad,
    /// One on the official Python SDK, with a book.
    Python,
    /// The reference server in TypeScript, under `npx`, without a book.
    Node,
}

/// An era, as a word.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Era {
    /// 2025-11-25 and before.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// Which era the server speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Speaks {
    /// The agent's.
    #[default]
    Same,
    /// Not the agent's.
    Other,
}

/// What is wrong with a server until it is mended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Broken {
    /// There is no such program.
    Missing,
    /// It says why, and exits.
    Exits,
    /// It is no MCP server: it writes back what it reads.
    Echoes,
    /// Nobody listens at its address.
    Down,
}

/// Calls that are under way.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// How many.
    #[serde(default = "one")]
    pub calls: u32,
    /// Which tool.
    pub tool: String,
    /// Its arguments, but for the nonce.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// Bytes of padding in each call.
    #[serde(default)]
    pub pad: usize,
    /// How far they are when it goes on.
    #[serde(default)]
    pub until: Until,
    /// Made one after the other, this long apart; all at once, if not said.
    pub every_ms: Option<u64>,
    /// What their callers may be told.
    #[serde(default = "answered")]
    pub told: Vec<Told>,
    /// Whether each of them lies unread, so that linetender can count that it did not run, and has to be answered all the same.
    #[serde(default)]
    pub provable: bool,
    /// Which word of `retry_on` permits that they are sent again. Where it is not among those of the policy, their callers are
    /// told that the server refused them.
    pub refused: Option<String>,
}

/// How far calls are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// The agent has sent them.
    #[default]
    Sent,
    /// The server's book says that they run.
    Running,
    /// They lie unread in the server's pipe.
    Piped,
    /// Their callers have been told something.
    Told,
    /// They are made after the fault, and not before.
    After,
}

/// What a caller is told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// The server's answer.
    Answered,
    /// That it did not run.
    NotExecuted,
    /// That the server says that it did not run.
    Refused,
    /// That nobody knows whether it ran.
    Unknown,
    /// That the server did process it, and what it said cannot be passed on.
    Processed,
    /// Nothing: the target itself is gone.
    Closed,
}

/// What must come of it, beside what always must: no call hung, none twice, no wrong verdict, no error without cause and
/// delivery, nothing left over, and the next call works.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// From the fault until every call under way has been told.
    pub told_within_ms: Option<u64>,
    /// From the fault until a call works.
    pub back_within_ms: u64,
    /// What an error of a call under way has to name: one of these.
    pub cause: Vec<String>,
    /// The list of tools is the same, byte for byte.
    pub same_list: bool,
    /// Starts of the server in all, at most.
    pub starts: Option<u32>,
    /// Until nothing is left of a target that was killed.
    pub gone_within_ms: Option<u64>,
    /// How many of the calls under way are answered, at least.
    pub answered: Option<u32>,
    /// After how long a call that was told nothing hung.
    pub hung_ms: u64,
}

fn write() -> String {
    "write".to_owned()
}

fn one() -> u32 {
    1
}

fn answered() -> Vec<Told> {
    vec![Told::Answered]
}

impl Default for Server {
    fn default() -> Self {
        Self {
            over: Over::default(),
            kind: Kind::default(),
            flags: Vec::new(),
            eras: vec![Era::Legacy, Era::Modern],
            speaks: Speaks::default(),
            fresh: false,
            broken: None,
            warm: WARM,
            own_words: Vec::new(),
        }
    }
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            told_within_ms: None,
            back_within_ms: BACK_WITHIN,
            cause: Vec::new(),
            same_list: false,
            starts: None,
            gone_within_ms: None,
            answered: None,
            hung_ms: HUNG,
        }
    }
}

impl Scenario {
    /// All of them, in the catalogue's order.
    ///
    /// # Errors
    /// If one cannot be understood, which a test rules out.
    pub fn all() -> Result<Vec<Self>, String> {
        let mut all =
            files::ALL.iter().map(|(name, text)| Self::read(name, text)).collect::<Result<Vec<_>, _>>()?;
        let place = |row: &str| ROWS.iter().position(|known| *known == row).unwrap_or(ROWS.len());
        all.sort_by_key(|scenario| place(&scenario.row));
        Ok(all)
    }

    fn read(name: &str, text: &str) -> Result<Self, String> {
        let scenario: Self = toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name: name.to_owned(), ..scenario })
    }

    /// Whether an instance is good for one run only. What was broken at the start is mended only once.
    pub fn is_for_one_run(&self) -> bool {
        self.server.fresh || self.server.broken.is_some()
    }

    /// Whether calls are under way when it happens.
    pub fn is_in_flight(&self) -> bool {
        let under_way = |load: &Load| matches!(load.until, Until::Running | Until::Piped);
        let is_the_fault = |load: &Load| !load.told.contains(&Told::Answered);
        self.load.iter().any(|load| under_way(load) || is_the_fault(load))
    }
}

impl Who {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Shim => "shim",
            Self::Gateway => "gateway",
            Self::Other => "other",
        }
    }
}

impl Over {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

impl Kind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Python => "python",
            Self::Node => "node",
        }
    }
}

impl Era {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// The one that a server speaks to an agent of this one.
    #[must_use]
    pub const fn of_server(self, speaks: Speaks) -> Self {
        match (self, speaks) {
            (era, Speaks::Same) => era,
            (Self::Legacy, Speaks::Other) => Self::Modern,
            (Self::Modern, Speaks::Other) => Self::Legacy,
        }
    }
}

impl From<Era> for linetender::Era {
    fn from(era: Era) -> Self {
        match era {
            Era::Legacy => Self::Legacy,
            Era::Modern => Self::Modern,
        }
    }
}

impl Told {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NotExecuted => "not executed",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Processed => "processed",
            Self::Closed => "closed",
        }
    }
}

#[cfg(test)]
mod tests;
