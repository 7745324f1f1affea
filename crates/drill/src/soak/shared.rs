//! Many agents through `linetender run --share`, while server and keeper are killed, stopped and told to go: does any of them ever
//! hear what is another's, and is every verdict true?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use linetender::Era;
use linetender_badserver::{AS_SERVER, Book};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::agents::ends::Ends;
use super::agents::one::{self, Life};
use super::agents::{judge, report};
use super::{HUNG, process, runtime, tell};
use crate::dice::Dice;

const AGENTS: u64 = 12;

/// Between two faults.
const PAUSE: Duration = Duration::from_millis(250);

/// After a fault, how long the keeper may take to be there again.
const BACK: Duration = Duration::from_secs(20);

/// How long a keeper that is not stopped may take to answer.
const ANSWERS: Duration = Duration::from_secs(2);

/// A policy without a budget to speak of, as the other soaks have it.
const NO_BUDGET: &str = "[budget]\nmillis_per_answer = 5000\ntokens = 50\n[backoff]\nbase = 1\ncap = 5\nuseful_base = 1\nuseful_cap = 5\n";

/// So many faults, half of them on a legacy server and half on a modern one.
pub fn shared(faults: u32, seed: u64) -> ExitCode {
    let verdict = runtime().block_on(async {
        let (mut lives, mut played) = (Vec::new(), BTreeMap::new());
        for (era, seed) in [(Era::Legacy, seed), (Era::Modern, seed.wrapping_add(1))] {
            House::new(era)?.crowd(era, faults.div_ceil(2), seed, &mut lives, &mut played).await?;
        }
        let played: Vec<_> = played.iter().map(|(fault, times)| format!("{times} × {fault}")).collect();
        Ok(format!(
            "{AGENTS} agents on a shared server, seed {seed}; {}; {}",
            played.join(", "),
            report(&lives)
        ))
    });
    tell(verdict)
}

/// What is done to them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    ServerKilled,
    KeeperKilled,
    KeeperStopped,
    KeeperStops,
    KeeperReplaced,
}

impl Fault {
    /// A stopped keeper takes seconds to be found, so it is the rarest.
    fn of(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..55 => Self::ServerKilled,
            55..80 => Self::KeeperKilled,
            80..88 => Self::KeeperStops,
            88..96 => Self::KeeperReplaced,
            _ => Self::KeeperStopped,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::ServerKilled => "server killed",
            Self::KeeperKilled => "keeper killed",
            Self::KeeperStopped => "keeper stopped",
            Self::KeeperStops => "keeper told to go",
            Self::KeeperReplaced => "keeper replaced by a newer version",
        }
    }
}

/// A folder in which everything of one soak is.
struct House {
    path: PathBuf,
    era: &'static str,
}

impl House {
    fn new(era: Era) -> Result<Self, String> {
        let era = if era == Era::Legacy { "legacy" } else { "modern" };
        let path = std::env::temp_dir().join(format!("linetender-shared-{}-{era}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let made = std::fs::create_dir_all(path.join("run"))
            .and_then(|()| std::fs::write(path.join("policy.toml"), NO_BUDGET));
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, era })
    }

    fn book(&self) -> Book {
        Book::at(self.path.join("book"))
    }

    fn shim(&self) -> Command {
        let this = std::env::current_exe().unwrap_or_default();
        let mut shim = Command::new(&this);
        shim.env("XDG_RUNTIME_DIR", self.path.join("run")).env("XDG_STATE_HOME", &self.path);
        shim.env("XDG_CACHE_HOME", &self.path).env("HOME", &self.path).current_dir(&self.path);
        shim.args(["run", "--share", "--no-memory", "--name", "bad", "--policy"]);
        // The keeper reads it too, from another folder.
        shim.arg(self.path.join("policy.toml")).arg("--");
        shim.arg(&this).args([AS_SERVER, "--full", "--era", self.era, "--book"]).arg(self.book().path());
        shim
    }

    /// The keeper's process, if there is one.
    fn keeper(&self) -> Option<i32> {
        let folder = self.path.join("run/linetender");
        found(|words| {
            words.get(1).is_some_and(|word| word == "keeper")
                && words.iter().any(|word| Path::new(word) == folder)
        })
        .first()
        .copied()
    }

    fn servers(&self) -> Vec<i32> {
        let book = self.book();
        found(|words| {
            words.get(1).is_some_and(|word| word == AS_SERVER)
                && words.iter().any(|word| Path::new(word) == book.path())
        })
    }

