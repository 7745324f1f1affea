//! Where the common agents keep their configuration, on Linux and macOS.

use std::path::{Path, PathBuf};

use crate::places;

/// An agent, and a file of its.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) agent: &'static str,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy)]
enum Base {
    Home,
    /// `~/.config` everywhere.
    Config,
    /// Where desktop programs keep theirs: `~/.config`, or `~/Library/Application Support`.
    Desktop,
    /// The folder where the user is: a project's own servers.
    Here,
}

use Base::{Config, Desktop, Here, Home};

const PLACES: [(&str, Base, &str); 38] = [
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
    ("Continue", Home, ".continue/config.yaml"),
];

/// The places that exist, each once: at home, a project's file may be the user's own.
pub(super) fn places(here: &Path) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for (agent, base, file) in PLACES {
        let folder = match base {
            Home => places::home(),
            Config => places::config(),
            Desktop => places::desktop(),
            Here => Some(here.to_owned()),
        };
        let Some(path) = folder.map(|folder| folder.join(file)) else { continue };
        if path.exists() && !found.iter().any(|place| place.path == path) {
            found.push(Place { agent, path });
        }
    }
    found
}
