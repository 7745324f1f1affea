//! Real processes on Windows: what is heard, what is noticed, what is left behind.

#![cfg(windows)]
#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

use std::ffi::OsString;
use std::io::BufRead as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use linetender_core::{ClosePolicy, Extent, Limits};
use linetender_wire::seam::{Event, Listener, Loss, Outgoing, Ticket};
use linetender_wire::stdio::{Child, Env, Launch, Program, Reaper};
use linetender_wire::{Exit, Item, Pipe, Seen, frame};
use tokio::sync::mpsc;

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How soon an end has to be noticed.
const NOTICED: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Ears(Mutex<Vec<Item>>);

impl Listener for Ears {
    fn hear(&self, item: Item) {
        self.0.lock().unwrap().push(item);
    }

    fn heard(&self) {}

    fn lost(&self, _: u64, _: Loss) {}

    fn gap(&self) {}
}

struct Server {
    child: Child,
    events: mpsc::Receiver<Event>,
    ears: Arc<Ears>,
}

/// The program that does what it is told. Cargo builds it with the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples").join("child.exe");
    assert!(path.exists(), "{} is missing: build the examples", path.display());
    path
}

fn launch(args: &[&str]) -> Launch {
    let argv = [program().into_os_string()].into_iter().chain(args.iter().map(OsString::from));
    let mut close = ClosePolicy::default();
    (close.stdin, close.term) = (Duration::from_secs(5), Duration::from_millis(300));
    Launch {
        program: Program { argv: argv.collect(), dir: None, env: Env::Ours },
        container: None,
        reaper: Reaper::Find,
        lifeline: None,
        start: None,
        close,
        sizes: Limits::default(),
    }
}

fn launched(launch: &Launch) -> Result<Server, Seen> {
    let (tell, events) = mpsc::channel(16);
    let ears = Arc::new(Ears::default());
    let child = Child::launch(launch, Arc::clone(&ears) as Arc<dyn Listener>, tell)?;
    Ok(Server { child, events, ears })
}

fn start(args: &[&str]) -> Server {
    launched(&launch(args)).unwrap_or_else(|seen| panic!("{seen}"))
}

impl Server {
    /// The next event that is not about its start or its stderr.
    async fn event(&mut self) -> Event {
        loop {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event in time");
            match event.expect("a keeper") {
                Event::Spawned | Event::Wrote => {}
                other => return other,
            }
        }
    }

    /// The next event that is not about its pipes.
    async fn end(&mut self) -> Event {
        loop {
            match self.event().await {
                Event::FirstByte | Event::Closed(_) => {}
                other => return other,
            }
        }
    }

    fn noise(&self) -> Vec<String> {
        let heard = self.ears.0.lock().unwrap();
        let noise = heard.iter().filter_map(|item| match item {
            Item::Noise(noise) => Some(String::from_utf8_lossy(noise).into_owned()),
            _ => None,
        });
        noise.collect()
    }

