//! One line's lease, followed: the one task that asks the directory, and keeps the line's processes alive for as long as it may.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use linetender_core::Instant;
use linetender_core::lease::{Answer, Ask, Fence, Lease, Now, Standing};
use linetender_wire::caught;
use linetender_wire::stdio::Lifeline;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::directory::{Away, Directory, There};

/// How somebody knows what time it is.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// What may wait to be told to the task.
const WAITING: usize = 64;

/// The task looks at the clock at least this often: a machine that slept is behind its own timers.
const LOOKS: Duration = Duration::from_secs(5);

/// After a panic it goes on so much later.
const AGAIN: Duration = Duration::from_secs(1);

/// What the task is told.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// Whether this node should have the line.
    Want(bool),
    /// Nothing of a line that was sealed runs any more.
    Cleared,
    /// What is there, as the directory told of it.
    Saw(There),
    /// Changes may have been missed.
    Missed,
}

/// Where the line is, and what its processes must not outlive if that is here.
#[derive(Clone, Debug)]
pub struct Stand {
    /// Where.
    pub standing: Standing,
    /// For the processes of its server.
    pub lifeline: Option<Arc<Lifeline>>,
}

/// A line that this node has, or may have. Dropped, its lease runs out.
pub struct Ownership {
    asks: mpsc::Sender<Asked>,
    stand: watch::Receiver<Stand>,
    clock: Clock,
    _task: JoinSet<()>,
}

impl Ownership {
    /// Follows a lease from now on.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn follow(line: &str, lease: Lease, directory: Arc<dyn Directory>, clock: Clock) -> Self {
        let (asks, asked) = mpsc::channel(WAITING);
        let (tell, stand) = watch::channel(Stand { standing: Standing::Nobody, lifeline: None });
        let mut task = JoinSet::new();
        let follower = Follower { lease, asked, tell, clock: Arc::clone(&clock), lifeline: None };
        let line = line.to_owned();
        task.spawn(async move { follower.follow(&line, &*directory).await });
        Self { asks, stand, clock, _task: task }
    }

    /// Tells the task something. That it is full of things to do is no reason to wait: it looks by itself.
    pub fn tell(&self, asked: Asked) {
        let _ = self.asks.try_send(asked);
    }

    /// The same, and waits until there is room: for what must not be forgotten.
    pub async fn order(&self, asked: Asked) {
        let _ = self.asks.send(asked).await;
    }

    /// Where the line is. When the task is gone, so is the line: the channel is closed.
    pub fn stand(&self) -> watch::Receiver<Stand> {
        self.stand.clone()
    }

    /// Whether what carries this fence may run here, now.
    pub fn accepts(&self, fence: Fence) -> bool {
        let now = (self.clock)().boot;
        matches!(self.stand.borrow().standing, Standing::Owner { fence: ours, until } if ours == fence && now < until)
    }

    /// For whoever passes on what the directory tells.
    pub(crate) fn teller(&self) -> mpsc::Sender<Asked> {
        self.asks.clone()
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Away>> + Send + 'a>>;

struct Follower {
    lease: Lease,
    asked: mpsc::Receiver<Asked>,
    tell: watch::Sender<Stand>,
    clock: Clock,
    lifeline: Option<(Fence, Instant, Arc<Lifeline>)>,
}

impl Follower {
    /// Follows the lease for as long as anybody wants to know. A panic costs the line, not its name: it is claimed anew.
    async fn follow(mut self, line: &str, directory: &dyn Directory) {
        while caught(self.turns(line, directory)).await.is_err() {
            tracing::error!(line, "internal error: the task of a lease panicked; it is started again");
            // Processes that are left have the time that their reapers were told last; nobody is told of more.
            self.lease.forget();
            self.lifeline = None;
            self.tell.send_replace(Stand { standing: Standing::Nobody, lifeline: None });
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn turns(&mut self, line: &str, directory: &dyn Directory) {
        let mut open: Option<(u64, Answering<'_>)> = None;
        loop {
            if let Some((number, ask)) = self.lease.poll((self.clock)()) {
                open = Some((number, answer(line, directory, ask)));
            }
            self.publish();
            let wakes = self.lease.wake_at().map(|at| at.since((self.clock)().boot));
            let answered = async {
                match &mut open {
                    Some((_, answer)) => answer.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = answered => {
                    let Some((number, _)) = open.take() else { continue };
                    match answer {
                        Ok(answer) => self.lease.answered((self.clock)(), number, answer),
                        Err(away) => {
                            tracing::debug!(line, %away, "the directory did not answer");
                            self.lease.failed(number);
                        }
                    }
                }
                asked = self.asked.recv() => match asked {
                    Some(Asked::Want(wanted)) => self.lease.want(wanted),
                    Some(Asked::Cleared) => self.lease.cleared(),
                    Some(Asked::Saw(there)) => self.lease.told((self.clock)(), there),
                    Some(Asked::Missed) => self.lease.missed(),
                    None => return,
                },
                () = tokio::time::sleep(wakes.unwrap_or(LOOKS).min(LOOKS)) => {}
            }
        }
    }

    /// The reapers first, then everybody else: what is believed here must hold there.
    fn publish(&mut self) {
        let standing = self.lease.standing((self.clock)());
        let lifeline = match standing {
            Standing::Owner { fence, until } => self.extend(fence, until),
            Standing::Sealed { .. } | Standing::Elsewhere { .. } | Standing::Nobody => {
                self.lifeline = None;
                None
            }
        };
        if matches!(standing, Standing::Owner { .. }) && lifeline.is_none() {
            // Nobody would end its processes in time.
            self.lease.seal();
            return self.publish();
        }
        self.tell.send_if_modified(|stand| {
            let changed = stand.standing != standing;
            *stand = Stand { standing, lifeline };
            changed
        });
    }

    fn extend(&mut self, fence: Fence, until: Instant) -> Option<Arc<Lifeline>> {
        match &mut self.lifeline {
            Some((held, told, lifeline)) if *held == fence => {
                if *told != until {
                    lifeline.extend(until).ok()?;
                    *told = until;
                }
                Some(Arc::clone(lifeline))
            }
            _ => {
                let lifeline = Arc::new(Lifeline::new(until).ok()?);
                self.lifeline = Some((fence, until, Arc::clone(&lifeline)));
                Some(lifeline)
            }
        }
    }
}

fn answer<'a>(line: &'a str, directory: &'a dyn Directory, ask: Ask) -> Answering<'a> {
    Box::pin(async move {
        Ok(match ask {
            Ask::Look => Answer::Seen(directory.look(line).await?),
            Ask::Put { expected, entry } => {
                directory.put(line, expected, entry).await?.map_or(Answer::Conflict, Answer::Put)
            }
        })
    })
}

#[cfg(test)]
mod tests;