    #[expect(clippy::disallowed_methods, reason = "it takes so long, by the clock")]
    async fn crowd(
        self,
        era: Era,
        faults: u32,
        seed: u64,
        lives: &mut Vec<Life>,
        played: &mut BTreeMap<&'static str, u32>,
    ) -> Result<(), String> {
        // Agents go on until the faults are over.
        let far = Instant::now() + Duration::from_secs(24 * 3600);
        let over = tokio::sync::watch::Sender::new(far);
        let mut agents = JoinSet::new();
        for number in 0..AGENTS {
            let (shim, over) = (Shims(self.path.clone(), self.era), over.subscribe());
            agents.spawn(async move { live(shim, era, number, over).await });
        }
        let injected = async {
            let mut dice = Dice::new(seed);
            for _ in 0..faults {
                tokio::time::sleep(PAUSE).await;
                let fault = Fault::of(&mut dice);
                self.play(fault).await?;
                *played.entry(fault.word()).or_default() += 1;
            }
            Ok::<_, String>(())
        };
        let mut here = Vec::new();
        let mut injected = std::pin::pin!(injected);
        let mut playing = true;
        loop {
            tokio::select! {
                done = &mut injected, if playing => {
                    done?;
                    playing = false;
                    over.send_replace(Instant::now());
                }
                life = agents.join_next() => match life {
                    Some(life) => here.push(life.map_err(|error| error.to_string())??),
                    None => break,
                },
            }
        }
        judge(&here, &self.book().runs())?;
        lives.extend(here);
        if let Some(keeper) = self.keeper() {
            process::kill(keeper);
        }
        let _ = std::fs::remove_dir_all(&self.path);
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "it takes so long, by the clock")]
    async fn play(&self, fault: Fault) -> Result<(), String> {
        let until = Instant::now() + BACK;
        loop {
            let servers = self.servers();
            // One that was killed may still be listed.
            if servers.len() > 2 {
                return Err(format!("{} servers at once: they are not shared", servers.len()));
            }
            if self.hits(fault, &servers).await {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(format!("nobody is there to be hit ({}) for {} s", fault.word(), BACK.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether there was somebody to be hit.
    async fn hits(&self, fault: Fault, servers: &[i32]) -> bool {
        use rustix::process::{Pid, Signal, kill_process};
        let (pid, signal) = match fault {
            Fault::ServerKilled => (servers.first().copied(), Signal::KILL),
            Fault::KeeperKilled => (self.keeper(), Signal::KILL),
            Fault::KeeperStopped => (self.keeper(), Signal::STOP),
            Fault::KeeperStops => (self.keeper(), Signal::TERM),
            Fault::KeeperReplaced => {
                let asked = tokio::time::timeout(ANSWERS, self.newer_asks()).await;
                return matches!(asked, Ok(Ok(answer)) if answer.contains("later"));
            }
        };
        pid.and_then(Pid::from_raw).is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// What the keeper says to a window of a version that comes after it.
    async fn newer_asks(&self) -> std::io::Result<String> {
        let mut keeper = UnixStream::connect(self.path.join("run/linetender/keeper.sock")).await?;
        let order =
            serde_json::json!({ "line": { "version": "1000.0.0", "words": [], "dir": "/", "env": {} } });
        keeper.write_all(format!("{order}\n").as_bytes()).await?;
        let mut answer = String::new();
        keeper.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

/// How shims of one house are started.
struct Shims(PathBuf, &'static str);

/// Comes and goes until the faults are over.
#[expect(clippy::disallowed_methods, reason = "it takes so long, by the clock")]
async fn live(
    shims: Shims,
    era: Era,
    number: u64,
    over: tokio::sync::watch::Receiver<Instant>,
) -> Result<Life, String> {
    let mut life = Life::default();
    let house = House { path: shims.0, era: shims.1 };
    while Instant::now() < *over.borrow() {
        // A life is several sessions of several rounds; this one is short, so that its end is seen.
        let part = one::live_as(
            || Ends::start(&mut house.shim()),
            era,
            number,
            Instant::now() + HUNG / 4,
            life.sessions,
        )
        .await?;
        life.sessions += part.sessions;
        life.calls.extend(part.calls);
        life.notifications += part.notifications;
        life.questions += part.questions;
    }
    Ok(life)
}

/// Processes whose command line is like this.
fn found(wanted: impl Fn(&[String]) -> bool) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<_> =
            words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        (words.len() > 2 && wanted(&words)).then_some(pid)
    })
    .collect()
}