    /// Waits for a line of noise that begins so, and returns the rest of it.
    async fn says(&self, begin: &str) -> String {
        let said = async {
            loop {
                let found =
                    self.noise().into_iter().find_map(|line| line.strip_prefix(begin).map(str::to_owned));
                match found {
                    Some(rest) => return rest,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, said).await.unwrap_or_else(|_| panic!("{begin}? {:?}", self.noise()))
    }

    async fn port(&self) -> u16 {
        self.says("port ").await.trim().parse().unwrap()
    }

    fn send(&self, text: &str) {
        self.child.outbox().send(Outgoing::text(text.to_owned().into(), None)).unwrap();
    }

    /// Its end, after which everything that it said has been heard.
    async fn ends(&mut self) -> Event {
        let end = self.end().await;
        self.child.outbox().seal();
        self.child.drain().await;
        end
    }

    async fn gone(&mut self) {
        loop {
            if self.end().await == Event::Gone {
                return;
            }
        }
    }

    async fn killed(mut self) {
        self.child.outbox().seal();
        self.child.kill();
        self.gone().await;
    }
}

/// Whether the process that listens at this port lives.
fn lives(port: u16) -> bool {
    let connected = TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), Duration::from_secs(2));
    // One that is only slow to answer is not dead.
    !connected.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

async fn dies(port: u16) {
    let dead = async {
        while lives(port) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, dead).await.expect("dead in time");
}

/// A folder with a space and a letter that is not ASCII in its name.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("linetender {name} ü {}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn frames_go_down_and_come_back() {
    let mut server = start(&["echo"]);
    let text = frame::request(1, "ping", None).text().clone();
    server.send(std::str::from_utf8(&text).unwrap());
    assert_eq!(server.event().await, Event::FirstByte);
    server.child.outbox().seal();
    server.child.drain().await;
    let heard = server.ears.0.lock().unwrap().clone();
    let [Item::Frame(echo)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(echo.text(), &text);
    server.child.close();
    server.gone().await;
}

#[tokio::test]
async fn a_line_of_a_mebibyte_goes_down_and_comes_back() {
    let server = start(&["echo"]);
    let text = "y".repeat(1 << 20);
    server.send(&text);
    assert_eq!(server.says("y").await.len(), text.len() - 1);
    server.killed().await;
    let server = start(&["long", "1048576"]);
    assert_eq!(server.says("x").await.len(), (1 << 20) - 1);
    server.killed().await;
}

#[tokio::test]
async fn an_exit_is_told_at_once_with_its_status_and_its_last_words() {
    let mut server = start(&["exit", "later"]);
    server.says("up").await;
    server.send("go");
    server.says("dying").await;
    let dying = Instant::now();
    let Event::Lost(Seen::Exited { exit, stderr }) = server.end().await else { panic!() };
    let noticed = dying.elapsed();
    println!("an exit was noticed after {noticed:?}");
    assert_eq!(exit, Exit::Status(37));
    assert_eq!(stderr.as_str(), "no API key, token=[redacted]");
    assert!(server.child.has_exited());
    assert!(noticed < NOTICED, "{noticed:?}");
    server.killed().await;
}

#[tokio::test]
async fn a_crash_is_told_by_its_code() {
    let mut server = start(&["abort"]);
    let Event::Lost(seen @ Seen::Exited { .. }) = server.end().await else { panic!() };
    println!("{seen}");
    let Seen::Exited { exit: Exit::Status(status), .. } = seen else { panic!("{seen}") };
    assert_ne!(status, 0);
    server.killed().await;
}

#[tokio::test]
async fn an_exit_is_noticed_while_a_grandchild_holds_the_pipes() {
    let mut server = start(&["tree", "mortal"]);
    let grandchild = server.port().await;
    server.send("go");
    let Event::Lost(Seen::Exited { exit, .. }) = server.end().await else { panic!() };
    assert_eq!(exit, Exit::Status(38));
    server.killed().await;
    assert!(!lives(grandchild), "the whole tree is gone when it is told to be");
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree_and_is_no_end_of_its_own() {
    let mut server = start(&["tree"]);
    let grandchild = server.port().await;
    assert!(lives(grandchild));
    server.child.outbox().seal();
    server.child.kill();
    // Had it gone by itself, that would be told: whoever is killed has no status.
    assert_eq!(server.end().await, Event::Gone);
    assert!(!lives(grandchild) && server.child.has_exited());
}

#[tokio::test]
async fn dropping_a_child_kills_its_tree() {
    let server = start(&["tree"]);
    let grandchild = server.port().await;
    let mut events = server.events;
    drop(server.child);
    while tokio::time::timeout(PATIENCE, events.recv()).await.unwrap().is_some() {}
    assert!(!lives(grandchild));
}

#[tokio::test]
async fn twenty_trees_die_with_their_owner_however_that_dies() {
    let mut command = std::process::Command::new(program());
    let mut owner = command.args(["owner", "20"]).stdout(Stdio::piped()).spawn().unwrap();
    let said = std::io::BufReader::new(owner.stdout.take().unwrap()).lines();
    let port =
        |line: std::io::Result<String>| line.unwrap().trim().strip_prefix("port ").unwrap().parse().unwrap();
    let grandchildren: Vec<u16> = said.take(20).map(port).collect();
    assert!(grandchildren.iter().all(|port| lives(*port)));
    owner.kill().unwrap();
    owner.wait().unwrap();
    for grandchild in grandchildren {
        dies(grandchild).await;
    }
}

#[tokio::test]
async fn closing_is_polite_first() {
    let dir = Dir::new("polite");
    let bye = dir.0.join("bye");
    let mut server = start(&["polite", bye.to_str().unwrap()]);
    server.says("up").await;
    server.child.outbox().seal();
    server.child.close();
    server.gone().await;
    assert_eq!(std::fs::read_to_string(bye).unwrap(), "bye");

    // Deaf to end of file.
    let mut deaf = launch(&["deaf"]);
    deaf.close.stdin = Duration::from_millis(100);
    let mut server = launched(&deaf).unwrap_or_else(|seen| panic!("{seen}"));
    let port = server.port().await;
    server.child.outbox().seal();
    server.child.close();
    server.gone().await;
    assert!(!lives(port));
}

#[derive(Default)]
struct Seat(Mutex<Vec<&'static str>>);

impl Ticket for Seat {
    fn writing(&self, _: Extent) -> bool {
        self.0.lock().unwrap().push("writing");
        true
    }

    fn flushed(&self) {
        self.0.lock().unwrap().push("flushed");
    }
}

#[tokio::test]
async fn a_server_that_never_reads_blocks_nobody_and_nothing_is_proven_of_what_it_got() {
    let mut server = start(&["deaf"]);
    let port = server.port().await;
    let seats: Vec<_> = (0..40).map(|_| Arc::new(Seat::default())).collect();
    for seat in &seats {
        let ticket = Arc::clone(seat) as Arc<dyn Ticket>;
        let text = format!("\"{}\"", "x".repeat(10_000));
        server.child.outbox().send(Outgoing::text(text.into(), Some(ticket))).unwrap();
    }
    // Others have their turn: this one has.
    tokio::time::sleep(Duration::from_millis(50)).await;
    // It holds 64 KiB, and one more line is being written: of those behind it nothing has left this process.
    let begun = seats.iter().filter(|seat| !seat.0.lock().unwrap().is_empty()).count();
    assert!((6..=8).contains(&begun), "{begun}");
    server.child.outbox().seal();
    server.child.kill();
    server.gone().await;
    assert!(!lives(port));
    assert!(server.child.residue().is_none(), "nobody can know what it read");
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nobody() {
    let server = start(&["flood"]);
    server.says("done").await;
    server.killed().await;
}

#[tokio::test]
async fn a_closed_output_and_a_closed_input_are_told() {
    let mut closes = launch(&["close", "stdout"]);
    closes.program.argv[0] = program().with_file_name("windowless.exe").into();
    let mut server = launched(&closes).unwrap_or_else(|seen| panic!("{seen}"));
    assert_eq!(server.event().await, Event::FirstByte);
    assert_eq!(server.event().await, Event::Closed(Pipe::Stdout));
    assert!(!server.child.has_exited());
    server.killed().await;

    closes.program.argv[2] = "stdin".into();
    let mut server = launched(&closes).unwrap_or_else(|seen| panic!("{seen}"));
    let port = server.port().await;
    // Nobody had to write for that.
    while server.event().await != Event::Closed(Pipe::Stdin) {}
    assert!(lives(port));
    server.killed().await;
}

/// What it said before its end is heard, all of it: an answer that lies in the pipe is an answer.
#[tokio::test]
async fn what_a_dead_server_said_is_heard_by_a_drain() {
    for bytes in [3, 5_000, 60_000] {
        let mut server = start(&["long", &bytes.to_string()]);
        let end = server.ends().await;
        assert!(matches!(end, Event::Lost(Seen::Exited { exit: Exit::Status(0), .. })), "{end:?}");
        assert_eq!(server.noise().iter().map(String::len).sum::<usize>(), bytes);
        server.killed().await;
    }
}

/// Every pipe is inherited by its own server alone: the end of one is not kept from us by another that was started meanwhile.
#[tokio::test]
async fn servers_do_not_hold_each_others_pipes() {
    let mut servers: Vec<_> = (0..8).map(|_| start(&["echo"])).collect();
    let last = servers.pop().unwrap();
    for mut server in servers {
        server.child.outbox().seal();
        server.child.close();
        // Were its stdin open elsewhere, it would not end before it is killed, five seconds from now.
        tokio::time::timeout(Duration::from_secs(4), server.gone()).await.expect("it goes at end of file");
    }
    last.killed().await;
}

#[tokio::test]
async fn a_command_that_is_not_there_says_where_it_was_looked_for() {
    let mut nowhere = launch(&[]);
    nowhere.program.argv = vec!["linetender-no-such-command".into()];
    nowhere.program.env = Env::Only(vec![("Path".into(), r"C:\nowhere;C:\windows".into())]);
    let mut server = launched(&nowhere).unwrap_or_else(|seen| panic!("{seen}"));
    let Event::Lost(seen @ Seen::NotRunnable { .. }) = server.end().await else { panic!() };
    let said = seen.to_string();
    assert!(said.starts_with("cannot run linetender-no-such-command: "), "{said}");
    assert!(said.ends_with(r"(PATH searched: C:\nowhere;C:\windows)"), "{said}");
    server.killed().await;

    let dir = Dir::new("not a program");
    let path = dir.0.join("text.exe");
    std::fs::write(&path, "no program").unwrap();
    nowhere.program.argv = vec![path.into()];
    let mut server = launched(&nowhere).unwrap_or_else(|seen| panic!("{seen}"));
    let Event::Lost(Seen::NotRunnable { reason, .. }) = server.end().await else { panic!() };
    println!("{reason}");
    server.killed().await;
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_at_once() {
    let mut nowhere = launch(&["dir"]);
    nowhere.program.dir = Some(r"C:\nowhere\at all".into());
    let Err(seen @ Seen::NoDir { .. }) = launched(&nowhere).map(|_| ()) else { panic!() };
    assert!(
        seen.to_string().starts_with(r"cannot enter the working directory C:\nowhere\at all: "),
        "{seen}"
    );

    // There, and deeper than a process can be. wine would break at it.
    let dir = Dir::new("deep");
    let deep = (0..6).fold(dir.0.clone(), |deep, _| deep.join("x".repeat(50)));
    std::fs::create_dir_all(&deep).unwrap();
    nowhere.program.dir = Some(deep);
    let mut server = launched(&nowhere).unwrap_or_else(|seen| panic!("{seen}"));
    let end = server.end().await;
    assert!(matches!(&end, Event::Lost(Seen::NoDir { reason, .. }) if reason.contains("longer")), "{end:?}");
    server.killed().await;

    let dir = Dir::new("folder");
    nowhere.program.dir = Some(dir.0.clone());
    let server = launched(&nowhere).unwrap_or_else(|seen| panic!("{seen}"));
    let said = server.says("").await;
    assert!(said.eq_ignore_ascii_case(&dir.0.display().to_string()), "{said}");
    server.killed().await;
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let mut given = launch(&["env"]);
    given.program.env = Env::Only(vec![("ONLY".into(), "this é".into())]);
    let mut server = launched(&given).unwrap_or_else(|seen| panic!("{seen}"));
    assert_eq!(server.says("ONLY=").await, "this é");
    server.ends().await;
    assert!(
        !server.noise().iter().any(|line| line.to_uppercase().starts_with("PATH=")),
        "{:?}",
        server.noise()
    );
    server.killed().await;
}

const TRICKY: [&str; 9] = [
    "plain",
    "",
    "a b",
    r#"say "hi""#,
    r"C:\a dir\",
    "&calc|<>^()",
    "{\"json\": [1, \"two\"]}",
    "é 漢字",
    "tab\there",
];

#[tokio::test]
async fn arguments_come_as_they_were_given() {
    let mut server = start(&[&["args"], &TRICKY[..]].concat());
    server.ends().await;
    assert_eq!(server.noise(), TRICKY.map(|arg| format!("arg {arg}.")));
    server.killed().await;
}

/// As `npx` is: a script beside which there is a file for other systems, found by its name alone, in a folder with a space.
#[tokio::test]
async fn a_batch_file_is_found_by_its_name_and_runs_nothing_that_is_in_its_arguments() {
    let dir = Dir::new("batch");
    std::fs::write(dir.0.join("tool"), "#!/bin/sh\n").unwrap();
    let script = format!("@echo off\r\n\"{}\" args %*\r\n", program().display());
    std::fs::write(dir.0.join("tool.cmd"), script).unwrap();
    let mark = dir.0.join("mark");
    let attack = format!("x\"&echo run>{}", mark.display());
    let mut batch = launch(&[]);
    let path = [("PATH".into(), dir.0.clone().into_os_string())].to_vec();
    batch.program.env = Env::OursAnd(path);
    // No `%` is among them: wine expands what is in the arguments of a script once more when the script uses them.
    for arg in ["plain", "a b", "&calc", "a^b", "(x)", "a|b", "c<d>e", "a=b;c,d", &attack] {
        batch.program.argv = vec!["tool".into(), arg.into()];
        let mut server = launched(&batch).unwrap_or_else(|seen| panic!("{seen}"));
        let end = server.ends().await;
        assert!(!mark.exists(), "{arg} was run");
        assert_eq!(server.noise(), [format!("arg {arg}.")], "{end:?}");
        server.killed().await;
    }

    batch.program.argv = vec!["tool".into(), "two\nlines".into()];
    let mut server = launched(&batch).unwrap_or_else(|seen| panic!("{seen}"));
    let Event::Lost(seen @ Seen::NotRunnable { .. }) = server.end().await else { panic!() };
    assert_eq!(
        seen.to_string(),
        "cannot run tool: a batch file cannot be given an argument with a line break"
    );
    server.killed().await;

    // `cmd.exe` would run it in the system's own folder.
    batch.program.argv = vec!["tool".into(), "x".into()];
    batch.program.dir = Some(format!(r"\\?\{}", dir.0.display()).into());
    let mut server = launched(&batch).unwrap_or_else(|seen| panic!("{seen}"));
    let end = server.end().await;
    let Event::Lost(seen @ Seen::NotRunnable { .. }) = end else { panic!("{end:?}") };
    assert!(
        seen.to_string().starts_with("cannot run tool: a batch file cannot run in the folder "),
        "{seen}"
    );
    server.killed().await;
}

/// Each of these folders is asked for four files, and could be another machine's.
#[tokio::test]
async fn a_search_that_takes_long_holds_up_nobody() {
    let mut lost = launch(&[]);
    let path = (0..3000).map(|number| format!(r"C:\{number}")).collect::<Vec<_>>().join(";");
    lost.program.argv = vec!["linetender-no-such-command".into()];
    lost.program.env = Env::Only(vec![("PATH".into(), path.into())]);
    let begun = Instant::now();
    let mut server = launched(&lost).unwrap_or_else(|seen| panic!("{seen}"));
    let held_up = begun.elapsed();
    let Event::Lost(Seen::NotRunnable { .. }) = server.end().await else { panic!() };
    let took = begun.elapsed();
    println!("held up for {held_up:?} of {took:?}");
    assert!(held_up < took / 4, "{held_up:?} of {took:?}");
    server.killed().await;
}
