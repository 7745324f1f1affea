//! Why a server did not start, and what to do about it.

use std::path::PathBuf;

use linetender::Class;

use super::finding::Finding;
use super::program::{Program, Runner};
use crate::dial::Failure;
use crate::places;

/// Words in a server's stderr that say that it misses a credential or a setting.
const CREDENTIALS: [&str; 10] = [
    "api key",
    "api_key",
    "apikey",
    "access token",
    "_token",
    "token is required",
    "credential",
    "environment variable",
    "env var",
    "unauthorized",
];

/// Where programs are that a login shell finds and a desktop's programs do not, below the home folder and elsewhere.
const AT_HOME: [&str; 6] = [".local/bin", ".cargo/bin", ".bun/bin", ".volta/bin", ".deno/bin", "go/bin"];
const ELSEWHERE: [&str; 3] = ["/usr/local/bin", "/opt/homebrew/bin", "/snap/bin"];

/// What a start that failed means. `login` is what to type to log in.
pub(super) fn explain(failure: &Failure, program: &Program, login: &str) -> Finding {
    let text = &failure.text;
    let has = |words: &str| text.contains(words);
    let said = failure.stderr.as_deref().unwrap_or_default().to_ascii_lowercase();
    let finding = if has("cannot run ") {
        not_runnable(text, program)
    } else if has("cannot enter the working directory") {
        Finding::error("no-directory", text, "create the directory, or correct `dir`")
    } else if failure.class == Some(Class::Auth) || has("requires authentication") || has("requires a login")
    {
        Finding::error("needs-login", text, wants_auth(text, login))
    } else if has("no credentials for the server") {
        Finding::error(
            "credential-missing",
            text,
            "run the source of its credentials by hand (`auth.command`, or the file in `headers`) and see what it says",
        )
    } else if CREDENTIALS.iter().any(|word| said.contains(word)) {
        Finding::error(
            "credential-missing",
            text,
            "its stderr names a missing key or variable: set it in `env`. A server gets a few basic variables and its `env` \
             alone, unless `inherit_env = true`",
        )
    } else if has("its stdout was not MCP") {
        Finding::error("usage-on-stdout", text, usage(text))
    } else if failure.class == Some(Class::Exit) || failure.class == Some(Class::EraProbe) {
        Finding::error("exits", text, exits(&said, program))
    } else if has("within the start timeout") || has("did not start in time") {
        Finding::error("start-timeout", text, silent(program))
    } else if has("handshake") {
        Finding::error(
            "handshake",
            text,
            "check that the command starts an MCP server on stdio, or that the URL is an MCP endpoint",
        )
    } else {
        unreachable(text, failure.class)
    };
    finding.with_stderr(failure.stderr.clone())
}

fn not_runnable(text: &str, program: &Program) -> Finding {
    let name = program.name();
    if text.contains("ermission denied") || text.contains("not executable") {
        let fix = format!("make it executable: chmod +x {}", program.word());
        return Finding::error("not-executable", text, fix);
    }
    let install = match program.runner() {
        Some(Runner::Node) => "install Node.js, which brings it".to_owned(),
        Some(Runner::Uv) => "install uv, which brings it".to_owned(),
        Some(Runner::Container) => format!("install {name}"),
        None => format!("install {name}, or correct its name"),
    };
    let fix = match elsewhere(name).filter(|_| !program.word().contains('/')) {
        Some(found) => {
            format!("it is at {}: write that path as `command`, or add its folder to PATH", found.display())
        }
        None if program.word().contains('/') => "correct the path in `command`".to_owned(),
        None => format!(
            "{install}; or write its whole path as `command` (`{} {name}` in your shell prints it)",
            places::LOCATOR
        ),
    };
    Finding::error("command-not-found", text, fix)
}

