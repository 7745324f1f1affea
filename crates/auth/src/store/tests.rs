#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::record::{ClientRecord, Credential, Granted, Method, Origin, StepUps};
use super::{Pointer, Store, Taken};
use crate::address::Address;
#[cfg(unix)]
use crate::error::ErrorKind;
use crate::secret::Secret;
use crate::system;
use crate::token::Tokens;

mod kept;

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-auth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn server() -> Address {
    Address::of_server("https://mcp.example.com/mcp").unwrap()
}

fn granted(access: &str) -> Granted {
    let tokens = Tokens {
        access: Secret::from(access),
        refresh: Some(Secret::from("refresh-refresh")),
        expires_in: Some(1000),
        scopes: None,
    };
    Granted::new("https://mcp.example.com/mcp".to_owned(), tokens, vec!["a".to_owned()], 5000)
}

fn credential(access: &str) -> Credential {
    let client = ClientRecord {
        id: "client".to_owned(),
        secret: Some(Secret::from("a-secret-of-the-client")),
        secret_expires_at: None,
        method: Method::ClientSecretBasic,
        origin: Origin::Registered,
        redirect_uri: None,
        is_gone: false,
    };
    Credential {
        version: 1,
        issuer: "https://as.example.com".to_owned(),
        token_endpoint: "https://as.example.com/token".to_owned(),
        revocation_endpoint: None,
        client,
        grants: [(server().canonical(), granted(access))].into(),
    }
}

fn pointer() -> Pointer {
    Pointer::new(&server(), "https://as.example.com", "client")
}

async fn stored(store: &Store, access: &str) {
    let Ok(Taken::Ours(lock)) = store.lock(&pointer(), Duration::ZERO).await else {
        panic!("the lock is free")
    };
    store.write(&lock, credential(access), "test").await.unwrap();
    store.point(&lock, pointer()).await.unwrap();
}

