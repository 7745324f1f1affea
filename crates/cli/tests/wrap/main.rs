//! `linetender wrap` as a user types it, on files in a folder of their own.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

mod names;

const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

const CONFIG: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"npx\", \"args\": [\"-y\", \"x\"] },\n    \
    \"b\": { \"command\": \"uvx\" },\n  }\n}";

/// A home with nothing in it, gone when the test is over.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wrap-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The exit code, stdout and stderr of `linetender wrap`.
    fn wrap(&self, words: &[&str]) -> (i32, String, String) {
        self.wrap_by(Path::new(LINETENDER), words)
    }

    /// The same, by another file.
    fn wrap_by(&self, program: &Path, words: &[&str]) -> (i32, String, String) {
        let path = self.0.join("bin");
        let Output { status, stdout, stderr } = Command::new(program)
            .arg("wrap")
            .args(words)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.0)
            .current_dir(&self.0)
            .output()
            .unwrap();
        (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn names(&self) -> Vec<String> {
        let names =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn check_then_wrap_then_again_then_undo() {
    let home = Home::new("round");
    let file = home.file("mcp.json", CONFIG);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();

    let (code, diff, said) = home.wrap(&["mcp.json", "--check"]);
    assert_eq!(code, 1, "{said}");
    assert!(diff.contains("-    \"b\": { \"command\": \"uvx\" },\n"), "{diff}");
    assert!(!diff.contains('\u{1b}'), "no colour but on a terminal: {diff}");
    assert_eq!(
        (fs::read_to_string(&file).unwrap().as_str(), home.names().len()),
        (CONFIG, 1),
        "nothing written"
    );

    let (code, same, said) = home.wrap(&["mcp.json"]);
    assert_eq!((code, same), (0, diff), "{said}");
    assert!(said.contains("wrapped: a, b\n"), "{said}");
    let wrapped = fs::read_to_string(&file).unwrap();
    let args = format!(
        "{{ \"command\": \"{LINETENDER}\", \"args\": [\"run\", \"--name\", \"a\", \"npx\", \"-y\", \"x\"] }},"
    );
    assert!(wrapped.contains(&args), "not on PATH, so by its whole path: {wrapped}");
    assert_eq!(home.names(), ["mcp.json", "mcp.json.before-linetender"]);
    for name in home.names() {
        assert_eq!(fs::metadata(home.0.join(&name)).unwrap().permissions().mode() & 0o777, 0o640, "{name}");
    }

    assert_eq!(home.wrap(&["mcp.json", "--check"]), (0, String::new(), "nothing to wrap\n".to_owned()));
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), wrapped);

    let (code, _, said) = home.wrap(&["mcp.json", "--undo"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), home.names().len()), (CONFIG, 1));
    assert_eq!(home.wrap(&["mcp.json", "--undo"]), (0, String::new(), "nothing to undo\n".to_owned()));
}

#[test]
fn one_server_at_a_time_there_and_back() {
    let home = Home::new("only");
    let file = home.file("mcp.json", CONFIG);
    assert_eq!(home.wrap(&["mcp.json", "--only", "a"]).0, 0);
    assert!(fs::read_to_string(&file).unwrap().contains("\"command\": \"uvx\""));
    assert_eq!(home.wrap(&["mcp.json", "--except", "a"]).0, 0);
    assert!(!fs::read_to_string(&file).unwrap().contains("\"command\": \"uvx\""));
    assert_eq!(
        fs::read_to_string(home.0.join("mcp.json.before-linetender")).unwrap(),
        CONFIG,
        "never overwritten"
    );
    assert_eq!(home.wrap(&["mcp.json", "--undo", "--only", "b"]).0, 0);
    assert!(fs::read_to_string(&file).unwrap().contains("{ \"command\": \"uvx\" }"));
    assert_eq!(home.wrap(&["mcp.json", "--undo"]).0, 0);
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), home.names().len()), (CONFIG, 1));

    let (code, _, said) = home.wrap(&["mcp.json", "--only", "c"]);
    assert_eq!(code, 2);
    assert!(said.contains("no server named c in") && said.contains("servers there: a, b"), "{said}");
}

