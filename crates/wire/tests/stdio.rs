//! Real processes: what is heard, what is noticed, what is left behind.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender_core::{ClosePolicy, Extent, Limits};
use linetender_wire::seam::{Event, Listener, Loss, Outgoing, Refused, Ticket};
use linetender_wire::stdio::control::VERSION;
use linetender_wire::stdio::{Child, Env, Launch, Lifeline, Program, Reaper, Residue};
use linetender_wire::{Exit, Item, Pipe, Seen, frame};
use tokio::sync::mpsc;

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

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

fn quick() -> ClosePolicy {
    let mut close = ClosePolicy::default();
    (close.stdin, close.term) = (Duration::from_millis(300), Duration::from_millis(300));
    close
}

fn launch(argv: &[&str]) -> Launch {
    Launch {
        program: Program { argv: argv.iter().map(Into::into).collect(), dir: None, env: Env::Ours },
        container: None,
        reaper: Reaper::Binary(PathBuf::from(env!("CARGO_BIN_EXE_linetender-reaper"))),
        lifeline: None,
        start: None,
        close: quick(),
        sizes: Limits::default(),
    }
}

fn start(launch: &Launch) -> Server {
    let (tell, events) = mpsc::channel(16);
    let ears = Arc::new(Ears::default());
    let child = Child::launch(launch, Arc::clone(&ears) as Arc<dyn Listener>, tell).unwrap();
    Server { child, events, ears }
}

