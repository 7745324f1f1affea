//! What stands behind the gateway: ten servers, two of them real, two of them never touched, most of them with a book. With
//! principals there are others beside those eight that are not real: of every scope, and such that not everybody sees.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use linetender_badserver::webserver::{Answers, Config, Manners, Speaks, WebServer};
use linetender_badserver::{AS_SERVER, Book};

use super::principals::{GROUPS, PARITIES, TOKENS};
use crate::real;

/// The variable by which every process of a server is found. Its value is the run's mark and the server's name.
pub(super) const MARK: &str = "LINETENDER_SOAK";

/// The policy of servers that are harmed. No call may outlive `HUNG`.
const POLICY: &str = "\
policy.call = { limit = 6000, cap = 10000, hang_after = 9000 }
policy.probe = { keepalive = 2000, timeout = 1000 }
policy.limits = { message = 1048576 }
";

/// What a server is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A badserver, on pipes.
    Bad,
    /// A web server in this process, by its place among them.
    Web(usize),
    /// Somebody else's server, on pipes.
    Real,
}

/// Who shares a server's process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Scope {
    #[default]
    Shared,
    Identity,
    Session,
}

/// What principals may see of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Seen {
    /// Everything.
    #[default]
    Whole,
    /// Everything, by this group; nothing by others.
    By(&'static str),
    /// Each of two groups all but one tool of its own.
    AllBut([(&'static str, &'static str); 2]),
}

/// What a web server wants of the gateway, where it wants something; no agent has it.
pub(super) const OWN_KEY: &str = "Bearer of-the-server-alone";

/// A server as agents and the judge know it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether nothing is ever done to it.
    pub(super) calm: bool,
    /// What it really ran, where it writes that down.
    pub(super) book: Option<Book>,
    pub(super) scope: Scope,
    pub(super) seen: Seen,
    /// How the config file says to reach it.
    reach: String,
}

/// All of them.
pub(super) struct House {
    pub(super) servers: Vec<Server>,
    pub(super) webs: Vec<WebServer>,
    /// Everything that is written during a run, and what this run's processes are marked with.
    pub(super) folder: PathBuf,
    pub(super) mark: String,
    /// What had to be left out, and why.
    pub(super) missing: Vec<String>,
    /// Whether agents need tokens.
    principals: bool,
    kept: bool,
}

impl Server {
    pub(super) fn is_process(&self) -> bool {
        !matches!(self.kind, Kind::Web(_))
    }

    /// What the config file says of who may see it. Rules for nobody change nothing but the file.
    fn rules(&self, turn: u32) -> String {
        let scope = match self.scope {
            Scope::Shared => "",
            Scope::Identity => "scope = 'identity'\n",
            Scope::Session => "scope = 'session'\n",
        };
        let nobody = format!("'group:nobody-{turn}' = {{}}, 'group:operators' = {{}}");
        match self.seen {
            Seen::Whole => scope.to_owned(),
            Seen::By(group) => format!("{scope}access = {{ 'group:{group}' = {{}}, {nobody} }}\n"),
            Seen::AllBut(hides) => {
                let rule =
                    |(group, tool)| format!("'group:{group}' = {{ tools = {{ exclude = ['{tool}'] }} }}");
                format!("{scope}access = {{ {}, {nobody} }}\n", hides.map(rule).join(", "))
            }
        }
    }
}

impl House {
    pub(super) fn build(linetender: &Path, principals: bool) -> io::Result<Self> {
        static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mark = format!("linetender-gateway-{}-{run}", std::process::id());
        let folder = std::env::temp_dir().join(&mark);
        std::fs::create_dir_all(&folder)?;
        let (servers, webs, missing) = (Vec::new(), Vec::new(), Vec::new());
        let mut house = Self { servers, webs, folder, mark, missing, principals, kept: false };
        let program = linetender.display().to_string();
        for (name, calm, flags) in [
            ("calm-pipe", true, "'--era', 'both'"),
            ("pipe-legacy", false, "'--era', 'legacy'"),
            ("pipe-modern", false, "'--era', 'modern'"),
            ("pipe-crowded", false, "'--era', 'both', '--grandchild'"),
        ] {
            house.bad(name, calm, &program, flags);
        }
        house.web("calm-web", true, Speaks::Both, Answers::Json)?;
        house.web("web-legacy", false, Speaks::Legacy, Answers::Json)?;
        house.web("web-modern", false, Speaks::Modern, Answers::Json)?;
        house.web("web-streams", false, Speaks::Legacy, Answers::Primed)?;
        if principals {
            house.scopes(&program)?;
        } else {
            house.real();
        }
        Ok(house)
    }

