//! How to put something in front of a server: a command or an address, described by a small file.
//!
//! Nothing of a target is known to the drill but this. `linetender run` and `linetender serve` are described the same way,
//! in `adapters/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::real;
use crate::scenario::Era;

/// linetender's own: the name on the command line, and the file.
const BUILT_IN: &[(&str, &str)] = &[
    ("shim", include_str!("../adapters/shim.toml")),
    ("shared", include_str!("../adapters/shared.toml")),
    ("gateway", include_str!("../adapters/gateway.toml")),
];

/// A target, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// What it is called on the board.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// How it is set up, and where that is documented.
    #[serde(default)]
    pub settings: String,
    /// Whether it is one of linetender's own.
    #[serde(default)]
    pub ours: bool,
    /// Whether servers run elsewhere than below its command: then they are found by their mark alone.
    #[serde(default)]
    pub detached: bool,
    /// Which eras an agent may speak to it.
    #[serde(default = "both")]
    pub eras: Vec<Era>,
    /// What an agent speaks to it.
    #[serde(default)]
    pub speaks: Language,
    /// In front of a server over stdio; missing, it is not for that.
    pub stdio: Option<Way>,
    /// In front of a server over HTTP; missing, it is not for that.
    pub http: Option<Way>,
}

/// What an agent speaks to a target.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// MCP, in one of its eras.
    #[default]
    Mcp,
    /// HTTP routes, a POST for each tool, as an `OpenAPI` document describes them.
    Openapi,
}

/// How it is started, and spoken to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where the agent speaks HTTP to it; missing, the agent speaks on the command's pipes.
    pub url: Option<String>,
    /// What stands before the names of tools.
    #[serde(default)]
    pub prefix: String,
    /// A file to write first.
    pub config: Option<File>,
    /// Variables for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A file to write.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where.
    pub path: String,
    /// What.
    pub text: String,
}

/// What the placeholders stand for; `{peers}` is where `tools/peers` has installed other programs.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// `{server...}`, a word each; in a text, quoted and with commas. `{command}` and `{args}` are its parts, as JSON.
    pub server: Vec<String>,
    /// `{server_url}`.
    pub server_url: String,
    /// `{port}`: one that is free.
    pub port: u16,
    /// `{dir}`: a folder of the target's own.
    pub dir: PathBuf,
    /// `{linetender}`: this program.
    pub linetender: PathBuf,
    /// `{name}`: what the server is called.
    pub name: String,
    /// `{policy}`: the policy of our own targets, as TOML; and `{hurry...}`, the flags that go with it.
    pub policy: String,
    /// See `policy`.
    pub hurry: Vec<String>,
    /// The certificate of the server, if it has one that nobody else knows.
    pub roots: Option<PathBuf>,
}

fn both() -> Vec<Era> {
    vec![Era::Legacy, Era::Modern]
}

impl Adapter {
    /// One of linetender's own, by name, or the file at this path.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be understood.
    pub fn find(name: &str) -> Result<Self, String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::read(name, text)
                .map(|own| Self { version: env!("CARGO_PKG_VERSION").to_owned(), ..own });
        }
        let text = std::fs::read_to_string(name)
            .map_err(|error| format!("{name} is neither line, shim, shared, gateway nor a file: {error}"))?;
        Self::read(name, &text)
    }

    fn read(name: &str, text: &str) -> Result<Self, String> {
        let adapter: Self = toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
        if adapter.stdio.is_none() && adapter.http.is_none() {
            return Err(format!("{name}: an adapter needs a [stdio] or an [http] table"));
        }
        if adapter.eras.is_empty() {
            return Err(format!("{name}: an adapter needs an era"));
        }
        for way in [&adapter.stdio, &adapter.http].into_iter().flatten() {
            if way.command.is_empty() {
                return Err(format!("{name}: a command needs a word"));
            }
            if adapter.speaks == Language::Openapi && way.url.is_none() {
                return Err(format!("{name}: routes of OpenAPI need a url"));
            }
        }
        Ok(adapter)
    }

    /// How it is put in front of a server that is reached like this.
    pub fn way(&self, over: &str) -> Option<&Way> {
        if over == "http" { self.http.as_ref() } else { self.stdio.as_ref() }
    }
}

