//! What stands behind the gateway: ten servers, two of them real, two of them never touched, most of them with a book.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use linetender_badserver::webserver::{Answers, Config, Manners, Speaks, WebServer};
use linetender_badserver::{AS_SERVER, Book};

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

/// A server as agents and the judge know it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether nothing is ever done to it.
    pub(super) calm: bool,
    /// What it really ran, where it writes that down.
    pub(super) book: Option<Book>,
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
    kept: bool,
}

impl Server {
    pub(super) fn is_process(&self) -> bool {
        !matches!(self.kind, Kind::Web(_))
    }
}

impl House {
    pub(super) fn build(linetender: &Path) -> io::Result<Self> {
        static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mark = format!("linetender-gateway-{}-{run}", std::process::id());
        let folder = std::env::temp_dir().join(&mark);
        std::fs::create_dir_all(&folder)?;
        let mut house =
            Self { servers: Vec::new(), webs: Vec::new(), folder, mark, missing: Vec::new(), kept: false };
        let program = linetender.display().to_string();
        for (name, calm, flags) in [
            ("calm-pipe", true, "'--era', 'both'"),
            ("pipe-legacy", false, "'--era', 'legacy'"),
            ("pipe-modern", false, "'--era', 'modern'"),
            ("pipe-crowded", false, "'--era', 'both', '--grandchild'"),
        ] {
            let book = house.book(name);
            let args = format!("'{AS_SERVER}', {flags}, '--book', '{}'", book.path().display());
            house.process(name, Kind::Bad, calm, Some(book), &program, &args);
        }
        house.web("calm-web", true, Speaks::Both, Answers::Json)?;
        house.web("web-legacy", false, Speaks::Legacy, Answers::Json)?;
        house.web("web-modern", false, Speaks::Modern, Answers::Json)?;
        house.web("web-streams", false, Speaks::Legacy, Answers::Primed)?;
        house.real();
        Ok(house)
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
        self.servers.push(Server { name, kind, calm, book, reach });
    }

    fn web(&mut self, name: &'static str, calm: bool, speaks: Speaks, answers: Answers) -> io::Result<()> {
        let book = self.book(name);
        let manners = Manners { speaks, answers, ..Manners::default() };
        let web =
            WebServer::start(Config { book: Some(book.path().to_owned()), manners, ..Config::default() })?;
        let (kind, reach) = (Kind::Web(self.webs.len()), format!("url = '{}'", web.url()));
        self.webs.push(web);
        self.servers.push(Server { name, kind, calm, book: Some(book), reach });
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
    pub(super) fn config(&self) -> io::Result<PathBuf> {
        let mut text = String::from("[gateway]\nsession_idle = 5000\n");
        for Server { name, calm, reach, .. } in &self.servers {
            let policy = if *calm { "" } else { POLICY };
            let _ = write!(text, "\n[servers.{name}]\n{reach}\n{policy}");
        }
        let path = self.folder.join("linetender.toml");
        std::fs::write(&path, text)?;
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
