//! `linetender serve` as a person and a service manager see it.

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

mod audit;
mod canaries;
mod commands;
mod doors;
mod echoes;
mod ends;
mod forged;
mod inside;
mod journal;
mod kit;
mod parked;
mod reload;
mod silent;
mod tls;
mod watchdog;

use kit::Home;

#[test]
fn a_broken_file_is_shown_with_its_place() {
    let home = Home::new("broken", "[servers.a]\n{bad}\nenv = { KEY = \"${NO_SUCH_VARIABLE}\" }\n");
    let output = home.serve(&[]).output().unwrap();
    assert!(!output.status.success());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("NO_SUCH_VARIABLE is not set"), "{words}");
    assert!(words.contains("linetender.toml:4:"), "it says where: {words}");
}

#[test]
fn check_says_what_a_file_has_or_what_is_wrong_and_serves_nobody() {
    let home =
        Home::new("check", "[gateway]\nlisten = '127.0.0.1:7441'\n[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    let output = home.serve(&["--check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        said,
        format!("{}: OK, 2 servers (a, b), listens on 127.0.0.1:7441\n", home.config().display())
    );
    assert!(home.journal().is_empty(), "nothing was started");
    home.write("[servers.a]\n{bad}\npolicy.call.limt = '5m'\n");
    let output = home.serve(&["--check"]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("unknown key `limt`"), "{words}");
    assert!(words.contains("did you mean `limit`?"), "{words}");
}

#[test]
fn without_a_name_the_file_is_where_one_would_be() {
    let home = Home::new("places", "[servers.here]\n{bad}\n");
    let own = home.path().join("config/linetender/linetender.toml");
    let check = |folder: &std::path::Path| {
        let mut command = home.linetender(&["serve", "--check"]);
        let output =
            command.current_dir(folder).env("XDG_CONFIG_HOME", home.path().join("config")).output().unwrap();
        let said = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (found, said) = check(home.path());
    assert!(
        !found && said.contains("looked for linetender.toml, ") && said.contains("--config FILE"),
        "{said}"
    );
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(&own, kit::with_servers("[servers.mine]\n{bad}\n")).unwrap();
    assert!(check(home.path()).1.contains("1 server (mine)"), "{}", check(home.path()).1);
    let (found, said) = check(home.config().parent().unwrap());
    assert!(found && said.contains("1 server (here)"), "this folder comes first: {said}");
}

#[test]
fn an_agents_yaml_is_served_too() {
    let home = Home::new("yaml", "");
    let file = home.path().join("goose.yaml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = home.linetender(&["serve", "--check", "--config"]).arg(&file).output().unwrap();
        let said = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let goose = "extensions:\n  developer: {type: builtin}\n  a:\n    type: stdio\n    cmd: x\n  b:\n    type: streamable_http\n    uri: https://example.com/mcp\n";
    let (ok, said) = check(goose);
    assert!(ok && said.contains("OK, 2 servers (a, b)"), "{said}");
    let (ok, said) = check(&goose.replace("cmd: x", "cmd: [x"));
    assert!(!ok && said.contains("goose.yaml:"), "{said}");
}

#[test]
fn a_filter_that_fits_nothing_is_told_once() {
    let home = Home::new(
        "mismatch",
        "[servers.a]\n{bad}\ntools = { exclude = ['kil'], rename = { echo = 'write' } }\n",
    );
    let (serves, _) = home.listens();
    home.wait_for_log("`kil` in tools.exclude matches nothing that the server lists");
    home.wait_for_log("own tool `write` is hidden, because `echo` is renamed to `write`");
    // Its next generation has the same lists.
    home.linetender(&["redial", "a"]).output().unwrap();
    kit::until("another generation", || (home.status(&serves, "a")["generation"] == 2).then_some(()));
    assert_eq!(home.log().matches("config does not fit the server").count(), 2, "{}", home.log());
}
