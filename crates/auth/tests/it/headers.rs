//! Credentials that other programs keep.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linetender::{Key, Keys as _, NoKey, Refused};
use linetender_auth::{HeaderKeys, Secret, Source};

use crate::logins::words;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-auth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn refusal(key: Key) -> Refused {
    Refused { key: Some(key), status: 401, challenge: "Bearer".into() }
}

fn command(argv: &[&str]) -> Arc<HeaderKeys> {
    Arc::new(HeaderKeys::new(Source::Command(argv.iter().map(|word| (*word).to_owned()).collect())))
}

#[tokio::test]
async fn a_file_is_read_again_after_a_refusal() {
    let folder = Folder::new("file");
    let file = folder.0.join("token");
    std::fs::write(&file, "token-number-one\n").unwrap();
    let template = Secret::new(format!("Bearer ${{file:{}}}", file.display()));
    let keys = Arc::new(HeaderKeys::new(Source::Headers(vec![("Authorization".to_owned(), template)])));
    let first = keys.clone().key(None).await.unwrap().unwrap();
    assert_eq!(first.headers["authorization"], "Bearer token-number-one");
    assert!(first.headers["authorization"].is_sensitive());
    let no = keys.clone().key(Some(refusal(first.clone()))).await.unwrap_err();
    assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains("the same"), "{no:?}");
    std::fs::write(&file, "token-number-two\n").unwrap();
    let second = keys.clone().key(Some(refusal(first))).await.unwrap().unwrap();
    assert_eq!(second.headers["authorization"], "Bearer token-number-two");
    std::fs::remove_file(&file).unwrap();
    let no = keys.key(None).await.unwrap_err();
    assert!(words(&no).contains(file.to_str().unwrap()), "{no:?}");
}