#[tokio::test]
async fn a_login_is_the_users_alone_and_is_read_back() {
    let folder = Folder::new("alone");
    let store = Store::open(&folder.0).unwrap();
    assert_eq!(store.find(&server()).unwrap(), None);
    stored(&store, "access-access").await;
    let read = store.read(&store.find(&server()).unwrap().unwrap()).unwrap().unwrap();
    assert_eq!(read.grants[&server().canonical()].access, Secret::from("access-access"));
    assert_eq!(read.client.secret, Some(Secret::from("a-secret-of-the-client")));
    for place in ["credentials", "servers"] {
        for entry in std::fs::read_dir(folder.0.join(place)).unwrap() {
            let entry = entry.unwrap();
            #[cfg(unix)]
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert!(!system::is_open_to_others(&entry));
            let name = entry.file_name().into_string().unwrap();
            assert!(!name.contains("example") && !name.starts_with('.'), "{name}");
        }
    }
    assert!(!format!("{read:?}").contains("access-access"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_can_write_is_not_believed() {
    let folder = Folder::new("believed");
    let store = Store::open(&folder.0).unwrap();
    stored(&store, "access-access").await;
    let file = store.credential_file(&pointer());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = store.read(&pointer()).unwrap_err();
    assert!(error.kind() == ErrorKind::Store && error.to_string().contains("chmod"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_is_named_and_not_repeated() {
    let folder = Folder::new("damaged");
    let store = Store::open(&folder.0).unwrap();
    stored(&store, "access-access").await;
    let file = store.credential_file(&pointer());
    std::fs::write(&file, r#"{"version": 1, "issuer": "oops-a-secret"#).unwrap();
    let words = store.read(&pointer()).unwrap_err().to_string();
    assert!(words.contains(file.to_str().unwrap()) && !words.contains("oops"), "{words}");
}

#[tokio::test]
async fn what_a_killed_process_left_is_swept() {
    let folder = Folder::new("swept");
    let store = Store::open(&folder.0).unwrap();
    let file = store.credential_file(&pointer());
    let left = file.with_file_name(format!(".{}.left", file.file_name().unwrap().to_str().unwrap()));
    std::fs::write(&left, "half a tok").unwrap();
    stored(&store, "access-access").await;
    assert!(!left.exists());
    // What another process writes at this moment is not swept, even if that has no lock.
    let (waits, arg) = if cfg!(windows) { ("cmd", "/k") } else { ("sleep", "600") };
    let mut other = Command::new(waits).arg(arg).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let theirs = left.with_extension(format!("{}.x", other.id()));
    std::fs::write(&theirs, "half a tok").unwrap();
    stored(&store, "access-access").await;
    assert!(theirs.exists());
    other.kill().unwrap();
    other.wait().unwrap();
    stored(&store, "access-access").await;
    assert!(!theirs.exists());
    let (old, new) = (folder.0.join(".changed.old"), folder.0.join(".changed.new"));
    std::fs::write(&new, "x").unwrap();
    let hour = linetender_wire::wall::wall_clock() - Duration::from_secs(3600);
    std::fs::File::create(&old).unwrap().set_modified(hour).unwrap();
    Store::open(&folder.0).unwrap();
    assert!(!old.exists() && new.exists(), "another process may just be writing it");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_lock_learns_who_has_it() {
    let folder = Folder::new("lock");
    let store = Store::open(&folder.0).unwrap();
    let Ok(Taken::Ours(lock)) = store.lock(&pointer(), Duration::ZERO).await else {
        panic!("the lock is free")
    };
    let second = store.lock(&pointer(), Duration::from_secs(14)).await.unwrap();
    // What is locked cannot be read on Windows.
    let is_us = |pid: Option<u32>| pid == Some(std::process::id()) || cfg!(windows) && pid.is_none();
    assert!(matches!(second, Taken::Theirs(pid) if is_us(pid)));
    drop(lock);
    assert!(matches!(store.lock(&pointer(), Duration::ZERO).await.unwrap(), Taken::Ours(_)));
}

#[tokio::test]
async fn a_change_by_another_is_seen_and_silence_is_not() {
    let folder = Folder::new("seen");
    let store = Store::open(&folder.0).unwrap();
    let mut changes = store.changes();
    // Another process has a store of its own.
    let other = Store::open(&folder.0).unwrap();
    for access in ["access-one", "access-two"] {
        changes.mark_unchanged();
        stored(&other, access).await;
        tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
        // The pointer may be seen apart from the credential.
        let _ = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
    }
    assert!(tokio::time::timeout(Duration::from_secs(1), changes.changed()).await.is_err());
}

#[test]
fn a_refresh_token_that_is_not_replaced_is_kept() {
    let before = granted("access-one");
    let tokens = Tokens { access: Secret::from("access-two"), refresh: None, expires_in: None, scopes: None };
    let after = before.renewed(tokens, 6000);
    assert_eq!((after.refresh, after.expires_at, after.scopes), (before.refresh, None, before.scopes));
}

#[test]
fn a_token_is_renewed_before_it_ends_but_not_long_before() {
    assert_eq!(granted("x").renewal(), Some((5880, 5940)));
    let short = Granted { expires_at: Some(5020), ..granted("x") };
    assert_eq!(short.renewal(), Some((5016, 5018)));
    let endless = Granted { expires_at: None, ..granted("x") };
    assert!(endless.renewal().is_none() && endless.is_valid(u64::MAX));
}

#[test]
fn step_ups_are_counted_until_there_was_peace() {
    let two = StepUps::default().another(100_000).another(100_010);
    assert!(!two.may(100_020) && two.may(100_700));
    assert_eq!(two.another(100_700).count, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn logins_with_several_clients_do_not_disturb_each_other() {
    let folder = Folder::new("several");
    let store = Store::open(&folder.0).unwrap();
    for round in 0..50 {
        let mut pointing = tokio::task::JoinSet::new();
        for client in ["one", "two", "three", "four"] {
            let store = store.clone();
            let work = async move {
                let pointer = Pointer::new(&server(), "https://as.example.com", client);
                let Ok(Taken::Ours(lock)) = store.lock(&pointer, Duration::from_secs(5)).await else {
                    panic!("nobody else has this lock")
                };
                store.point(&lock, pointer).await.map(drop)
            };
            pointing.spawn(work);
        }
        for done in pointing.join_all().await {
            assert!(done.is_ok(), "round {round}: {done:?}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_fifo_in_place_of_the_announcement_holds_nobody_up() {
    let folder = Folder::new("fifo");
    let store = Store::open(&folder.0).unwrap();
    let file = folder.0.join("changed");
    let made = Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    let following = linetender_wire::aside(move || super::files::announced(&folder.0).is_none());
    let is_passed_over = tokio::time::timeout(Duration::from_secs(5), following).await;
    // Whoever waits for the other end of a FIFO waits for this one.
    let _opened = std::fs::OpenOptions::new().read(true).write(true).open(&file);
    assert_eq!(is_passed_over.ok().flatten(), Some(true));
    drop(store);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_can_read_is_named() {
    let folder = Folder::new("readable");
    let store = Store::open(&folder.0).unwrap();
    stored(&store, "access-access").await;
    assert!(store.readable_by_others().is_empty());
    let file = store.credential_file(&pointer());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(store.readable_by_others(), [file]);
}
