//! A shim or a gateway as a holder: its journal and its socket. Neither may keep an agent from its server.

use std::time::Duration;

use linetender::Redacted;
use linetender::holder::Holder;
use linetender::journal::{Journal, Rotation};

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
            tracing::warn!("no journal: neither HOME nor XDG_STATE_HOME says where");
            None
        }
        (Keep::Journal(rotation), Some(path)) => Journal::with_rotation(path, rotation)
            .inspect_err(|error| tracing::warn!(%error, "no journal"))
            .ok(),
    };
    let holder = Holder::new(door, server.map(str::to_owned), journal);
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    holder.begin(env!("CARGO_PKG_VERSION"), &Redacted::head(&shown(words).join(" "), ARGV_SHOWN));
    if let Some(folder) = places::runtime()
        && let Err(error) = holder.listen(&folder)
    {
        tracing::warn!(%error, folder = %folder.display(), "`linetender status` will not see this process");
    }
    holder
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
                None => word,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn the_value_of_a_header_is_never_shown() {
        let words = ["run", "--header", "X-Key: hunter2", "--header=X-Other: hunter3", "https://x", "a: b"];
        let shown = shown(words.into_iter().map(str::to_owned)).join(" ");
        assert_eq!(shown, "run --header X-Key: […] --header=X-Other: […] https://x a: b");
    }
}
