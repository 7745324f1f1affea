//! What is promised on which system, and by what: the same table in `linetender doctor --system` and in docs/platforms.md.

use std::fmt::Write as _;

use anstyle::Style;
use serde::Serialize;

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

/// Systems, in the order in which a promise speaks of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum System {
    Linux,
    Macos,
    Windows,
    Other,
}

impl System {
    const ALL: [Self; 4] = [Self::Linux, Self::Macos, Self::Windows, Self::Other];

    /// The one that this program was built for.
    const HERE: Self = if cfg!(linetender_portable) {
        Self::Other
    } else if cfg!(target_os = "linux") {
        Self::Linux
    } else if cfg!(target_os = "macos") {
        Self::Macos
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Other
    };

    const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Macos => "macOS",
            Self::Windows => "Windows",
            Self::Other => "other Unix systems",
        }
    }

    /// How far what is said of it was tried.
    const fn tried(self) -> &'static str {
        match self {
            Self::Linux => "tested with every change, on x86-64",
            Self::Macos => "compiled and linked, its logic tested on Linux; never run on a Mac",
            Self::Windows => "tested under wine 8; never run on Windows itself",
            Self::Other => "compiled on Linux as if it were one; never run on another system",
        }
    }
}

/// One promise: what keeps it, on each system.
struct Promise {
    /// For programs; does not change.
    code: &'static str,
    /// What is promised.
    what: &'static str,
    by: [Kept; System::ALL.len()],
}

