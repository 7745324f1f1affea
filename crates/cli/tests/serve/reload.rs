//! A config that changes while it is served.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::kit::{Agent, Home, LINETENDER};

/// What fits into a pipe, and as much as a reader may have taken out of it unseen.
const PIPE: usize = (64 + 8) * 1024;

#[test]
fn a_file_that_changes_is_read_again() {
    let home = Home::new("reload", "[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.wait_for("b__echo", "configured servers: a");
    home.write("[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    agent.wait_for("b__echo", "{}");
    home.write("[servers.a]\n{bad}\n[servers.c]\n{bad}\n");
    agent.wait_for("c__echo", "{}");
    agent.wait_for("b__echo", "configured servers: a, c");
}

#[test]
fn a_change_while_it_starts_is_not_lost() {
    // In an agent's file a key that is nearly one of ours is a warning.
    let letters = || ('a'..='z').chain('A'..='Z');
    let nearly: Vec<_> =
        letters().flat_map(|a| letters().map(move |b| format!("\"command{a}{b}\": 1"))).collect();
    let server =
        format!(r#"{{ {}, "command": "{LINETENDER}", "args": ["__badserver"] }}"#, nearly.join(", "));
    let home = Home::new("starts", &format!(r#"{{ "mcpServers": {{ "a": {server} }} }}"#));
    let mut agent = Agent::of(home.serve(&["--stdio"]).stderr(Stdio::piped()));
    // It has read the file, and comes no further than this: nobody reads what it has to say.
    let mut log = BufReader::new(agent.serves.0.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert!(line.contains("unknown key `commandaa`"), "{line}");
    home.write("[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    let rest = std::thread::spawn(move || std::io::read_to_string(log));
    agent = agent.greeted();
    agent.wait_for("b__echo", "{}");
    drop(agent);
    let rest = rest.join().unwrap().unwrap();
    assert!(rest.len() > PIPE, "it was held up");
}

#[test]
fn a_broken_file_changes_nothing_and_the_log_says_where_it_is_broken() {
    let home = Home::new("broken-later", "[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.wait_for("b__echo", "{}");
    let processes = || {
        ["a", "b"].map(|server| {
            let line = home.status(&agent.serves, server);
            (line["generation"].clone(), line["pid"].clone())
        })
    };
    let before = processes();
    home.write("[servers.a]\n{bad}\n[servers.c]\n{bad}\nscope = 'nobodys'\n");
    let said = home.wait_for_log("config reload failed; keeping the current config");
    let place = format!("file={} line=7 column=9 problem=", home.config().display());
    assert!(said.contains(&place), "{said}");
    assert!(said.contains("unknown variant, expected one of `shared`, `identity`, `session`"), "{said}");
    assert_eq!(processes(), before);
    assert_eq!(before.each_ref().map(|(generation, _)| generation), [1, 1]);
    agent.wait_for("a__echo", "{}");
    agent.wait_for("b__echo", "{}");
    agent.wait_for("c__echo", "configured servers: a, b");
    home.write("[servers.a]\n{bad}\n[servers.c]\n{bad}\n");
    agent.wait_for("c__echo", "{}");
    agent.wait_for("b__echo", "configured servers: a, c");
    assert_eq!(home.log().matches("config reload failed").count(), 1, "{}", home.log());
}

#[test]
fn g06_a_config_written_in_two_steps_ends_no_server() {
    let (half, whole) = ("[servers.a]\n{bad}\n", "[servers.a]\n{bad}\n[servers.z]\n{bad}\n");
    let home = Home::new("torn", whole);
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.wait_for("z__echo", "{}");
    let processes = || ["a", "z"].map(|server| home.status(&agent.serves, server)["pid"].clone());
    let before = processes();
    home.write(half);
    // It was still for long enough to be read, and the second half is yet to come.
    let said = home.wait_for_log("config file removes running servers");
    assert!(said.contains(r#"removed=["z"]"#), "{said}");
    home.write(&format!("{whole}[servers.c]\n{{bad}}\n"));
    home.wait_for_log(r#"added=["c"] replaced=[] removed=[] kept=["a", "z"]"#);
    assert_eq!(processes(), before);
    agent.wait_for("z__echo", "{}");
    // A removal that stays is one, and SIGHUP does not wait for it.
    home.write(half);
    agent.wait_for("z__echo", "configured servers: a");
    home.write(whole);
    agent.wait_for("z__echo", "{}");
    home.write(half);
    agent.serves.signal("-HUP");
    agent.wait_for("z__echo", "configured servers: a");
    home.wait_for_count("config reloaded", 4);
}

#[test]
fn a_hangup_has_the_file_read_again() {
    let home = Home::new("hangup", "");
    // What is watched is the folder of the link, and nothing changes in there.
    let elsewhere = home.path().join("elsewhere.toml");
    std::fs::remove_file(home.config()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, home.config()).unwrap();
    home.write("[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    home.write("[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    agent.serves.signal("-HUP");
    agent.wait_for("b__echo", "{}");
    home.wait_for_count("config reloaded", 1);
    // Whoever asks is answered, also if there is nothing new.
    agent.serves.signal("-HUP");
    home.wait_for_log("added=[] replaced=[] removed=[] kept=[\"a\", \"b\"]");
}

#[test]
fn settings_that_wait_for_the_next_start_are_told_and_the_old_ones_hold() {
    let home = Home::new("settings", "[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    let dots = "[gateway]\nseparator = '.'\nlisten = '127.0.0.1:1'\n[servers.a]\n{bad}\n";
    // Tools of both would begin with `a__b__` for as long as this runs.
    home.write(&format!("{dots}[servers.a__b]\n{{bad}}\n"));
    let said = home.wait_for_log("keeping the current config");
    assert!(said.contains("server names `a` and `a__b` are ambiguous"), "{said}");
    assert!(said.contains("line=7 "), "{said}");
    home.write(&format!("{dots}[servers.b]\n{{bad}}\n"));
    agent.wait_for("b__echo", "{}");
    agent.wait_for("a__echo", "{}");
    let said = home.wait_for_log("restart linetender to apply them");
    assert!(said.contains(r#"settings=["separator"]"#), "nor does it listen at all: {said}");
}
