//! Whether everything that linetender says of calls says the same: its status, its audit, its journal, and what agents were told.
//!
//! The audit is written with the arguments, so each call of an agent is found in it by its nonce, and the verdict there is held
//! against the one that the agent was told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use linetender_badserver::History;
use linetender_holder::holder::{Found, Reply, Report, Verdicts, look};
use linetender_holder::journal::{What, last};
use linetender_holder::tally::DOOR;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::house::Server;

/// The most disagreements of a kind that are told.
const TOLD: usize = 3;

/// What opens the admin address.
const TOKEN: &str = "a-token-for-the-soak";

/// The audit of a run.
pub(super) fn audit_of(folder: &Path) -> PathBuf {
    folder.join("audit.jsonl")
}

/// Its settings: nothing is put away, and no call waits for it.
pub(super) fn settings(folder: &Path) -> String {
    let path = audit_of(folder);
    format!(
        "\n[gateway.audit]\npath = '{}'\nsync = 'interval'\non_error = 'continue'\narguments = 'full'\nrotate = '2GiB'\n\
         [gateway.admin]\nlisten = '127.0.0.1:0'\ntoken = '{TOKEN}'\n",
        path.display()
    )
}

/// The same as somebody reads it at the admin address: what the page is made from, and what Prometheus scrapes.
pub(super) async fn elsewhere(admin: Option<SocketAddr>) -> Result<(Report, String), String> {
    let address = admin.ok_or("the gateway says nothing of its admin address")?;
    let page = get(address, "/api/v1/status").await.map_err(|error| format!("the admin address: {error}"))?;
    let page = serde_json::from_str(&page).map_err(|error| format!("what the page is made from: {error}"))?;
    let metrics = get(address, "/metrics").await.map_err(|error| format!("the metrics: {error}"))?;
    Ok((page, metrics))
}

/// A body that ends with its connection.
async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => Err(std::io::Error::other(answer.lines().next().unwrap_or_default().to_owned())),
    }
}

/// What the gateway says of itself.
pub(super) async fn status(folder: &Path, pid: u32) -> Result<Report, String> {
    let sockets = [folder.join("linetender")];
    let found = look(&sockets, |path, why| eprintln!("ignored {}: {why}", path.display())).await;
    match found.into_iter().find(|found| found.pid == pid) {
        Some(Found { reply: Reply::Report(report), .. }) => Ok(*report),
        other => Err(format!("the gateway has no status at the end: {other:?}")),
    }
}

/// How many calls were compared, and what does not agree.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    pub(super) calls: usize,
    /// Calls that the gateway refused before any server was chosen.
    pub(super) at_the_door: u64,
    pub(super) findings: Vec<String>,
}

impl Agreement {
    /// Compares everything.
    pub(super) fn judge(report: &Report, folder: &Path, servers: &[Server], histories: &[History]) -> Self {
        let mut agreement = Self::default();
        match Audited::read(&audit_of(folder)) {
            Ok(audited) => {
                agreement.with_status(report, &audited);
                agreement.at_the_door = audited.counts.get(DOOR).map_or(0, |counts| counts.not_executed);
                for (server, history) in servers.iter().zip(histories) {
                    agreement.with_history(server.name, history, &audited);
                }
            }
            Err(error) => agreement.findings.push(format!("the audit cannot be read: {error}")),
        }
        agreement.with_journal(report, folder);
        agreement
    }

    /// The page and the metrics against the status, count by count.
    pub(super) fn with_elsewhere(&mut self, report: &Report, page: &Report, metrics: &str) {
        for server in &report.servers {
            let shown = page.servers.iter().find(|other| other.server == server.server);
            if shown.map(|shown| (shown.tool_calls, shown.starts, &shown.ends))
                != Some((server.tool_calls, server.starts, &server.ends))
            {
                self.finds(format!("{}: status and page differ: {server:?}, {shown:?}", server.server));
            }
            for (verdict, count) in server.tool_calls.named() {
                let scraped = scraped(metrics, &server.server, verdict).unwrap_or(0);
                if scraped != count {
                    self.finds(format!(
                        "{}: {count} calls are {verdict}, and {scraped} in the metrics",
                        server.server
                    ));
                }
            }
        }
    }

    fn with_status(&mut self, report: &Report, audited: &Audited) {
        for server in &report.servers {
            if server.under_way > 0 {
                self.finds(format!(
                    "{} has {} calls under way, and no agent",
                    server.server, server.under_way
                ));
            }
            let none = Verdicts::default();
            let written = audited.counts.get(&server.server).unwrap_or(&none);
            if *written != server.tool_calls {
                let what = (&server.server, server.tool_calls, written);
                self.finds(format!("{}: status counts {:?}, and the audit has {:?}", what.0, what.1, what.2));
            }
        }
        for name in
            audited.counts.keys().filter(|name| !report.servers.iter().any(|server| server.server == **name))
        {
            self.finds(format!("the audit has calls to {name}, and status has none"));
        }
        if audited.gaps > 0 {
            self.finds(format!("the audit has {} gaps", audited.gaps));
        }
    }

