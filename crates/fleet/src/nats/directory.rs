//! The directory on NATS: two buckets of its `JetStream`, one for lines and one for calls.
//!
//! A change of a line is a publish that expects the last sequence number of its subject, so the stream's own sequence numbers are the
//! revisions. Lines' entries are kept for ever and read from the stream's leader. A bucket that has to be created begins at a random
//! number: revisions of one that was lost never come again.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::jetstream::kv::{self, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectOptions, ReconnectToServer, ServerAddr};
use bytes::Bytes;
use futures_util::StreamExt as _;
use linetender_core::lease::{Entry as LineEntry, Revision};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, MissedTickBehavior};

use super::chance;
use crate::directory::{Away, Changed, Directory, Later, Recalled, There};
use crate::written::{decode, encode};

/// How long NATS may take to answer: less than what a lease waits for, so that the cause is known.
const ANSWERS: Duration = Duration::from_millis(2500);

/// How soon a connection that is dead is noticed: after two of these.
const PINGS: Duration = Duration::from_secs(2);

/// So long after the first ask that failed, another server is tried: NATS elects a leader in less, most of the time, and a lease has
/// time for it.
const LEAVES: Duration = Duration::from_secs(5);

/// The most bytes of each bucket; less where NATS does not have so much.
const LINES: [i64; 2] = [16 << 20, 1 << 20];
const CALLS: [i64; 5] = [1 << 30, 256 << 20, 64 << 20, 16 << 20, 4 << 20];

/// How often it is looked whether the bucket that is watched is still the same one.
const SAME: Duration = Duration::from_secs(5);

/// Changes that wait for whoever watches.
const WAITING: usize = 1024;

/// How a fleet's NATS is reached.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its servers: `nats://` or `tls://`.
    pub servers: Vec<String>,
    /// The fleet's name: several may use one NATS.
    pub fleet: String,
    /// This node's name, for people who look at NATS.
    pub node: String,
    /// How many servers of a cluster hold what is written.
    pub replicas: usize,
    /// How long a call that must not run twice is remembered.
    pub calls_kept: Duration,
    /// Who we are there: the seed of an nkey.
    pub nkey: Option<String>,
    /// Files of certificates that it is verified by, beside the system's.
    pub roots: Option<PathBuf>,
    /// Files of the certificate that it is shown, and of its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The directory.
pub struct Nats {
    jetstream: Context,
    options: Options,
    lines: Mutex<Option<Store>>,
    calls: Mutex<Option<Store>>,
    silent: std::sync::Mutex<Silent>,
}

/// How long nothing was answered. A server of NATS that is cut off from the others keeps its connections and answers nothing: whoever
/// is connected to it has to leave by itself.
#[derive(Debug, Default)]
struct Silent {
    /// Since something failed for the first time after an answer, or after the last reconnect.
    since: Option<Instant>,
    /// How often another server was tried since the last answer.
    tried: usize,
}

impl Silent {
    /// Whether another server of so many is to be tried now. Each once: if none answers, it is not this one that is at fault, and streams
    /// to other gateways may still work.
    fn gives_up(&mut self, now: Instant, servers: usize) -> bool {
        let since = *self.since.get_or_insert(now);
        let gives_up = now.duration_since(since) >= LEAVES && self.tried + 1 < servers;
        if gives_up {
            *self = Self { since: None, tried: self.tried + 1 };
        }
        gives_up
    }
}

impl Nats {
    /// Connects, now or when NATS is there.
    ///
    /// # Errors
    /// If the addresses are none.
    pub async fn connect(options: Options) -> Result<Self, Away> {
        let mut connect = ConnectOptions::new()
            .name(format!("linetender {}", options.node))
            .ping_interval(PINGS)
            .connection_timeout(PINGS)
            .request_timeout(Some(ANSWERS))
            // Those who lost their server together do not come back together.
            .reconnect_delay_callback(|tries| Duration::from_millis(50 + chance() % (100 << tries.min(5))))
            .retry_on_initial_connect();
        // One after the other: whoever leaves a server is not to come to it again at once. Some begin here, some there.
        let next = AtomicUsize::new(usize::try_from(chance() % 1024).unwrap_or(0));
        connect = connect.reconnect_to_server_callback(move |servers, _| {
            let next = next.fetch_add(1, Ordering::Relaxed);
            async move {
                // Those that NATS told of may be the same under other names.
                let ours: Vec<_> = servers.into_iter().filter(|server| !server.is_discovered).collect();
                let addr = ours.get(next % ours.len().max(1))?.addr.clone();
                Some(ReconnectToServer { addr, delay: None })
            }
        });
        if let Some(seed) = &options.nkey {
            connect = connect.nkey(seed.clone());
        }
        if options.servers.iter().any(|server| server.starts_with("tls://")) {
            connect = connect.require_tls(true);
        }
        if let Some(roots) = &options.roots {
            connect = connect.add_root_certificates(roots.clone());
        }
        if let Some((certificate, key)) = &options.certificate {
            connect = connect.add_client_certificate(certificate.clone(), key.clone());
        }
        let servers = options.servers.iter().map(|server| server.parse());
        let servers = servers.collect::<Result<Vec<ServerAddr>, _>>().map_err(away)?;
        let client = connect.connect(servers).await.map_err(away)?;
        let jetstream =
            jetstream::context::ContextBuilder::new().timeout(ANSWERS).ack_timeout(ANSWERS).build(client);
        Ok(Self {
            jetstream,
            options,
            lines: Mutex::default(),
            calls: Mutex::default(),
            silent: std::sync::Mutex::default(),
        })
    }

