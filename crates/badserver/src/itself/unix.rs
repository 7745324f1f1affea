//! With signals and descriptors.

#![allow(clippy::disallowed_methods, reason = "a server that misbehaves adopts no orphans")]

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process};

/// Kills itself.
pub(crate) fn kill() {
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Stops itself, all threads of it.
pub(crate) fn stop() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Closes its output, and lives on.
pub(crate) fn close_stdout() {
    if let Ok(null) = std::fs::File::create("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Closes its input, and lives on.
pub(crate) fn close_stdin() {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// Starts a process that holds its pipes and lives longer.
pub(crate) fn grandchild() {
    let _ = Command::new("sleep").arg("600").spawn();
}

/// The same, as far from here as a process can get.
pub(crate) fn escapee() {
    let _ = Command::new("setsid").args(["sleep", "601"]).stderr(Stdio::inherit()).spawn();
}

/// Leaves a helper to itself, which ends at once.
pub(crate) fn orphan() {
    let _ = Command::new("sh").args(["-c", "true & "]).status();
}

/// A child at work. Asked to end, it puts its things away, as `git` and `terraform` do. That takes longer than the next start of its
/// server, and until then it has the lock.
/// What it starts for that is not ended by another SIGTERM: the reaper sends one to each process that it finds.
const WORKER: &str = r#"trap 'trap "" TERM; sleep 0.4; exit 0' TERM; while :; do sleep 600 & wait $!; done"#;

/// Leaves the tree on purpose: a session of its own, a parent that ended, and none of the server's pipes.
const STRANGER: &str = r#"env -i "$0" setsid sleep 1800 >/dev/null & echo $!"#;

/// Starts a child at work, with the lock if there is one.
pub(crate) fn worker(is_apart: bool, lock: Option<&File>) -> Option<u32> {
    let mut command = Command::new(if is_apart { "setsid" } else { "sh" });
    if is_apart {
        command.arg("sh");
    }
    // A descriptor of the same open file holds the same lock.
    let lock = lock.and_then(|lock| lock.try_clone().ok()).map_or_else(Stdio::null, Stdio::from);
    let child = command.args(["-c", WORKER]).stdin(lock).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.ok().map(|child| child.id())
}

/// Starts a process that leaves the tree on purpose. Its environment has this variable and no other. When this returns, the parent
/// of the process has ended.
pub(crate) fn stranger(mark: &str) -> Option<i32> {
    let mut command = Command::new("sh");
    let told =
        command.args(["-c", STRANGER, mark]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&told.stdout).trim().parse().ok()
}

/// Does this when SIGTERM comes, and ends.
pub(crate) fn on_term(then: impl FnOnce() + Send + 'static) {
    let (tell, ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
            let _ = tell.send(());
            if let Ok(mut term) = term {
                term.recv().await;
            }
        });
        then();
        #[expect(clippy::disallowed_methods, reason = "there is nothing left to do")]
        std::process::exit(0);
    });
    // Until then the signal would end the process.
    let _ = ready.recv();
}

/// Stdin without the standard library's buffer.
pub(crate) fn unbuffered() -> Option<impl io::Read> {
    use std::os::fd::AsFd as _;
    io::stdin().as_fd().try_clone_to_owned().ok().map(File::from)
}

/// Nothing happens: `env` does it.
pub(crate) const fn set_variable(_: &str, _: &str) {}