#[test]
fn changes_made_since_survive_the_undo_and_an_old_backup_is_kept() {
    let home = Home::new("since");
    let file = home.file("mcp.json", CONFIG);
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("// mine", "// ours")).unwrap();
    let (code, _, said) = home.wrap(&["mcp.json", "--undo"]);
    assert_eq!((code, said.contains("the edits are kept")), (0, true), "{said}");
    let ours = CONFIG.replace("// mine", "// ours");
    assert_eq!(fs::read_to_string(&file).unwrap(), ours);

    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    assert_eq!(fs::read_to_string(home.0.join("mcp.json.before-linetender")).unwrap(), CONFIG);
    assert_eq!(fs::read_to_string(home.0.join("mcp.json.before-linetender.2")).unwrap(), ours);
    assert_eq!(home.wrap(&["mcp.json", "--undo"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), ours);
}

/// It is from before an earlier undo: what is wrapped now was never ours.
#[test]
fn a_backup_from_before_is_not_taken_for_what_was_wrapped_by_hand() {
    let home = Home::new("stale");
    let file = home.file("mcp.json", CONFIG);
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("// mine", "// ours")).unwrap();
    assert_eq!(home.wrap(&["mcp.json", "--undo"]).0, 0);
    let by_hand = r#""command": "linetender", "args": ["run", "--wait", "9s", "--", "npx", "-y", "x"]"#;
    let hand = CONFIG.replace(r#""command": "npx", "args": ["-y", "x"]"#, by_hand);
    fs::write(&file, &hand).unwrap();

    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    assert_eq!(fs::read_to_string(home.0.join("mcp.json.before-linetender.2")).unwrap(), hand);
    let (code, _, said) = home.wrap(&["mcp.json", "--undo"]);
    assert_eq!((code, fs::read_to_string(&file).unwrap()), (0, hand), "{said}");
    assert!(said.contains("already used linetender before wrap, kept: a\n"), "{said}");
}

/// The second wrap adds to the first, also where a flag was added in between.
#[test]
fn a_flag_added_between_two_wraps_costs_no_second_backup() {
    let home = Home::new("between");
    let file = home.file("mcp.json", CONFIG);
    assert_eq!(home.wrap(&["mcp.json", "--only", "a"]).0, 0);
    let flagged =
        fs::read_to_string(&file).unwrap().replace("\"npx\"", "\"--call-timeout\", \"2m\", \"npx\"");
    fs::write(&file, flagged).unwrap();
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    assert_eq!(home.names(), ["mcp.json", "mcp.json.before-linetender"]);
    let (code, _, said) = home.wrap(&["mcp.json", "--undo"]);
    assert_eq!((code, fs::read_to_string(&file).unwrap().as_str()), (0, CONFIG), "{said}");
}

#[test]
fn a_program_with_another_name_knows_its_own_entries() {
    let home = Home::new("named");
    let file = home.file("mcp.json", CONFIG);
    let program = home.0.join("tender-0.1");
    fs::hard_link(LINETENDER, &program).unwrap();
    assert_eq!(home.wrap_by(&program, &["mcp.json"]).0, 0);
    let wrapped = fs::read_to_string(&file).unwrap();
    assert!(wrapped.contains(&format!("\"command\": \"{}\"", program.display())), "{wrapped}");
    // The user gives one another key.
    let wrapped = wrapped.replace("\"b\": {", "\"c\": {");
    fs::write(&file, &wrapped).unwrap();
    let nothing = (0, String::new(), "nothing to wrap\n".to_owned());
    assert_eq!(home.wrap_by(&program, &["mcp.json", "--check"]), nothing);
    assert_eq!(home.wrap_by(&program, &["mcp.json", "--undo"]).0, 0);
    let back = fs::read_to_string(&file).unwrap();
    assert_eq!(
        back,
        CONFIG.replace("\"b\": { \"command\": \"uvx\"", "\"c\": { \"command\": \"uvx\", \"args\": []")
    );
}

/// As it is when an update comes in that moment.
#[test]
fn a_program_whose_file_was_replaced_writes_the_path_of_the_next() {
    let home = Home::new("replaced");
    let file = home.file("mcp.json", CONFIG);
    let path = home.0.join("tender-0.1");
    fs::hard_link(LINETENDER, &path).unwrap();
    let open = fs::File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let program = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    let (code, _, said) = home.wrap_by(&program, &["mcp.json"]);
    assert_eq!(code, 0, "{said}");
    let wrapped = fs::read_to_string(&file).unwrap();
    assert!(wrapped.contains(&format!("\"command\": \"{}\"", path.display())), "{wrapped}");
}

