//! The flags for those fields of a server's policy that people need, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use linetender::{
    Deadline, Era, Eras, Invalid, Policy, RetryOn, RetryReason, Server, ServerState, Settings, Tree,
};

use linetender_gateway::units::{size, spell, time};

const CALLS: &str = "Call timeouts";
const SERVER: &str = "Server timeouts";
const AGAIN: &str = "Retries";
const REACH: &str = "Server";
const SIZES: &str = "Limits";

/// Reasons to send a call again that `RetryOn::default` has.
const DEFAULT_REASONS: &str = "not-executed,session-lost,auth,protocol,goaway";

/// Word for no reason at all.
const NO_REASON: &str = "none";

/// What each flag looks like in use.
pub(super) const EXAMPLES: &str = "\
Examples of the flags:
  --call-timeout 2m                       hard limit for every call, even if the agent would wait longer
  --quiet-limit 10m --hang-after 2h       tools that run for a long time without progress messages
  --abandoned-after 20s                   restart a server sooner that tends to hang
  --wait 20s                              a server that restarts slowly
  --start-timeout 5m                      a first start that downloads packages
  --handshake-timeout 1m                  a server that logs in before it answers initialize
  --keepalive 10s                         detect a hanging idle server sooner
  --idle-stop 10m                         stop the server when nobody uses it; the next call starts it
  --tree all                              also end what the server detached: tmux, gpg-agent, nohup setsid
  --crash-grace 10s                       tools that need longer to let go of their locks
  --close-timeout 30s                     a server that saves for a long time when it is stopped
  --retry-on not-executed                 never execute a call twice, whatever the server answers
  --safe-tool search --safe-tool get_page tools that may be executed twice
  --trust-annotations                     believe readOnlyHint and idempotentHint of this server
  --stateless                             a server that keeps nothing in memory: restart it unseen
  --stateful                              a browser or a shell: no call after a restart before the agent knows
  --era legacy                            a server that fails on server/discover
  --dir /home/me/project                  start the server in this directory
  --max-message 64MiB                     screenshots and large files
  --in-flight 1                           a server that handles one request at a time

Exit codes:
  0      the agent disconnected
  1      the log cannot be opened, or an internal error
  2      the command line is wrong
  128+N  stopped by signal N";

