//! X09: what servers choose (names, bodies, stderr) forges no line of the log, the journal or the status, and is cut.

use std::process::Stdio;

use linetender::visible::is_hidden;
use serde_json::{Value, json};

use crate::echoes::Echoes;
use crate::kit::{Home, LINETENDER, until};

/// What would be a line of the log and one of the journal, and what a terminal would obey.
const FORGED: &str = "x\n1999-12-31T23:59:59.000000Z  INFO server up server=\"bank\"\r\n1999-12-31T23:59:59.000Z        1  bank #1 up\n\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{85}\u{2028}\u{202e}\u{2066}\u{200b}\u{e0041}";

/// A tool that cannot be offered, with a name of this size.
fn tools(letters: usize) -> Value {
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": FORGED } } });
    json!([{ "name": format!("{FORGED}{}", "N".repeat(letters)), "inputSchema": schema }])
}

/// Every line of it is one that we wrote.
fn assert_ours(text: &str) {
    assert!(!text.is_empty());
    for line in text.lines() {
        // A time is the first that we write.
        let time = line.get(..20).unwrap_or_default();
        let is_time = time.starts_with('2') && time.as_bytes().get(10) == Some(&b'T');
        assert!(is_time, "{line:?}");
        assert!(!line.contains(is_hidden) && line.len() <= 8192, "{line:?}");
    }
}

#[test]
fn x09_no_server_forges_a_line_of_log_journal_or_status() {
    let echoes = Echoes::listen(|| tools(10));
    let at = echoes.at;
    let forged = Value::from(FORGED).to_string();
    let home = Home::new(
        "forged",
        &format!(
            "[servers.tools]\nurl = 'http://{at}/tools'\nera = 'modern'\n\
             [servers.html]\nurl = 'http://{at}/html'\n[servers.error]\nurl = 'http://{at}/error'\n\
             [servers.busy]\nurl = 'http://{at}/500'\n\
             [servers.dies]\ncommand = '{LINETENDER}'\nargs = ['__badserver', '--exit', '3', '--stderr', {forged}]\nstderr = 'log'\n"
        ),
    );
    let mut agent = home.agent();
    home.wait_for_log("tool hidden");
    // A command that never answered is tried again soon before it is parked.
    let says = "retrying at long intervals";
    for (server, says) in [("html", says), ("error", says), ("busy", says), ("dies", "exited with status 3")]
    {
        until(&format!("{server}: {says}"), || {
            let is_said = |line: &str| line.contains(says) && line.contains(server);
            home.log().lines().any(is_said).then_some(())
        });
    }
    let status = home.linetender(&["status"]).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.lines().count(), 6, "{status}");
    assert!(!status.contains(|c| c != '\n' && is_hidden(c)), "{status:?}");
    let json = home.linetender(&["status", "--json"]).output().unwrap();
    let json = String::from_utf8(json.stdout).unwrap();
    assert!(!json.contains(|c| c != '\n' && is_hidden(c)), "{json:?}");
    agent.leaves();
    assert_ours(&home.log());
    let journal = home.linetender(&["journal", "--last", "1000"]).output().unwrap();
    let journal = String::from_utf8(journal.stdout).unwrap();
    assert_ours(&journal);
    assert_eq!(journal.lines().count(), home.journal().len());
    let raw = std::fs::read_to_string(home.path().join("linetender/journal.jsonl")).unwrap();
    assert!(!raw.contains(|c| c != '\n' && is_hidden(c)), "{raw:?}");
}

#[test]
fn x09_a_huge_name_that_is_listed_again_and_again_is_cut_and_logged_once() {
    let echoes = Echoes::listen(|| tools(7_000));
    let home =
        Home::new("huge", &format!("[servers.x]\nurl = 'http://{}/tools'\nera = 'modern'\n", echoes.at));
    let mut agent = home.agent();
    home.wait_for_log("tool hidden");
    until("five readings", || (echoes.heard().matches("tools/list\"").count() >= 5).then_some(()));
    agent.leaves();
    let log = home.log();
    assert_eq!(log.matches("tool hidden").count(), 1, "{log}");
    assert!(log.len() < 10_000 && log.contains("more bytes)"), "{} bytes", log.len());
}

#[test]
fn x09_stderr_that_is_passed_on_stands_under_its_servers_name() {
    let forged = Value::from(FORGED).to_string();
    let server =
        format!("command = '{LINETENDER}'\nargs = ['__badserver', '--stderr', {forged}]\nstderr = 'pass'\n");
    let home = Home::new("passed", &format!("[servers.a]\n{server}"));
    let mut serve = home.serve(&["--stdio"]);
    serve.stderr(Stdio::piped());
    let mut agent = crate::kit::Agent::of(&mut serve).greeted();
    agent.wait_for("a__echo", "{}");
    let stderr = agent.serves.0.stderr.take().unwrap();
    agent.leaves();
    let said = std::io::read_to_string(stderr).unwrap();
    let passed: Vec<_> = said.lines().filter(|line| line.starts_with("[a] ")).collect();
    assert_eq!(passed.len(), 4, "{said}");
    assert_ours(&said.lines().filter(|line| !line.starts_with("[a] ")).collect::<Vec<_>>().join("\n"));
}
