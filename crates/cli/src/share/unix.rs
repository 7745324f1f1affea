//! `run` is then an agent's pipe and a [way](linetender::hop::Way) to the keeper. Whatever happens to the keeper is the end of a
//! generation: calls get their verdicts, and the next generation reaches the next keeper, which this process starts if nobody has.

mod keeper;
mod order;
mod private;
mod process;
mod program;
mod proof;
mod reach;

use std::sync::Arc;
use std::time::Duration;

use linetender::{Server, StdioServer};

pub(crate) use keeper::keeper;
use reach::{NoKeeper, ToKeeper};

/// The keeper's socket in the runtime folder, and the lock that it and the reapers of its servers hold.
const SOCKET: &str = "keeper.sock";
const LOCK: &str = "keeper.lock";

/// Held by whoever starts a keeper, so that thirty windows start one.
const STARTS: &str = "keeper.start";

/// Why servers cannot be shared here.
pub(crate) const fn refusal() -> Option<&'static str> {
    None
}

/// A server as the keeper of this user holds it.
///
/// # Errors
/// Where there is no keeper, a sentence that says what to do.
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
pub(crate) fn through_keeper(
    server: &Server,
    program: StdioServer,
    linger: Option<Duration>,
) -> Result<Server, String> {
    Ok(match ToKeeper::new(server, linger) {
        Ok(way) => program.shared(Arc::new(way)),
        Err(why) => program.shared(Arc::new(NoKeeper(why))),
    }
    .into())
}