/// What of a server's policy can be set.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PolicyFlags {
    /// Read every policy setting from this TOML file instead of the flags below; for drills
    #[arg(long, hide = true, value_name = "FILE", value_parser = from_file)]
    policy: Option<Settings>,

    /// Time out every call after this long, even with progress [default: the agent decides]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = CALLS)]
    call_timeout: Option<Duration>,

    /// Send a health check when a call has had no progress for this long
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5m", help_heading = CALLS)]
    quiet_limit: Duration,

    /// Restart a server that has calls pending and sends nothing, not even health check replies, for this long
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30m", help_heading = CALLS)]
    hang_after: Duration,

    /// Restart a server that sends nothing, not even health check replies, for this long after its callers gave up
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s", help_heading = CALLS)]
    abandoned_after: Duration,

    /// Hold a call this long while the server restarts
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5s", help_heading = CALLS)]
    wait: Duration,

    /// Time out a start if the server sends nothing for this long
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s", help_heading = SERVER)]
    start_timeout: Duration,

    /// Time out the MCP handshake this long after the server's first output
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", help_heading = SERVER)]
    handshake_timeout: Duration,

    /// Send a health check when the server has been idle for this long [default: 30s for a command, never for a URL]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = SERVER)]
    keepalive: Option<Duration>,

    /// Stop the server when nobody has used it for this long; the next call starts it again [default: never]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = SERVER)]
    idle_stop: Option<Duration>,

    /// What ends with the server's process: `server`, what is its own (a tmux server or a dev server that left its tree on purpose
    /// lives on); `all`, everything that it started
    #[arg(long, value_enum, default_value = "server", help_heading = SERVER)]
    tree: TreeFlag,

    /// Kill what a server leaves behind this long after SIGTERM
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "3s", help_heading = SERVER)]
    crash_grace: Duration,

    /// Give a server that is stopped this long to save its work, from SIGTERM to SIGKILL
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "2s", help_heading = SERVER)]
    close_timeout: Duration,

    /// Send a call again after these verdicts: not-executed (linetender counted it); session-lost, auth, protocol, goaway,
    /// rate-limited, refused-stream (the server says so, and linetender cannot check it); reads (requests that read); none
    #[arg(long, value_name = "WORD[,WORD...]", value_parser = read_reasons, default_value = DEFAULT_REASONS, help_heading = AGAIN)]
    retry_on: RetryOn,

    /// Retry this tool even if it may already have been executed; repeatable [default: none]
    #[arg(long, value_name = "TOOL", help_heading = AGAIN)]
    safe_tool: Vec<String>,

    /// Retry tools that the server declares read-only or idempotent [default: no]
    #[arg(long, help_heading = AGAIN)]
    trust_annotations: bool,

    /// The server keeps nothing in memory between two calls: a restart is not reported to the agent
    #[arg(long, help_heading = AGAIN, conflicts_with = "stateful")]
    stateless: bool,

    /// The server keeps state in memory: execute no call after a restart before the agent was told, and retry none
    #[arg(long, help_heading = AGAIN)]
    stateful: bool,

    /// MCP protocol era to use with the server
    #[arg(long, value_enum, default_value = "auto", help_heading = REACH)]
    era: EraFlag,

    /// Working directory of the server [default: the current one]
    #[arg(long, value_name = "FOLDER", help_heading = REACH)]
    pub(crate) dir: Option<PathBuf>,

    /// Maximum message size in either direction
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16MiB", help_heading = SIZES)]
    max_message: u32,

    /// Maximum number of concurrent calls; more are queued
    #[arg(long, value_name = "N", default_value = "128", help_heading = SIZES)]
    in_flight: u16,
}

/// What ends with the server's process.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum TreeFlag {
    /// What is the server's
    Server,
    /// Everything that it started
    All,
}

/// An era, or none in particular.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum EraFlag {
    /// Detect it, trying the agent's first
    Auto,
    /// 2026-07-28 and later (stateless)
    Modern,
    /// 2025-11-25 and earlier (sessions)
    Legacy,
}

impl PolicyFlags {
    /// The server with all of this but its folder, which only a command has.
    ///
    /// # Errors
    /// What does not go together, in a sentence that says what to do.
    pub(crate) fn apply(&self, server: Server) -> Result<Server, String> {
        let policy = Policy::new(self.settings()).map_err(|invalid| self.sentence(invalid))?;
        let eras = match self.era {
            EraFlag::Auto => Eras::Auto,
            EraFlag::Modern => Eras::Only(Era::Modern),
            EraFlag::Legacy => Eras::Only(Era::Legacy),
        };
        let mut server = server.policy(policy).eras(eras);
        if let Some(limit) = self.call_timeout {
            if limit == Duration::ZERO {
                return Err("--call-timeout must be longer than zero".to_owned());
            }
            server = server.deadline(Deadline::after(limit));
        }
        if let Some(after) = self.idle_stop {
            if after == Duration::ZERO {
                return Err("--idle-stop must be longer than zero".to_owned());
            }
            if self.stateful {
                return Err(
                    "--idle-stop would discard the state of a --stateful server: remove one of the two"
                        .to_owned(),
                );
            }
            server = server.idle_stop(after);
        }
        Ok(self.safe_tool.iter().fold(server, Server::safe_tool))
    }