impl Words {
    /// The words of a command, with what they stand for.
    pub fn command(&self, words: &[String]) -> Vec<String> {
        let mut command = Vec::new();
        for word in words {
            match word.as_str() {
                "{server...}" => command.extend(self.server.iter().cloned()),
                "{hurry...}" => command.extend(self.hurry.iter().map(|word| self.text(word))),
                _ => command.push(self.text(word)),
            }
        }
        command
    }

    /// A text, with what its placeholders stand for.
    pub fn text(&self, text: &str) -> String {
        // A JSON string is a TOML string too, and so is a list of them.
        let quoted = |words: &[String]| {
            words
                .iter()
                .map(|word| serde_json::Value::from(word.as_str()).to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (command, args) = self.server.split_at(self.server.len().min(1));
        text.replace("{server...}", &quoted(&self.server))
            .replace("{command}", &quoted(command))
            .replace("{args}", &format!("[{}]", quoted(args)))
            .replace("{server_url}", &self.server_url)
            .replace("{port}", &self.port.to_string())
            .replace("{dir}", &show(&self.dir))
            .replace("{linetender}", &show(&self.linetender))
            .replace("{name}", &self.name)
            .replace("{peers}", &show(&real::peers()))
            .replace("{policy}", &self.policy)
    }
}

fn show(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Adapter, BUILT_IN, Words};

    fn words() -> Words {
        Words {
            server: ["a", "b c", "d\"e"].map(str::to_owned).to_vec(),
            port: 7,
            name: "bad".into(),
            ..Words::default()
        }
    }

    #[test]
    fn our_own_adapters_can_be_read() {
        for (name, _) in BUILT_IN {
            let adapter = Adapter::find(name).unwrap();
            // A server at an address is shared already.
            let http = adapter.http.is_some() != (*name == "shared");
            assert!(adapter.ours && adapter.stdio.is_some() && http, "{name}");
        }
    }

    #[test]
    fn every_peer_can_be_read_and_says_how_it_is_set_up() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/adapters/peers");
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() > 5, "{files:?}");
        for file in files {
            let peer = Adapter::find(file.to_str().unwrap()).unwrap();
            assert!(!peer.ours && !peer.version.is_empty() && !peer.settings.is_empty(), "{file:?}");
        }
    }

    #[test]
    fn the_servers_words_stay_words_in_a_command() {
        let command = ["x", "--port={port}", "--", "{server...}"].map(str::to_owned);
        assert_eq!(words().command(&command), ["x", "--port=7", "--", "a", "b c", "d\"e"]);
    }

    #[test]
    fn in_a_file_the_servers_words_are_quoted() {
        assert_eq!(
            words().text("{command} {args} [{server...}]"),
            r#""a" ["b c", "d\"e"] ["a", "b c", "d\"e"]"#
        );
    }

    #[test]
    fn a_slip_of_the_pen_is_told() {
        let told = Adapter::read("mine.toml", "name = 'x'\n[stdio]\ncomand = ['y']").unwrap_err();
        assert!(told.contains("mine.toml") && told.contains("comand"), "{told}");
        assert!(Adapter::read("mine.toml", "name = 'x'").unwrap_err().contains("[stdio] or an [http]"));
        let era = "name = 'x'\neras = ['lagacy']\n[stdio]\ncommand = ['y']";
        let told = Adapter::read("mine.toml", era).unwrap_err();
        assert!(told.contains("lagacy") && told.contains("expected `legacy` or `modern`"), "{told}");
        let era = era.replace("'lagacy'", "");
        assert!(Adapter::read("mine.toml", &era).unwrap_err().contains("needs an era"));
        let nowhere = "name = 'x'\nspeaks = 'openapi'\n[stdio]\ncommand = ['y']";
        assert!(Adapter::read("mine.toml", nowhere).unwrap_err().contains("need a url"));
    }
}
