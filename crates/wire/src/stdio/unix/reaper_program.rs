//! Which program becomes the reaper of a server.
//!
//! A program that does not know that it was started as a reaper runs its `main` again, opens its lines again, and so
//! starts itself without end. So the program that we are in is started only if it has called
//! [`run_if_asked`](super::reaper::run_if_asked) in this very process; and every start of a reaper carries a mark in its
//! environment, with which a program that did not understand it starts nothing.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::seen::Seen;

/// The mark. The reaper takes it out of the server's environment.
pub(super) const MARKER: &str = "LINETENDER_REAPER_OF";

/// Programs that can be reapers, by their names.
const NAMES: [&str; 2] = ["linetender-reaper", "linetender"];

/// What this program has said about itself.
static SAID: AtomicU8 = AtomicU8::new(UNSAID);

const UNSAID: u8 = 0;
const ABLE: u8 = 1;
const TOO_LATE: u8 = 2;

/// This program was asked whether it is to be a reaper: so it knows how to be one, if it asks early enough.
pub(super) fn say_able() {
    // A runtime has threads and descriptors, which the reaper would close; and the main function of a program that asks
    // on another thread has done something else before: the test harness, for one.
    let early = tokio::runtime::Handle::try_current().is_err() && on_main_thread();
    SAID.store(if early { ABLE } else { TOO_LATE }, Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
fn on_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

#[cfg(all(target_os = "macos", not(linetender_portable)))]
use super::macos::on_main_thread;

#[cfg(all(not(target_os = "linux"), any(linetender_portable, not(target_os = "macos"))))]
const fn on_main_thread() -> bool {
    true
}

/// Finds a program that can be a reaper: this one if it said so, else one of ours on `PATH`.
pub(super) fn find() -> Result<PathBuf, Seen> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where programs are looked for is the environment's to say"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let said = SAID.load(Ordering::Relaxed);
    let this = if said == ABLE { this_program() } else { None };
    first(this, &path).ok_or_else(|| Seen::NoReaper { reason: missing(said).into() })
}

/// This program, if it is still where it was: an update may have taken it away, and the folder that it was in. Else one of ours.
fn first(this: Option<PathBuf>, path: &OsStr) -> Option<PathBuf> {
    this.filter(|program| is_program(program)).or_else(|| on_path(path))
}

/// A process that was started as a reaper and does not know it starts nothing.
pub(super) fn check_mark() -> Result<(), Seen> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the mark is in the environment because arguments can be overlooked"
    )]
    let marked = std::env::var_os(MARKER).is_some();
    if marked && SAID.load(Ordering::Relaxed) != ABLE {
        let reason = "this process was started as a reaper and did not become one; \
                      call `linetender::reaper::run_if_asked()` first in `main`";
        return Err(Seen::NoReaper { reason: reason.into() });
    }
    Ok(())
}

const fn missing(said: u8) -> &'static str {
    match said {
        TOO_LATE => {
            "`linetender::reaper::run_if_asked()` was called inside an async runtime or outside the main thread; \
             call it first in a plain `fn main`, set `Server::reaper`, or put `linetender` on PATH"
        }
        ABLE => {
            "the file of this program is gone (was it updated?) or unknown (no /proc?), and no `linetender` is on PATH; \
             start this program again"
        }
        _ => {
            "add `if let Some(done) = linetender::reaper::run_if_asked() { return done; }` first in `main`, \
             set `Server::reaper`, or put `linetender` on PATH"
        }
    }
}

/// Our own binary, as it was when it was started: it may have been replaced on disk since.
fn this_program() -> Option<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && itself.exists() {
        return Some(itself);
    }
    std::env::current_exe().ok()
}

/// Relative folders on `PATH` are not looked into: what is there depends on where somebody happens to be.
fn on_path(path: &OsStr) -> Option<PathBuf> {
    let folders: Vec<_> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let programs = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    programs.into_iter().find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::{ABLE, Ordering, SAID, TOO_LATE, first, on_path, say_able};
    use std::ffi::OsStr;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_test_that_asks_does_not_make_its_binary_a_reaper() {
        say_able();
        assert_ne!(SAID.load(Ordering::Relaxed), ABLE);
        assert_eq!(SAID.load(Ordering::Relaxed), TOO_LATE);
    }

    #[test]
    fn the_reaper_is_found_on_path_by_either_name_and_only_if_it_can_be_run() {
        let dir = std::env::temp_dir().join(format!("linetender-path-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = std::env::join_paths([dir.as_path(), "relative".as_ref()]).unwrap();
        assert_eq!(on_path(&path), None);
        for name in ["linetender", "linetender-reaper"] {
            std::fs::write(dir.join(name), "").unwrap();
            assert_ne!(on_path(&path), Some(dir.join(name)), "it cannot be run");
            std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(on_path(&path), Some(dir.join(name)));
        }
        assert_eq!(on_path(OsStr::new("")), None);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_program_that_an_update_took_away_is_replaced_by_the_one_that_came() {
        let dir = std::env::temp_dir().join(format!("linetender-updated-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (old, new) = (dir.join("Cellar/0.1.0/bin/linetender"), dir.join("linetender"));
        assert_eq!(first(Some(old.clone()), dir.as_os_str()), None, "there is none");
        std::fs::write(&new, "").unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(first(Some(old), dir.as_os_str()), Some(new.clone()));
        assert_eq!(first(Some(new.clone()), OsStr::new("")), Some(new));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
