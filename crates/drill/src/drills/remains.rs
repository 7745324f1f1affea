//! The end of an instance: what it left, and which laws of servers with habits were broken in its life.

use std::time::Duration;

use linetender::Tree;
use linetender_badserver::process::{self, carries, lives};
use linetender_badserver::{Book, Finding};

use super::habits::Habits;
use super::stage::Stage;
use crate::results::Laws;

/// How long what a target ends may take to be gone.
const GONE: Duration = Duration::from_secs(3);

/// Of calls in a fresh context, so many are told: one is enough to fail.
const FINDINGS: usize = 3;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// What is left of an instance.
pub(crate) struct Remains {
    /// Processes of the server's tree that outlived the target.
    pub(crate) orphans: u32,
    /// Calls that ran twice.
    pub(crate) twice: Vec<Finding>,
    /// What else must not be.
    pub(crate) findings: Vec<String>,
    pub(crate) laws: Laws,
}

impl Remains {
    /// Judges the laws of servers with habits by what the server declared in its book, and not by the target's rules. Everything has
    /// ended that will; `saver` is the instance that was asked to end.
    pub(crate) async fn judge(&mut self, stage: &Stage, saver: Option<i32>) {
        let Some(book) = stage.server.book.as_ref().filter(|_| stage.habits != Habits::default()) else {
            return;
        };
        self.judge_contexts(stage, book);
        self.judge_strangers(stage, book).await;
        let (locks, at_once) = book.locks();
        (self.laws.locks, self.laws.two_at_once) = (locks as u64, at_once as u64);
        if at_once > 0 {
            self.findings.push(format!("{at_once} instances of the server began while another one lived"));
        }
        if let Some(pid) = saver {
            self.laws.saves = 1;
            if !book.savers().contains(&pid) {
                self.laws.saves_lost = 1;
                self.findings.push(format!("the server {pid} was closed, and its work was not saved"));
            }
        }
    }

    fn judge_contexts(&mut self, stage: &Stage, book: &Book) {
        let (memory, sums) = (&stage.memory, stage.memory.sums());
        (self.laws.calls, self.laws.refused_by_rule) = (sums.made, sums.refused);
        (self.laws.set_up, self.laws.losses_told) = (sums.set_up, sums.told);
        if stage.tells_of_losses(stage.server.kept_contexts()) {
            let (unwarned, missed) = memory.unwarned(stage.habits.state, &book.context_runs());
            (self.laws.unwarned, self.laws.notices_missed) = (unwarned.len() as u64, missed);
            self.findings.extend(unwarned.into_iter().take(FINDINGS));
        } else if sums.told > 0 {
            self.findings
                .push(format!("the loss of a context was told {} times, and there is none", sums.told));
        }
    }

    /// Daemons live on or end, as the target was told. Whichever it is, none is left when this returns.
    async fn judge_strangers(&mut self, stage: &Stage, book: &Book) {
        let (mark, strangers) = (stage.stranger_mark(), book.strangers());
        let alive = || {
            strangers.iter().copied().filter(|pid| lives(*pid) && carries(*pid, &mark)).collect::<Vec<_>>()
        };
        self.laws.strangers = strangers.len() as u64;
        if stage.habits.tree == Some(Tree::All) {
            let gone = async {
                while !alive().is_empty() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            if tokio::time::timeout(GONE, gone).await.is_err() {
                self.orphans += u32::try_from(alive().len()).unwrap_or(u32::MAX);
                self.findings
                    .push(format!("{} daemons outlived the target, with tree = \"all\"", alive().len()));
            }
        } else if alive().len() < strangers.len() {
            let killed = strangers.len() - alive().len();
            self.laws.strangers_killed = killed as u64;
            self.findings.push(format!(
                "{killed} of {} daemons were killed that had left on purpose",
                strangers.len()
            ));
        }
        for pid in process::marked(&mark) {
            process::kill(pid);
        }
    }
}
