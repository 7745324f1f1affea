//! What stands in a configuration as the program: linetender by its name, where this very one is, or a package runner.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::agents::Reader;
use super::args::Via;
use super::judge::Call;
use super::tree::Node;
use crate::places;

/// What Linux puts behind the path of a program whose file was replaced while it ran, as an update does.
const REPLACED: &str = " (deleted)";

/// The folders that are on the `PATH` of programs that a desktop starts.
const ON_EVERY_PATH: &[&str] = if cfg!(windows) {
    // A desktop starts programs with the user's own `PATH` there; which folders are on it differs.
    &[]
} else if cfg!(target_os = "macos") {
    &["/usr/bin", "/bin"]
} else {
    &["/usr/local/bin", "/usr/bin", "/bin"]
};

/// How a program's file ends, in the order in which they are looked for.
const ENDS: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };

const NAME: &str = "linetender";

/// Whether the public registries have our packages under our names. Until they do, nothing that we write or print may name one:
/// whoever registers the name first would run programs with the rights of everybody who has such an entry.
pub(super) const PUBLISHED: bool = false;

/// How an entry starts linetender: a program, and the words between it and `run`.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) program: String,
    pub(super) words: Vec<String>,
    /// Whether servers are shared with other agents, where that can be.
    pub(super) share: bool,
}

impl From<&str> for Start {
    fn from(program: &str) -> Self {
        Self { program: program.to_owned(), words: Vec::new(), share: false }
    }
}

impl Start {
    /// `linetender`, so that the configuration can be shared; its whole path where whoever reads the file would not find it by
    /// that name; and if it is not on our own `PATH` either, this very program.
    pub(super) fn direct(reader: Reader) -> Self {
        let start = || on_path(NAME, reader).or_else(own).unwrap_or_else(|| NAME.to_owned());
        Self { program: start(), words: Vec::new(), share: false }
    }

    /// How entries are to start it: through this package runner, if one was asked for; if a runner started it, through that one where
    /// there is a package to find.
    pub(super) fn of_wrap(via: Option<Via>, reader: Reader) -> Self {
        let via = via.or_else(runner).filter(|_| PUBLISHED);
        via.map_or_else(|| Self::direct(reader), |via| Self::via(via, reader))
    }

    pub(super) fn via(via: Via, reader: Reader) -> Self {
        let words: &[&str] = match via {
            Via::Uvx => &[NAME],
            // Without the flag it asks before it downloads anything, and nobody is there to answer.
            Via::Npx => &["-y", NAME],
        };
        // Where there is none the file is meant for other machines.
        let program = on_path(via.name(), reader).unwrap_or_else(|| via.name().to_owned());
        Self { program, words: words.iter().map(|&word| word.to_owned()).collect(), share: false }
    }

    /// The same, with servers that are shared or not.
    pub(super) fn sharing(self, share: bool) -> Self {
        Self { share, ..self }
    }

    /// How this entry starts it now.
    pub(super) fn of(call: Call<'_>) -> Option<Self> {
        let (program, words) = call.words();
        let before = words.len() - call.behind_start().len();
        let words = words.iter().take(before).map(|word| word.text().map(str::to_owned));
        let words = words.collect::<Option<_>>()?;
        let share = call.behind_start().iter().any(|word| word.text() == Some("--share"));
        Some(Self { program: program.text()?.to_owned(), words, share })
    }

    /// The package runner whose cache the program lies in.
    pub(super) fn lies_in_cache_of(&self) -> Option<Via> {
        cache_of(Path::new(&self.program))
    }

    /// Whether an entry with it is known as ours by it alone.
    pub(super) fn is_known(&self) -> bool {
        !self.words.is_empty() || is_linetender(&self.program)
    }
}

/// Whether a program is linetender by its name, wherever it is.
pub(super) fn is_linetender(program: &str) -> bool {
    matches!(file_name(program), NAME | "linetender.exe")
}

/// Programs that run what is in a package, with the words that say so.
const RUNNERS: [(&str, &[&str]); 9] = [
    ("uvx", &[]),
    ("npx", &[]),
    ("npx.cmd", &[]),
    ("bunx", &[]),
    ("uv", &["tool", "run"]),
    ("pipx", &["run"]),
    ("npm", &["exec"]),
    ("pnpm", &["dlx"]),
    ("yarn", &["dlx"]),
];

