//! What a login and a logout do with a file that they cannot use: other logins in it stay.

use std::fs;
use std::path::PathBuf;

use linetender_wire::http::{Asker, Surroundings};
use serde_json::{Value, json};

use super::{Folder, credential, granted, pointer, server, stored};
use crate::account::{LoggedOut, list, logout_through};
use crate::address::Address;
use crate::client::Client;
use crate::discover::Discovered;
use crate::error::Error;
use crate::login::Login;
use crate::metadata::Issuer;
use crate::renew::locked;
use crate::store::{Pointer, Store, Stored};

/// A server whose login is in the same file.
const OTHER: &str = "https://other.example.com/mcp";

fn asker() -> Asker {
    Asker::new(Surroundings::bare())
}

/// Both servers are logged in to.
async fn both(store: &Store) {
    stored(store, "access-one").await;
    let other = Address::of_server(OTHER).unwrap();
    let lock = locked(store, &pointer()).await.unwrap();
    let mut credential = credential("access-one");
    credential.grants.insert(other.canonical(), granted("access-other"));
    store.write(&lock, credential, "test").await.unwrap();
    store.point(&lock, Pointer::new(&other, "https://as.example.com", "client")).await.unwrap();
}

/// A person logged in to the first server, and the token is to be stored.
async fn login(store: &Store) -> Result<Option<PathBuf>, Error> {
    let login = Login::new(store, "https://mcp.example.com/mcp", Client::default()).unwrap().through(asker());
    let found = Discovered {
        resource: "https://mcp.example.com/mcp".to_owned(),
        resource_scopes: None,
        issuer: Issuer::by_default("https://as.example.com"),
        is_guess: false,
    };
    let lock = locked(store, &pointer()).await?;
    login.keep_under(lock, &found, credential("x").client, granted("access-new")).await
}

async fn logout(store: &Store) -> Result<LoggedOut, Error> {
    logout_through(store, "https://mcp.example.com/mcp", &asker()).await
}

fn access(store: &Store, server: &str) -> Option<String> {
    let server = Address::of_server(server).unwrap();
    let mut credential = store.read(&store.find(&server).ok()??).ok()??;
    Some(credential.grants.remove(&server.canonical())?.access.expose().to_owned())
}

fn change(file: &PathBuf, how: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    how(&mut value);
    fs::write(file, value.to_string()).unwrap();
}

/// What is in the folder of the credentials.
fn names(store: &Store) -> Vec<String> {
    let listed = fs::read_dir(store.folder().join("credentials")).unwrap();
    listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_login_of_another_version_is_neither_replaced_nor_deleted() {
    let folder = Folder::new("version");
    let store = Store::open(&folder.0).unwrap();
    both(&store).await;
    let file = store.credential_file(&pointer());
    change(&file, |login| login["version"] = json!(2));
    // The next version may look like this one, or not at all.
    for _ in 0..2 {
        let before = fs::read(&file).unwrap();
        for failed in [login(&store).await.unwrap_err(), logout(&store).await.unwrap_err()] {
            assert!(failed.to_string().contains("another version of linetender"), "{failed}");
        }
        assert_eq!(fs::read(&file).unwrap(), before);
        assert!(store.find(&server()).unwrap().is_some(), "nothing is half deleted");
        change(&file, |login| *login = json!({ "version": 2, "logins": [] }));
    }
    // Which credential is a server's own can be of another version, too.
    let file = store.server_file(&server().canonical());
    change(&file, |pointer| pointer["version"] = json!(2));
    let before = fs::read(&file).unwrap();
    assert!(logout(&store).await.is_err());
    let lock = locked(&store, &pointer()).await.unwrap();
    assert!(store.point(&lock, pointer()).await.is_err());
    assert_eq!(fs::read(&file).unwrap(), before);
}

/// Root reads every file, so this one is refused for another reason: others can write to it.
#[cfg(unix)]
#[tokio::test]
async fn a_login_that_may_not_be_read_is_neither_replaced_nor_deleted() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new("permissions");
    let store = Store::open(&folder.0).unwrap();
    both(&store).await;
    let file = store.credential_file(&pointer());
    let before = fs::read(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(store.look(&pointer()), Stored::Unreadable(_)));
    for failed in [login(&store).await.unwrap_err(), logout(&store).await.unwrap_err()] {
        assert!(failed.to_string().contains("chmod"), "{failed}");
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    // As soon as the file can be read again, everything is there.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(login(&store).await.unwrap(), None);
    assert_eq!(access(&store, "https://mcp.example.com/mcp").as_deref(), Some("access-new"));
    assert_eq!(access(&store, OTHER).as_deref(), Some("access-other"));
    assert!(matches!(logout(&store).await.unwrap(), LoggedOut::Deleted));
    assert_eq!(access(&store, OTHER).as_deref(), Some("access-other"));
    assert_eq!(list(&store).unwrap().len(), 1);
}

#[tokio::test]
async fn a_damaged_login_is_moved_aside_by_a_login_and_deleted_by_a_logout() {
    let folder = Folder::new("aside");
    let store = Store::open(&folder.0).unwrap();
    both(&store).await;
    let file = store.credential_file(&pointer());
    let half = r#"{"version": 1, "issuer": "https://as.exam"#;
    fs::write(&file, half).unwrap();
    assert!(matches!(store.look(&pointer()), Stored::Damaged(_)));
    let aside = login(&store).await.unwrap().unwrap();
    assert_eq!(fs::read_to_string(&aside).unwrap(), half);
    assert_eq!(access(&store, "https://mcp.example.com/mcp").as_deref(), Some("access-new"));
    assert_eq!(names(&store).len(), 2);
    assert!(matches!(logout(&store).await.unwrap(), LoggedOut::Deleted));
    assert!(names(&store).is_empty(), "{:?}", names(&store));
    // Without a login in between, too; the pointer may be damaged as well.
    stored(&store, "access-one").await;
    fs::write(&file, half).unwrap();
    let LoggedOut::NotRevoked(why) = logout(&store).await.unwrap() else { panic!("no token is known") };
    assert!(why.to_string().contains(file.to_str().unwrap()), "{why}");
    assert!(names(&store).is_empty() && store.find(&server()).unwrap().is_none());
    stored(&store, "access-one").await;
    fs::write(store.server_file(&server().canonical()), half).unwrap();
    assert!(matches!(logout(&store).await.unwrap(), LoggedOut::Deleted));
    assert!(names(&store).is_empty() && store.find(&server()).unwrap().is_none());
}

/// Without file descriptors nothing can be read: that says nothing of what is there.
#[cfg(target_os = "linux")]
#[test]
fn a_login_without_file_descriptors_replaces_nothing() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let folder = Folder::new("descriptors");
    let store = Store::open(&folder.0).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(both(&store));
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
    let found = store.look(&pointer());
    let pointed = store.look_for(&server());
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(matches!(found, Stored::Unreadable(error) if error.is_passing()));
    assert!(matches!(pointed, Stored::Unreadable(_)));
}
