//! What every room uses: the clock and waits that end late, the kinds of lists, the members of params, progress, and the error
//! that a caller is told, with its code. Nothing here knows a line.

pub(crate) mod clock;
pub(crate) mod code;
pub(crate) mod context_loss;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod late;
pub(crate) mod next_try;
pub(crate) mod order;
pub(crate) mod params;
pub(crate) mod progress;
pub(crate) mod refusal;
pub(crate) mod rooms;
pub(crate) mod rpc_error;
pub(crate) mod said;
pub(crate) mod sync;
pub(crate) mod trace;
