//! A gateway that knows its agents.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linetender_badserver::agent::{Caller, in_time};

const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// A gateway in a folder of its own. Both are gone with it.
pub(crate) struct House {
    folder: PathBuf,
    serves: Child,
    /// Whoever shows nothing.
    pub(crate) web: Caller,
}

impl House {
    /// Serves this config, in which a line `{bad}` stands for a server.
    pub(crate) async fn up(name: &str, config: &str) -> Self {
        let folder = Self::folder(name);
        std::fs::write(folder.join("linetender.toml"), with_servers(config)).unwrap();
        let log = folder.join("log");
        let serves = linetender(&folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--config", "linetender.toml", "--log", "log"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let address = in_time(async {
            loop {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                if let Some(said) = said.lines().find_map(|line| line.split("serving address=http://").nth(1))
                {
                    return said.trim_end().trim_end_matches("/mcp").parse().unwrap();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        Self { web: Caller::at(address.await), folder, serves }
    }

    /// The folder of a gateway, which may be none yet.
    pub(crate) fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("linetender-doors-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Puts this into the config.
    pub(crate) fn write(&self, config: &str) {
        std::fs::write(self.folder.join("linetender.toml"), with_servers(config)).unwrap();
    }

    /// Whoever has this token.
    pub(crate) fn with(&self, token: &str) -> Caller {
        self.web.bearing(token)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.serves.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

/// Runs a command of linetender's in this folder; what it prints.
pub(crate) fn run(folder: &Path, words: &[&str]) -> String {
    let output = linetender(folder).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn with_servers(config: &str) -> String {
    config.replace("{bad}", &format!("command = '{LINETENDER}'\nargs = ['__badserver', '--full']"))
}

fn linetender(folder: &Path) -> Command {
    let mut command = Command::new(LINETENDER);
    command.current_dir(folder);
    for name in ["HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
        command.env(name, folder);
    }
    command
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.serves.kill();
        let _ = self.serves.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
