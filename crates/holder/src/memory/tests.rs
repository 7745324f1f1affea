use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use linetender::{Era, Kind, Memory as _, Remembered, Server};
use serde_json::value::RawValue;

use super::Memory;

/// A folder of the test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-memory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const HELLO: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"a","version":"1"}}"#;

fn known() -> Remembered {
    let tool =
        RawValue::from_string(r#"{ "name":"echo", "annotations":{"readOnlyHint":true} }"#.into()).unwrap();
    let lists = BTreeMap::from([(Kind::Tools, vec![tool])]);
    let greeting = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"x":1.50}"#;
    Remembered::new(Era::Legacy, greeting, lists).unwrap()
}

#[cfg(unix)]
#[test]
fn what_was_kept_comes_back_to_the_byte_and_nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("kept");
    let server = Server::stdio("s", ["server", "--flag"]).into();
    let page = Memory::open(&folder.0).unwrap().page(&server, Era::Legacy, Some(HELLO));
    assert!(page.recall().is_none());
    page.keep(&known());
    // Another process finds it by the same key.
    let again = Memory::open(&folder.0).unwrap().page(&server, Era::Legacy, Some(HELLO)).recall().unwrap();
    let text = |known: &Remembered| (known.greeting().to_owned(), format!("{:?}", known.lists()));
    assert_eq!(text(&again), text(&known()));
    assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&folder.0).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn another_server_another_folder_another_secret_or_another_agent_is_another_page() {
    let folder = Folder::new("other");
    let memory = Memory::open(&folder.0).unwrap();
    let one = Server::stdio("s", ["server", "a"]);
    let page = |server: Server, era, hello: &str| format!("{:?}", memory.page(&server, era, Some(hello)));
    let first = page(one.clone().into(), Era::Legacy, HELLO);
    assert_eq!(first, page(Server::stdio("renamed", ["server", "a"]).into(), Era::Legacy, HELLO));
    assert_eq!(
        first,
        page(one.clone().into(), Era::Legacy, &HELLO.replace(r#""name":"a""#, r#""name":"b""#))
    );
    let others = [
        page(Server::stdio("s", ["servera"]).into(), Era::Legacy, HELLO),
        page(one.clone().dir("/").into(), Era::Legacy, HELLO),
        page(one.clone().env("TOKEN", "x").into(), Era::Legacy, HELLO),
        page(one.clone().env("TOKEN", "y").into(), Era::Legacy, HELLO),
        page(one.clone().into(), Era::Modern, HELLO),
        page(one.clone().into(), Era::Legacy, &HELLO.replace("2025-06-18", "2025-03-26")),
        page(one.clone().into(), Era::Legacy, &HELLO.replace("roots", "sampling")),
        page(Server::http("s", "http://127.0.0.1:1/mcp").into(), Era::Legacy, HELLO),
        page(
            Server::http("s", "http://127.0.0.1:1/mcp").header("Authorization", "x").into(),
            Era::Legacy,
            HELLO,
        ),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_ne!(&first, other, "{at}");
        assert!(!others[..at].contains(other), "{at}");
    }
}

#[test]
fn a_server_that_does_not_start_three_times_is_forgotten() {
    let folder = Folder::new("failed");
    let page =
        Memory::open(&folder.0).unwrap().page(&Server::stdio("s", ["x"]).into(), Era::Legacy, Some(HELLO));
    page.keep(&known());
    page.failed();
    page.failed();
    assert!(page.recall().is_some());
    page.keep(&known());
    page.failed();
    page.failed();
    assert!(page.recall().is_some(), "a good start between them makes it three anew");
    page.failed();
    assert!(page.recall().is_none());
}

#[test]
fn what_is_broken_is_no_page_and_a_broken_key_only_forgets() {
    let folder = Folder::new("broken");
    let server = Server::stdio("s", ["x"]).into();
    let memory = Memory::open(&folder.0).unwrap();
    let page = memory.page(&server, Era::Legacy, Some(HELLO));
    page.keep(&known());
    let file = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some()).unwrap();
    let text = fs::read(&file).unwrap();
    for cut in 0..text.len() {
        fs::write(&file, &text[..cut]).unwrap();
        assert!(page.recall().is_none(), "{cut}");
    }
    fs::write(folder.0.join("key"), "short").unwrap();
    let page = Memory::open(&folder.0).unwrap().page(&server, Era::Legacy, Some(HELLO));
    assert!(page.recall().is_none());
    page.keep(&known());
    assert!(Memory::open(&folder.0).unwrap().page(&server, Era::Legacy, Some(HELLO)).recall().is_some());
}

#[test]
fn many_that_begin_at_once_go_by_one_key_and_pages_do_not_pile_up() {
    let folder = Folder::new("many");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let path = folder.0.clone();
            std::thread::spawn(move || Memory::open(path).unwrap().key)
        })
        .collect();
    let keys: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(keys.iter().all(|key| *key == keys[0]));
    let memory = Memory::open(&folder.0).unwrap();
    for number in 0..300 {
        memory.page(&Server::stdio("s", [format!("{number}")]).into(), Era::Legacy, None).keep(&known());
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 256 + 1);
}