    fn settings(&self) -> Settings {
        if let Some(settings) = self.policy {
            return settings;
        }
        let mut settings = Settings::default();
        settings.call.limit = self.quiet_limit;
        // Where the agent owns the deadline nothing is capped; it only must not stand in the way.
        settings.call.cap = settings.call.cap.max(self.quiet_limit);
        settings.call.hang_after = self.hang_after;
        settings.call.abandoned_after = self.abandoned_after;
        settings.call.wait_for_line = self.wait;
        settings.dial.start = self.start_timeout;
        settings.dial.handshake = self.handshake_timeout;
        settings.probe.keepalive = self.keepalive.unwrap_or(settings.probe.keepalive);
        settings.probe.over_http = self.keepalive.is_some();
        settings.close.tree = match self.tree {
            TreeFlag::Server => Tree::Server,
            TreeFlag::All => Tree::All,
        };
        settings.close.crash = self.crash_grace;
        settings.close.term = self.close_timeout;
        settings.limits.message = self.max_message;
        settings.limits.in_flight = self.in_flight;
        settings.retry_on = self.retry_on;
        settings.trust_annotations = self.trust_annotations;
        match (self.stateless, self.stateful) {
            (true, _) => settings.state = ServerState::None,
            (_, true) => settings.state = ServerState::Process,
            _ => {}
        }
        settings
    }

    /// What is wrong, in the words of the flags.
    fn sentence(&self, invalid: Invalid) -> String {
        let flag = match invalid.setting {
            "call.hang_after" if self.hang_after < self.quiet_limit && self.hang_after != Duration::ZERO => {
                let (hang, quiet) = (spell(self.hang_after), spell(self.quiet_limit));
                return format!(
                    "--hang-after {hang} is shorter than --quiet-limit {quiet}: raise the first or lower the second"
                );
            }
            "call.hang_after" => "--hang-after",
            "call.abandoned_after" => "--abandoned-after",
            "call.limit" => "--quiet-limit",
            "call.wait_for_line" => "--wait",
            "dial.start" => "--start-timeout",
            "dial.handshake" => "--handshake-timeout",
            "probe.keepalive" => "--keepalive",
            "close.crash" => "--crash-grace",
            "close.term" => "--close-timeout",
            "limits.message" => "--max-message",
            "limits.in_flight" => "--in-flight",
            other => other,
        };
        format!("{flag} must be {}", invalid.must)
    }
}

/// Reads a list of reasons, or the word for an empty one.
fn read_reasons(words: &str) -> Result<RetryOn, String> {
    if words == NO_REASON {
        return Ok(RetryOn::NOTHING);
    }
    let reason = |word: &str| {
        RetryReason::from_name(word).ok_or_else(|| {
            let permitted = RetryReason::SETTABLE.map(RetryReason::name).join(", ");
            format!("expected {permitted}, or {NO_REASON} alone")
        })
    };
    words.split(',').map(reason).collect()
}

