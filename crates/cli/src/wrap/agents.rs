//! Where the common agents keep their configuration, on Linux, macOS and Windows.

use std::path::{Path, PathBuf};

use crate::places;

/// An agent, and a file of its.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) agent: &'static str,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy)]
enum Base {
    Home,
    /// `~/.config` everywhere.
    Config,
    /// Where desktop programs keep theirs: `~/.config`, `~/Library/Application Support`, or `%APPDATA%`.
    Desktop,
    /// `%APPDATA%`, for agents that keep theirs elsewhere on other systems.
    OnWindows,
    /// The folder where the user is: a project's own servers.
    Here,
}

use Base::{Config, Desktop, Here, Home, OnWindows};

impl Base {
    fn folder(self, here: &Path) -> Option<PathBuf> {
        match self {
            Home => places::home(),
            Config => places::dot_config(),
            Desktop => places::desktop(),
            OnWindows => places::desktop().filter(|_| cfg!(windows)),
            Here => Some(here.to_owned()),
        }
    }
}

const PLACES: [(&str, Base, &str); 40] = [
    ("Claude Code", Home, ".claude.json"),
    ("Claude Code", Here, ".mcp.json"),
    ("Claude Desktop", Desktop, "Claude/claude_desktop_config.json"),
    ("Cursor", Home, ".cursor/mcp.json"),
    ("Cursor", Here, ".cursor/mcp.json"),
    ("VS Code", Desktop, "Code/User/mcp.json"),
    ("VS Code", Desktop, "Code/User/settings.json"),
    ("VS Code", Here, ".vscode/mcp.json"),
    ("VS Code Insiders", Desktop, "Code - Insiders/User/mcp.json"),
    ("VSCodium", Desktop, "VSCodium/User/mcp.json"),
    ("Windsurf", Home, ".codeium/windsurf/mcp_config.json"),
    ("Codex", Home, ".codex/config.toml"),
    ("Codex", Here, ".codex/config.toml"),
    ("Gemini CLI", Home, ".gemini/settings.json"),
    ("Gemini CLI", Here, ".gemini/settings.json"),
    ("Zed", Config, "zed/settings.json"),
    ("Zed", OnWindows, "Zed/settings.json"),
    ("Zed", Here, ".zed/settings.json"),
    ("Cline", Desktop, "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ("Roo Code", Desktop, "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
    ("Roo Code", Here, ".roo/mcp.json"),
    ("opencode", Config, "opencode/opencode.json"),
    ("opencode", Config, "opencode/opencode.jsonc"),
    ("opencode", Here, "opencode.json"),
    ("opencode", Here, "opencode.jsonc"),
    ("Copilot CLI", Home, ".copilot/mcp-config.json"),
    ("Amp", Config, "amp/settings.json"),
    ("Amp", Here, ".amp/settings.json"),
    ("Amazon Q", Home, ".aws/amazonq/mcp.json"),
    ("Amazon Q", Here, ".amazonq/mcp.json"),
    ("Kiro", Home, ".kiro/settings/mcp.json"),
    ("Kiro", Here, ".kiro/settings/mcp.json"),
    ("LM Studio", Home, ".lmstudio/mcp.json"),
    ("Qwen Code", Home, ".qwen/settings.json"),
    ("Qwen Code", Here, ".qwen/settings.json"),
    ("Factory", Home, ".factory/mcp.json"),
    ("Factory", Here, ".factory/mcp.json"),
    ("goose", Config, "goose/config.yaml"),
    ("goose", OnWindows, "Block/goose/config/config.yaml"),
    ("Continue", Home, ".continue/config.yaml"),
];

/// Folders with a file for each server.
const FOLDERS: [(&str, Base, &str); 2] =
    [("Continue", Home, ".continue/mcpServers"), ("Continue", Here, ".continue/mcpServers")];

/// The most files of such a folder that are looked at.
const FILES: usize = 256;

/// Agents that people start in a terminal, and that therefore have the `PATH` of a shell. All others are started by a desktop.
const IN_TERMINALS: [&str; 10] = [
    "Claude Code",
    "Codex",
    "Gemini CLI",
    "opencode",
    "Copilot CLI",
    "Amp",
    "Amazon Q",
    "Qwen Code",
    "Factory",
    "goose",
];

/// Who reads a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reader {
    /// An agent with the `PATH` of a shell, or one that is not known.
    Shell,
    /// An agent of this user that a desktop starts, with a `PATH` of its own.
    Desktop,
}

/// Who reads this file. A project's own file may be shared, and then names no path of this machine.
pub(super) fn reader(file: &Path) -> Reader {
    let desktop = PLACES.iter().any(|(agent, base, name)| {
        let path =
            base.folder(Path::new("")).filter(|_| !matches!(base, Here)).map(|folder| below(&folder, name));
        !IN_TERMINALS.contains(agent) && path.is_some_and(|path| is_same(&path, file))
    });
    let desktop = desktop
        || FOLDERS.iter().any(|(_, base, name)| {
            let folder = base.folder(Path::new("")).filter(|_| !matches!(base, Here));
            folder.zip(file.parent()).is_some_and(|(folder, parent)| is_same(&below(&folder, name), parent))
        });
    if desktop { Reader::Desktop } else { Reader::Shell }
}

/// With the separators of this system.
fn below(folder: &Path, name: &str) -> PathBuf {
    name.split('/').fold(folder.to_owned(), |path, part| path.join(part))
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// The agents whose names begin with this word, in any spelling: `claude`, `vscode`, `gemini-cli`.
pub(super) fn named(word: &str) -> Vec<&'static str> {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
    };
    let wanted = plain(word);
    let mut agents: Vec<&'static str> = PLACES.iter().map(|(agent, ..)| *agent).collect();
    agents.dedup();
    if let Some(exact) = agents.iter().find(|agent| plain(agent) == wanted) {
        return vec![exact];
    }
    agents.retain(|agent| !wanted.is_empty() && plain(agent).starts_with(&wanted));
    agents
}

/// The places that exist, each once: at home, a project's file may be the user's own.
pub(super) fn places(here: &Path) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for (agent, base, file) in PLACES {
        let Some(path) = base.folder(here).map(|folder| below(&folder, file)) else { continue };
        if path.exists() && !found.iter().any(|place| place.path == path) {
            found.push(Place { agent, path });
        }
    }
    for (agent, base, folder) in FOLDERS {
        for path in base.folder(here).into_iter().flat_map(|base| files(&below(&base, folder))) {
            if !found.iter().any(|place| place.path == path) {
                found.push(Place { agent, path });
            }
        }
    }
    found
}

/// The files of a folder that may have servers in them, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder).into_iter().flatten().take(FILES).flatten();
    let is_config = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
    };
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.path()).filter(is_config).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn an_agent_is_found_by_its_name_in_any_spelling() {
        assert_eq!(named("cursor"), ["Cursor"]);
        assert_eq!(named("claude"), ["Claude Code", "Claude Desktop"]);
        assert_eq!(named("claude-code"), ["Claude Code"]);
        assert_eq!(named("VSCode"), ["VS Code"], "the whole name of one is meant, though another begins so");
        assert_eq!(named("gemini"), ["Gemini CLI"]);
        assert!(named("mcp.json").is_empty() && named("").is_empty() && named("/").is_empty());
    }
}
