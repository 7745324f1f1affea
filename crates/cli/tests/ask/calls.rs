//! `linetender call`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use linetender_badserver::webserver::{Config, Manners, Speaks, WebServer};
use serde_json::Value;

use crate::{Place, text};

const ONE: &str =
    "[servers.bad]\nBAD['--book', 'book']\ncall_timeout = '20s'\n[servers.gone]\ncommand = 'lt-none'";

#[test]
fn each_verdict_has_its_words_and_its_code() {
    let place = Place::new(ONE);
    for (words, code, out, said) in [
        (
            &["bad", "echo", r#"{"message":"hi"}"#][..],
            0,
            "{\"message\":\"hi\"}\n",
            "answered: the tool echo was executed",
        ),
        (&["bad", "kill"], 4, "", "unknown: the server process was killed by signal 9 (SIGKILL)"),
        (
            &["bad", "hang", "{}", "--timeout", "300ms"],
            4,
            "",
            "its time was up while the server had it; check for its effects",
        ),
        (
            &["gone", "echo"],
            3,
            "",
            "not executed: the server did not start, so nothing was sent: cannot run lt-none",
        ),
        (&["bad", "tool_error"], 1, "no\n", "answered: the tool tool_error ran and reported an error"),
        (&["bad", "echo", "7"], 2, "", "the arguments are not a JSON object"),
        (&["bad", "echo", "{"], 2, "", "the arguments are not JSON"),
        (&["nobody", "echo"], 2, "", "has no server nobody; it has: bad, gone"),
    ] {
        let words: Vec<_> = ["call"].into_iter().chain(words.iter().copied()).collect();
        let done = place.run(&words);
        assert_eq!(done.status.code(), Some(code), "{words:?}: {}", text(&done.stderr));
        assert_eq!(text(&done.stdout), out, "{words:?}");
        assert!(text(&done.stderr).contains(said), "{words:?}: {}", text(&done.stderr));
    }
    place.nothing_is_left();
}

#[test]
fn arguments_come_from_stdin_and_the_whole_result_goes_to_programs() {
    let place = Place::new(ONE);
    let mut call = place.command(&["call", "bad", "echo", "-", "--json"]);
    let mut call = call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    call.stdin.take().unwrap().write_all(b" {\"message\": \"from stdin\"}\n").unwrap();
    let done = call.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("from stdin"), "{result}");
}

#[test]
fn each_re_send_is_told() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = {
        let _entered = runtime.enter();
        let manners = Manners { speaks: Speaks::Legacy, ..Manners::default() };
        WebServer::start(Config { manners, ..Config::default() }).unwrap()
    };
    let done = Place::new("").run(&["call", &server.url(), "deny"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("tools/call is sent again (attempt 2: session-lost)"), "{said}");
    assert!(said.contains("refused: "), "{said}");
}

#[test]
fn progress_is_told_while_the_call_runs() {
    let place = Place::new(ONE);
    let done = place.run(&["call", "bad", "progress", r#"{"ms":20,"times":3}"#]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("linetender: progress: ").count(), 3, "{said}");
}

#[test]
fn ctrl_c_cancels_the_call_and_says_that_its_outcome_is_unknown() {
    let place = Place::new(ONE);
    let mut call = place.command(&["call", "bad", "progress", r#"{"ms":200,"times":1000}"#]);
    let mut call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(call.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.contains("progress"), "{first}");
    assert!(Command::new("kill").args(["-INT", &call.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(call.wait().unwrap().code(), Some(4), "{rest}");
    assert!(rest.contains("unknown: interrupted while the server had it"), "{rest}");
    let book = std::fs::read_to_string(place.path().join("book")).unwrap();
    assert!(book.contains("cancelled:"), "the server was told: {book}");
    place.nothing_is_left();
}
