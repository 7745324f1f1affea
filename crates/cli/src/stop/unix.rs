//! By signals.

use std::io;

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
