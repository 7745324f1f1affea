//! By threads: an agent's pipes are anonymous ones, which this system lets nobody wait for.

use std::convert::Infallible;

use linetender::Reading;
use tokio::io::{AsyncRead, AsyncWrite};

/// What the agent says.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// What the agent hears.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Both ends.
pub(crate) struct Pipes {
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) gone: Gone,
    /// Nothing was borrowed.
    pub(crate) borrowed: [Option<Box<Infallible>>; 2],
}

/// Would see that the agent reads no more. The end of a pipe that we write to cannot be looked at here: an agent that is gone is
/// noticed by the end of what it says, and answers that are still to come have their bound.
pub(crate) struct Gone;

impl Gone {
    /// Never.
    pub(crate) async fn for_good(self) {
        std::future::pending::<()>().await;
    }
}

impl Pipes {
    /// Takes stdin and stdout. Inside a runtime.
    pub(crate) fn take() -> Self {
        Self {
            // Of an agent that writes nothing for a moment it is not the end.
            input: Box::new(Reading::new(tokio::io::stdin())),
            output: Box::new(tokio::io::stdout()),
            gone: Gone,
            borrowed: [None, None],
        }
    }
}
