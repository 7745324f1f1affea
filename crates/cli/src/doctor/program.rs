//! What a server's command is: a program, or a runner that fetches a package.

use std::ffi::OsString;
use std::path::Path;

use linetender::package::package;

/// A program that fetches what it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Runner {
    /// `npx` and its kin.
    Node,
    /// `uvx`, `uv`.
    Uv,
    /// `docker`, `podman`.
    Container,
}

/// The command of a server; empty if it has an address.
#[derive(Debug)]
pub(super) struct Program {
    words: Vec<String>,
}

impl Program {
    pub(super) fn of(argv: &[OsString]) -> Self {
        Self { words: argv.iter().map(|word| word.to_string_lossy().into_owned()).collect() }
    }

    /// As configured.
    pub(super) fn word(&self) -> &str {
        self.words.first().map(String::as_str).unwrap_or_default()
    }

    /// Without its folder, and without the end that programs have on Windows.
    pub(super) fn name(&self) -> &str {
        let name = Path::new(self.word()).file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_else(|| self.word());
        [".exe", ".cmd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
    }

    pub(super) fn runner(&self) -> Option<Runner> {
        match self.name() {
            "npx" | "bunx" | "pnpm" | "yarn" => Some(Runner::Node),
            "uvx" | "uv" => Some(Runner::Uv),
            "docker" | "podman" => Some(Runner::Container),
            _ => None,
        }
    }

    /// The package that a runner is given.
    pub(super) fn package(&self) -> &str {
        package(&self.words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// What to type so that nothing is fetched at a start any more.
    pub(super) fn preinstall(&self) -> Option<String> {
        let package = Some(self.package()).filter(|package| *package != self.word())?;
        Some(match self.runner()? {
            Runner::Node => format!("npm install -g {package}"),
            Runner::Uv => format!("uv tool install {package}"),
            Runner::Container => format!("{} pull {package}", self.name()),
        })
    }

    /// Whether it is linetender itself, in front of a server.
    pub(super) fn is_wrapped(&self) -> bool {
        self.name() == "linetender" && self.words.get(1).is_some_and(|word| word == "run")
    }
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn a_package_is_installed_by_the_runner_that_fetches_it() {
        for (command, install) in [
            ("npx -y @a/b@1", Some("npm install -g @a/b@1")),
            ("npx.cmd -y @a/b@1", Some("npm install -g @a/b@1")),
            ("/usr/bin/uvx mcp-server-git --repository /r", Some("uv tool install mcp-server-git")),
            ("docker run -i --rm image:1", Some("docker pull image:1")),
            ("mcp-server-git", None),
            ("npx", None),
        ] {
            let argv: Vec<_> = command.split(' ').map(Into::into).collect();
            assert_eq!(Program::of(&argv).preinstall().as_deref(), install, "{command}");
        }
    }
}