/// The words after `uvx linetender` or `npx -y linetender`, and after what a user may write by hand: other runners, flags, versions.
pub(super) fn behind_runner<'t>(program: &str, words: &'t [Node]) -> Option<&'t [Node]> {
    let (_, first) = RUNNERS.iter().find(|(runner, _)| *runner == file_name(program))?;
    let (given, mut rest) = words.split_at_checked(first.len())?;
    if !given.iter().map(Node::text).eq(first.iter().map(|&word| Some(word))) {
        return None;
    }
    loop {
        let (word, after) = rest.split_first()?;
        let word = word.text()?;
        rest = match word {
            "--" | "-y" | "--yes" | "-q" | "--quiet" | "--silent" | "--offline" | "--prefer-offline" => after,
            _ if word.starts_with("--") && word.contains('=') => after,
            "--from" | "--python" | "--index" | "--package" | "-p" => after.get(1..)?,
            _ => {
                let package = word.split(['@', '=']).next();
                return (package == Some(NAME)).then_some(after);
            }
        }
    }
}

/// The package runner that this very program was started by, if it lies in the cache of one. Such a path does not stay, and a
/// runner puts it on the `PATH` of what it starts.
pub(super) fn runner() -> Option<Via> {
    cache_of(&std::env::current_exe().ok()?)
}

/// Why no entry is written that starts linetender through this package runner.
pub(super) fn refusal(via: Via) -> Option<String> {
    (!PUBLISHED).then(|| {
        format!(
            "--via {} is refused: linetender is not in a public package registry yet, so such an entry would run the package of \
             whoever registers its name first, with your rights. Install linetender where the file is used, and leave out --via",
            via.name()
        )
    })
}

/// What a user types to start this program again.
pub(super) fn typed() -> Cow<'static, str> {
    match runner() {
        Some(_) if !PUBLISHED => own().map_or(NAME.into(), |own| in_shell(&own).into()),
        Some(Via::Uvx) => "uvx linetender".into(),
        Some(Via::Npx) => "npx -y linetender".into(),
        None => NAME.into(),
    }
}

/// A path as one word of a command line.
fn in_shell(path: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+@:~\\".contains(character);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

fn cache_of(path: &Path) -> Option<Via> {
    let has = |name: &str| path.components().any(|part| part.as_os_str() == name);
    if has("_npx") {
        return Some(Via::Npx);
    }
    // `~/.cache/uv/archive-v0/…`; what `uv tool install` makes lies in `uv/tools`, and stays.
    let in_cache = |part: std::path::Component<'_>| {
        let part = part.as_os_str().to_string_lossy();
        ["archive-v", "environments-v", "builds-v"].iter().any(|start| part.starts_with(start))
    };
    let is_uv = has("uv") || places::is_started_by_uv();
    (is_uv && path.components().any(in_cache)).then_some(Via::Uvx)
}

/// The name alone if whoever reads the file finds it by that, else the path.
fn on_path(name: &str, reader: Reader) -> Option<String> {
    let is_there = |folder: &PathBuf| {
        ENDS.iter().any(|end| folder.join(format!("{name}{end}")).is_file()) && cache_of(folder).is_none()
    };
    let folder = places::path().into_iter().find(is_there)?;
    let found = match reader {
        Reader::Shell => true,
        Reader::Desktop => cfg!(windows) || ON_EVERY_PATH.iter().any(|common| folder == Path::new(common)),
    };
    // Not where links lead to: that may be the folder of one version.
    Some(if found || !folder.is_absolute() {
        name.to_owned()
    } else {
        folder.join(name).display().to_string()
    })
}

/// Where this program is, whatever it is called.
pub(super) fn own() -> Option<String> {
    std::env::current_exe().ok().map(plain).map(|path| path.display().to_string())
}

/// The path where the next one will be started.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|path| path.strip_suffix(REPLACED)) {
        Some(plain) if !path.exists() => Path::new(plain).to_owned(),
        _ => path,
    }
}

fn file_name(program: &str) -> &str {
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Via, cache_of};

    #[test]
    fn a_cache_of_a_package_runner_is_no_place_to_stay() {
        let of = |path: &str| cache_of(Path::new(path));
        assert_eq!(of("/home/a/.cache/uv/archive-v0/x1Y/bin/linetender"), Some(Via::Uvx));
        assert_eq!(of("/home/a/.cache/uv/environments-v2/a/bin/linetender"), Some(Via::Uvx));
        assert_eq!(
            of("/home/a/.npm/_npx/9a/node_modules/linetender-linux-x64/bin/linetender"),
            Some(Via::Npx)
        );
        for stays in [
            "/home/a/.local/share/uv/tools/linetender/bin/linetender",
            "/home/a/.local/share/pipx/venvs/linetender/bin/linetender",
            "/usr/lib/node_modules/linetender/node_modules/linetender-linux-x64/bin/linetender",
            "/home/a/archive/linetender",
        ] {
            assert_eq!(of(stays), None, "{stays}");
        }
    }
}
