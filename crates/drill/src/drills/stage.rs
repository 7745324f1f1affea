//! One instance: a server behind, a target before it, an agent at the target's door; and the end of all three.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linetender::{Eras, Line, ServerState};
use linetender_badserver::process::{self, descendants, lives, marked};
use linetender_badserver::{Book, Finding, ran_again_by_refusal};
use tokio::process::{Child, Command};

use super::agent::{Agent, Door, HUNG, Pipe, Routes, Web};
use super::habits::{Habits, stranger_mark};
use super::memory::Memory;
use super::policy::Policy;
use super::ports;
use super::remains::Remains;
use super::reports::Reports;
use super::server::Server;
use super::system;
use super::target::Target;
use super::{Job, Plan};
use crate::adapter::{Adapter, Language, Words};
use crate::results::Laws;
use crate::scenario::{Era, Fault, Over, Times};

/// The variable that the target and whatever inherits from it has.
const TARGET_MARK: &str = "LINETENDER_DRILL";

/// What the server is called.
const NAME: &str = "bad";

/// How long a target may take to listen, on a machine that is busy.
const START: Duration = Duration::from_secs(30);

/// How long it may take to end.
const END: Duration = Duration::from_secs(15);

/// How long what it leaves may take to be gone.
const GONE: Duration = Duration::from_secs(3);

/// How many more descriptors a target may have than it had: connections that it keeps for the next call. It has no reason to keep
/// a process.
const KEPT: usize = 4;

/// How long it may keep what it does not need: idle connections are kept for three seconds.
const LETS_GO: Duration = Duration::from_secs(6);

/// How much of what a target said is told, in bytes.
const LAST_WORDS: usize = 500;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(2);

/// An instance.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) agent: Arc<Agent>,
    pub(crate) habits: Habits,
    pub(crate) memory: Arc<Memory>,
    front: Front,
    era: Era,
    words: Words,
    mark: String,
    folder: Folder,
    /// How often the agent had to begin anew.
    pub(crate) reconnects: u32,
    /// How often the server had been started when the last run was over.
    pub(crate) started: usize,
}

/// The target.
#[cfg_attr(windows, allow(clippy::large_enum_variant, reason = "a child is larger there, and there are few"))]
enum Front {
    Line(Line, Reports),
    Program { child: Child, adapter: Box<Adapter>, over: Over },
}

/// How a target is made to end.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    ToDie,
    ToEnd,
}

/// A folder of the instance's own. It goes with it.
struct Folder(PathBuf);

impl Stage {
    /// Starts it all. What is told on failure is about the drill, not about the target.
    pub(crate) async fn set(plan: &Plan, target: &Target, job: &Job) -> Result<Self, String> {
        let Job { scenario, era, habits, .. } = job;
        let (era, habits, memory) = (*era, *habits, Arc::new(Memory::default()));
        let folder = Folder::new().map_err(|error| format!("no folder: {error}"))?;
        let server = Server::set_up(plan, scenario, era, &folder.0, habits).await?;
        let mark = format!("{TARGET_MARK}={}", folder.0.display());
        let policy = if scenario.times == Times::AlwaysDefault { Policy::Default } else { plan.policy };
        let words = Words {
            server: server.argv.clone(),
            server_url: server.url(),
            port: 0,
            dir: folder.0.clone(),
            linetender: plan.linetender.clone(),
            name: NAME.to_owned(),
            policy: habits.policy(policy),
            hurry: habits.shim_flags(policy),
            roots: server.roots.clone(),
        };
        let over = scenario.server.over;
        let (front, agent) = match target {
            Target::Line => {
                // A line that may meet either era has to find out which.
                let eras = match scenario.fault {
                    Fault::Flip => Eras::Auto,
                    _ => Eras::Only(era.of_server(scenario.server.speaks).into()),
                };
                let line = Line::open(own(&server, over).eras(eras).policy(Policy::read(&words.policy)));
                let reports = Reports::default();
                line.seen_by(Arc::new(reports.clone()));
                let agent = Agent::new(Door::Line(line.clone()), era, String::new(), Arc::clone(&memory));
                (Front::Line(line, reports), agent)
            }
            Target::Outside(adapter) => {
                let (child, agent) = start(adapter, over, era, &words, &mark, &folder.0, &memory).await?;
                (Front::Program { child, adapter: adapter.clone(), over }, agent)
            }
        };
        let agent = Arc::new(agent);
        let stage = Self {
            server,
            agent,
            habits,
            memory,
            front,
            era,
            words,
            mark,
            folder,
            reconnects: 0,
            started: 0,
        };
        let _ = tokio::time::timeout(HUNG, stage.agent.greet()).await;
        Ok(stage)
    }

