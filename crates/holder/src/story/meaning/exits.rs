//! What exit statuses and signals usually mean.

use crate::journal::Reason;

const KILLED: &str = "This signal cannot be caught, so something outside killed the server: most often the kernel, because the machine or the \
     container ran out of memory, else a person or program (`kill -9`).";
const CRASHED: &str = "The server crashed: this is a bug in it, or in a native library that it loads.";
const ABORTED: &str =
    "The server stopped itself after an internal error (a failed assertion, a panic, or no memory left).";
const ASKED: &str =
    "Something asked the server to stop: a person, a service manager, or a container that was shut down.";
const NO_READER: &str = "The server wrote to a pipe or connection that nobody reads any more.";

pub(super) fn words(reason: &Reason, served: bool) -> Vec<&'static str> {
    if let Some(words) = reason.signal.and_then(signal) {
        return vec![words];
    }
    let Some(status) = reason.status else { return Vec::new() };
    // Shells and containers tell of a signal by 128 and its number.
    if let Some(words) = (status > 128).then(|| signal(status - 128)).flatten() {
        return vec![words];
    }
    match status {
        0 if served => vec![
            "Status 0 means that the program ended by itself and saw nothing wrong. An MCP server should keep running.",
        ],
        0 => vec![
            "Status 0 means that the program ended by itself and saw nothing wrong. An MCP server should keep running: usually what was \
             started is another program, or one that does a single job or prints its help and leaves.",
        ],
        2 => vec!["Status 2 usually means that the program did not understand its arguments."],
        126 => vec!["Status 126 comes from a shell: the program was found, but may not be executed."],
        127 => vec![
            "Status 127 comes from a shell or a launcher: the program that it was to start was not found.",
        ],
        _ if reason.stderr.is_some() => {
            vec!["The program gave up by itself. What it wrote to stderr, below, usually says why."]
        }
        // What it wrote before it was asked anything is not kept: the next attempt tells.
        _ if reason.seen.as_deref() == Some("ended-on-probe") => vec!["The program gave up by itself."],
        _ => vec!["The program gave up by itself, and wrote nothing to stderr that would say why."],
    }
}

const fn signal(signal: i32) -> Option<&'static str> {
    Some(match signal {
        9 => KILLED,
        4 | 7 | 8 | 11 => CRASHED,
        6 => ABORTED,
        1 | 2 | 15 => ASKED,
        13 => NO_READER,
        _ => return None,
    })
}
