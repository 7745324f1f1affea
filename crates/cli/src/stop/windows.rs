//! By what the console says: Ctrl-C, Ctrl-Break, its window is closed, somebody logs off, the machine is shut down; or by the service
//! manager.

use std::io;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use tokio::signal::windows;
use tokio::sync::watch;

/// What is said.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Break: what a service manager or a parent sends in the place of SIGTERM.
    Break,
    /// The window of the console is closed. The system ends the process a few seconds later.
    Close,
    LogOff,
    Shutdown,
    /// Not by the console: by the service manager.
    Manager,
    /// Not by the console: somebody asked for it at the status pipe or the admin address.
    Reload,
}

/// By which a shim is told to stop.
pub(crate) const SHIM: [Kind; 5] = [Kind::Interrupt, Kind::Break, Kind::Close, Kind::LogOff, Kind::Shutdown];

/// The same of `run`.
pub(crate) fn of_run() -> Vec<Kind> {
    SHIM.to_vec()
}

/// By which a gateway is.
pub(crate) const GATEWAY: [Kind; 6] =
    [Kind::Interrupt, Kind::Break, Kind::Close, Kind::LogOff, Kind::Shutdown, Kind::Manager];

/// By which a gateway is told to read its file again.
pub(crate) const RELOAD: [Kind; 1] = [Kind::Reload];

/// How often that was asked for.
static RELOADS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// How often the service manager wanted it to stop.
static STOPS: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::Sender::new(0));

/// What is listened for.
pub(super) enum Signal {
    Interrupt(windows::CtrlC),
    Break(windows::CtrlBreak),
    Close(windows::CtrlClose),
    LogOff(windows::CtrlLogoff),
    Shutdown(windows::CtrlShutdown),
    Asked(
        Box<tokio::sync::mpsc::Receiver<()>>,
        #[expect(dead_code, reason = "tells for as long as it lives")] tokio::task::JoinSet<()>,
    ),
}

impl Signal {
    pub(super) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<()>> {
        match self {
            Self::Interrupt(signal) => signal.poll_recv(context),
            Self::Break(signal) => signal.poll_recv(context),
            Self::Close(signal) => signal.poll_recv(context),
            Self::LogOff(signal) => signal.poll_recv(context),
            Self::Shutdown(signal) => signal.poll_recv(context),
            Self::Asked(asked, _) => asked.poll_recv(context),
        }
    }
}

pub(super) fn listen(kind: Kind) -> io::Result<Signal> {
    Ok(match kind {
        Kind::Interrupt => Signal::Interrupt(windows::ctrl_c()?),
        Kind::Break => Signal::Break(windows::ctrl_break()?),
        Kind::Close => Signal::Close(windows::ctrl_close()?),
        Kind::LogOff => Signal::LogOff(windows::ctrl_logoff()?),
        Kind::Shutdown => Signal::Shutdown(windows::ctrl_shutdown()?),
        Kind::Manager => asked(&STOPS),
        Kind::Reload => asked(&RELOADS),
    })
}

/// Not by a signal of the system: by somebody who counts.
fn asked(count: &watch::Sender<u64>) -> Signal {
    let (ask, asked) = tokio::sync::mpsc::channel(1);
    let mut count = count.subscribe();
    let mut task = tokio::task::JoinSet::new();
    task.spawn(async move {
        while count.changed().await.is_ok() {
            // One that waits already is enough: a file is read after it.
            let _ = ask.try_send(());
        }
    });
    Signal::Asked(Box::new(asked), task)
}

/// As other systems number what is most like it.
pub(super) const fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Interrupt => 2,
        Kind::Break | Kind::LogOff | Kind::Shutdown | Kind::Manager => 15,
        Kind::Close | Kind::Reload => 1,
    }
}

/// Tells this process to stop, since the service manager wants that.
pub(crate) fn by_manager() {
    STOPS.send_modify(|asked| *asked += 1);
}

/// Tells this process to read its file again.
///
/// # Errors
/// Never.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(crate) fn reload() -> io::Result<()> {
    RELOADS.send_modify(|asked| *asked += 1);
    Ok(())
}
