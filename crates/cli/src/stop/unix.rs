//! By signals.

use std::io;
use std::sync::OnceLock;

use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// Which signal.
pub(crate) type Kind = SignalKind;

/// A signal that is listened for.
pub(super) type Signal = tokio::signal::unix::Signal;

/// The signals by which a shim is told to stop.
pub(crate) const SHIM: [Kind; 3] = [Kind::hangup(), Kind::interrupt(), Kind::terminate()];

/// Those of a gateway: to it a hangup means something else.
pub(crate) const GATEWAY: [Kind; 2] = [Kind::terminate(), Kind::interrupt()];

/// The one by which a gateway is told to read its file again.
pub(crate) const RELOAD: [Kind; 1] = [Kind::hangup()];

pub(super) fn listen(kind: Kind) -> io::Result<Signal> {
    signal(kind)
}

/// The signals by which `run` is told to stop. A hangup that was ignored when this process began, as by `nohup`, is still ignored: the
/// agent lives on.
pub(crate) fn of_run() -> Vec<Kind> {
    static IGNORES_HANGUP: OnceLock<bool> = OnceLock::new();
    // Asked before anything listens for that signal.
    let ignores = *IGNORES_HANGUP.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
    });
    SHIM.into_iter().filter(|kind| !(ignores && *kind == Kind::hangup())).collect()
}

pub(super) fn number(kind: Kind) -> u8 {
    u8::try_from(kind.as_raw_value()).unwrap_or(0)
}

/// Tells this process to read its file again.
///
/// # Errors
/// If the system refuses.
pub(crate) fn reload() -> io::Result<()> {
    Ok(kill_process(getpid(), rustix::process::Signal::HUP)?)
}