#[test]
fn a_link_stays_a_link_and_a_mark_stays_a_mark() {
    let home = Home::new("link");
    let marked = format!("\u{feff}{}", CONFIG.replace('\n', "\r\n"));
    let real = home.file("dotfiles/mcp.json", &marked);
    symlink(&real, home.0.join("mcp.json")).unwrap();
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    assert!(fs::symlink_metadata(home.0.join("mcp.json")).unwrap().is_symlink());
    let wrapped = fs::read_to_string(&real).unwrap();
    assert!(wrapped.starts_with("\u{feff}{\r\n") && wrapped.contains("linetender"), "{wrapped}");
    assert_eq!(home.wrap(&["mcp.json", "--undo"]).0, 0);
    assert_eq!(fs::read_to_string(&real).unwrap(), marked);
}

#[test]
fn x12_what_others_could_have_put_there_is_refused_before_anything_is_written() {
    let home = Home::new("others");
    let file = home.file("mcp.json", CONFIG);
    let refused = |name: &str, why: &str| {
        let (code, out, said) = home.wrap(&[name]);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), CONFIG);
    };
    assert!(Command::new("mkfifo").arg(home.0.join("fifo.json")).status().unwrap().success());
    refused("fifo.json", "is a FIFO, not a regular file");
    refused("/dev/zero", "is a device, not a regular file");
    let planted = home.0.join("mcp.json.before-linetender");
    symlink(home.0.join("stolen"), &planted).unwrap();
    refused("mcp.json", "mcp.json.before-linetender is a symbolic link");
    fs::remove_file(&planted).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    refused("mcp.json", "can be written by every user");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    if std::os::unix::fs::chown(&file, Some(65534), None).is_ok() {
        refused("mcp.json", "belongs to user 65534");
    } else {
        eprintln!("not tried: a file of another user, which only root can make");
    }
    assert_eq!(home.names(), ["fifo.json", "mcp.json"]);
}

