//! Files and folders that others could have put there: refused with the reason, and left as they are.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

use super::kit::{Home, Shim, until};

/// Somebody else.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Gives a file to somebody else, which only root can do.
fn gave_away(path: &Path) -> bool {
    let given = chown(path, Some(NOBODY), None).is_ok();
    if !given {
        eprintln!("not tried: a file of another user, which only root can make");
    }
    given
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a shim says whose runtime folder is below this one.
fn with_runtime_folder(home: &Home, folder: &Path) -> String {
    let mut linetender = home.linetender(&[]);
    linetender.env("XDG_RUNTIME_DIR", folder);
    let mut shim = Shim::start(linetender, &[], &[]).greeted();
    shim.echo();
    shim.leave()
}

#[test]
fn x12_a_runtime_folder_that_others_can_write_is_neither_used_nor_changed() {
    let home = Home::new();
    let runtime = home.path().join("runtime");
    let ours = runtime.join("linetender");
    fs::create_dir_all(&ours).unwrap();
    set_mode(&ours, 0o777);
    let said = with_runtime_folder(&home, &runtime);
    assert_eq!(said.matches("no status socket in this folder").count(), 1, "{said}");
    assert!(said.contains("can be written by every user (mode 0777)"), "{said}");
    assert_eq!((mode(&ours), fs::read_dir(&ours).unwrap().count()), (0o777, 0));
    if gave_away(&ours) {
        let said = with_runtime_folder(&home, &runtime);
        assert!(said.contains("belongs to user 65534"), "{said}");
    }
    // A link to a folder of ours is as good as a chmod of whoever made it.
    fs::remove_dir(&ours).unwrap();
    let public = home.path().join("public");
    fs::create_dir(&public).unwrap();
    set_mode(&public, 0o755);
    symlink(&public, &ours).unwrap();
    let said = with_runtime_folder(&home, &runtime);
    assert!(said.contains("a symbolic link instead of a folder"), "{said}");
    assert_eq!((mode(&public), fs::read_dir(&public).unwrap().count()), (0o755, 0));
}

#[test]
fn x12_status_does_not_ask_whom_others_could_have_put_there() {
    let home = Home::new();
    let ours = home.path().join("runtime/linetender");
    fs::create_dir_all(&ours).unwrap();
    let socket = ours.join(format!("{}.sock", std::process::id()));
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let status = || {
        let mut status = home.linetender(&["status"]);
        status.env("XDG_RUNTIME_DIR", home.path().join("runtime")).output().unwrap()
    };
    set_mode(&ours, 0o777);
    let refused = status();
    assert!(said(&refused).contains("linetender: ignored"), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stdout).contains("No linetender process is running"),
        "{refused:?}"
    );
    set_mode(&ours, 0o700);
    if gave_away(&socket) {
        let refused = status();
        assert!(said(&refused).contains("belongs to user 65534"), "{refused:?}");
    }
    assert!(listener.accept().is_err(), "nobody asked");
}

#[test]
fn x12_a_journal_that_is_no_file_of_ours_is_neither_written_nor_waited_for() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let (journal, target) = (home.state().join("journal.jsonl"), home.path().join("target"));
    fs::write(&target, "keep").unwrap();
    let refused = |why: &str| {
        let said = home.shim(&[], &[]).leave();
        assert_eq!(said.matches("cannot write the journal").count(), 1, "{said}");
        assert!(said.contains(why), "{said}");
        let read = home.run(&["journal"]);
        assert!(String::from_utf8_lossy(&read.stderr).contains(why), "{read:?}");
        assert_eq!(read.status.code(), Some(1), "{read:?}");
    };
    symlink(&target, &journal).unwrap();
    refused("is a symbolic link");
    assert_eq!(fs::read_to_string(&target).unwrap(), "keep");
    fs::remove_file(&journal).unwrap();
    make_fifo(&journal);
    refused("is a FIFO");
    fs::remove_file(&journal).unwrap();
    fs::write(&journal, "").unwrap();
    set_mode(&journal, 0o666);
    refused("can be written by every user");
    set_mode(&journal, 0o600);
    if gave_away(&journal) {
        refused("belongs to user 65534");
    }
    assert_eq!(fs::read_to_string(&journal).unwrap(), "");
}