#[tokio::test]
async fn a_command_prints_a_token_or_headers() {
    let key = command(&["printf", "abc.def\n"]).key(None).await.unwrap().unwrap();
    assert_eq!(key.headers["authorization"], "Bearer abc.def");
    let key = command(&["printf", r#"{"x-api-key": "k1", "x-team": "t"}"#]).key(None).await.unwrap().unwrap();
    assert_eq!(
        (&key.headers["x-api-key"], &key.headers["x-team"]),
        (&"k1".parse().unwrap(), &"t".parse().unwrap())
    );
    // No shell reads it.
    let key = command(&["printf", "%s", "$HOME;x"]).key(None).await.unwrap().unwrap();
    assert_eq!(key.headers["authorization"], "Bearer $HOME;x");
}

#[tokio::test]
async fn a_command_that_misbehaves_is_named_and_its_output_is_not() {
    for (argv, said) in [
        (&["sh", "-c", "echo kiwi-secret-4711; exit 3"][..], "exit status: 3"),
        (&["sh", "-c", "echo 'password=kiwi-secret-4711' >&2; exit 1"], "exit status: 1"),
        (&["sh", "-c", "echo kiwi-secret-4711 and more"], "nothing else"),
        (&["sh", "-c", "echo '{\"a\": [\"kiwi-secret-4711\"]}'"], "not an object"),
        (&["sh", "-c", "echo '{\"a b kiwi-secret-4711\": \"x\"}'"], "name of a header"),
        (&["sh", "-c", "yes kiwi-secret-4711"], "more than 65536 bytes"),
        (&["/no/such/program"], "could not be started"),
        (&[], "empty"),
    ] {
        let no = command(argv).key(None).await.unwrap_err();
        let words = words(&no);
        assert!(words.contains(said) && !words.contains("kiwi"), "{argv:?}: {words}");
    }
}

/// The process whose number is in this file ends.
async fn ends(pid: &Path) {
    for _ in 0..200 {
        if let Ok(pid) = std::fs::read_to_string(pid)
            && !pid.trim().is_empty()
        {
            // A zombie is as good as gone.
            let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            if status.is_empty() || status.contains(") Z") {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} still runs", pid.display());
}

/// A script whose child writes its number into a file and sleeps.
fn with_child(pid: &Path, rest: &str) -> String {
    let sleeper = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", pid.display());
    format!("sh -c '{sleeper}' & while ! test -e {}; do sleep 0.01; done; {rest}", pid.display())
}

#[tokio::test]
async fn a_command_that_leaves_a_child_has_printed_all_when_it_ends_and_the_child_ends_too() {
    let folder = Folder::new("leaves");
    let pid = folder.0.join("pid");
    let began = Instant::now();
    let key = command(&["sh", "-c", &with_child(&pid, "echo abc.def")]).key(None).await.unwrap().unwrap();
    assert_eq!(key.headers["authorization"], "Bearer abc.def");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    ends(&pid).await;
}

#[tokio::test]
async fn a_command_whose_child_has_a_session_of_its_own_is_not_waited_for() {
    let folder = Folder::new("escapes");
    let pid = folder.0.join("pid");
    // It holds the output open, and nothing of ours can end it.
    let script = format!("setsid sh -c 'echo $$ > {0}; exec sleep 20' & echo abc.def", pid.display());
    let key = command(&["sh", "-c", &script]).key(None).await.unwrap().unwrap();
    assert_eq!(key.headers["authorization"], "Bearer abc.def");
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_any_more_ends_with_its_children() {
    let folder = Folder::new("dropped");
    let pid = folder.0.join("pid");
    let asking = command(&["sh", "-c", &with_child(&pid, "wait")]).key(None);
    let started = async {
        while !pid.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        answered = asking => panic!("{answered:?}"),
        () = started => {}
    }
    ends(&pid).await;
}

#[tokio::test]
async fn a_command_that_hangs_is_ended_with_its_children() {
    let folder = Folder::new("tree");
    let pid = folder.0.join("pid");
    let no = command(&["sh", "-c", &with_child(&pid, "wait")]).key(None).await.unwrap_err();
    assert!(words(&no).contains("within 10 s"), "{no:?}");
    ends(&pid).await;
}

#[tokio::test]
async fn a_command_that_hangs_is_ended() {
    let folder = Folder::new("hang");
    let pid = folder.0.join("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", pid.display());
    let began = Instant::now();
    let no = command(&["sh", "-c", &script]).key(None).await.unwrap_err();
    assert!(words(&no).contains("within 10 s") && began.elapsed() < Duration::from_secs(30), "{no:?}");
    let pid = std::fs::read_to_string(pid).unwrap();
    for _ in 0..100 {
        // A zombie is as good as gone.
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        if status.is_empty() || status.contains(") Z") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{pid} still runs");
}

#[tokio::test]
async fn what_cannot_be_read_is_tried_again_and_a_file_that_comes_back_is_noticed() {
    let folder = Folder::new("again");
    let file = folder.0.join("token");
    let template = Secret::new(format!("Bearer ${{file:{}}}", file.display()));
    let keys = Arc::new(HeaderKeys::new(Source::Headers(vec![("Authorization".to_owned(), template)])));
    let mut changes = keys.changes();
    for _ in 0..2 {
        let no = keys.clone().key(None).await.unwrap_err();
        assert!(matches!(no, NoKey::Later { .. }), "{no:?}");
    }
    let no = keys.clone().key(None).await.unwrap_err();
    assert!(matches!(no, NoKey::Login { .. }), "{no:?}");
    for token in ["token-number-one", "token-number-two-two"] {
        std::fs::write(&file, token).unwrap();
        tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("seen soon").unwrap();
        let key = keys.clone().key(None).await.unwrap().unwrap();
        assert_eq!(key.headers["authorization"], format!("Bearer {token}"));
    }
    let flaky = command(&["sh", "-c", &format!("rm {}", file.display())]);
    assert!(matches!(flaky.key(None).await.unwrap_err(), NoKey::Later { .. }));
}
