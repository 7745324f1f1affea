//! Which entries go through linetender, and what they run. Every flag that `linetender run` has is understood here too, so
//! that an entry can be put back whatever its owner has added to it.

use std::collections::HashMap;
use std::sync::LazyLock;

use clap::CommandFactory as _;

use super::program;
use super::tree::Node;

/// The variable that carries an address which is not for a list of processes.
pub(super) const URL: &str = "LINETENDER_URL";

/// The flags of `linetender run`, and whether a value follows.
static FLAGS: LazyLock<HashMap<String, bool>> = LazyLock::new(|| {
    let command = crate::args::Args::command();
    let flags = command.find_subcommand("run").into_iter().flat_map(clap::Command::get_arguments);
    flags.filter_map(|flag| Some((flag.get_long()?.to_owned(), flag.get_action().takes_values()))).collect()
});

/// What the words after the program say.
#[derive(Debug)]
pub(super) struct Run<'t> {
    pub(super) name: Option<&'t str>,
    pub(super) headers: Vec<&'t str>,
    /// The transport of its address, if it is said.
    pub(super) transport: Option<&'t str>,
    pub(super) target: Target<'t>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'t> {
    /// `-- COMMAND`
    Command(&'t [Node]),
    /// `COMMAND`: what we write, unless the `--` is needed.
    Bare(&'t [Node]),
    /// `https://…`, or the variable that holds it.
    Address(&'t Node),
}

/// Whether an entry with this key goes through linetender.
pub(super) fn is_ours(program: &str, words: &[Node], key: &str) -> bool {
    let behind = program::behind_runner(program, words);
    behind.unwrap_or(words).first().and_then(Node::text) == Some("run")
        && (behind.is_some()
            || program::is_linetender(program)
            || program::own().is_some_and(|own| own == program)
            || Run::of(words).is_some_and(|run| run.is_written_by_us(key)))
}

impl<'t> Run<'t> {
    pub(super) fn of(words: &'t [Node]) -> Option<Self> {
        let (run, mut rest) = words.split_first()?;
        let (mut name, mut headers, mut transport) = (None, Vec::new(), None);
        run.text().filter(|&word| word == "run")?;
        loop {
            let (word, after) = rest.split_first()?;
            let word = word.text()?;
            let Some(flag) = word.strip_prefix("--") else {
                let target = Target::bare(rest).filter(|_| !word.starts_with('-'))?;
                return Some(Self { name, headers, transport, target });
            };
            if flag.is_empty() {
                return Some(Self { name, headers, transport, target: Target::behind_dashes(after)? });
            }
            let (flag, value) =
                flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
            rest = after;
            let value = match (FLAGS.get(flag)?, value) {
                (false, None) => continue,
                (false, Some(_)) => return None,
                (true, Some(value)) => value,
                // A value may look like anything, also like `--`: a server can be called that.
                (true, None) => {
                    let (value, after) = after.split_first()?;
                    rest = after;
                    value.text()?
                }
            };
            match flag {
                "name" => name = Some(value),
                "header" => headers.push(value),
                "transport" => transport = Some(value),
                _ => {}
            }
        }
    }

    /// Whether both run the same in the same way, but for the policy.
    pub(super) fn is_like(&self, other: &Run<'_>) -> bool {
        let same = |one: &[Node], other: &[Node]| one.iter().map(Node::text).eq(other.iter().map(Node::text));
        let target = match (self.target, other.target) {
            // The `--` says nothing; earlier versions always wrote it.
            (Target::Command(one) | Target::Bare(one), Target::Command(other) | Target::Bare(other)) => {
                same(one, other)
            }
            (Target::Address(one), Target::Address(other)) => one.text() == other.text(),
            (Target::Command(_) | Target::Bare(_) | Target::Address(_), _) => false,
        };
        target && self.name == other.name && self.headers == other.headers
    }

    /// Other programs have a `run` with a `--name` too, but not with our flags alone and then `--` or an address.
    fn is_written_by_us(&self, key: &str) -> bool {
        let form = match self.target {
            Target::Command(_) | Target::Address(_) => true,
            Target::Bare(_) => false,
        };
        form && self.name == Some(key)
    }
}

impl<'t> Target<'t> {
    fn bare(words: &'t [Node]) -> Option<Self> {
        Self::of(words, |word| word.starts_with('$'), Self::Bare)
    }

    /// A command can begin with a variable of the agent's: only our own is an address.
    fn behind_dashes(words: &'t [Node]) -> Option<Self> {
        Self::of(words, |word| word.strip_prefix('$') == Some(URL), Self::Command)
    }

    fn of(
        words: &'t [Node],
        in_variable: impl Fn(&str) -> bool,
        command: impl Fn(&'t [Node]) -> Self,
    ) -> Option<Self> {
        let (first, more) = words.split_first()?;
        let word = first.text()?;
        if word.starts_with("http://") || word.starts_with("https://") || in_variable(word) {
            return more.is_empty().then_some(Self::Address(first));
        }
        Some(command(words))
    }
}