#[test]
fn x12_a_log_goes_to_no_file_that_others_chose() {
    let home = Home::new();
    let (log, target) = (home.path().join("log"), home.path().join("target"));
    fs::write(&target, "keep").unwrap();
    let run = |log: &Path| home.run(&["run", "--log", log.to_str().unwrap(), "--", "true"]);
    // Whoever can write here can put any link here.
    let public = home.path().join("public");
    fs::create_dir(&public).unwrap();
    symlink(&target, public.join("log")).unwrap();
    set_mode(&public, 0o777);
    let refused = run(&public.join("log"));
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(said(&refused).contains("where every user can replace it"), "{refused:?}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "keep");
    fs::write(&log, "").unwrap();
    set_mode(&log, 0o666);
    assert!(said(&run(&log)).contains("can be written by every user"));
    // A file that the user has made is appended to as it is, and so is a link of the user's own.
    set_mode(&log, 0o644);
    symlink(&log, home.path().join("link")).unwrap();
    let used = run(&home.path().join("link"));
    assert!(used.status.success(), "{used:?}");
    assert!(fs::read_to_string(&log).unwrap().contains("session ended"));
    assert_eq!(mode(&log), 0o644);
}

#[test]
fn x12_a_page_of_the_cache_that_others_can_write_is_ignored() {
    let home = Home::new();
    let shim = home.shim(&[], &[]);
    let folder = home.path().join(".cache/linetender/servers");
    let page = || {
        let pages = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        pages.into_iter().find(|path| path.extension().is_some_and(|end| end == "json"))
    };
    until("the page is written", || page().is_some());
    shim.leave();
    let page = page().unwrap();
    set_mode(&page, 0o666);
    let said = home.shim(&[], &[]).leave();
    assert!(said.contains("cached server page ignored"), "{said}");
    assert!(said.contains("can be written by every user"), "{said}");
}

#[test]
fn x12_a_config_that_others_can_write_or_replace_is_refused() {
    let home = Home::new();
    let folder = home.path().join("config");
    let config = folder.join("linetender.toml");
    fs::create_dir(&folder).unwrap();
    fs::write(&config, "[servers.a]\ncommand = 'true'\n").unwrap();
    let check = |path: &Path| home.run(&["serve", "--check", "--config", path.to_str().unwrap()]);
    let refused = |path: &Path, why: &str| {
        let output = check(path);
        // The report is wrapped to the width of a terminal.
        let said = said(&output).replace(['\n', '│'], " ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    };
    assert!(check(&config).status.success());
    set_mode(&config, 0o666);
    refused(&config, "can be written by every user");
    set_mode(&config, 0o644);
    set_mode(&folder, 0o777);
    refused(&config, "every user can replace it");
    // Where files can be added but not replaced, ours is ours.
    set_mode(&folder, 0o1777);
    assert!(check(&config).status.success());
    set_mode(&folder, 0o755);
    let link = home.path().join("link.toml");
    symlink(&config, &link).unwrap();
    assert!(check(&link).status.success());
    let fifo = home.path().join("fifo.toml");
    make_fifo(&fifo);
    refused(&fifo, "is a FIFO, not a regular file");
    if gave_away(&config) {
        refused(&config, "belongs to user 65534");
        chown(&config, Some(0), None).unwrap();
        assert!(std::os::unix::fs::lchown(&link, Some(NOBODY), None).is_ok());
        refused(&link, "is a symbolic link that belongs to user 65534");
    }
}

#[test]
fn x12_a_config_that_others_can_write_by_now_is_not_reloaded() {
    let home = Home::new();
    let config = home.path().join("linetender.toml");
    fs::write(&config, "[servers.a]\nurl = 'http://127.0.0.1:1/mcp'\n").unwrap();
    let mut serve =
        home.linetender(&["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap()]);
    let (mut from, to) = std::io::pipe().unwrap();
    let mut process = serve.stderr(to).stdin(std::process::Stdio::null()).spawn().unwrap();
    drop(serve);
    let mut log = String::new();
    let mut wait_for = |wanted: &str| {
        let mut bytes = [0; 4096];
        while !log.contains(wanted) {
            let read = from.read(&mut bytes).unwrap();
            assert!(read > 0, "in vain: {wanted}: {log}");
            log.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    };
    wait_for("serving");
    set_mode(&config, 0o666);
    fs::OpenOptions::new()
        .append(true)
        .open(&config)
        .unwrap()
        .write_all(b"[servers.a]\ncommand = 'true'\n")
        .unwrap();
    wait_for("config reload failed; keeping the current config");
    wait_for("can be written by every user");
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!log.contains("config reloaded"), "{log}");
}