    /// How often each call was sent, as the library reports it. Programs report it to people only.
    pub(crate) fn sent(&self) -> BTreeMap<String, u32> {
        match &self.front {
            Front::Line(_, reports) => reports.take(),
            Front::Program { .. } => BTreeMap::new(),
        }
    }

    /// The process at the top of the target; for the library that is this one.
    fn root(&self) -> String {
        match &self.front {
            Front::Line(..) => "self".to_owned(),
            Front::Program { child, .. } => child.id().unwrap_or(0).to_string(),
        }
    }

    /// The processes of the server that live now, the one that was started first.
    pub(crate) fn processes(&self) -> Vec<i32> {
        if matches!(&self.front, Front::Program { adapter, .. } if adapter.detached) {
            return process::marked(&self.server.mark);
        }
        let root = self.root();
        let mut all = descendants(&root);
        // With nothing between, the target is the server.
        all.splice(0..0, root.parse::<i32>());
        all.retain(|pid| process::carries(*pid, &self.server.mark) && lives(*pid));
        all
    }

    /// This process of the server, and those that are no children of others of it.
    pub(crate) fn servers(&self, first: i32) -> Vec<i32> {
        let mut all = self.processes();
        let is_child =
            |pid: i32, all: &[i32]| process::parent(pid).is_some_and(|parent| all.contains(&parent));
        let known = all.clone();
        all.retain(|pid| *pid == first || !is_child(*pid, &known));
        if all.is_empty() { vec![first] } else { all }
    }

