//! A docker of the test's own, and agents before servers in its containers.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, LINETENDER};

const DOCKER: &str = include_str!("docker.py");

/// Longer than anything here takes, on any machine.
const MOST: Duration = Duration::from_secs(60);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Restarts that come at once, and servers that may be killed between two calls.
const POLICY: &str = "state = 'none'\n";

/// A folder with a docker in it, and its daemon.
pub(crate) struct Docker {
    folder: PathBuf,
    daemon: Child,
}

/// What `docker ps` says.
pub(crate) struct Running {
    pub(crate) ids: Vec<String>,
    pub(crate) pids: Vec<u64>,
    /// With those that have ended.
    pub(crate) all: u64,
    /// The most that ran at once.
    pub(crate) most: u64,
}

impl Docker {
    pub(crate) fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lt-containers-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("docker.py"), DOCKER).unwrap();
        fs::write(folder.join("policy.toml"), POLICY).unwrap();
        let here = folder.display();
        for (name, script) in [
            ("docker", format!("#!/bin/sh\nexec python3 {here}/docker.py client {here} \"$@\"\n")),
            ("ssh", format!("#!/bin/sh\nexec python3 {here}/docker.py server\n")),
        ] {
            let program = folder.join("bin").join(name);
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut daemon = Command::new("python3");
        daemon.arg(folder.join("docker.py")).arg("daemon").arg(&folder);
        let mut daemon = daemon.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(daemon.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Self { folder, daemon }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        for home in ["HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
            command.env(home, &self.folder);
        }
        command
    }

    /// `docker run -i FLAGS image SERVER`.
    pub(crate) fn server(&self, flags: &[&str]) -> Vec<String> {
        let file = self.folder.join("docker.py").display().to_string();
        let image = ["image", "python3", &file, "server"];
        ["docker", "run", "-i"].iter().chain(flags).chain(&image).map(ToString::to_string).collect()
    }

    /// An agent before `linetender run -- COMMAND`; it has not said hello.
    pub(crate) fn agent(&self, command: &[String]) -> Agent {
        let mut shim = self.command(LINETENDER);
        shim.args(["run", "--no-memory", "--name", "bad", "--era", "legacy", "--policy"]);
        shim.arg(self.folder.join("policy.toml")).arg("--").args(command);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log")).unwrap();
        Agent::with_stderr(&mut shim, log)
    }

    /// What linetender logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub(crate) fn linetender(&self, words: &[&str]) -> String {
        let output = self.command(LINETENDER).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn ps(&self) -> Running {
        let output = self.command("docker").arg("ps").output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let running = said["running"].as_array().unwrap();
        Running {
            ids: running.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect(),
            pids: running.iter().map(|one| one["pid"].as_u64().unwrap()).collect(),
            all: said["all"].as_u64().unwrap(),
            most: said["most"].as_u64().unwrap(),
        }
    }

    /// The words of all clients but `ps`.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = fs::read_to_string(self.folder.join("words")).unwrap_or_default();
        words.lines().filter(|line| *line != "ps").map(str::to_owned).collect()
    }

    /// Runs the client as somebody else would.
    pub(crate) fn run(&self, command: &[String]) -> Child {
        self.command(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) fn wait(&self, what: &str, so: impl Fn(&Running) -> bool) -> Running {
        let until = Instant::now() + MOST;
        loop {
            let now = self.ps();
            if so(&now) {
                return now;
            }
            assert!(Instant::now() < until, "{what}: {:?}\n{:?}\n{}", now.ids, self.words(), self.log());
            std::thread::sleep(LOOK);
        }
    }

    /// The files that linetender keeps of its containers.
    pub(crate) fn records(&self) -> Vec<String> {
        let Ok(folder) = fs::read_dir(self.folder.join("linetender/containers")) else { return Vec::new() };
        folder.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // Its containers end with it.
        drop(self.daemon.stdin.take());
        let _ = self.daemon.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Kills a process that the test started by way of others.
pub(crate) fn kill(pid: u64) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// The process of linetender's server: the client.
pub(crate) fn client(docker: &Docker) -> u64 {
    let until = Instant::now() + MOST;
    loop {
        let status: Value =
            serde_json::from_str(&docker.linetender(&["status", "--json"])).unwrap_or_default();
        if let Some(pid) = status.pointer("/holders/0/report/lines/0/pid").and_then(Value::as_u64) {
            return pid;
        }
        assert!(Instant::now() < until, "{status}");
        std::thread::sleep(LOOK);
    }
}

/// The number of the process that answers. A client that is killed may have read the call: then it is made again.
pub(crate) fn ask(agent: &mut Agent, id: &str) -> u64 {
    for _ in 0..2 {
        let answer = agent.call(&json!(id), "pid", &json!({}));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        match text.parse() {
            Ok(pid) => return pid,
            Err(_) => assert!(text.contains("unknown whether"), "{answer}"),
        }
    }
    panic!("two calls were lost")
}

/// The agent says hello, and does not wait for an answer.
pub(crate) fn hello(agent: &mut Agent) {
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    agent.send(&json!("hello"), "initialize", &hello);
}

/// The agent closes its pipe, and linetender ends.
pub(crate) fn close(mut agent: Agent) {
    drop(agent.to.take());
    let until = Instant::now() + MOST;
    while agent.shim.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "linetender does not end");
        std::thread::sleep(LOOK);
    }
}