fn from_file(path: &str) -> Result<Settings, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{Args, Command};
    use super::{Policy, PolicyFlags, RetryOn, RetryReason, Settings, Tree};
    use clap::{CommandFactory as _, Parser as _};
    use linetender::{Deadline, Era, Eras, Server, ServerState};
    use std::time::Duration;

    const TABLE: &str = include_str!("../../../../docs/serve.md");

    fn flags(words: &str) -> PolicyFlags {
        let line = format!("linetender run {words} -- server");
        let Command::Run(run) = Args::try_parse_from(line.split_whitespace()).unwrap().command else {
            unreachable!("it was `run`")
        };
        run.policy
    }

    fn server(words: &str) -> Result<Server, String> {
        flags(words).apply(Server::stdio("s", ["server"]).into())
    }

    /// What left the tree of an agent's own server on purpose is spared, unlike that of a gateway's.
    fn defaults() -> Settings {
        let mut defaults = Settings::default();
        defaults.close.tree = Tree::Server;
        defaults
    }

    fn plain() -> Server {
        Server::from(Server::stdio("s", ["server"])).policy(Policy::new(defaults()).unwrap())
    }

    #[test]
    fn without_flags_the_policy_is_the_librarys() {
        assert_eq!(flags("").settings(), defaults());
        assert_eq!(server("").unwrap(), plain());
    }

    #[test]
    fn each_flag_reaches_its_field() {
        let mut wanted = defaults();
        (wanted.close.crash, wanted.close.term) = (Duration::from_secs(4), Duration::from_secs(60));
        wanted.call.limit = Duration::from_secs(20 * 60);
        wanted.call.cap = wanted.call.limit;
        wanted.call.hang_after = Duration::from_secs(7200);
        wanted.call.abandoned_after = Duration::from_secs(20);
        wanted.call.wait_for_line = Duration::from_millis(500);
        wanted.dial.start = Duration::from_secs(1);
        wanted.dial.handshake = Duration::from_secs(2);
        (wanted.probe.keepalive, wanted.probe.over_http) = (Duration::from_secs(3), true);
        wanted.limits.message = 1 << 20;
        wanted.limits.in_flight = 7;
        wanted.retry_on = RetryOn::NOT_EXECUTED.with(RetryReason::Reads);
        wanted.trust_annotations = true;
        wanted.state = ServerState::Process;
        let times = "--quiet-limit 20m --hang-after 2h --abandoned-after 20s --wait 500ms --start-timeout 1s --handshake-timeout 2s --crash-grace 4s --close-timeout 1m";
        let rest = "--keepalive 3s --max-message 1m --in-flight 7 --retry-on reads,not-executed --trust-annotations --stateful";
        assert_eq!(flags(&format!("{times} {rest}")).settings(), wanted);
    }

    /// The flags that set something of a server, as opposed to where our own things go.
    fn of_the_server(run: &clap::Command) -> impl Iterator<Item = &clap::Arg> {
        let headings = [super::CALLS, super::SERVER, super::AGAIN, super::REACH, super::SIZES];
        run.get_arguments().filter(move |argument| {
            argument.get_help_heading().is_some_and(|heading| headings.contains(&heading))
        })
    }

    #[test]
    fn a_flag_and_a_key_in_the_file_of_the_same_name_mean_the_same() {
        let command = Args::command();
        let schema = linetender_gateway::config::schema();
        let known = &schema["$defs"]["ServerTable"]["properties"];
        for argument in of_the_server(command.find_subcommand("run").unwrap()) {
            let (flag, key) = match argument.get_long().unwrap() {
                "safe-tool" => ("safe-tool", "safe_tools".to_owned()),
                flag @ ("stateless" | "stateful") => (flag, "state".to_owned()),
                flag => (flag, flag.replace('-', "_")),
            };
            assert!(known[&key].is_object(), "--{flag}: no {key} in the file");
            let row =
                |line: &str| line.contains(&format!("`--{flag}")) && line.contains(&format!("`{key} = "));
            assert!(TABLE.lines().any(row), "--{flag}: not in the table of docs/serve.md");
            let (word, value) = match flag {
                "safe-tool" => ("a", "[\"a\"]"),
                "retry-on" => ("not-executed,reads", "[\"reads\", \"not-executed\"]"),
                "trust-annotations" => ("", "true"),
                "stateless" => ("", "\"none\""),
                "stateful" => ("", "\"process\""),
                "era" => ("legacy", "\"legacy\""),
                "dir" => ("/tmp", "\"/tmp\""),
                "in-flight" => ("7", "7"),
                "max-message" => ("1m", "\"1m\""),
                "hang-after" => ("40m", "\"40m\""),
                "tree" => ("all", "\"all\""),
                "crash-grace" | "close-timeout" => ("23s", "\"23s\""),
                _ => ("23m", "\"23m\""),
            };
            // `run` and `serve` differ in what they take for the server's.
            let words = format!("--tree all --{flag} {word}").replace("--tree all --tree", "--tree");
            let mut shim = Server::stdio("s", ["server"]);
            if flag == "dir" {
                shim = shim.dir(word);
            }
            let mut shim = flags(&words).apply(shim.into()).unwrap();
            if flag != "call-timeout" {
                // Who owns the deadline is what `run` and `serve` differ in.
                shim = shim.deadline(Deadline::Policy);
            }
            let text = format!("[servers.s]\ncommand = \"server\"\n{key} = {value}\n");
            let config = linetender_gateway::config::load("test", &text, &|_| None).unwrap();
            assert_eq!(config.servers[0].server, shim, "{words} and {key} = {value}");
        }
    }

    #[test]
    fn what_is_no_policy_reaches_the_server() {
        let wanted = plain()
            .eras(Eras::Only(Era::Legacy))
            .safe_tool("a")
            .safe_tool("b")
            .deadline(Deadline::after(Duration::from_secs(9)));
        let words = "--era legacy --safe-tool a --safe-tool b --call-timeout 9s";
        assert_eq!(server(words).unwrap(), wanted);
        assert_eq!(server("--era modern").unwrap(), plain().eras(Eras::Only(Era::Modern)));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_to_do() {
        for (words, sentence) in [
            (
                "--quiet-limit 1h",
                "--hang-after 30m is shorter than --quiet-limit 1h: raise the first or lower the second",
            ),
            ("--close-timeout 61s", "--close-timeout must be at most a minute"),
            ("--crash-grace 0s", "--crash-grace must be longer than zero"),
            ("--keepalive 0s", "--keepalive must be longer than zero"),
            ("--hang-after 0s", "--hang-after must be longer than zero"),
            ("--quiet-limit 0s", "--quiet-limit must be longer than zero"),
            ("--call-timeout 0s", "--call-timeout must be longer than zero"),
            ("--idle-stop 0s", "--idle-stop must be longer than zero"),
            (
                "--stateful --idle-stop 10m",
                "--idle-stop would discard the state of a --stateful server: remove one of the two",
            ),
            ("--wait 0s", "--wait must be longer than zero"),
            ("--start-timeout 2years", "--start-timeout must be at most a year"),
            ("--handshake-timeout 0s", "--handshake-timeout must be longer than zero"),
            ("--in-flight 0", "--in-flight must be at least 1"),
            ("--max-message 0", "--max-message must be at least 1"),
        ] {
            assert_eq!(server(words), Err(sentence.to_owned()), "{words}");
        }
    }

    #[test]
    fn a_reason_that_there_is_not_is_refused_with_those_that_there_are() {
        for words in ["", "soon", "not-executed,", "list", "safe-tool", "none,reads", "not executed"] {
            let wrong = Args::try_parse_from(["linetender", "run", "--retry-on", words, "--", "server"]);
            let told = wrong.unwrap_err().to_string();
            for reason in RetryReason::SETTABLE {
                assert!(told.contains(reason.name()), "{words}: {told}");
            }
        }
        assert_eq!(flags("--retry-on none").settings().retry_on, RetryOn::NOTHING);
        assert_eq!(flags("--retry-on not-executed").settings().retry_on, RetryOn::NOT_EXECUTED);
        let every = RetryReason::SETTABLE.map(RetryReason::name).join(",");
        assert_eq!(
            flags(&format!("--retry-on {every}")).settings().retry_on,
            RetryReason::SETTABLE.into_iter().collect()
        );
    }

    #[test]
    fn every_flag_has_a_default_and_an_example_in_the_help() {
        let mut command = Args::command();
        let run = command.find_subcommand_mut("run").unwrap();
        let help = run.render_help().to_string();
        let examples = help.split_once("Examples of the flags:").unwrap().1;
        let mut seen = 0;
        for argument in of_the_server(run) {
            let flag = format!("--{}", argument.get_long().unwrap());
            assert!(examples.contains(&flag), "{flag} has no example");
            let said = argument.get_help().is_some_and(|help| help.to_string().contains("[default: "));
            assert!(said || !argument.get_default_values().is_empty(), "{flag} does not say its default");
            seen += 1;
        }
        assert_eq!(seen, 21);
    }
}