/// How well a promise is kept.
enum Kept {
    Yes(&'static str),
    /// Less is promised than on Linux.
    Partly(&'static str),
    No(&'static str),
}

use Kept::{No, Partly, Yes};

impl Kept {
    const fn word(&self) -> &'static str {
        match self {
            Yes(_) => "yes",
            Partly(_) => "partly",
            No(_) => "no",
        }
    }

    const fn how(&self) -> &'static str {
        match self {
            Yes(how) | Partly(how) | No(how) => how,
        }
    }
}

const PROMISES: [Promise; 10] = [
    Promise {
        code: "exit",
        what: "The end of a server's process is noticed",
        by: [
            Yes("by the reaper (waitid) and a pidfd, within milliseconds"),
            Yes("by the reaper (kqueue NOTE_EXIT, then waitpid)"),
            Yes("by a wait on the process handle"),
            Yes("by this process (SIGCHLD)"),
        ],
    },
    Promise {
        code: "pipe",
        what: "A server that closed its pipes and lives on is noticed",
        by: [
            Yes("by POLLERR on its stdin, end of file on its stdout"),
            Yes("by the end of file that a kqueue tells of its stdin, end of file on its stdout"),
            Partly("by the pipe's other direction and end of file; under wine not for console programs"),
            Yes(
                "by POLLERR, or the end of file that a kqueue tells, on its stdin; end of file on its stdout",
            ),
        ],
    },
    Promise {
        code: "proof",
        what: "A call that a dead server never read is sent again, unseen by the agent",
        by: [
            Yes("what lies unread in the pipe when nobody is left to read it is proof"),
            No("nothing proves it: the agent is told that the outcome is unknown"),
            No("nothing proves it: the agent is told that the outcome is unknown"),
            No("nothing proves it: the agent is told that the outcome is unknown"),
        ],
    },
    Promise {
        code: "at-most-once",
        what: "No tool is run twice without permission",
        by: [
            Yes("what is not proven is not sent again"),
            Yes("what is not proven is not sent again"),
            Yes("what is not proven is not sent again"),
            Yes("what is not proven is not sent again"),
        ],
    },
    Promise {
        code: "orphans",
        what: "Nothing of a server is left when it ends, or when linetender is killed",
        by: [
            Yes("the reaper, to which orphans come (subreaper), kills all of them"),
            Partly(
                "the reaper learns of descendants as they are forked, finds others in its session and by whose children they were, and kills them; one that leaves the session (a daemon) and lost its parent before that was seen escapes",
            ),
            Yes("the kernel ends the job, which a server is in before it runs, with its last handle"),
            No("a server that ends when its stdin closes, ends; nobody ends another"),
        ],
    },
    Promise {
        code: "polite",
        what: "A server is asked to end before it is killed",
        by: [
            Yes("its stdin is closed, then SIGTERM, then SIGKILL"),
            Yes("its stdin is closed, then SIGTERM, then SIGKILL"),
            Partly(
                "its stdin is closed, then the whole job ends; Ctrl-Break in between if there is a console (not tried)",
            ),
            Yes("its stdin is closed, then SIGTERM, then SIGKILL"),
        ],
    },
    Promise {
        code: "secrets",
        what: "Other users cannot read logins and journals",
        by: [
            Yes("files of mode 0600 in folders of mode 0700; whoever owns something else is refused"),
            Yes("files of mode 0600 in folders of mode 0700; logins are files, not in the keychain"),
            Partly(
                "files and folders are made with an access list of the user alone; whose a file is that is there already is not looked at",
            ),
            Yes("files of mode 0600 in folders of mode 0700"),
        ],
    },
    Promise {
        code: "status",
        what: "`status`, `top`, `why` and orders reach a linetender that runs, and nobody else's",
        by: [
            Yes("a socket in a folder of the user's, which looks who connects"),
            Yes("a socket in a folder of the user's, which looks who connects"),
            Yes("a named pipe that only the user may open, from this machine, and whose owner is looked at"),
            Yes("a socket in a folder of the user's, which looks who connects"),
        ],
    },
    Promise {
        code: "share",
        what: "`run --share`: agents share one process of a server",
        by: [
            Yes("over a socket of the user's; a keeper that hangs is killed and replaced"),
            Yes(
                "over a socket of the user's; a keeper that hangs is killed, if the process under its number is still the one that started then, and replaced",
            ),
            No("each agent has a process of its own"),
            Partly("over a socket of the user's; a keeper that hangs is not killed"),
        ],
    },
    Promise {
        code: "fleet",
        what: "A server of a fleet runs in one gateway at a time",
        by: [
            Yes("by a lease that a timer of the kernel's keeps, also if the gateway is stopped"),
            No("gateways of a fleet run on Linux"),
            No("gateways of a fleet run on Linux"),
            No("gateways of a fleet run on Linux"),
        ],
    },
];

/// What this system keeps, for people.
pub(super) fn text() -> String {
    let here = System::HERE;
    let bold = Style::new().bold();
    let mut text = format!("{bold}{} on {}{bold:#}: {}\n", here.name(), std::env::consts::ARCH, here.tried());
    for promise in &PROMISES {
        let kept = &promise.by[here as usize];
        let _ = writeln!(text, "\n{}: {bold}{}{bold:#}\n  {}", promise.what, kept.word(), kept.how());
    }
    text
}

/// What this system keeps, as a JSON document.
pub(super) fn json() -> String {
    #[derive(Serialize)]
    struct Row {
        code: &'static str,
        what: &'static str,
        kept: &'static str,
        how: &'static str,
    }
    let here = System::HERE;
    let rows = PROMISES.iter().map(|promise| {
        let kept = &promise.by[here as usize];
        Row { code: promise.code, what: promise.what, kept: kept.word(), how: kept.how() }
    });
    let document = serde_json::json!({
        "version": VERSION, "system": here.name(), "arch": std::env::consts::ARCH, "tried": here.tried(),
        "promises": rows.collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINS: &str = "<!-- made from crates/cli/src/doctor/system.rs -->\n";
    const ENDS: &str = "<!-- end -->\n";

    /// The table of docs/platforms.md.
    fn markdown() -> String {
        let mut table = String::from("| |");
        for system in System::ALL {
            let _ = write!(table, " {} |", system.name());
        }
        table.push_str("\n|---|---|---|---|---|\n| tried |");
        for system in System::ALL {
            let _ = write!(table, " {} |", system.tried());
        }
        table.push('\n');
        for promise in &PROMISES {
            let _ = write!(table, "| **{}** |", promise.what);
            for kept in &promise.by {
                let _ = write!(table, " *{}*: {} |", kept.word(), kept.how());
            }
            table.push('\n');
        }
        table
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the word that writes documents anew")]
    fn the_page_says_what_the_program_says() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/platforms.md");
        let kept = std::fs::read_to_string(page).unwrap();
        let (before, rest) = kept.split_once(BEGINS).unwrap();
        let (_, after) = rest.split_once(ENDS).unwrap();
        let made = format!("{before}{BEGINS}{}{ENDS}{after}", markdown());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(page, made).unwrap();
            return;
        }
        assert!(kept == made, "run: UPDATE_DOCS=1 cargo nextest run -p linetender-cli doctor::system");
    }

    #[test]
    fn a_promise_has_one_code_and_one_line() {
        let mut codes: Vec<_> = PROMISES.iter().map(|promise| promise.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), PROMISES.len());
        for promise in &PROMISES {
            assert!(
                promise.by.iter().all(|kept| !kept.how().is_empty() && !kept.how().contains(['\n', '|']))
            );
        }
    }
}
