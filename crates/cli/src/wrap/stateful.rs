//! Servers that keep something in their process: a browser, a shell, a kernel. When such a server is restarted its state is
//! lost, and only `--stateful` tells the agent so.

use crate::run::name;

use super::entry::Entry;
use super::judge::Call;
use super::tree::Node;

/// Parts of the names of packages and images that are known to keep state.
const KNOWN: [&str; 19] = [
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
];

/// Words in a name that suggest it.
const SUGGESTING: [&str; 11] = [
    "shell", "bash", "terminal", "tmux", "ssh", "repl", "browser", "kernel", "notebook", "debugger",
    "ipython",
];

/// Whether a server keeps state in its process, as far as its names tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keeps {
    /// It is known to.
    State,
    /// Its name suggests it.
    Perhaps,
    /// Nothing says so.
    Nothing,
}

pub(super) fn keeps(entry: &Entry<'_>, call: Call<'_>) -> Keeps {
    let (program, words) = call.words();
    let words: Vec<&str> = [program].into_iter().chain(words).filter_map(Node::text).collect();
    of(&name::package(&words).to_ascii_lowercase(), &entry.name().to_ascii_lowercase())
}

/// Whether a package or an image is known to keep state.
pub(crate) fn is_known(package: &str) -> bool {
    let package = package.to_ascii_lowercase().replace('_', "-");
    KNOWN.iter().any(|known| package.contains(known))
}

fn of(package: &str, name: &str) -> Keeps {
    if is_known(package) {
        return Keeps::State;
    }
    let suggests = |text: &str| {
        let mut parts = text.split(|char: char| !char.is_ascii_alphanumeric());
        parts.any(|part| SUGGESTING.contains(&part))
    };
    if suggests(&package.replace('_', "-")) || suggests(name) { Keeps::Perhaps } else { Keeps::Nothing }
}

#[cfg(test)]
mod tests {
    use super::{Keeps, of};

    #[test]
    fn browsers_shells_and_kernels_are_known_by_their_packages() {
        for (package, name, keeps) in [
            ("@playwright/mcp@latest", "web", Keeps::State),
            ("mcr.microsoft.com/playwright/mcp", "web", Keeps::State),
            ("@modelcontextprotocol/server-puppeteer", "p", Keeps::State),
            ("chrome-devtools-mcp@latest", "c", Keeps::State),
            ("@wonderwhy-er/desktop-commander", "d", Keeps::State),
            ("jupyter_mcp_server", "j", Keeps::State),
            ("/opt/mcp_repl", "r", Keeps::State),
            ("my-server", "shell", Keeps::Perhaps),
            ("python-repl", "x", Keeps::Perhaps),
            ("@modelcontextprotocol/server-github", "github", Keeps::Nothing),
            ("eggshell", "x", Keeps::Nothing),
        ] {
            assert_eq!(of(package, name), keeps, "{package} {name}");
        }
    }
}