    /// The bucket of lines, which is created if there is none.
    async fn lines(&self) -> Result<Store, Away> {
        self.bucket(&self.lines, "lines", Duration::ZERO, &LINES).await
    }

    async fn calls(&self) -> Result<Store, Away> {
        // Leases come first.
        self.lines().await?;
        self.bucket(&self.calls, "calls", self.options.calls_kept, &CALLS).await
    }

    async fn bucket(
        &self,
        known: &Mutex<Option<Store>>,
        what: &str,
        kept: Duration,
        room: &[i64],
    ) -> Result<Store, Away> {
        let mut known = known.lock().await;
        if let Some(store) = &*known {
            return Ok(store.clone());
        }
        let bucket = format!("linetender-{}-{what}", self.options.fleet);
        let config = |most: i64| Config {
            name: format!("KV_{bucket}"),
            max_bytes: most,
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: self.options.replicas,
            max_age: kept,
            deny_delete: true,
            allow_rollup: true,
            // What a follower has may be old.
            allow_direct: false,
            first_sequence: Some((1 << 40) + chance() % (1 << 50)),
            ..Config::default()
        };
        // NATS keeps free what a bucket may take: results of calls, which agents choose, leave room for the leases.
        let mut created = Ok(());
        for most in room {
            created = self.jetstream.get_or_create_stream(config(*most)).await.map(drop).map_err(away);
            if created.is_ok() {
                break;
            }
        }
        // Another node may have been faster, and its bucket begins elsewhere: it is there all the same.
        let store = self
            .jetstream
            .get_key_value(&bucket)
            .await
            .map_err(|error| created.err().unwrap_or_else(|| away(error)))?;
        *known = Some(store.clone());
        Ok(store)
    }

    /// What was known of the buckets may be why something failed.
    async fn forget(&self) {
        *self.lines.lock().await = None;
        *self.calls.lock().await = None;
    }

    /// The same of what is noted of calls. That there is no room for it says nothing of leases.
    async fn noted<T>(&self, result: Result<T, Away>) -> Result<T, Away> {
        if result.is_err() {
            self.forget().await;
        }
        result
    }

    /// The same of lines; and the server of NATS that we are connected to may be why.
    async fn heard<T>(&self, result: Result<T, Away>) -> Result<T, Away> {
        let leaves = {
            let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
            let Err(away) = &result else {
                if std::mem::take(&mut *silent).since.is_some_and(|since| since.elapsed() >= ANSWERS) {
                    tracing::info!(fleet = self.options.fleet, "NATS answers again");
                }
                return result;
            };
            if silent.since.is_none() && silent.tried == 0 {
                tracing::warn!(fleet = self.options.fleet, %away, "NATS does not keep the fleet's directory; retrying");
            }
            silent.gives_up(Instant::now(), self.options.servers.len())
        };
        self.forget().await;
        if leaves {
            tracing::warn!(
                fleet = self.options.fleet,
                "NATS does not answer: connecting to another of its servers"
            );
            let _ = self.client().force_reconnect().await;
        }
        result
    }
}

impl Nats {
    /// Its connection, for what goes from node to node.
    pub(super) fn client(&self) -> async_nats::Client {
        self.jetstream.client()
    }

    pub(super) const fn options(&self) -> &Options {
        &self.options
    }
}

impl Directory for Nats {
    fn look<'a>(&'a self, line: &'a str) -> Later<'a, There> {
        Box::pin(async move {
            let look = async { self.lines().await?.entry(key(line)).await.map_err(away) };
            Ok(self.heard(look.await).await?.as_ref().map(there))
        })
    }

