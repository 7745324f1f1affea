//! One line of the log for each change: what happened to the server, and why. What a person should look at is a warning.

use linetender_core::{Gate, Refusal, State};
use linetender_wire::{Detail, Seen};

use crate::status::Status;

/// The word for a server that another gateway of the fleet runs from now on: nothing failed.
const MOVED: &str = Seen::NodeLeft.name();

/// The line stands somewhere else now. `keys`: its credentials come from a login.
pub(super) fn changed(server: &str, state: &State<Detail>, now: &Status, keys: bool) {
    let (generation, cause) = (now.generation, now.cause.as_ref().map(|why| why.text.as_str()));
    let planned = now.cause.as_ref().is_none_or(|why| why.planned);
    let next_try = now.next_try().map(tracing::field::display);
    let moved = now.cause.as_ref().is_some_and(|why| why.seen == MOVED);
    match state {
        State::Ending(_) if moved => tracing::info!(server, generation, "server moves to another gateway"),
        State::Ending(_) if !planned => tracing::warn!(server, generation, cause, "server failed"),
        State::Ending(_) => tracing::info!(server, generation, cause, "server stopped"),
        State::Parked { .. } if matches!(now.gate, Gate::Refuse { why: Refusal::LoginRefused, .. }) => {
            tracing::warn!(
                server,
                generation,
                cause,
                next_try,
                "server's login refused: calls do not start it"
            );
        }
        State::Parked { .. } => {
            tracing::warn!(server, generation, cause, next_try, "server down: retrying at long intervals");
        }
        State::OutOfService { .. } => {
            tracing::info!(server, generation, "server parked by an operator: stays down until it is woken");
        }
        State::NeedsAuth { .. } if keys => {
            tracing::warn!(
                server,
                generation,
                cause,
                next_try,
                "server requires authentication: somebody has to log in"
            );
        }
        State::NeedsAuth { .. } => {
            tracing::warn!(
                server,
                generation,
                cause,
                next_try,
                "server requires authentication: set its credentials (HTTP headers)"
            );
        }
        State::Waiting { .. } => {
            tracing::info!(server, generation, next_try, "backing off before the next restart");
        }
        State::Dialing(_) => tracing::info!(server, generation, "connecting to server"),
        State::Up(_) => tracing::info!(server, generation, "server up"),
        State::Suspect(_) => tracing::info!(server, generation, "checking server health"),
        State::Draining { .. } => tracing::info!(server, generation, cause, "draining server: no new calls"),
        State::Idle(_) => tracing::info!(server, "server idle: starts on the next call"),
        State::Closed => tracing::info!(server, "server closed"),
    }
}