#[test]
fn x12_the_names_of_servers_are_no_commands_to_the_terminal() {
    let home = Home::new("escapes");
    home.file("mcp.json", r#"{"mcpServers":{"a\u001b[31m\nb\u202e":{"command":"x"}}}"#);
    let (code, _, said) = home.wrap(&["mcp.json", "--check"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(r"would change: a\u{1b}[31m\nb\u{202e} ("), "{said}");
}

#[test]
fn what_cannot_be_read_is_not_touched_and_the_message_points_there() {
    let home = Home::new("odd");
    let large = vec![b' '; (16 << 20) + 1];
    let cases: [(&str, &[u8], &str); 7] = [
        ("comma.json", b"{\n  \"mcpServers\": {\n    \"a\" {}\n  }\n}", "comma.json:3:9: expected colon"),
        ("codex.toml", b"[mcp_servers.a]\ncommand = \n", "codex.toml:2:"),
        ("latin.json", b"{ \"mcpServers\": { \"\xe9\": {} } }", "is not UTF-8 (first invalid byte: 19)"),
        (
            "goose.yaml",
            b"extensions:\n  a:\n    type: stdio\n    cmd: &x npx\n",
            "goose.yaml:4:10: anchors, aliases",
        ),
        ("package.json", b"{ \"name\": \"x\" }", "no MCP servers in"),
        ("large.json", &large, "is larger than 16 MiB"),
        ("empty.json", b"", "no MCP servers in"),
    ];
    for (name, bytes, expected) in cases {
        let file = home.file(name, bytes);
        let (code, out, said) = home.wrap(&[name]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert_eq!(fs::read(&file).unwrap(), bytes, "{name}");
    }
    assert!(home.wrap(&["nowhere.json"]).2.starts_with("linetender: cannot find nowhere.json"));
    assert!(home.wrap(&["."]).2.contains("is a folder, not a regular file"));
    assert_eq!(home.names().len(), cases.len(), "no backup of what was not touched");
}

#[test]
fn the_usual_places_are_listed() {
    let home = Home::new("list");
    assert!(home.wrap(&[]).1.starts_with("no agent config found"));
    home.file(".cursor/mcp.json", CONFIG);
    home.file(".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    home.file(".config/goose/config.yaml", "a: [");
    home.file(".gemini/settings.json", "{");
    assert_eq!(home.wrap(&[".codex/config.toml"]).0, 0);
    let (code, text, _) = home.wrap(&[]);
    assert_eq!(code, 0);
    assert!(text.contains("2 servers, 0 wrapped") && text.contains("1 server, 1 wrapped"), "{text}");
    assert!(text.contains(".cursor/mcp.json' --check"), "{text}");
    let rows: Value = serde_json::from_str(&home.wrap(&["--json"]).1).unwrap();
    let row =
        |agent: &str| rows.as_array().unwrap().iter().find(|row| row["agent"] == agent).cloned().unwrap();
    let file = home.0.join(".cursor/mcp.json");
    assert_eq!(
        row("Cursor"),
        json!({ "agent": "Cursor", "file": file, "servers": 2, "wrapped": 0, "to_wrap": 2 })
    );
    assert!(row("goose")["problem"].as_str().unwrap().contains("config.yaml:"), "{rows}");
    assert!(row("Gemini CLI")["problem"].as_str().unwrap().contains("settings.json:1:"), "{rows}");
}

#[test]
fn an_agent_by_its_name_and_all_that_are_here() {
    let home = Home::new("agents");
    let cursor = home.file(".cursor/mcp.json", CONFIG);
    let codex = home.file(".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    home.file(".gemini/settings.json", "{}");
    home.file(".config/goose/config.yaml", "");
    let wrapped = |file: &Path| fs::read_to_string(file).unwrap().contains("run");
    let (code, _, said) = home.wrap(&["cursor"]);
    assert_eq!((code, wrapped(&cursor), wrapped(&codex)), (0, true, false), "{said}");
    let (code, diff, said) = home.wrap(&["--all", "--check"]);
    assert_eq!((code, diff.contains("config.toml")), (1, true), "{said}");
    assert_eq!(home.wrap(&["--all", "--only", "b", "--check"]).0, 0, "wrapped already, or not there");
    assert_eq!(home.wrap(&["--all"]).0, 0);
    assert!(wrapped(&cursor) && wrapped(&codex));
    assert_eq!(home.wrap(&["--all", "--undo"]).0, 0);
    assert!(!wrapped(&cursor) && !wrapped(&codex));

    let told = |words: &[&str]| {
        let (code, _, said) = home.wrap(words);
        assert_eq!(code, 2, "{words:?}: {said}");
        said
    };
    assert_eq!(told(&["claude"]), "linetender: claude is ambiguous: Claude Code or Claude Desktop\n");
    let none = "linetender: no config of Claude Code found; run `linetender wrap` to list the configs of this user\n";
    assert_eq!(told(&["claude-code"]), none);
    assert_eq!(home.wrap(&["goose"]).0, 0, "it has no servers");
    assert!(told(&["nobody"]).contains("cannot find nobody"));
}

#[test]
fn yaml_is_wrapped_and_comes_back_to_the_byte() {
    let home = Home::new("yaml");
    let goose = "GOOSE_MODEL: x # größe\nextensions:\n  developer: {type: builtin, enabled: true}\n  fetch:\n    type: stdio\n    cmd: uvx\n    args:\n      - mcp-server-fetch # it\n    envs: {}\n";
    let list = "name: mine\r\nmcpServers:\r\n  - name: Local\r\n    command: npx\r\n    args: [-y, x]\r\n  - name: Web\r\n    url: http://127.0.0.1:9/mcp\r\n";
    let files = [
        (home.file(".config/goose/config.yaml", goose), goose),
        (home.file(".continue/config.yaml", list), list),
        (home.file("project/.continue/mcpServers/one.yaml", list), list),
    ];
    let rows: Value = serde_json::from_str(&home.wrap(&["--json"]).1).unwrap();
    assert_eq!(rows[0]["to_wrap"], 1, "{rows}");
    assert_eq!(rows[1]["to_wrap"], 2, "{rows}");
    for (file, text) in &files {
        let name = file.to_str().unwrap();
        let (code, _, said) = home.wrap(&[name]);
        assert_eq!(code, 0, "{said}");
        let wrapped = fs::read_to_string(file).unwrap();
        let kept = wrapped.lines().filter(|line| text.lines().any(|old| old == *line)).count();
        assert!(wrapped.contains("run") && kept >= text.lines().count() - 3, "{wrapped}");
        assert_eq!(wrapped.matches("\r\n").count() > 0, text.contains("\r\n"), "line ends stay");
        assert!(home.wrap(&[name]).2.contains("nothing to wrap"));
        // Somebody adds something, as agents do: it stays, and so does all else.
        fs::write(file, format!("{wrapped}more: 1\n")).unwrap();
        let (code, _, said) = home.wrap(&[name, "--undo"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(fs::read_to_string(file).unwrap(), format!("{text}more: 1\n"), "{wrapped}");
        fs::write(file, &wrapped).unwrap();
        assert_eq!(home.wrap(&[name, "--undo"]).0, 0);
        assert_eq!(fs::read_to_string(file).unwrap(), *text);
    }
}

#[test]
fn an_agent_that_a_desktop_starts_gets_the_whole_path() {
    let home = Home::new("desktop");
    let desktop = home.file(".cursor/mcp.json", CONFIG);
    let terminal = home.file(".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    let project = home.file("project/.cursor/mcp.json", CONFIG);
    fs::create_dir_all(home.0.join("bin")).unwrap();
    let program = home.0.join("bin/linetender");
    fs::hard_link(LINETENDER, &program).unwrap();
    let command = |file: &Path| {
        assert_eq!(home.wrap(&[file.to_str().unwrap()]).0, 0);
        let text = fs::read_to_string(file).unwrap();
        text.split('"').find(|word| word.ends_with("linetender")).unwrap().to_owned()
    };
    assert_eq!(command(&desktop), program.display().to_string());
    assert_eq!(command(&terminal), "linetender");
    assert_eq!(command(&project), "linetender", "others may share it");
}

#[test]
fn a_backup_with_keys_in_a_repository_is_named() {
    let home = Home::new("shared");
    home.file("project/.git/HEAD", "");
    let config = |env: &str| format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\"{env} }} }} }}");
    home.file("project/.mcp.json", config(", \"env\": { \"TOKEN\": \"hush\" }"));
    home.file("project/plain.json", config(""));
    for (file, warned) in [("project/.mcp.json", true), ("project/plain.json", false)] {
        let (code, _, said) = home.wrap(&[file]);
        assert_eq!(
            (code, said.contains("lies in a git repository: do not commit it")),
            (0, warned),
            "{said}"
        );
        assert!(!said.contains("hush"), "{said}");
    }
}

#[test]
fn servers_that_keep_state_are_told_so() {
    let home = Home::new("stateful");
    let config = json!({ "mcpServers": {
        "web": { "command": "npx", "args": ["@playwright/mcp@latest"] },
        "shell": { "command": "my-server" },
        "git": { "command": "uvx", "args": ["mcp-server-git"] },
        "odd": { "command": "-odd" },
    } });
    let file = home.file("mcp.json", config.to_string());
    let (code, _, said) = home.wrap(&["mcp.json"]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("shared"), "{said}");
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let args = |name: &str| now["mcpServers"][name]["args"].clone();
    assert_eq!(args("web"), json!(["run", "--name", "web", "--stateful", "npx", "@playwright/mcp@latest"]));
    assert_eq!(args("shell"), json!(["run", "--name", "shell", "my-server"]));
    assert_eq!(args("git"), json!(["run", "--name", "git", "uvx", "mcp-server-git"]));
    assert_eq!(args("odd"), json!(["run", "--name", "odd", "--", "-odd"]), "else it would be a flag of ours");
    assert_eq!(home.wrap(&["mcp.json", "--undo"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), config.to_string());
}

#[test]
fn e02_only_servers_that_keep_nothing_are_shared_and_the_others_are_named() {
    let home = Home::new("share");
    let config = json!({ "mcpServers": {
        "web": { "command": "npx", "args": ["@playwright/mcp@latest"] },
        "shell": { "command": "my-server" },
        "git": { "command": "uvx", "args": ["mcp-server-git"] },
    } });
    let file = home.file("mcp.json", config.to_string());
    let (code, _, said) = home.wrap(&["mcp.json", "--share"]);
    assert_eq!(code, 0, "{said}");
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let args = |name: &str| now["mcpServers"][name]["args"].clone();
    assert_eq!(args("web"), json!(["run", "--name", "web", "--stateful", "npx", "@playwright/mcp@latest"]));
    assert_eq!(args("shell"), json!(["run", "--name", "shell", "my-server"]));
    assert_eq!(args("git"), json!(["run", "--name", "git", "--share", "uvx", "mcp-server-git"]));
    for (name, is_named) in [("web", true), ("shell", true), ("git", false)] {
        assert_eq!(said.contains(&format!("not shared: {name}: ")), is_named, "{said}");
    }
}

/// Starts the entry as an agent would.
fn start(file: &Path, name: &str) -> Child {
    let config: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let entry = &config["mcpServers"][name];
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let variables =
        entry["env"].as_object().into_iter().flatten().map(|(name, value)| (name, value.as_str().unwrap()));
    Command::new(entry["command"].as_str().unwrap())
        .args(words)
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[test]
fn a_wrapped_server_serves_its_agent() {
    let home = Home::new("serves");
    let config = json!({ "mcpServers": { "-bad": { "command": LINETENDER, "args": ["__badserver", "--era", "legacy"] } } });
    let file = home.file("mcp.json", config.to_string());
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    let mut agent = start(&file, "-bad");
    writeln!(agent.stdin.as_mut().unwrap(), "{HELLO}").unwrap();
    let mut answer = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"badserver\""), "{answer}");
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
}

#[test]
fn a_header_reaches_its_server_and_no_list_of_processes() {
    let home = Home::new("header");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=hush", listener.local_addr().unwrap());
    let config =
        json!({ "mcpServers": { "far": { "url": url, "headers": { "Authorization": "Bearer hush" } } } });
    let file = home.file("mcp.json", config.to_string());
    assert_eq!(home.wrap(&["mcp.json"]).0, 0);
    let mut agent = start(&file, "far");
    writeln!(agent.stdin.as_mut().unwrap(), "{HELLO}").unwrap();
    let head = first_request(&listener);
    let words = fs::read_to_string(format!("/proc/{}/cmdline", agent.id())).unwrap();
    assert!(
        head.starts_with("POST /mcp?key=hush ") && head.contains("authorization: Bearer hush\r\n"),
        "{head}"
    );
    assert!(words.contains("LINETENDER_AUTHORIZATION") && !words.contains("hush"), "{words}");
    agent.kill().unwrap();
    agent.wait().unwrap();
}

/// What Codex's `bearer_token_env_var` becomes.
#[test]
fn a_bearer_token_and_an_address_come_from_variables() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let run = |variables: &[(&str, String)]| {
        let mut command = Command::new(LINETENDER);
        command.args(["run", "--header", "Authorization: Bearer $TOKEN", "$PLACE"]).env_clear();
        command
            .envs(variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let token = ("TOKEN", "hush".to_owned());
    let place = ("PLACE", format!("http://{}/mcp", listener.local_addr().unwrap()));
    let mut agent = run(&[token.clone(), place]);
    writeln!(agent.stdin.as_mut().unwrap(), "{HELLO}").unwrap();
    let head = first_request(&listener);
    assert!(head.starts_with("POST /mcp ") && head.contains("authorization: Bearer hush\r\n"), "{head}");
    agent.kill().unwrap();
    agent.wait().unwrap();

    let refused = run(&[token]).wait_with_output().unwrap();
    assert!(!refused.status.success());
    assert_eq!(
        String::from_utf8(refused.stderr).unwrap(),
        "linetender: environment variable PLACE is not set\n"
    );
}

/// The head of the first request that arrives.
fn first_request(listener: &TcpListener) -> String {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_server_that_may_sign_its_user_in_is_wrapped_with_what_to_type_and_comes_back_to_the_byte() {
    let home = Home::new("login");
    let before = "{ \"mcpServers\": {\n  \"linear\": { \"url\": \"https://mcp.example.com/mcp\" },\n  \
        \"team\": {\"url\":\"https://${TEAM}.example.com/mcp\"},\n  \
        \"keyed\": { \"url\": \"https://a.example/mcp\", \"headers\": { \"X-Key\": \"k\" } }\n} }\n";
    let file = home.file("mcp.json", before);
    let name = file.to_str().unwrap();
    let (code, _, said) = home.wrap(&[name]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("wrapped: linear, team, keyed"), "{said}");
    let told: Vec<_> = said.lines().filter(|line| line.contains("log in")).collect();
    assert_eq!(told.len(), 2, "{said}");
    assert!(
        told[0].starts_with("linear ") && told[0].ends_with("linetender login https://mcp.example.com/mcp"),
        "{said}"
    );
    assert!(told[1].starts_with("team ") && told[1].ends_with("linetender login URL"), "{said}");
    let (code, _, said) = home.wrap(&[name, "--undo"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}