    fn put<'a>(
        &'a self,
        line: &'a str,
        expected: Option<Revision>,
        entry: LineEntry,
    ) -> Later<'a, Option<Revision>> {
        Box::pin(async move {
            let put = async { update(&self.lines().await?, line, expected, encode(entry).into()).await };
            self.heard(put.await).await
        })
    }

    fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>> {
        Box::pin(async move {
            let store = self.lines().await?;
            let mut changes = store.watch_all().await.map_err(away)?;
            let created = store.stream.get_info().await.map_err(away)?.created;
            let mut same = tokio::time::interval(SAME);
            same.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let (tell, told) = mpsc::channel(WAITING);
            // It is polled all the time: one that nobody polls may end without a word (nats.rs #1596).
            #[expect(clippy::disallowed_methods, reason = "it ends when whoever asked is gone")]
            tokio::spawn(async move {
                loop {
                    let change = tokio::select! {
                        change = changes.next() => change,
                        // One that was lost and made anew may begin at a lower number, and then tells nothing of it for ever.
                        _ = same.tick() => match store.stream.get_info().await {
                            Ok(info) if info.created != created => return,
                            _ => continue,
                        },
                        () = tell.closed() => return,
                    };
                    // An error is a gap.
                    let Some(Ok(entry)) = change else { return };
                    let Some(line) = name(&entry.key) else { continue };
                    let changed = Changed { line, there: Some(there(&entry)) };
                    if tell.try_send(changed).is_err() {
                        return;
                    }
                }
            });
            Ok(told)
        })
    }

    fn recall<'a>(&'a self, call: &'a str) -> Later<'a, Recalled> {
        Box::pin(async move {
            let recall = async { self.calls().await?.entry(key(call)).await.map_err(away) };
            let noted = self.noted(recall.await).await?.filter(|entry| entry.operation == kv::Operation::Put);
            Ok(noted.map(|entry| (Revision(entry.revision), entry.value.into())))
        })
    }

    fn keeps(&self) -> Option<Duration> {
        Some(self.options.calls_kept).filter(|kept| !kept.is_zero())
    }

    fn note<'a>(
        &'a self,
        call: &'a str,
        expected: Option<Revision>,
        note: &'a [u8],
    ) -> Later<'a, Option<Revision>> {
        Box::pin(async move {
            let put = async {
                let store = self.calls().await?;
                let noted = update(&store, call, expected, note.to_owned().into()).await?;
                // What was deleted is not there, and its mark is.
                match (noted, expected) {
                    (None, None) => match deleted(&store, call).await? {
                        Some(mark) => update(&store, call, Some(mark), note.to_owned().into()).await,
                        None => Ok(None),
                    },
                    _ => Ok(noted),
                }
            };
            self.noted(put.await).await
        })
    }
}

/// Writes what is to be under a name if what is there has this revision, or if nothing is there.
async fn update(
    store: &Store,
    name: &str,
    expected: Option<Revision>,
    value: Bytes,
) -> Result<Option<Revision>, Away> {
    match store.update(key(name), value, expected.map_or(0, |revision| revision.0)).await {
        Ok(revision) => Ok(Some(Revision(revision))),
        Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
        Err(error) => Err(away(error)),
    }
}

/// The revision of the mark that a deletion by hand left.
async fn deleted(store: &Store, name: &str) -> Result<Option<Revision>, Away> {
    let entry = store.entry(key(name)).await.map_err(away)?;
    let deleted = entry.filter(|entry| entry.operation != kv::Operation::Put);
    Ok(deleted.map(|entry| Revision(entry.revision)))
}

fn away(error: impl std::error::Error) -> Away {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let _ = write!(words, ": {deeper}");
        cause = deeper.source();
    }
    Away(words)
}

/// What an entry of the bucket says. One that somebody deleted by hand left a mark with a number: nobody knows whose it was, and it is waited for
/// like any other's.
fn there(entry: &kv::Entry) -> (Revision, LineEntry) {
    let text = if entry.operation == kv::Operation::Put { &*entry.value } else { &[] };
    (Revision(entry.revision), decode(text))
}

/// A name as a key: any text, in hexadecimal, since a key may not have every character.
fn key(name: &str) -> String {
    name.bytes().fold(String::from("x"), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

fn name(key: &str) -> Option<String> {
    let digits = key.strip_prefix('x')?.as_bytes();
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::{LEAVES, Silent, key, name};
    use tokio::time::Instant;

    #[test]
    fn a_server_that_does_not_answer_is_left_for_each_other_once() {
        let (begun, mut silent) = (Instant::now(), Silent::default());
        let tries = (0..100).filter(|at: &u32| silent.gives_up(begun + LEAVES * *at / 2, 3)).count();
        assert_eq!(tries, 2, "there are two others");
        silent = Silent::default();
        assert!(!silent.gives_up(begun, 3), "once is nothing");
        assert!(!silent.gives_up(begun + LEAVES / 2, 3));
        assert!(silent.gives_up(begun + LEAVES, 3));
        let mut only = Silent::default();
        assert!(!(0..100).any(|at| only.gives_up(begun + LEAVES * at, 1)), "there is no other");
    }

    #[test]
    fn every_name_has_a_key_and_every_key_its_name() {
        for line in ["files", "", "a b.c/ä*>", "x"] {
            assert_eq!(name(&key(line)).as_deref(), Some(line));
        }
        assert!(name("y00").is_none() && name("x0g").is_none() && name("xff").is_none());
    }
}