    /// Servers of every scope, and such that not everybody sees.
    fn scopes(&mut self, program: &str) -> io::Result<()> {
        let [red, _, blue] = GROUPS;
        let all_but = Seen::AllBut([(PARITIES[0], "echo"), (PARITIES[1], "big")]);
        for (name, era, scope, seen) in [
            ("own-pipe", "'legacy'", Scope::Identity, Seen::Whole),
            ("own-modern", "'modern'", Scope::Identity, Seen::Whole),
            ("each-session", "'legacy'", Scope::Session, Seen::Whole),
            ("hidden-red", "'both'", Scope::Shared, Seen::By(red)),
            ("hidden-blue", "'both'", Scope::Identity, Seen::By(blue)),
            ("some-tools", "'both'", Scope::Shared, all_but),
        ] {
            self.bad(name, false, program, &format!("'--era', {era}"));
            self.last(|server| (server.scope, server.seen) = (scope, seen));
        }
        self.web("own-web", false, Speaks::Legacy, Answers::Json)?;
        self.last(|server| {
            server.scope = Scope::Identity;
            let _ = write!(server.reach, "\nheaders = {{ Authorization = '{OWN_KEY}' }}");
        });
        Ok(())
    }

    fn last(&mut self, change: impl FnOnce(&mut Server)) {
        if let Some(server) = self.servers.last_mut() {
            change(server);
        }
    }

    fn bad(&mut self, name: &'static str, calm: bool, program: &str, flags: &str) {
        let book = self.book(name);
        // Whoever may not read what a server says beside its answers must not read it there either.
        let more = if self.principals { ", '--full', '--talkative'" } else { "" };
        let args = format!("'{AS_SERVER}', {flags}{more}, '--book', '{}'", book.path().display());
        self.process(name, Kind::Bad, calm, Some(book), program, &args);
    }

    fn book(&self, name: &str) -> Book {
        Book::at(self.folder.join(format!("{name}.book")))
    }

    fn process(
        &mut self,
        name: &'static str,
        kind: Kind,
        calm: bool,
        book: Option<Book>,
        program: &str,
        args: &str,
    ) {
        let reach =
            format!("command = '{program}'\nargs = [{args}]\nenv = {{ {MARK} = '{}/{name}' }}", self.mark);
        let (scope, seen) = Default::default();
        self.servers.push(Server { name, kind, calm, book, scope, seen, reach });
    }

    fn web(&mut self, name: &'static str, calm: bool, speaks: Speaks, answers: Answers) -> io::Result<()> {
        let book = self.book(name);
        let manners = Manners { speaks, answers, full: self.principals, ..Manners::default() };
        let web =
            WebServer::start(Config { book: Some(book.path().to_owned()), manners, ..Config::default() })?;
        let (kind, reach) = (Kind::Web(self.webs.len()), format!("url = '{}'", web.url()));
        self.webs.push(web);
        let (book, scope, seen) = (Some(book), Scope::Shared, Seen::Whole);
        self.servers.push(Server { name, kind, calm, book, scope, seen, reach });
        Ok(())
    }

    /// The servers that `tools/real-servers` installs, if it did.
    fn real(&mut self) {
        let script = self.folder.join("server_mcp.py");
        match real::python() {
            Some(python) if std::fs::write(&script, real::PYTHON_SERVER).is_ok() => {
                let book = self.book("python");
                let args = format!("'{}', '{}'", script.display(), book.path().display());
                self.process("python", Kind::Real, false, Some(book), &python.display().to_string(), &args);
            }
            _ => self.missing.push(format!("python ({})", real::MISSING)),
        }
        match real::everything().as_deref() {
            Some([program, args @ ..]) => {
                let args: Vec<_> = args.iter().map(|word| format!("'{word}'")).collect();
                self.process("everything", Kind::Real, false, None, program, &args.join(", "));
            }
            _ => self.missing.push(format!("everything ({})", real::MISSING)),
        }
    }

    /// Leaves what was written to whoever wants to know why; where that is.
    pub(super) fn keep(mut self) -> PathBuf {
        self.kept = true;
        self.folder.clone()
    }

    /// The gateway's config file. Calls have to end soon enough for a short run to see it; everything else is as it
    /// comes, the budget too. Servers that nobody touches have nothing to end: all of theirs is as it comes.
    pub(super) fn config(&self, turn: u32) -> io::Result<PathBuf> {
        let mut text = String::from("[gateway]\nsession_idle = 5000\n");
        if self.principals {
            let _ = write!(text, "lines = 2048\n[gateway.auth]\ntokens = '{TOKENS}'\n");
        }
        text.push_str(&super::agree::settings(&self.folder));
        for server in &self.servers {
            let Server { name, calm, reach, .. } = server;
            let policy = if *calm { "" } else { POLICY };
            let _ = write!(text, "\n[servers.{name}]\n{reach}\n{policy}{}", server.rules(turn));
        }
        let (path, new) = (self.folder.join("linetender.toml"), self.folder.join("linetender.toml.new"));
        std::fs::write(&new, text)?;
        std::fs::rename(new, &path)?;
        Ok(path)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
