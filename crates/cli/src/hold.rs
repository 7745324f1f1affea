//! A shim or a gateway as a holder: its journal and its socket. Neither may keep an agent from its server.

use std::process::ExitCode;
use std::time::Duration;

use linetender::Redacted;
use linetender::session::Ended;
use linetender_holder::holder::Holder;
use linetender_holder::journal::{Journal, Rotation};

use crate::{args, places};

/// How long the last entry may take, after the session has ended.
pub(crate) const LAST_ENTRY: Duration = Duration::from_millis(500);

/// The most of our own command line that is written down.
const ARGV_SHOWN: usize = 1000;

/// Whether a journal is kept, and in files of which size.
pub(crate) enum Keep {
    Nothing,
    Journal(Rotation),
}

impl Keep {
    pub(crate) fn of(args: &args::Run) -> Self {
        if args.no_journal {
            return Self::Nothing;
        }
        let usual = Rotation::default();
        let bytes = args.journal_size.map_or(usual.bytes, u64::from);
        Self::Journal(Rotation { bytes, ..usual })
    }
}

/// Begins to hold. What cannot be written or listened to is said once, and done without.
pub(crate) fn begin(door: &'static str, server: Option<&str>, keep: Keep) -> Holder {
    let journal = match (keep, places::journal()) {
        (Keep::Nothing, _) => None,
        (Keep::Journal(_), None) => {
            tracing::warn!("journal disabled: {}", places::UNKNOWN);
            None
        }
        (Keep::Journal(rotation), Some(path)) => Journal::with_rotation(path, rotation)
            .inspect_err(|error| tracing::warn!(%error, "journal disabled"))
            .ok(),
    };
    let holder = Holder::new(door, server.map(str::to_owned), journal);
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    holder.begin(env!("CARGO_PKG_VERSION"), &Redacted::head(&shown(words).join(" "), ARGV_SHOWN));
    // One that is left over from somebody else's login may not be ours to write to.
    let heard = places::sockets().iter().any(|folder| match holder.listen(folder) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "no status socket in this folder");
            false
        }
    });
    if !heard {
        tracing::warn!("status socket unavailable: `linetender status` will not list this process");
    }
    holder
}

/// What is written down of a session's end.
pub(crate) const fn why(ended: Ended) -> &'static str {
    match ended {
        Ended::AgentGone => "the agent disconnected",
        Ended::AgentDeaf => "writing to the agent failed",
        Ended::Stopped => "stopped by a signal",
        Ended::Broken => "internal error",
    }
}

/// What whoever started us is told of a session's end.
pub(crate) fn code(ended: Ended) -> ExitCode {
    match ended {
        Ended::AgentGone | Ended::AgentDeaf | Ended::Stopped => ExitCode::SUCCESS,
        Ended::Broken => {
            crate::log::say(
                "linetender: stopped by an internal error; pending requests were answered with an error",
            );
            ExitCode::FAILURE
        }
    }
}

/// A command line without the values of its headers: they are credentials more often than not.
fn shown(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_header = false;
    let hide = |header: &str| format!("{}: […]", header.split(':').next().unwrap_or_default());
    words
        .map(|word| {
            let before = std::mem::replace(&mut is_header, word == "--header");
            match word.strip_prefix("--header=") {
                Some(header) => format!("--header={}", hide(header)),
                None if before => hide(&word),
                None => origin(word),
            }
        })
        .collect()
}

/// Of an address, what everybody may know: its path and its query are keys more often than one would think.
fn origin(word: String) -> String {
    match word.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            format!("{scheme}://{}", host.rsplit('@').next().unwrap_or(host))
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn the_value_of_a_header_is_never_shown() {
        let words = [
            "run",
            "--header",
            "X-Key: hunter2",
            "--header=X-Other: hunter3",
            "https://a:hunter4@x/hunter5?k=6",
            "a: b",
        ];
        let shown = shown(words.into_iter().map(str::to_owned)).join(" ");
        assert_eq!(shown, "run --header X-Key: […] --header=X-Other: […] https://x a: b");
    }
}
