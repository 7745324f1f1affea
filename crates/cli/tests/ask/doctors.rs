//! `linetender doctor`.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::{Place, text, timeless, within};

/// One of each kind.
const SICK: &str = "
[servers.good]
BAD['--era', 'legacy']
safe_tools = ['echo']

[servers.noisy]
BAD['--noise', '--full']
safe_tools = ['nope']
trust_annotations = true

[servers.missing]
command = 'lt-no-such-program'

[servers.usage]
command = 'ls'
args = ['--help']

[servers.keyless]
BAD['--exit', '3', '--stderr', 'THE_TOKEN environment variable is not set']

[servers.deaf]
BAD['--deaf']
start_timeout = '1s'

[servers.slow]
BAD['--start-delay-ms', '800']
start_timeout = '1500ms'
wait = '500ms'

[servers.refused]
url = 'http://127.0.0.1:9/mcp'
wait = '100ms'

[servers.'a browser']
BAD['--more-tools', '50', '--grandchild', '--escapee']
state = 'process'
quiet_limit = '2s'
";

#[test]
fn each_sick_server_is_told_with_its_cure_and_nothing_is_left() {
    let place = Place::new(SICK);
    let done = within(Duration::from_secs(25), || place.run(&["doctor"]));
    assert_eq!(done.status.code(), Some(1));
    place.nothing_is_left();
    insta::assert_snapshot!(timeless(&text(&done.stdout)));
    let said = text(&done.stderr);
    assert_eq!(said.lines().count(), 9, "a line for each server: {said}");
    assert!(said.contains("linetender: missing: error: cannot run lt-no-such-program"), "{said}");
    assert!(!said.contains('\u{1b}'), "no terminal, no colours: {said:?}");
    assert!(!place.path().join(".local/state/linetender/journal.jsonl").exists(), "nothing is written down");
}

#[test]
fn programs_get_the_same_as_json_and_no_progress() {
    let place = Place::new(SICK);
    let done = place.run(&["doctor", "--json", "--server", "good", "--server", "keyless", "linetender.toml"]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(text(&done.stderr), "");
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&report["version"], &report["ok"]), (&1.into(), &false.into()), "{report}");
    let [good, keyless] = report["servers"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(
        (&good["ok"], &good["era"], &good["revision"]),
        (&true.into(), &"legacy".into(), &"2025-11-25".into())
    );
    assert_eq!((&good["implementation"], &good["version"]), (&"badserver".into(), &"1".into()), "{good}");
    assert!(good["tools"].as_u64().unwrap() > 10 && good["start_millis"].is_u64(), "{good}");
    assert_eq!(keyless["findings"][0]["code"], "credential-missing", "{keyless}");
    assert!(keyless["findings"][0]["stderr"].as_str().unwrap().contains("THE_TOKEN"), "{keyless}");
}

#[test]
fn all_well_is_zero_and_a_configuration_that_cannot_be_read_is_two() {
    let well = Place::new("[servers.good]\nBAD[]");
    assert_eq!(well.run(&["doctor"]).status.code(), Some(0));
    for (config, words, said) in [
        ("[servers.a]\ncomand = 'x'", &["doctor"][..], "comand"),
        ("[servers.a]\ncommand = 'x'", &["doctor", "--server", "b"], "has no server b; it has: a"),
        ("[servers.a]\ncommand = 'x'", &["doctor", "none.toml"], "none.toml"),
    ] {
        let done = Place::new(config).run(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
        assert_eq!(text(&done.stdout), "");
    }
}

#[test]
fn no_tool_is_called_and_each_server_is_started_once() {
    let place = Place::new(
        "[servers.a]\nBAD['--book', 'a.book']\n[servers.b]\nBAD['--exit', '1', '--book', 'b.book']\n[servers.c]\nBAD['--era', 'exit-on-discover', '--book', 'c.book']",
    );
    place.run(&["doctor"]);
    let book = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    for (name, starts) in [("a.book", 1), ("b.book", 2), ("c.book", 2)] {
        let book = book(name);
        // Some old servers exit when they are asked for their era, and may do better when they are not.
        assert_eq!(book.matches("start").count(), starts, "{name}: {book}");
        assert!(!book.contains("run "), "{name}: {book}");
    }
}

#[test]
fn what_a_server_says_of_itself_is_no_command_to_the_terminal_and_its_secrets_stay_its_own() {
    let place = Place::new(
        "[servers.bad]\nBAD['--exit', '1', '--stderr', \"\\u001b[31mred hunter2-hunter2\"]\nenv = { API_TOKEN = 'hunter2-hunter2' }",
    );
    for words in [&["doctor"][..], &["doctor", "--json"]] {
        let done = place.run(words);
        let all = text(&done.stdout) + &text(&done.stderr);
        assert!(all.contains("red") && !all.contains('\u{1b}') && !all.contains("hunter2"), "{all}");
    }
}

#[test]
fn real_servers_are_well() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real").canonicalize();
    let Ok(real) =
        real.map_err(drop).and_then(|real| real.join("node/.done").exists().then_some(real).ok_or(()))
    else {
        println!("no real servers here: run tools/real-servers");
        return;
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../drill/real").canonicalize().unwrap();
    let (real, scripts) = (real.display(), scripts.display());
    let place = Place::new(&format!(
        "[servers.py2]\ncommand = '{real}/py2/bin/python'\nargs = ['{scripts}/server_mcp.py']\n\
         [servers.py1]\ncommand = '{real}/py1/bin/python'\nargs = ['{scripts}/server_mcp.py']\n\
         [servers.fastmcp]\ncommand = '{real}/py2/bin/python'\nargs = ['{scripts}/server_fastmcp.py']\n\
         [servers.everything]\ncommand = 'npx'\nargs = ['--prefix', '{real}/node', 'mcp-server-everything', 'stdio']\n\
         [servers.memory]\ncommand = 'npx'\nargs = ['--prefix', '{real}/node', 'mcp-server-memory']\n"
    ));
    let path = std::env::var_os("PATH").unwrap();
    let done = place.command(&["doctor", "--json"]).env("PATH", path).output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{report:#}");
    for server in report["servers"].as_array().unwrap() {
        assert!(server["tools"].as_u64().unwrap() > 0 && server["implementation"].is_string(), "{server:#}");
    }
    place.nothing_is_left();
}

#[test]
fn filters_and_names_that_fit_nothing_are_told() {
    let place = Place::new(
        "[servers.one]\nBAD[]\ntools = { exclude = ['kil', 'exit'], rename = { echo = 'write', ecko = 'say' } }\n\
         access.'*' = { tools.exclude = ['none_*'] }",
    );
    let done = place.run(&["doctor", "--json"]);
    assert_eq!(done.status.code(), Some(0), "they are warnings: {}", text(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let findings = report["servers"][0]["findings"].as_array().unwrap().iter();
    let about = |code: &str| -> Vec<&str> {
        let found = findings.clone().filter(|finding| finding["code"] == code);
        found.map(|finding| finding["what"].as_str().unwrap()).collect()
    };
    assert_eq!(
        about("matches-nothing"),
        [
            "`kil` in tools.exclude matches nothing that the server lists",
            "`ecko` in tools.rename matches nothing that the server lists",
            "`none_*` in access.*.tools.exclude matches nothing that the server lists",
        ]
    );
    let replaced = "the server's own tool `write` is hidden, because `echo` is renamed to `write`";
    assert_eq!(about("tool-replaced"), [replaced]);
}
