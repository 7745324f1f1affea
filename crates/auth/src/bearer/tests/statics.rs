//! Static tokens, and their file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::time::advance;

use super::kit::{START, clock, rules};
use crate::bearer::fetch::Way;
use crate::bearer::{BearerRules, Bearers, By, Refused, TokenFile};
use crate::error::ErrorKind;

const SECOND: Duration = Duration::from_secs(1);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-bearer-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tokens.toml")
    }

    fn tokens(&self) -> TokenFile {
        TokenFile::at(self.file())
    }

    fn bearers(&self) -> Result<Bearers, String> {
        Bearers::with(BearerRules { tokens: Some(self.file()), jwt: None }, clock(), Way::Web)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(START + second)
}

/// Until the next look at the file.
async fn later(bearers: &Bearers, token: &str) -> Result<String, Refused> {
    advance(SECOND).await;
    assert_eq!(bearers.known(token, None), None, "somebody has to look");
    let checked = bearers.check(token, None).await.map(|known| known.name.clone());
    assert!(bearers.known(token, None).is_some(), "once a second");
    checked
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_made_is_known_until_it_expires() {
    let folder = Folder::new("made");
    let token = folder
        .tokens()
        .add_until("ci", &["ci".to_owned(), "Domain \"U\\sers\"".to_owned()], Some(at(60)))
        .await;
    let token = token.unwrap();
    assert!(token.expose().starts_with("lt_") && token.expose().len() == 46);
    assert_eq!(fs::metadata(folder.file()).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(folder.file()).unwrap();
    assert!(!text.contains(&token.expose()[3..]), "{text}");
    let bearers = folder.bearers().unwrap();
    let known = bearers.known(token.expose(), Some("git")).unwrap().unwrap();
    assert_eq!((known.name.as_str(), known.until, &known.by), ("ci", Some(at(60)), &By::Token));
    assert_eq!(known.groups, ["ci", "Domain \"U\\sers\""]);
    for other in ["lt_", "lt_x", &token.expose()[..45], &format!("{}x", token.expose()), "x"] {
        assert!(matches!(bearers.check(other, None).await, Err(Refused::Invalid(_))), "{other}");
    }
    advance(Duration::from_secs(60)).await;
    let Err(Refused::Invalid(words)) = bearers.check(token.expose(), None).await else { panic!() };
    assert!(words.contains("expired"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_file_counts_within_a_second() {
    let folder = Folder::new("changes");
    let one = folder.tokens().add_until("one", &[], None).await.unwrap();
    let bearers = folder.bearers().unwrap();
    let two = folder.tokens().add_until("two", &[], None).await.unwrap();
    assert_eq!(later(&bearers, two.expose()).await.unwrap(), "two");
    assert!(folder.tokens().remove("one").await.unwrap());
    assert!(!folder.tokens().remove("one").await.unwrap());
    assert!(bearers.known(one.expose(), None).unwrap().is_ok(), "no look is due");
    assert!(later(&bearers, one.expose()).await.is_err());
    assert_eq!(later(&bearers, two.expose()).await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_damaged_or_not_ours_alone_changes_nothing_and_one_that_is_gone_ends_all() {
    let folder = Folder::new("damaged");
    let token = folder.tokens().add_until("one", &[], None).await.unwrap();
    let token = token.expose();
    let bearers = folder.bearers().unwrap();
    let good = fs::read(folder.file()).unwrap();
    fs::write(folder.file(), "[tokens.one]\nhash = ").unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    fs::write(folder.file(), "").unwrap();
    assert!(later(&bearers, token).await.is_err());
    fs::write(folder.file(), &good).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    // Somebody else could have taken it out, or put one in.
    fs::write(folder.file(), "").unwrap();
    fs::set_permissions(folder.file(), Permissions::from_mode(0o666)).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    fs::set_permissions(folder.file(), Permissions::from_mode(0o600)).unwrap();
    assert!(later(&bearers, token).await.is_err());
    fs::write(folder.file(), &good).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    // A folder above it is to blame, and mended: the file itself looks the same.
    fs::write(folder.file(), "").unwrap();
    fs::set_permissions(&folder.0, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    fs::set_permissions(&folder.0, Permissions::from_mode(0o700)).unwrap();
    assert!(later(&bearers, token).await.is_err());
    fs::write(folder.file(), &good).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    // An editor may be about to write it anew.
    fs::remove_file(folder.file()).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
    assert!(later(&bearers, token).await.is_err());
    let words = bearers.change(BearerRules { tokens: Some(folder.file()), jwt: Some(rules()) }).unwrap_err();
    assert!(words.contains("linetender token add"), "{words}");
    fs::write(folder.file(), &good).unwrap();
    assert_eq!(later(&bearers, token).await.unwrap(), "one");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_says_why_and_shows_nothing_of_it() {
    let folder = Folder::new("refused");
    assert!(folder.bearers().unwrap_err().contains("does not exist"));
    fs::create_dir_all(&folder.0).unwrap();
    let hash = "a".repeat(64);
    for (text, word) in [
        ("[tokens.a]\nhash = \"lt_secret\"".to_owned(), "hash of a"),
        ("[tokens.a]\nhash = 7".to_owned(), "line 2"),
        ("[tokens.a]\ntoken = \"lt_secret\"".to_owned(), "line"),
        ("[token.a]".to_owned(), "line 1"),
        (format!("[tokens.\"a b\"]\nhash = \"sha256:{hash}\""), "name"),
        (format!("[tokens.\"*\"]\nhash = \"sha256:{hash}\""), "name"),
        (format!("[tokens.a]\nhash = \"sha256:{hash}\"\nexpires = \"soon\""), "expiry time of a"),
        (format!("[tokens.a]\nhash = \"sha256:{hash}\"\n[tokens.b]\nhash = \"sha256:{hash}\""), "same hash"),
        (format!("[tokens.a]\nhash = \"sha256:{hash}\"\ngroups = [\"\"]"), "groups of a"),
        (format!("[tokens.a]\nhash = \"sha256:{}é\"", &hash[..62]), "hash of a"),
    ] {
        fs::write(folder.file(), &text).unwrap();
        let words = folder.bearers().unwrap_err();
        assert!(words.contains(word) && !words.contains("secret"), "{words}");
        assert!(folder.tokens().list().is_err() && folder.tokens().add_until("c", &[], None).await.is_err());
        assert_eq!(fs::read_to_string(folder.file()).unwrap(), text, "it is not touched");
    }
    fs::write(folder.file(), "").unwrap();
    fs::set_permissions(folder.file(), Permissions::from_mode(0o622)).unwrap();
    assert!(folder.bearers().unwrap_err().contains("chmod"));
}

#[tokio::test]
async fn fifty_at_once_lose_no_token() {
    let folder = Folder::new("many");
    let mut adding = tokio::task::JoinSet::new();
    for number in 0..50 {
        let tokens = folder.tokens();
        adding.spawn(async move { tokens.add_until(&format!("t{number:02}"), &[], None).await.unwrap() });
    }
    let made = adding.join_all().await;
    let names: Vec<String> = folder.tokens().list().unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, (0..50).map(|number| format!("t{number:02}")).collect::<Vec<_>>());
    let bearers = folder.bearers().unwrap();
    assert!(made.iter().all(|token| bearers.known(token.expose(), None).unwrap().is_ok()));
    let again = folder.tokens().add_until("t07", &[], None).await.unwrap_err();
    assert!(again.kind() == ErrorKind::Config && again.to_string().contains("token remove t07"), "{again}");
    for bad in ["", "a b", "*", "group:x"] {
        assert_eq!(folder.tokens().add_until(bad, &[], None).await.unwrap_err().kind(), ErrorKind::Config);
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "the file and its lock");
}

#[test]
fn nothing_secret_is_in_debug() {
    let folder = Folder::new("debug");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.file(), "").unwrap();
    let shown = format!("{:?}", folder.bearers().unwrap());
    assert!(shown.starts_with("Bearers(BearerRules") && !shown.contains("sha256"), "{shown}");
}
