//! The server of a scenario: how it is started, what it is marked with, and what is wrong with it.

use std::path::{Path, PathBuf};

use linetender_badserver::Book;
use linetender_badserver::webserver::{self, Ending, Speaks, WebServer};

use super::habits::Habits;
use super::{Plan, ports, system};
use crate::real;
use crate::scenario::{Broken, Era, Kind, Over, Scenario};

/// The variable by which every process of a server is found, whoever started it.
pub(crate) const SERVER_MARK: &str = "LINETENDER_DRILL_SERVER";

/// A server, and its book.
pub(crate) struct Server {
    pub(crate) argv: Vec<String>,
    pub(crate) web: Option<WebServer>,
    /// What it really ran, where it writes that down.
    pub(crate) book: Option<Book>,
    /// Where its certificate is, if it has one.
    pub(crate) roots: Option<PathBuf>,
    /// `NAME=value`, in the environment of its processes.
    pub(crate) mark: String,
    kind: Kind,
    speaks: Era,
    dir: PathBuf,
    /// What to run once it is mended.
    mended: Vec<String>,
    /// It has spoken the legacy era.
    spoke_legacy: bool,
}

impl Server {
    /// Everything but a process: that is the target's to start.
    pub(crate) async fn set_up(
        plan: &Plan,
        scenario: &Scenario,
        era: Era,
        dir: &Path,
        habits: Habits,
    ) -> Result<Self, String> {
        let what = &scenario.server;
        let mark = format!("{SERVER_MARK}={}", dir.display());
        let book = dir.join("book");
        let speaks = era.of_server(what.speaks);
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let book_text = book.display().to_string();
        let flags = what.flags.iter().map(|flag| flag.replace("{dir}", &dir.display().to_string()));
        let flags = flags.chain(habits.server_flags(what.over, dir));
        let mut argv = match (what.over, what.kind) {
            (Over::Http, _) => Vec::new(),
            (Over::Stdio, Kind::Bad) => {
                let mut argv = system::bad(&plan.linetender);
                argv.extend(own(&["--era", speaks.word(), "--book", &book_text]));
                argv.extend(flags.clone());
                argv
            }
            (Over::Stdio, Kind::Python) => {
                let script = dir.join("server.py");
                std::fs::write(&script, real::PYTHON_SERVER).map_err(|error| error.to_string())?;
                let python = real::python().ok_or(real::MISSING)?.display().to_string();
                own(&[&python, &script.display().to_string(), &book_text])
            }
            (Over::Stdio, Kind::Node) => real::everything().ok_or(real::MISSING)?,
        };
        argv = system::marked(&mark, argv);
        let mended = argv.clone();
        if let Some(how) = what.broken {
            argv = system::broken(how, dir, argv);
        }
        let mut web = None;
        if what.over == Over::Http {
            let mut config = webserver::config(flags)?;
            config.port = ports::next()?;
            config.book = Some(book.clone());
            config.manners.speaks = as_spoken(speaks);
            let mut server = WebServer::start(config).map_err(|error| error.to_string())?;
            if what.broken == Some(Broken::Down) {
                server.stop(Ending::Reset).await;
            }
            web = Some(server);
        }
        let pem = web.as_ref().and_then(WebServer::certificate_pem);
        let roots = pem.map(|pem| {
            let path = dir.join("roots.pem");
            std::fs::write(&path, pem).map(|()| path).map_err(|error| error.to_string())
        });
        let roots = roots.transpose()?;
        let book = (what.kind != Kind::Node).then(|| Book::at(book));
        Ok(Self {
            argv,
            web,
            book,
            roots,
            mark,
            kind: what.kind,
            speaks,
            dir: dir.to_owned(),
            mended,
            spoke_legacy: speaks == Era::Legacy,
        })
    }

    /// Whether it keeps a context: a process does, and over HTTP a session, which only the legacy era has.
    pub(crate) fn keeps_contexts(&self) -> bool {
        self.kind == Kind::Bad && (self.web.is_none() || self.speaks == Era::Legacy)
    }

    /// Whether it ever kept one.
    pub(crate) fn kept_contexts(&self) -> bool {
        self.keeps_contexts() || (self.kind == Kind::Bad && self.spoke_legacy)
    }

    pub(crate) fn url(&self) -> String {
        self.web.as_ref().map(WebServer::url).unwrap_or_default()
    }

    /// The tool whose answer shows that all is well again.
    pub(crate) const fn probe(&self) -> &'static str {
        match self.kind {
            Kind::Bad => "write",
            Kind::Python | Kind::Node => "echo",
        }
    }

    /// How often it was started, as far as anybody wrote that down.
    pub(crate) fn starts(&self) -> usize {
        let counted = std::fs::read_to_string(self.dir.join("starts")).unwrap_or_default().lines().count();
        if counted > 0 { counted } else { self.book.as_ref().map_or(0, |book| book.writers().len()) }
    }

    /// Mends what was broken.
    pub(crate) async fn mend(&mut self) -> Result<(), String> {
        if let Some(web) = &mut self.web {
            return web.restart(Ending::Reset).await.map_err(|error| error.to_string());
        }
        let written = system::late_server(&self.dir, &self.mended)
            .and_then(|()| std::fs::write(self.dir.join("fixed"), ""));
        written.map_err(|error| error.to_string())
    }

    /// Comes back in the other era.
    pub(crate) async fn flip(&mut self) -> Result<(), String> {
        self.speaks = self.speaks.of_server(crate::scenario::Speaks::Other);
        self.spoke_legacy |= self.speaks == Era::Legacy;
        let speaks = as_spoken(self.speaks);
        let Some(web) = &mut self.web else { return Err("it is not at an address".to_owned()) };
        web.set(|manners| manners.speaks = speaks);
        web.restart(Ending::Reset).await.map_err(|error| error.to_string())
    }

    /// Has another tool after its next start; each time another one.
    pub(crate) fn change(&self, run: u32) -> Result<(), String> {
        std::fs::write(self.dir.join("extra"), format!("surprise_{run}")).map_err(|error| error.to_string())
    }
}

/// Why this server cannot be had here.
pub(crate) fn missing(scenario: &Scenario) -> Option<String> {
    if let Some(why) = system::lacks(scenario) {
        return Some(why.to_owned());
    }
    let there = match scenario.server.kind {
        Kind::Bad => true,
        Kind::Python => real::python().is_some(),
        Kind::Node => real::everything().is_some(),
    };
    (!there).then(|| real::MISSING.to_owned())
}

const fn as_spoken(era: Era) -> Speaks {
    match era {
        Era::Legacy => Speaks::Legacy,
        Era::Modern => Speaks::Modern,
    }
}