    /// The process of the server, as soon as there is one.
    pub(crate) async fn process(&self) -> Option<i32> {
        let found = async {
            loop {
                if let Some(pid) = self.processes().first() {
                    return *pid;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(HUNG, found).await.ok()
    }

    /// What the target has: descriptors, and processes below it. The library shares its process with the drill, and is
    /// looked at when all is over.
    pub(crate) fn has(&self) -> Option<[usize; 2]> {
        let root = self.root();
        let mark = self.stranger_mark();
        let workers = self.server.book.as_ref().map(Book::workers).unwrap_or_default();
        // A child at work has children now and then; and what left a server on purpose is nobody's.
        let is_workers = |pid: i32| process::parent(pid).is_some_and(|parent| workers.contains(&parent));
        let counts = |pid: &i32| !is_workers(*pid) && !process::carries(*pid, &mark);
        let count = || descendants(&root).iter().filter(|pid| counts(pid)).count();
        self.line().is_none().then(|| [process::descriptors(&root), count()])
    }

    /// What it has more of than it had, after it has had the time to let go.
    pub(crate) async fn grew(&self, had: Option<[usize; 2]>) -> Option<String> {
        let begun = tokio::time::Instant::now();
        loop {
            let (before, after) = (had?, self.has()?);
            let grown =
                [KEPT, 0].into_iter().enumerate().find(|(at, more)| after[*at] > before[*at] + more)?.0;
            if begun.elapsed() > LETS_GO {
                let what = ["descriptors", "processes"][grown];
                let (before, after) = (before[grown], after[grown]);
                return Some(linetender_badserver::Finding::Leak { what, before, after }.to_string());
            }
            tokio::time::sleep(LOOK * 10).await;
        }
    }

    pub(crate) fn line(&self) -> Option<&Line> {
        match &self.front {
            Front::Line(line, _) => Some(line),
            Front::Program { .. } => None,
        }
    }

    /// Kills the target or tells it to end, and waits until it is gone. How long whatever it had started lived on.
    pub(crate) async fn ends_by(&mut self, told: Told) -> Result<Duration, String> {
        let Front::Program { child, .. } = &mut self.front else {
            return Err("the library has no process of its own".to_owned());
        };
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
        match told {
            Told::ToDie => process::kill(pid),
            Told::ToEnd if process::ask_to_end(pid) => {}
            Told::ToEnd => return Err("the target cannot be told to end".to_owned()),
        }
        let _ = tokio::time::timeout(END, child.wait())
            .await
            .map_err(|_| "the target does not end".to_owned())?;
        let (took, left) = self.gone(GONE).await;
        if left.is_empty() { Ok(took) } else { Err(format!("{} processes are left", left.len())) }
    }

    /// Starts the target again if it is gone, as whoever supervises it would, and greets it.
    pub(crate) async fn mend_front(&mut self) -> Result<(), String> {
        let Front::Program { child, adapter, over } = &mut self.front else { return Ok(()) };
        let closed = matches!(&self.agent.door, Door::Pipe(pipe) if pipe.is_closed());
        if !closed && !matches!(child.try_wait(), Ok(Some(_))) {
            return Ok(());
        }
        let _ = child.kill().await;
        self.reconnects += 1 + self.agent.reconnects();
        let memory = &self.memory;
        memory.begins();
        let (new, agent) =
            start(adapter, *over, self.era, &self.words, &self.mark, &self.folder.0, memory).await?;
        *child = new;
        self.agent = Arc::new(agent);
        let _ = tokio::time::timeout(HUNG, self.agent.greet()).await;
        Ok(())
    }

    /// Ends it all; what the target left, what the book says in the end ran twice, and what else must not be.
    /// `works` is whether the last call was answered.
    pub(crate) async fn strike(mut self, believed: &[&str], works: bool) -> Remains {
        let mut findings = Vec::new();
        let saver = self.habits.saves.then(|| self.processes().first().copied()).flatten().filter(|_| works);
        match &mut self.front {
            Front::Line(line, _) => {
                if tokio::time::timeout(END, line.close()).await.is_err() {
                    findings.push("the line does not close".to_owned());
                }
            }
            Front::Program { child, adapter, .. } => {
                match &self.agent.door {
                    Door::Pipe(pipe) => pipe.close().await,
                    Door::Web(_) | Door::Routes(_) | Door::Line(_) => {
                        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
                        process::ask_to_end(pid);
                    }
                }
                let ended = tokio::time::timeout(END, child.wait()).await;
                match ended {
                    Ok(Ok(status)) if adapter.ours && !status.success() => {
                        findings.push(format!("the target ended with {status}"));
                    }
                    Ok(_) => {}
                    Err(_) => findings.push("the target does not end when it is told to".to_owned()),
                }
                let _ = child.kill().await;
            }
        }
        let (_, left) = self.gone(GONE).await;
        for pid in &left {
            process::kill(*pid);
        }
        if !left.is_empty() {
            findings.push(format!("{} processes outlived the target", left.len()));
        }
        // Calls that were taken back, or came late, must not run twice either.
        let attempts = self.server.book.as_ref().map(Book::attempts).unwrap_or_default();
        let again = attempts.into_iter().filter(|(_, attempts)| !ran_again_by_refusal(attempts, believed));
        let ran = again.map(|(nonce, attempts)| (nonce, attempts.iter().map(|attempt| attempt.runs).sum()));
        let twice = ran.filter(|(nonce, runs)| *runs > 1 && nonce.ends_with('e'));
        let twice = twice.map(|(nonce, runs)| Finding::RanTwice { nonce, runs }).collect();
        let orphans = u32::try_from(left.len()).unwrap_or(u32::MAX);
        let mut remains = Remains { orphans, twice, findings, laws: Laws::default() };
        remains.judge(&self, saver).await;
        remains
    }

    /// Whether the agent is told of the loss of what it set up: the server keeps that, and the target knows whose call is whose (S53:
    /// agents without a session on a shared line are told nothing). `keeps` is what the server keeps.
    pub(crate) fn tells_of_losses(&self, keeps: bool) -> bool {
        keeps && self.habits.state != ServerState::None && !self.agent.is_anonymous()
    }

    /// The only variable of what leaves the server on purpose.
    pub(crate) fn stranger_mark(&self) -> String {
        stranger_mark(&self.folder.0)
    }

    /// Waits until nothing carries a mark any more; what still does in the end.
    async fn gone(&self, within: Duration) -> (Duration, Vec<i32>) {
        let begun = tokio::time::Instant::now();
        loop {
            let mut left = marked(&self.server.mark);
            if matches!(self.front, Front::Program { .. }) {
                left.extend(marked(&self.mark));
                left.sort_unstable();
                left.dedup();
            }
            if left.is_empty() || begun.elapsed() > within {
                return (begun.elapsed(), left);
            }
            tokio::time::sleep(LOOK * 5).await;
        }
    }

    /// What the target wrote for people: into its log, and on stderr, where a panic goes.
    pub(crate) fn log(&self) -> String {
        let read = |name| std::fs::read(self.folder.0.join(name)).unwrap_or_default();
        ["log", "stderr"].map(|name| String::from_utf8_lossy(&read(name)).into_owned()).concat()
    }
}

/// Our own line to a server.
fn own(server: &Server, over: Over) -> linetender::Server {
    match over {
        Over::Stdio => linetender::Server::stdio(NAME, &server.argv).into(),
        Over::Http => {
            let http = linetender::Server::http(NAME, &server.url());
            match server.web.as_ref().and_then(|web| web.certificate()) {
                Some(certificate) => http.trust(certificate).into(),
                None => http.into(),
            }
        }
    }
}

/// Starts a target, and puts an agent at its door.
async fn start(
    adapter: &Adapter,
    over: Over,
    era: Era,
    words: &Words,
    mark: &str,
    dir: &Path,
    memory: &Arc<Memory>,
) -> Result<(Child, Agent), String> {
    let way = adapter.way(over.word()).ok_or("there is no way to start it")?;
    let words = Words { port: ports::next()?, ..words.clone() };
    if let Some(file) = &way.config {
        let path = words.text(&file.path);
        std::fs::write(&path, words.text(&file.text)).map_err(|error| format!("{path}: {error}"))?;
    }
    let command = words.command(&way.command);
    // It may be started again; what it said before stays.
    let stderr = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("stderr"));
    let stderr = stderr.map_err(|error| format!("its stderr: {error}"))?;
    let (name, value) = mark.split_once('=').unwrap_or((mark, ""));
    let pipes = way.url.is_none();
    let mut child = system::own_group(&mut Command::new(&command[0]))
        .args(&command[1..])
        .env(name, value)
        .envs(system::PLACES.map(|place| (place, dir)))
        .envs(words.roots.iter().map(|roots| ("SSL_CERT_FILE", roots)))
        .envs(way.env.iter().map(|(name, value)| (name, words.text(value))))
        .current_dir(dir)
        .stdin(if pipes { Stdio::piped() } else { Stdio::null() })
        .stdout(if pipes { Stdio::piped() } else { Stdio::null() })
        .stderr(stderr)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{}: {error}", command[0]))?;
    let door = match (&way.url, child.stdin.take(), child.stdout.take()) {
        (None, Some(to), Some(from)) => Door::Pipe(Pipe::new(to, from)),
        (Some(url), ..) => {
            let (at, door) = match adapter.speaks {
                Language::Mcp => Web::at(&words.text(url), era).map(|web| (web.address(), Door::Web(web)))?,
                Language::Openapi => {
                    Routes::at(&words.text(url)).map(|routes| (routes.address(), Door::Routes(routes)))?
                }
            };
            listens(&mut child, at).await.map_err(|why| format!("{why}{}", last_words(dir)))?;
            door
        }
        (None, ..) => return Err("it has no pipes".to_owned()),
    };
    Ok((child, Agent::new(door, era, words.text(&way.prefix), Arc::clone(memory))))
}

/// The end of what a target that does not come up said.
fn last_words(dir: &Path) -> String {
    let said = std::fs::read(dir.join("stderr")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[said.len().saturating_sub(LAST_WORDS)..]).into_owned();
    if said.trim().is_empty() { String::new() } else { format!("; its last words: {}", said.trim()) }
}

async fn listens(child: &mut Child, at: SocketAddr) -> Result<(), String> {
    let listens = async {
        loop {
            if tokio::net::TcpStream::connect(at).await.is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("the target ended with {status} before it listened"));
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(START, listens).await.map_err(|_| "the target does not listen".to_owned())?
}

impl Folder {
    fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-drill-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
