//! What a command runs: its program, or the package or image that a known runner is given, and what is known of it.

use std::path::Path;

use linetender_core::ServerState;

/// Programs that run another one, which is what is meant.
const RUNNERS: [&str; 17] = [
    "npx", "bunx", "bun", "pnpm", "yarn", "deno", "node", "uvx", "uv", "pipx", "python", "python3", "env",
    "docker", "podman", "sudo", "nice",
];

/// What such a program is told to do.
const VERBS: [&str; 5] = ["run", "exec", "dlx", "x", "tool"];

/// Flags of theirs that have no value of their own.
const ALONE: [&str; 10] = ["-y", "--yes", "-q", "--quiet", "-m", "-i", "-it", "--rm", "-u", "-A"];

/// Packages that keep nothing in memory between two calls. Each was killed between two calls, ten times, and its results
/// were equal to those without a kill: `tools/e2e/harmless --known FILE` does it again.
const STATELESS: [&str; 11] = [
    "@agent-infra/mcp-server-commands",
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-memory",
    "@negokaz/excel-mcp-server",
    "mcp-server-calculator",
    "mcp-server-code-runner",
    "mcp-server-fetch",
    "mcp-server-git",
    "mcp-server-time",
    "mcp-shell-server",
    "office-word-mcp-server",
];

/// Parts of the names of packages and images that keep state in memory.
const STATEFUL: [&str; 22] = [
    "playwright",
    "puppeteer",
    "chrome-devtools",
    "browsermcp",
    "browser-use",
    "browser-mcp",
    "stagehand",
    "selenium",
    "appium",
    "desktop-commander",
    "mcp-shell",
    "shell-mcp",
    "mcp-ssh",
    "ssh-mcp",
    "tmux-mcp",
    "iterm-mcp",
    "terminal-mcp",
    "jupyter",
    "mcp-repl",
    "sequential-thinking",
    "@cyanheads/git-mcp-server",
    "mcp-server-sqlite",
];

/// What is known of a package: what it keeps in memory between two calls.
pub fn state_of(package: &str) -> ServerState {
    let package = package.to_ascii_lowercase().replace('_', "-");
    if STATELESS.contains(&without_version(&package)) {
        ServerState::None
    } else if STATEFUL.iter().any(|part| package.contains(part)) {
        ServerState::Process
    } else {
        ServerState::Unknown
    }
}

/// `@scope/name@1.2`, `name==1.2`, `name[extra]`: the name, with its scope.
fn without_version(package: &str) -> &str {
    let (scope, name) = package.split_at(usize::from(package.starts_with('@')));
    let end = name.find(['@', '=', '<', '>', '~', '!', '[']).unwrap_or(name.len());
    &package[..scope.len() + end]
}

/// The word of a command that says what is run: a program, or the package or image that a known runner is given.
pub fn package<'a>(words: &[&'a str]) -> &'a str {
    // As many configurations for Windows have it.
    if let ["cmd" | "cmd.exe", "/c" | "/C", rest @ ..] = words
        && !rest.is_empty()
    {
        return package(rest);
    }
    let Some((&program, rest)) = words.split_first() else { return "" };
    let runner = stem(program);
    let known = RUNNERS.contains(&runner.as_str()) || runner.starts_with("python");
    if known { run_by(rest.iter().copied()).unwrap_or(program) } else { program }
}

/// The first word that is neither a flag, nor the value of one, nor a variable.
fn run_by<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut is_value = false;
    for word in words {
        if std::mem::take(&mut is_value) || is_variable(word) || VERBS.contains(&word) {
            continue;
        }
        // A script's text names nothing.
        if word == "-c" {
            return None;
        }
        if word.starts_with('-') {
            is_value = word != "--" && !ALONE.contains(&word);
            continue;
        }
        return Some(word).filter(|word| !stem(word).is_empty());
    }
    None
}

/// `NAME=value`; `name==1.2` and `name>=2` are packages.
fn is_variable(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    word.split_once('=').is_some_and(|(name, value)| is_name(name) && !value.starts_with('='))
}

/// `@scope/server@1.2`, `/usr/bin/server.py`: `server`.
pub fn stem(word: &str) -> String {
    let last = word.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(word);
    let bare = last.split('@').find(|part| !part.is_empty()).unwrap_or(last);
    let file = Path::new(bare);
    match file.extension().and_then(|end| end.to_str()) {
        Some("py" | "js" | "mjs" | "cjs" | "ts" | "sh" | "exe" | "cmd") => {
            file.file_stem().map_or(bare.to_owned(), |stem| stem.to_string_lossy().into_owned())
        }
        _ => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use linetender_core::ServerState::{None, Process, Unknown};

    use super::{package, state_of};

    #[test]
    fn what_a_package_keeps_is_known_by_its_name() {
        for (command, state) in [
            ("npx -y @modelcontextprotocol/server-filesystem@2026.1 /tmp", None),
            ("uvx mcp-server-git==1.2 --repository /r", None),
            ("uvx mcp-server-fetch[socks]>=2", None),
            ("python3 -m mcp_server_time", None),
            ("mcp-server-git", None),
            ("npx @other/server-filesystem", Unknown),
            ("mcp-shell-server", None),
            ("npx @playwright/mcp@latest", Process),
            ("docker run -i mcr.microsoft.com/playwright/mcp", Process),
            ("npx @modelcontextprotocol/server-puppeteer", Process),
            ("npx chrome-devtools-mcp@latest", Process),
            ("npx @wonderwhy-er/desktop-commander", Process),
            ("npx -y @modelcontextprotocol/server-sequential-thinking", Process),
            ("npx -y @cyanheads/git-mcp-server@latest", Process),
            ("uvx mcp-server-sqlite --db-path s.db", Process),
            ("uvx jupyter_mcp_server", Process),
            ("/opt/mcp_repl", Process),
            ("npx @modelcontextprotocol/server-github", Unknown),
            ("python3 server.py", Unknown),
            ("eggshell", Unknown),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(state_of(package(&words)), state, "{command}");
        }
    }
}