    /// Each call that an agent was told something about.
    fn with_history(&mut self, server: &str, history: &History, audited: &Audited) {
        let (mut told, mut cut) = (0, audited.cut.get(server).copied().unwrap_or(0));
        for (nonce, asked) in &history.calls {
            let Some((_, outcome)) = &asked.told else { continue };
            let written = audited.calls.get(nonce).map(Vec::as_slice).unwrap_or_default();
            if written.is_empty() && cut > 0 {
                // Arguments that are too long for the audit: its nonce is not there.
                cut -= 1;
                continue;
            }
            self.calls += 1;
            let agrees = match (outcome, written) {
                // What ended under a session is told as unknown, and its call is taken back.
                (Err(_), written) if written.iter().any(|verdict| verdict == "cancelled") => !outcome.is_ok(),
                (Ok(()), [.., last]) => matches!(&**last, "answered" | "tool error"),
                (Err(failure), [.., last]) if failure.not_executed() => last == "not executed",
                (Err(failure), [.., last]) if failure.refused() => last == "refused",
                (Err(failure), [.., last]) if failure.answered() => {
                    matches!(&**last, "answered" | "tool error")
                }
                (Err(_), [.., last]) => last == "unknown",
                (_, []) => false,
            };
            if !agrees && told < TOLD {
                told += 1;
                self.finds(format!("{server}: {nonce} was told {outcome:?}, and the audit has {written:?}"));
            }
        }
    }

    /// Connections that ended, by the journal.
    fn with_journal(&mut self, report: &Report, folder: &Path) {
        let journal = folder.join("linetender").join("journal.jsonl");
        let read = match last(&journal, usize::MAX, |_| true) {
            Ok(read) => read,
            Err(error) => return self.finds(format!("the journal cannot be read: {error}")),
        };
        let (mut ends, mut gaps) = (BTreeMap::<&str, u64>::new(), 0);
        for (_, entry) in &read.entries {
            match &entry.what {
                What::State { server, state, .. } if state == "ending" => {
                    *ends.entry(server).or_default() += 1;
                }
                What::Gap { entries, .. } => gaps += entries,
                _ => {}
            }
        }
        for server in report.servers.iter().filter(|_| gaps == 0) {
            let counted = server.ends.values().sum::<u64>() + server.planned_ends;
            let written = ends.get(server.server.as_str()).copied().unwrap_or(0);
            // Those that the gateway's own end ended were not counted yet.
            if counted > written {
                self.finds(format!(
                    "{}: status counts {counted} ends, and the journal has {written}",
                    server.server
                ));
            }
        }
    }

    fn finds(&mut self, what: String) {
        self.findings.push(what);
    }
}

/// A count of calls to tools in the text of the metrics.
fn scraped(metrics: &str, server: &str, verdict: &str) -> Option<u64> {
    let labels = [
        format!("server=\"{server}\""),
        "kind=\"tool\"".to_owned(),
        format!("verdict=\"{}\"", verdict.replace(' ', "_")),
    ];
    let series = metrics.lines().filter(|line| line.starts_with("linetender_calls_total{"));
    let mut wanted = series.filter(|line| labels.iter().all(|label| line.contains(label.as_str())));
    wanted.next()?.rsplit(' ').next()?.parse().ok()
}

/// What the audit has.
#[derive(Default)]
struct Audited {
    /// Calls to tools, by server.
    counts: BTreeMap<String, Verdicts>,
    /// Verdicts by nonce, in order.
    calls: BTreeMap<String, Vec<String>>,
    /// Calls whose arguments are too long for it, by server.
    cut: BTreeMap<String, usize>,
    gaps: usize,
}

impl Audited {
    fn read(path: &Path) -> std::io::Result<Self> {
        let mut audited = Self::default();
        for line in std::fs::read_to_string(path)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            if line["what"] == "gap" {
                audited.gaps += 1;
            }
            if line["method"] != "tools/call" {
                continue;
            }
            let (server, verdict) =
                (line["server"].as_str().unwrap_or_default(), line["verdict"].as_str().unwrap_or_default());
            let counts = audited.counts.entry(server.to_owned()).or_default();
            match verdict {
                "answered" => counts.answered += 1,
                "tool error" => counts.tool_error += 1,
                "refused" => counts.refused += 1,
                "not executed" => counts.not_executed += 1,
                "unknown" => counts.unknown += 1,
                _ => counts.cancelled += 1,
            }
            if let Some(nonce) = line["arguments"]["nonce"].as_str() {
                audited.calls.entry(nonce.to_owned()).or_default().push(verdict.to_owned());
            } else if line["arguments_cut"].is_string() {
                *audited.cut.entry(server.to_owned()).or_default() += 1;
            }
        }
        Ok(audited)
    }
}
