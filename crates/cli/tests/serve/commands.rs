//! Commands that a gateway starts beside its servers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use crate::kit::{Home, Serves, until};

/// A gateway with a server here, and others elsewhere that refuse every request, each with a command for its credentials.
struct Stage {
    home: Home,
    serves: Serves,
    commands: usize,
    /// The servers that were asked with a command's token.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Stage {
    fn set(name: &str, commands: usize, script: &str) -> Self {
        let home = Home::new(name, "");
        let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = elsewhere.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in elsewhere.incoming().map_while(Result::ok) {
                let mut head = BufReader::new(stream).lines().map_while(Result::ok);
                let path = head.next().unwrap_or_default();
                if head.take_while(|line| !line.is_empty()).any(|line| line.ends_with("Bearer token")) {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
                }
            }
        });
        let [began, ended] = ["began", "ended"].map(|file| home.path().join(file).display().to_string());
        let script = script.replace("BEGAN", &began).replace("ENDED", &ended);
        let mut config = "[servers.local]\n{bad}\n".to_owned();
        for number in 0..commands {
            let command = format!("['sh', '-c', '''{script}''', '{number}']");
            let url = format!("http://{address}/{number}");
            writeln!(config, "[servers.r{number}]\nurl = '{url}'\nauth = {{ command = {command} }}").unwrap();
        }
        home.write(&config);
        let (serves, _) = home.listens();
        Self { home, serves, commands, asked }
    }

    /// What is said of commands that did not work, by the time every server was asked with a command's token.
    fn complaints(&self) -> Vec<String> {
        let asked = || self.asked.lock().unwrap_or_else(PoisonError::into_inner).len();
        until("a token for each server", || (asked() == self.commands).then_some(()));
        let log = self.home.log();
        let complaints = log.lines().filter(|line| line.contains("did not work"));
        // A machine that is too busy is not what this is about.
        complaints.filter(|line| !line.contains("did not end within")).map(str::to_owned).collect()
    }
}

#[test]
fn s47_the_status_of_a_command_for_credentials_is_its_own_while_orphans_are_collected() {
    // They end one after the other, so that the collector is woken while others run.
    let stage = Stage::set("commands", 24, "sleep 0.$((40 + $0)); echo token");
    assert_eq!(stage.complaints(), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn s47_a_command_for_credentials_survives_the_end_of_a_servers_reaper() {
    let script = "echo >BEGAN; while [ ! -e ENDED ]; do sleep 0.02; done; echo token";
    let stage = Stage::set("commands-reaper", 1, script);
    let exists = |file: &str| stage.home.path().join(file).exists().then_some(());
    until("a command that runs", || exists("began"));
    let children = || children(stage.serves.0.id()).into_iter().filter(|pid| name(*pid) == "lt-reaper");
    let reaper = until("the reaper", || children().next());
    assert!(Command::new("kill").args(["-9", &reaper.to_string()]).status().unwrap().success());
    until("another reaper", || children().find(|pid| *pid != reaper));
    std::fs::write(stage.home.path().join("ended"), "").unwrap();
    assert_eq!(stage.complaints(), [""; 0]);
}

#[cfg(target_os = "linux")]
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    listed
        .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[cfg(target_os = "linux")]
fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}
