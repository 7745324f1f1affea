//! Looking for this user's holders, and asking each where its lines stand.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::JoinSet;

use super::control::Ask;
use super::local::{self, Stream};
use super::report::{REPORT_VERSION, Report};
use super::socket::{Refusal, SUFFIX};
use crate::trusted;

/// How long a holder may take to answer, and how long its answer may pause. One that is well takes a millisecond.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the whole of an answer may take.
const WHOLE: Duration = Duration::from_secs(10);

/// The longest answer: that of a holder of thousands of servers, each of which has failed often and said much.
const ANSWER: u64 = 64 * 1024 * 1024;

/// The most holders that are asked.
const MOST_HOLDERS: usize = 1024;

/// One linetender process with a status socket.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Process id.
    pub pid: u32,
    /// Its answer.
    #[serde(flatten)]
    pub reply: Reply,
}

/// Answer of a process, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Its status report.
    Report(Box<Report>),
    /// No usable answer.
    Silent(Silence),
}

/// Why a process gave no usable answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Silence {
    /// The process is stopped (SIGSTOP).
    Stopped,
    /// No answer within the timeout.
    NoAnswer,
    /// The answer is of another version.
    NotUnderstood,
}

/// What came of asking.
enum Lookup {
    Found(Found),
    /// Nobody listens there.
    Nobody,
}

/// Every holder that listens in one of these folders, in the order of their processes. Each is asked at the same time, and
/// none is waited for longer than a second. What dead ones left behind is removed.
///
/// Folders and sockets that others could have put there are passed over: `refused` is called for each, with the reason.
pub async fn look(folders: &[PathBuf], mut refused: impl FnMut(&Path, &io::Error)) -> Vec<Found> {
    let mut asking = JoinSet::new();
    let mut trusted = |path: &Path, checked: io::Result<()>| match checked {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => {
            refused(path, &error);
            false
        }
    };
    let mut sockets: Vec<_> = folders
        .iter()
        .filter(|folder| trusted(folder, trusted::check_folder(folder)))
        .flat_map(|folder| sockets(folder))
        .take(MOST_HOLDERS)
        .collect();
    sockets.retain(|(_, path)| trusted(path, local::check_socket(path)));
    for (pid, path) in sockets {
        asking.spawn(async move {
            match ask(pid, &path).await {
                Lookup::Found(found) => Some(found),
                Lookup::Nobody => {
                    // The number may have a new owner by now, who may be about to listen.
                    if !local::lives(pid) {
                        let _ = fs::remove_file(&path);
                    }
                    None
                }
            }
        });
    }
    let mut found: Vec<Found> = asking.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|found| found.pid);
    found
}

/// Removes what dead holders left in a folder.
pub(super) async fn sweep(folder: &Path) {
    for (_, path) in sockets(folder).filter(|(pid, _)| !local::lives(*pid)).take(MOST_HOLDERS) {
        let connected = tokio::time::timeout(PATIENCE, local::connect(&path)).await;
        // It may live in a container that shares this folder and not our numbers.
        if matches!(connected, Ok(Err(error)) if nobody(&error)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The sockets in a folder, by process. A folder that is not there has none.
fn sockets(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.strip_suffix(SUFFIX)?.parse().ok()?;
        Some((pid, entry.path()))
    })
}

async fn ask(pid: u32, path: &Path) -> Lookup {
    let answer = match exchange(path, &Ask::Status, PATIENCE).await {
        Ok(answer) => answer,
        Err(error) if nobody(&error) => return Lookup::Nobody,
        Err(_) => {
            let why = if is_stopped(pid) { Silence::Stopped } else { Silence::NoAnswer };
            return Lookup::Found(Found { pid, reply: Reply::Silent(why) });
        }
    };
    let reply = match serde_json::from_slice::<Report>(&answer) {
        Ok(report) if report.version == REPORT_VERSION => Reply::Report(Box::new(report)),
        _ => Reply::Silent(Silence::NotUnderstood),
    };
    Lookup::Found(Found { pid, reply })
}

/// Asks one holder something that has one answer.
///
/// # Errors
/// If it cannot be reached, does not answer in time, or refuses: in its words.
pub async fn ask_holder<A: DeserializeOwned>(folders: &[PathBuf], pid: u32, ask: &Ask) -> io::Result<A> {
    let path = socket_of(folders, pid)?;
    let answer = exchange(&path, ask, ask.patience() + PATIENCE).await?;
    if let Ok(Refusal { error, .. }) = serde_json::from_slice(&answer) {
        return Err(io::Error::other(error));
    }
    serde_json::from_slice(&answer)
        .map_err(|_| io::Error::other("the process runs another version of linetender"))
}

/// Watches one holder.
///
/// # Errors
/// If it cannot be reached.
pub async fn watch_holder(folders: &[PathBuf], pid: u32, ask: &Ask) -> io::Result<Watching> {
    let path = socket_of(folders, pid)?;
    let holder = tokio::time::timeout(PATIENCE, asked(&path, ask)).await.map_err(|_| late())??;
    Ok(Watching(BufReader::new(holder)))
}

/// What a holder tells for as long as this is held.
#[derive(Debug)]
pub struct Watching(BufReader<Stream>);

impl Watching {
    /// The next line of JSON; `None` once the holder is gone. What a dropped call of this has read is lost.
    ///
    /// # Errors
    /// If the holder refused, or nothing can be read.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        (&mut self.0).take(ANSWER).read_line(&mut line).await?;
        if let Ok(Refusal { error, .. }) = serde_json::from_str(&line) {
            return Err(io::Error::other(error));
        }
        Ok(line.ends_with('\n').then(|| line.trim_end().to_owned()))
    }
}

