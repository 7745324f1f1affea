//! How a call is made: its time, and who hears of its progress.

use std::fmt;
use std::sync::Arc;

use linetender_core::Instant;
use linetender_wire::frame::Kept;
use tokio::sync::mpsc;

use super::context::AgentContext;
use super::progress::{Progress, ProgressStream};
use super::turns::Caller;
use crate::audience::TaskOwner;
use crate::basics::order::Place;
use crate::basics::progress::OnProgress;
use crate::server::Deadline;

/// How a call is made.
///
/// ```
/// use std::time::Duration;
///
/// use linetender::{Deadline, Options};
///
/// let options = Options::default()
///     .deadline(Deadline::Within { quiet: Duration::from_secs(10), total: Duration::from_secs(60) })
///     .on_progress(|params| println!("{params}"));
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
pub struct Options {
    pub(crate) deadline: Deadline,
    pub(crate) progress: Option<OnProgress>,
    /// Held by the call: its progress ends with it.
    pub(crate) stream: Option<Arc<mpsc::Sender<Progress>>>,
    /// Who calls, among agents that share the line: they take turns.
    pub(crate) caller: Caller,
    /// Whose a task is that it begins.
    pub(crate) tasks: Option<TaskOwner>,
    /// What the one is called that it is made for, if somebody let it in by name.
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) way: Way,
    /// Whether its params are known to be a modern request's, and to ask for no progress.
    pub(crate) is_modern: bool,
    /// What the agent relies on in the server's memory. Without it, no call waits for a notice.
    pub(crate) context: Option<AgentContext>,
    /// What came with it, and lasts for as long as anything of it is kept.
    pub(crate) kept: Kept,
    /// True if the server has answered an earlier round of the call, and may have executed a part of it by then.
    pub(crate) is_later_round: bool,
    /// When its time began, if that is not now: it waited for its turn.
    pub(crate) arrived: Option<Instant>,
    /// Its place among the calls of the agent's session. Calls without one reach the server in any order.
    pub(crate) place: Option<Place>,
}

/// How a call comes to its server, where each has a way of its own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Way {
    /// Somebody else sees to it: it goes on although whoever made it does something else.
    #[default]
    Handed,
    /// It goes as far as it is polled. That is for calls that are all their task does, and costs them no other.
    Carried,
}

impl Options {
    /// Gives it a deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }

    /// Asks the server for progress, and gives what comes of it as a stream, which ends with the call. A reader that is too
    /// slow misses some of it; the answer never waits for it.
    ///
    /// ```no_run
    /// # async fn example(line: linetender::Line) -> Result<(), linetender::CallError> {
    /// use linetender::Options;
    ///
    /// let (options, mut progress) = Options::default().progress();
    /// let call = line.call_tool_with("index", serde_json::json!({ "folder": "src" }), options);
    /// let told = async {
    ///     while let Some(step) = progress.next().await {
    ///         println!("{:?} of {:?}", step.progress, step.total);
    ///     }
    /// };
    /// let (answer, ()) = tokio::join!(call, told);
    /// # answer.map(drop)
    /// # }
    /// ```
    #[must_use]
    pub fn progress(self) -> (Self, ProgressStream) {
        let (heard, stream) = ProgressStream::new();
        let heard = Arc::new(heard);
        // The call is not the last to know it: what it left in a queue of the server's may be there for long.
        let while_it_lasts = Arc::downgrade(&heard);
        let mut options = self.on_progress(move |params| {
            if let Some(heard) = while_it_lasts.upgrade() {
                let _ = heard.try_send(Progress::of(params));
            }
        });
        options.stream = Some(heard);
        (options, stream)
    }

    /// Asks the server for progress. `heard` gets the raw params of each notification, in order, before the answer. It
    /// must not block: it is called where the server is listened to.
    #[must_use]
    pub fn on_progress(mut self, heard: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(heard));
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.progress.is_some();
        f.debug_struct("Options")
            .field("deadline", &self.deadline)
            .field("progress", &progress)
            .finish_non_exhaustive()
    }
}
