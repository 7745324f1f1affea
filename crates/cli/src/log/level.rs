//! How much is logged: a level, or directives for single targets.

use std::fmt;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// How the targets of linetender's own crates begin.
const OWN: &str = "linetender";

/// What is said to somebody who writes something else.
const EXPECTED: &str =
    "expected off, error, warn, info, debug, trace, or TARGET=LEVEL with commas between them";

/// A level of the log. `debug` is about linetender's own crates: libraries below it stay at info, for at debug some of them log what
/// travels.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    spelt: String,
    targets: Targets,
}

impl Level {
    pub(super) fn targets(&self) -> Targets {
        self.targets.clone()
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut targets = Targets::new().with_default(LevelFilter::INFO).with_target(OWN, LevelFilter::INFO);
        for part in text.split(',').map(str::trim) {
            let level = |word: &str| {
                let is_word = word.chars().all(|char| char.is_ascii_alphabetic()) && !word.is_empty();
                word.parse::<LevelFilter>().ok().filter(|_| is_word).ok_or(EXPECTED)
            };
            targets = match part.split_once('=') {
                Some(("", _)) => return Err(EXPECTED.to_owned()),
                Some((target, word)) => targets.with_target(target, level(word)?),
                None => {
                    let level = level(part)?;
                    targets.with_default(level.min(LevelFilter::INFO)).with_target(OWN, level)
                }
            };
        }
        Ok(Self { spelt: text.to_owned(), targets })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelt)
    }
}

#[cfg(test)]
mod tests {
    use super::Level;
    use tracing::Level as Of;

    fn level(text: &str) -> Level {
        text.parse().unwrap()
    }

    #[test]
    fn a_level_is_about_linetender_and_libraries_stay_at_info() {
        let debug = level("debug").targets();
        assert!(debug.would_enable("linetender_gateway::front", &Of::DEBUG));
        assert!(!debug.would_enable("linetender::line", &Of::TRACE) && !debug.would_enable("h2", &Of::DEBUG));
        let few = level("error").targets();
        assert!(!few.would_enable("h2", &Of::INFO) && !few.would_enable("linetender", &Of::WARN));
        let both = level("warn,h2=trace").targets();
        assert!(both.would_enable("h2::codec", &Of::TRACE) && !both.would_enable("linetender", &Of::INFO));
        assert!(!level("off").targets().would_enable("linetender", &Of::ERROR));
        assert!(level("INFO").targets().would_enable("linetender", &Of::INFO));
    }

    #[test]
    fn what_is_no_level_is_refused() {
        for text in ["", "verbose", "7", "a=b", "=debug", "debug,", "h2=3"] {
            assert!(text.parse::<Level>().is_err(), "{text}");
        }
    }
}