/// The socket of a process that may be trusted.
fn socket_of(folders: &[PathBuf], pid: u32) -> io::Result<PathBuf> {
    let trusted = |folder: &&PathBuf| trusted::check_folder(folder).is_ok();
    let mut paths = folders.iter().filter(trusted).map(|folder| folder.join(format!("{pid}{SUFFIX}")));
    let path = paths.find(|path| local::check_socket(path).is_ok());
    path.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "no linetender process of this number has a socket")
    })
}

/// Asks, and reads what is said. It has to begin within `patience`; a long answer takes as long as it goes on.
async fn exchange(path: &Path, ask: &Ask, patience: Duration) -> io::Result<Vec<u8>> {
    let begun = async {
        let mut holder = asked(path, ask).await?.take(ANSWER);
        let mut answer = Vec::new();
        holder.read_buf(&mut answer).await?;
        Ok::<_, io::Error>((holder, answer))
    };
    let (mut holder, mut answer) = tokio::time::timeout(patience, begun).await.map_err(|_| late())??;
    let rest = async {
        while tokio::time::timeout(PATIENCE, holder.read_buf(&mut answer)).await.map_err(|_| late())?? > 0 {}
        Ok::<_, io::Error>(())
    };
    tokio::time::timeout(WHOLE, rest).await.map_err(|_| late())??;
    Ok(answer)
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the process does not answer")
}

/// A holder that was asked.
async fn asked(path: &Path, ask: &Ask) -> io::Result<Stream> {
    let mut holder = local::connect(path).await?;
    local::check_peer(&holder)?;
    let question = serde_json::to_string(ask)?;
    holder.write_all(format!("{question}\n").as_bytes()).await?;
    Ok(holder)
}

fn nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Whether a process is stopped, where the system says so.
// proc_pid_stat(5): the state is the word after the name, which stands in brackets and may hold any character.
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::DirBuilderExt as _;

    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::UnixListener;

    use super::{Found, Reply, look};
    use crate::Holder;

    #[tokio::test]
    async fn a_holder_of_thousands_of_servers_is_understood() {
        let folder = std::env::temp_dir().join(format!("linetender-look-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let listener = UnixListener::bind(folder.join(format!("{}.sock", std::process::id()))).unwrap();
        let mut report = serde_json::to_value(Holder::new("serve", None, None).report()).unwrap();
        let line = serde_json::json!({ "server": "s", "state": "parked", "generation": 9, "since": "", "since_millis": 1,
            "budget_millis": 0, "budget_most_millis": 5000, "cause": { "text": "x", "leaves": [], "stderr": "y".repeat(4096) } });
        report["lines"] = vec![line; 3000].into();
        let answers = async {
            let (asker, _) = listener.accept().await.unwrap();
            let mut asker = BufReader::new(asker);
            asker.read_line(&mut String::new()).await.unwrap();
            asker.write_all(report.to_string().as_bytes()).await.unwrap();
        };
        let folders = [folder.clone()];
        let (found, ()) = tokio::join!(look(&folders, |path, why| panic!("{path:?}: {why}")), answers);
        std::fs::remove_dir_all(&folder).unwrap();
        let [Found { reply: Reply::Report(report), .. }] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(report.lines.len(), 3000);
    }
}