fn shell(script: &str) -> Server {
    start(&launch(&["/bin/sh", "-c", script]))
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

    /// Waits for a line of noise, and returns it.
    async fn says(&self) -> String {
        let said = async {
            loop {
                let noise = self.ears.0.lock().unwrap().iter().find_map(|item| match item {
                    Item::Noise(noise) => Some(String::from_utf8_lossy(noise).into_owned()),
                    _ => None,
                });
                match noise {
                    Some(noise) => return noise,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, said).await.expect("a word in time")
    }

    /// The reaper's word may come a moment after the server's own.
    async fn pid(&self) -> i32 {
        let known = async {
            loop {
                match self.child.pid() {
                    Some(pid) => return pid,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, known).await.expect("a pid in time")
    }

    fn send(&self, text: &str) {
        let text = text.to_owned().into();
        self.child.outbox().send(Outgoing::text(text, None)).unwrap();
    }

    async fn gone(&mut self) {
        loop {
            if self.end().await == Event::Gone {
                return;
            }
        }
    }
}

/// Whose child it is: its reaper's.
fn parent(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    status.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

fn lives(pid: i32) -> bool {
    // A zombie is dead; somebody else has to bury it.
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) => false,
    }
}

async fn dies(pid: i32) {
    let dead = async {
        while lives(pid) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, dead).await.expect("dead in time");
}

fn kill(signal: &str, pid: i32) {
    let done = std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success());
}

#[tokio::test]
async fn frames_go_down_and_come_back() {
    let mut server = start(&launch(&["cat"]));
    let text = frame::request(1, "ping", None).text().clone();
    server.send(std::str::from_utf8(&text).unwrap());
    assert_eq!(server.event().await, Event::FirstByte);
    server.child.outbox().seal();
    server.child.drain().await;
    let heard = server.ears.0.lock().unwrap().clone();
    let [Item::Frame(echo)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(echo.text(), &text);
    assert_eq!(
        server.child.outbox().send(Outgoing::text(text, None)).unwrap_err(),
        Refused::Sealed,
        "nothing is taken after the seal"
    );
    server.child.close();
    server.gone().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x11_a_program_that_starts_servers_is_not_changed_unless_it_asks() {
    use rustix::process::{DumpableBehavior, child_subreaper, dumpable_behavior};
    let mut server = shell("echo up; cat >/dev/null");
    server.says().await;
    assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::Dumpable));
    assert_eq!(child_subreaper(), Ok(None));
    server.child.kill();
    server.gone().await;
}

#[tokio::test]
async fn an_exit_is_told_with_its_status_and_its_last_words() {
    let mut server = shell("echo 'no API key, token=abc' >&2; exit 3");
    let Event::Lost(Seen::Exited { exit, stderr }) = server.end().await else { panic!() };
    assert_eq!(exit, Exit::Status(3));
    assert_eq!(stderr.as_str(), "no API key, token=[redacted]");
    server.child.kill();
    server.gone().await;
}

#[tokio::test]
async fn a_kill_is_told_by_its_signal() {
    let mut server = shell("echo up; exec sleep 600");
    server.says().await;
    kill("-9", server.pid().await);
    let Event::Lost(Seen::Exited { exit, .. }) = server.end().await else { panic!() };
    assert_eq!(exit, Exit::Signal(9));
}

#[tokio::test]
async fn a_command_that_is_not_there_says_where_it_was_looked_for() {
    let mut nowhere = launch(&["linetender-no-such-command"]);
    nowhere.program.env = Env::Only(vec![("PATH".into(), "/nowhere:/bin".into())]);
    let mut server = start(&nowhere);
    let Event::Lost(seen @ Seen::NotRunnable { .. }) = server.end().await else { panic!() };
    assert_eq!(
        seen.to_string(),
        "cannot run linetender-no-such-command: no such file or directory (PATH searched: /nowhere:/bin)"
    );
    server.child.kill();
    server.gone().await;

    let mut server = start(&launch(&["/etc/passwd"]));
    let Event::Lost(seen) = server.end().await else { panic!() };
    assert_eq!(seen.to_string(), "cannot run /etc/passwd: permission denied");
}

#[tokio::test]
async fn an_exit_is_noticed_while_a_grandchild_holds_the_pipes() {
    let mut server = shell("sleep 600 & echo $!; exec sleep 601");
    let grandchild = server.says().await.trim().parse().unwrap();
    kill("-9", server.pid().await);
    assert!(matches!(server.end().await, Event::Lost(Seen::Exited { .. })));
    server.child.kill();
    server.gone().await;
    assert!(!lives(grandchild), "the whole tree is gone when it is told to be");
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_does_not_escape() {
    let mut server = shell("setsid sh -c 'sleep 600 & echo $!; wait' & exec sleep 601");
    let escapee = server.says().await.trim().parse().unwrap();
    server.child.kill();
    server.gone().await;
    assert!(!lives(escapee));
}

#[tokio::test]
async fn closing_is_polite_first() {
    // At end of file it cleans up and goes.
    let mut server = shell("echo up; cat >/dev/null; echo bye >&2; exit 0");
    server.says().await;
    server.child.outbox().seal();
    server.child.close();
    server.gone().await;

    // Deaf to end of file, but not to TERM.
    let mut server = shell("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done");
    server.says().await;
    server.child.outbox().seal();
    server.child.close();
    server.gone().await;

    // Deaf to both.
    let mut server = shell("trap '' TERM; echo up; while :; do sleep 0.01; done");
    server.says().await;
    server.child.outbox().seal();
    let pid = server.pid().await;
    server.child.close();
    server.gone().await;
    assert!(!lives(pid));
}

#[tokio::test]
async fn a_stopped_server_with_a_full_pipe_is_killed_all_the_same() {
    let mut server = shell("echo up; exec sleep 600");
    server.says().await;
    kill("-STOP", server.pid().await);
    for _ in 0..40 {
        server.send(&format!("\"{}\"", "x".repeat(10_000)));
    }
    server.child.outbox().seal();
    server.child.close();
    server.gone().await;
}

#[tokio::test]
async fn a_closed_output_and_a_closed_input_are_told() {
    let mut server = shell("echo up; exec 1>&-; exec sleep 600");
    assert_eq!(server.event().await, Event::FirstByte);
    assert_eq!(server.event().await, Event::Closed(Pipe::Stdout));
    server.child.kill();
    server.gone().await;

    let mut server = shell("exec 0<&-; echo up; exec sleep 600");
    server.says().await;
    // Nobody had to write for that.
    while server.event().await != Event::Closed(Pipe::Stdin) {}
    server.child.kill();
    server.gone().await;
}

#[tokio::test]
async fn dropping_a_child_kills_its_tree() {
    let server = shell("sleep 600 & echo $!; exec sleep 601");
    let grandchild = server.says().await.trim().parse().unwrap();
    let pid = server.pid().await;
    let mut events = server.events;
    drop(server.child);
    while tokio::time::timeout(PATIENCE, events.recv()).await.unwrap().is_some() {}
    assert!(!lives(pid) && !lives(grandchild));
}

/// A lease that is extended holds on; one that is not ends the whole tree, also what left the server's group.
#[tokio::test]
async fn a_tree_does_not_outlive_its_lifeline() {
    let first = Lifeline::now() + Duration::from_millis(500);
    let lifeline = Arc::new(Lifeline::new(first).unwrap());
    let mut launch = launch(&["/bin/sh", "-c", "setsid sleep 600 & echo $!; exec sleep 601"]);
    launch.lifeline = Some(Arc::clone(&lifeline));
    let mut server = start(&launch);
    let grandchild = server.says().await.trim().parse().unwrap();
    let pid = server.pid().await;
    let second = Lifeline::now() + Duration::from_millis(1500);
    lifeline.extend(second).unwrap();
    assert_eq!(server.end().await, Event::Lost(Seen::LeaseOver));
    assert!(Lifeline::now() >= second, "it was extended");
    dies(pid).await;
    dies(grandchild).await;
    server.child.kill();
    server.gone().await;
}

#[tokio::test]
async fn nothing_lives_whose_lifeline_is_over_already() {
    let mut launch = launch(&["/bin/sh", "-c", "exec sleep 601"]);
    launch.lifeline = Some(Arc::new(Lifeline::new(Lifeline::now()).unwrap()));
    let mut server = start(&launch);
    assert_eq!(server.end().await, Event::Lost(Seen::LeaseOver));
    assert_eq!(server.child.pid(), None, "it was never started");
    server.child.kill();
    server.gone().await;
}

/// Where nobody would keep the time, a server that has little of it is not started.
#[tokio::test]
async fn without_a_reaper_there_is_no_lifeline() {
    let mut launch = launch(&["/bin/true"]);
    launch.reaper = Reaper::None;
    launch.lifeline = Some(Arc::new(Lifeline::new(Lifeline::now() + PATIENCE).unwrap()));
    let (tell, _events) = mpsc::channel(16);
    let refused = Child::launch(&launch, Arc::new(Ears::default()), tell);
    assert!(matches!(refused.err(), Some(Seen::NoReaper { .. })));
}

#[tokio::test]
async fn a_killed_reaper_takes_the_server_with_it() {
    let mut server = shell("echo up; exec sleep 600");
    server.says().await;
    let pid = server.pid().await;
    kill("-9", parent(pid));
    assert_eq!(server.end().await, Event::Lost(Seen::ReaperDied));
    dies(pid).await;
    server.child.kill();
    server.gone().await;
}

#[tokio::test]
async fn only_three_descriptors_reach_the_server() {
    // The listing itself has a descriptor, which is why there are four.
    let server = shell("echo $(ls /proc/self/fd | tr '\\n' ' ')");
    assert_eq!(server.says().await.trim(), "0 1 2 3");
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let mut given = launch(&["/usr/bin/env"]);
    given.program.env = Env::Only(vec![("ONLY".into(), "this".into())]);
    let server = start(&given);
    assert_eq!(server.says().await, "ONLY=this");
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nobody() {
    let server = shell("head -c 10000000 /dev/zero | tr '\\0' x >&2; echo done; exec sleep 600");
    assert_eq!(server.says().await, "done");
}

#[derive(Default)]
struct Seat(Mutex<Vec<String>>);

impl Ticket for Seat {
    fn writing(&self, extent: Extent) -> bool {
        self.0.lock().unwrap().push(format!("writing {}..{}", extent.start, extent.end()));
        true
    }

    fn flushed(&self) {
        self.0.lock().unwrap().push("flushed".into());
    }
}

/// A wrapper, or the server itself, can write into the pipe too: then a count is no evidence.
#[tokio::test]
async fn what_others_wrote_into_its_stdin_is_not_taken_for_an_unread_call() {
    // Reads both lines, and puts as many bytes into its own stdin as the second has.
    let mut server =
        shell("read -r line; read -r next; printf 1234567 > /proc/self/fd/0; echo $line; exec sleep 600");
    server.send("\"one\"");
    let seat = Arc::new(Seat::default());
    let ticket = Arc::clone(&seat) as Arc<dyn Ticket>;
    server.child.outbox().send(Outgoing::text("\"next\"".into(), Some(ticket))).unwrap();
    server.says().await;
    kill("-9", server.pid().await);
    assert!(matches!(server.end().await, Event::Lost(Seen::Exited { .. })));
    server.child.outbox().seal();
    server.child.kill();
    assert_eq!(server.end().await, Event::NoReader);
    assert_eq!(seat.0.lock().unwrap()[..], ["writing 6..12", "flushed"]);
    let residue = server.child.residue().unwrap();
    assert_eq!(residue.consumed(), 6, "by the count alone the second was not read");
    assert!(!residue.holds(6, b"\"next\""));
    assert_eq!(server.end().await, Event::Gone);
}

#[tokio::test]
async fn what_a_dead_server_never_read_is_known() {
    // Reads one line of five bytes and its break, then dies without touching the rest.
    let mut server = shell("read -r line; echo $line; exec sleep 600");
    let seats: Vec<_> = (0..3).map(|_| Arc::new(Seat::default())).collect();
    server.send("\"one\"");
    server.says().await;
    for seat in &seats {
        let ticket = Arc::clone(seat) as Arc<dyn Ticket>;
        server.child.outbox().send(Outgoing::text("\"next\"".into(), Some(ticket))).unwrap();
    }
    let flushed = async {
        while seats[2].0.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, flushed).await.unwrap();
    kill("-9", server.pid().await);
    assert!(matches!(server.end().await, Event::Lost(Seen::Exited { .. })));
    assert!(server.child.residue().is_none(), "nobody said that it may go yet");
    server.child.outbox().seal();
    server.child.kill();
    assert_eq!(server.end().await, Event::NoReader);
    assert_eq!(server.child.residue().map(Residue::consumed), Some(6));
    assert_eq!(seats[0].0.lock().unwrap()[..], ["writing 6..12", "flushed"]);
    assert_eq!(seats[2].0.lock().unwrap()[..], ["writing 20..26", "flushed"]);
    assert_eq!(server.end().await, Event::Gone);
}

#[tokio::test]
async fn a_server_that_was_gone_before_it_was_killed_still_tells_how_it_went() {
    let mut server = shell("echo here; read line; exit 3");
    server.says().await;
    let reaper = parent(server.pid().await);
    // On a machine that is busy enough the reaper is late: nobody has heard from it when the server's end begins.
    kill("-STOP", reaper);
    server.send("\"go\"");
    let exited = async {
        while !server.child.has_exited() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, exited).await.expect("it goes in time");
    server.child.kill();
    kill("-CONT", reaper);
    // That nobody reads its input any more is known before its reaper says a word.
    let lost = loop {
        match server.end().await {
            Event::NoReader => {}
            event => break event,
        }
    };
    let Event::Lost(Seen::Exited { exit, .. }) = lost else { panic!("it is told") };
    assert_eq!(exit, Exit::Status(3));
    server.gone().await;
}

/// On a machine where many servers die together each reaper is late, and a meaning cannot wait for all of them.
#[tokio::test]
async fn what_a_dead_server_did_not_read_is_known_without_its_reaper() {
    let mut server = shell("echo here; exec sleep 600");
    server.says().await;
    let pid = server.pid().await;
    let reaper = parent(pid);
    kill("-STOP", reaper);
    server.send("\"unread\"");
    kill("-9", pid);
    server.child.kill();
    let known = async { while server.end().await != Event::NoReader {} };
    // The order to kill wakes a reaper that is stopped, and may be the last that it hears.
    tokio::time::timeout(PATIENCE, known).await.expect("what was not read");
    server.gone().await;
}

#[tokio::test]
async fn without_a_reaper_the_group_is_what_is_watched() {
    let mut here = launch(&["/bin/sh", "-c", "sleep 600 & echo $!; exec sleep 601"]);
    here.reaper = Reaper::None;
    let mut server = start(&here);
    let grandchild = server.says().await.trim().parse().unwrap();
    kill("-9", server.pid().await);
    let Event::Lost(Seen::Exited { exit, .. }) = server.end().await else { panic!() };
    assert_eq!(exit, Exit::Signal(9));
    server.child.kill();
    server.gone().await;
    dies(grandchild).await;

    here.program.argv = vec!["linetender-no-such-command".into()];
    let mut server = start(&here);
    assert!(matches!(server.end().await, Event::Lost(Seen::NotRunnable { .. })));
    server.child.kill();
    server.gone().await;
}

/// A reaper that says `Spawned` of nobody is no reaper; neither is a program that never says a word.
#[tokio::test]
async fn a_program_that_is_no_reaper_is_named_and_nothing_is_called_killed() {
    let mut wrong = launch(&["cat"]);
    wrong.reaper = Reaper::Binary("/bin/false".into());
    let mut server = start(&wrong);
    let Event::Lost(seen @ Seen::NoReaper { .. }) = server.end().await else { panic!() };
    assert!(
        seen.to_string().contains("/bin/false exited with status 1 instead of becoming a reaper"),
        "{seen}"
    );
    server.child.kill();
    server.gone().await;

    wrong.reaper = Reaper::Binary("/nowhere/linetender-reaper".into());
    let (tell, _events) = mpsc::channel(16);
    let Err(seen) = Child::launch(&wrong, Arc::new(Ears::default()), tell) else { panic!() };
    assert_eq!(
        seen.to_string(),
        "cannot start the reaper of the server process: cannot run /nowhere/linetender-reaper: no such file or directory"
    );
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named_at_once() {
    for reaper in [Reaper::None, launch(&[]).reaper] {
        let mut nowhere = launch(&["cat"]);
        nowhere.reaper = reaper;
        for (dir, said) in [
            (
                "/nowhere/at/all",
                "cannot enter the working directory /nowhere/at/all: no such file or directory",
            ),
            ("/etc/passwd", "cannot enter the working directory /etc/passwd: not a directory"),
        ] {
            nowhere.program.dir = Some(dir.into());
            let (tell, _events) = mpsc::channel(16);
            let Err(seen) = Child::launch(&nowhere, Arc::new(Ears::default()), tell) else { panic!() };
            assert_eq!(seen.to_string(), said);
        }
    }
}

/// The reaper is held where it has started the server and not told us of it, and killed there.
#[tokio::test]
async fn a_server_of_a_reaper_that_died_before_it_told_of_it_is_found() {
    // A reaper leads a session of its own; this one starts the server and dies.
    let script = "exec setsid -w sh -c 'sleep 600 3>&- & echo $! > pid; kill -9 $$'";
    let (dir, reaper) = stand_in("early", script);
    let pid = dir.join("pid");
    let mut early = launch(&["cat"]);
    early.reaper = Reaper::Binary(reaper);
    let mut server = start(&early);
    assert_eq!(server.end().await, Event::Lost(Seen::ReaperDied));
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    assert!(!lives(pid), "the server was there when its end was told");
    server.child.kill();
    server.gone().await;
    std::fs::remove_dir_all(dir).unwrap();
}

#[tokio::test]
async fn signals_that_we_ignore_are_not_ignored_by_a_server() {
    // The reaper is started by a shell that ignores what it can, as a careless parent would.
    let reaper = env!("CARGO_BIN_EXE_linetender-reaper");
    let script = format!("trap '' HUP INT QUIT USR1 USR2 TERM CHLD XFSZ\nexec {reaper} \"$@\"");
    let (dir, reaper) = stand_in("signals", &script);
    // Of HUP to XFSZ, which are the lower half.
    let mut careless = launch(&["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"]);
    careless.reaper = Reaper::Binary(reaper);
    let mut server = start(&careless);
    // With SIGCHLD ignored there would be no status.
    let Event::Lost(Seen::Exited { exit, .. }) = server.end().await else { panic!() };
    assert_eq!(exit, Exit::Status(0));
    let ears = server.ears.0.lock().unwrap().clone();
    let lines: Vec<_> = ears.iter().map(|item| format!("{item:?}")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    // The C library keeps 32 and 33 to itself.
    assert!(lines.iter().all(|line| line.contains("0000000\")")), "{lines:?}");
    server.child.kill();
    server.gone().await;
    std::fs::remove_dir_all(dir).unwrap();
}

/// A program of the test's own in the reaper's place.
fn stand_in(name: &str, script: &str) -> (PathBuf, PathBuf) {
    let dir = std::env::temp_dir().join(format!("linetender-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("reaper");
    std::fs::write(&path, format!("#!/bin/bash\ncd '{}'\n{script}\n", dir.display())).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (dir, path)
}

#[tokio::test]
async fn a_reaper_that_is_still_killing_is_left_to_it() {
    let tell = |tag, value| format!(r"printf '{tag}\0\0\0\{value}\0\0\0' >&3");
    let (ready, busy, clear) = (tell('R', VERSION), tell('B', 0), tell('C', 0));
    let script = format!(
        "{ready}; echo up; read -r -n1 -u3 order\n\
         for n in $(seq 20); do {busy}; sleep 0.1; done\ntouch done; {clear}"
    );
    let (dir, reaper) = stand_in("busy", &script);
    let mut slow = launch(&["cat"]);
    slow.reaper = Reaper::Binary(reaper);
    slow.close.kill = Duration::from_millis(700);
    let mut server = start(&slow);
    server.says().await;
    server.child.kill();
    server.gone().await;
    assert!(dir.join("done").exists(), "the reaper was killed at its work");
    std::fs::remove_dir_all(dir).unwrap();
}

/// An update replaces the file that reapers are started from, below processes that go on running.
#[tokio::test]
async fn a_reaper_of_another_version_is_not_trusted_with_a_server() {
    let (dir, reaper) = stand_in("version", r"printf 'R\0\0\0\143\0\0\0' >&3; exec sleep 600");
    let mut other = launch(&["cat"]);
    other.reaper = Reaper::Binary(reaper);
    let mut server = start(&other);
    let Event::Lost(seen @ Seen::NoReaper { .. }) = server.end().await else { panic!() };
    assert!(seen.to_string().contains("another version of linetender"), "{seen}");
    server.child.kill();
    server.gone().await;
    std::fs::remove_dir_all(dir).unwrap();
}