/// Where a program is that is not on our `PATH`.
fn elsewhere(name: &str) -> Option<PathBuf> {
    let home = places::home();
    let at_home = home.iter().flat_map(|home| AT_HOME.iter().map(|folder| home.join(folder)));
    let folders = at_home.chain(ELSEWHERE.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn wants_auth(text: &str, login: &str) -> String {
    if text.contains("linetender login") {
        "run that command, then `linetender doctor` again".to_owned()
    } else {
        format!("run `{login}`, or give it a token: headers = {{ Authorization = \"Bearer ${{TOKEN}}\" }}")
    }
}

fn usage(text: &str) -> &'static str {
    if text.to_ascii_lowercase().contains("usage") {
        "it printed a usage text: an argument is missing or wrong. Many servers want a word such as `stdio` or `mcp` in `args`"
    } else {
        "check `args`: a server on stdio writes nothing but MCP messages to stdout"
    }
}

fn exits(said: &str, program: &Program) -> String {
    if said.contains("module_not_found")
        || said.contains("modulenotfounderror")
        || said.contains("cannot find module")
    {
        return "a module that it needs is not installed: install its dependencies".to_owned();
    }
    if said.contains("enotfound") || said.contains("registry") || said.contains("404 not found") {
        return "its package could not be downloaded: check the package's name and the network".to_owned();
    }
    if said.is_empty() {
        return format!("it says nothing on stderr: run it by hand to see why it ends ({})", program.word());
    }
    "its stderr says why; correct `args` or `env`".to_owned()
}

fn silent(program: &Program) -> String {
    match program.preinstall() {
        Some(command) => format!(
            "if it is still downloading, install it once (`{command}`) or raise `start_timeout`; if it waits for something \
             else, it may want a word such as `stdio` in `args`"
        ),
        None => {
            "it may want a word such as `stdio` in `args`, or more time: raise `start_timeout`".to_owned()
        }
    }
}

/// A server at an address.
fn unreachable(text: &str, class: Option<Class>) -> Finding {
    let small = text.to_ascii_lowercase();
    let has = |word: &str| small.contains(word);
    let (code, fix) = if has("refused") {
        ("refused", "nothing listens there: start the server, or correct the port in `url`")
    } else if has("certificate") || has("tls") {
        (
            "tls",
            "the certificate is not trusted on this machine: check the host name, its date, and the issuer; a company's own issuer has to be among the system's certificates, or in the file that NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE names",
        )
    } else if has("lookup") || has("dns") || has("no such host") || has("resolve") || has("unknown host") {
        ("dns", "the host name cannot be looked up: correct it in `url`, or check the network")
    } else if has("not an mcp endpoint") || has("http 404") || has("http 405") {
        ("not-mcp", "the path of the URL is wrong, in all likelihood: most servers answer at /mcp")
    } else if has("redirect") {
        ("redirect", "write the address that it redirects to as `url`")
    } else if has("timeout") || has("timed out") {
        ("timeout", "the address does not answer: check the network, a firewall, or a proxy")
    } else if class == Some(Class::Local) {
        ("machine", "this machine is short of processes or file descriptors: see `ulimit -a`")
    } else if has("unreachable") {
        ("unreachable", "check `url` and the network")
    } else {
        ("failed", "see docs/troubleshooting.md")
    };
    Finding::error(code, text, fix)
}

#[cfg(test)]
mod tests {
    use linetender::Class;

    use super::{Failure, Program, explain};

    fn of(text: &str, stderr: Option<&str>, class: Class, argv: &[&str]) -> (&'static str, String) {
        let failure = Failure { text: text.into(), stderr: stderr.map(Into::into), class: Some(class) };
        let argv: Vec<_> = argv.iter().map(Into::into).collect();
        let finding = explain(&failure, &Program::of(&argv), "linetender login a");
        (finding.code, finding.fix.unwrap())
    }

    /// What was seen, the end of stderr, the class, the command; the code of the finding, and a part of the advice.
    type Row = (&'static str, Option<&'static str>, Class, &'static str, &'static str, &'static str);

    const TABLE: [Row; 15] = [
        (
            "cannot run lt-none: no such file (PATH searched: /bin)",
            None,
            Class::Config,
            "lt-none",
            "command-not-found",
            "install lt-none",
        ),
        (
            "cannot run /x/npx: no such file",
            None,
            Class::Config,
            "/x/npx",
            "command-not-found",
            "correct the path",
        ),
        ("cannot run ./x: Permission denied", None, Class::Config, "./x", "not-executable", "chmod +x ./x"),
        (
            "cannot enter the working directory /no: no such file",
            None,
            Class::Config,
            "x",
            "no-directory",
            "`dir`",
        ),
        (
            "the server process exited with status 1",
            Some("GITHUB_TOKEN environment variable not set"),
            Class::Exit,
            "x",
            "credential-missing",
            "`env`",
        ),
        (
            "the server process exited with status 1; its stdout was not MCP: Usage: x [stdio]",
            None,
            Class::Exit,
            "x",
            "usage-on-stdout",
            "usage text",
        ),
        (
            "the server process exited with status 1",
            Some("Error: Cannot find module 'y'"),
            Class::Exit,
            "node x",
            "exits",
            "dependencies",
        ),
        ("the server process exited with status 1", None, Class::Exit, "x", "exits", "by hand"),
        (
            "the server sent nothing within the start timeout",
            None,
            Class::Handshake,
            "npx -y a@1",
            "start-timeout",
            "npm install -g a@1",
        ),
        (
            "the server requires a login: run linetender login b",
            None,
            Class::Auth,
            "",
            "needs-login",
            "that command",
        ),
        (
            "the server requires authentication: Basic",
            None,
            Class::Auth,
            "",
            "needs-login",
            "`linetender login a`",
        ),
        (
            "the server is unreachable: 127.0.0.1:1: connection refused",
            None,
            Class::Transport,
            "",
            "refused",
            "nothing listens",
        ),
        (
            "the server is unreachable: TLS: invalid peer certificate: UnknownIssuer",
            None,
            Class::Config,
            "",
            "tls",
            "not trusted",
        ),
        ("not an MCP endpoint; it returned: <html>", None, Class::Config, "", "not-mcp", "/mcp"),
        ("this machine cannot start a process: EAGAIN", None, Class::Local, "x", "machine", "ulimit"),
    ];

    #[test]
    fn each_way_to_fail_has_its_word_and_its_advice() {
        for (text, stderr, class, argv, code, advice) in TABLE {
            let argv: Vec<_> = argv.split_whitespace().collect();
            let (found, fix) = of(text, stderr, class, &argv);
            assert_eq!(found, code, "{text}");
            assert!(fix.contains(advice), "{text}: {fix}");
        }
    }
}
