//! How the keeper ends a process: it tells the reaper, and closes stdin. Where the reaper has no ladder, the keeper climbs it.

use std::pin::Pin;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::Sleep;

use super::super::child::Order;
use super::super::control::{CLOSE, KILL, TERM, UP};
use super::super::platform::Platform;
use super::{Keeper, Rung, Stdin, Tree};

/// After a seal, how long the writer may take to stop.
const WRITER_STOPS: Duration = Duration::from_millis(100);

/// How long the reaper may take to get ready for the end, before stdin is closed anyway.
const READY_TO_CLOSE: Duration = Duration::from_millis(100);

/// Longest silence of a reaper that ends a tree. It reports once a second that it is busy, whatever the policy says: one that
/// is killed before that leaves the rest of the tree behind.
const REAPER_SILENCE: Duration = Duration::from_secs(3);

impl<P: Platform> Keeper<P> {
    pub(super) async fn order(&mut self, tree: &mut Tree<P::Stdin>, order: Option<Order>) {
        if matches!(order, Some(Order::Up)) {
            if self.platform.has_ladder() {
                let _ = self.control.write_all(&[UP]).await;
            }
            return;
        }
        // Whoever ends a process has sealed it; should somebody not have, the writer must not outlive this.
        self.seal.set();
        match order {
            Some(Order::Close) => {
                tree.ordered = Some(Order::Close);
                self.platform.wake_reaper();
                let is_passed = self.pass_on(tree).await;
                if self.platform.has_ladder() {
                    if !is_passed {
                        let _ = self.control.write_all(&[CLOSE]).await;
                    }
                    tree.rung = Some(rung(READY_TO_CLOSE, Rung::Eof));
                } else {
                    self.close_stdin(tree).await;
                }
            }
            // Nobody is left to give orders: the same as the harshest.
            Some(Order::Kill | Order::Up) | None => self.kill(tree).await,
        }
    }

    /// Passes on to the server what this process was told to stop by, once each; whether there was anything.
    pub(super) async fn pass_on(&mut self, tree: &mut Tree<P::Stdin>) -> bool {
        let passed = self.passed.borrow_and_update().clone();
        let _ = self.control.write_all(passed.get(tree.passed..).unwrap_or_default()).await;
        tree.passed = passed.len();
        !passed.is_empty()
    }

    /// End of file. What follows is the reaper's, or ours.
    pub(super) async fn close_stdin(&mut self, tree: &mut Tree<P::Stdin>) {
        // The writer was sealed before, so it gives the pipe back at once; if not, its task is ended and the pipe with it.
        if matches!(tree.stdin, Stdin::WithWriter) {
            let _ = tokio::time::timeout(WRITER_STOPS, &mut self.writer).await;
            self.writer.end();
        }
        tree.stdin = Stdin::Closed;
        tree.rung = Some(if self.platform.has_ladder() {
            rung(self.close.worst(), Rung::Reaper)
        } else {
            rung(self.close.stdin, Rung::Term)
        });
    }

    async fn kill(&mut self, tree: &mut Tree<P::Stdin>) {
        tree.ordered = Some(Order::Kill);
        tree.rung = Some(self.reaper_rung());
        self.platform.wake_reaper();
        let _ = self.control.write_all(&[KILL]).await;
    }

    /// Ends a reaper that ends a tree and reports nothing.
    pub(super) fn reaper_rung(&self) -> (Pin<Box<Sleep>>, Rung) {
        rung(self.close.kill.max(REAPER_SILENCE), Rung::Reaper)
    }

    /// The server did not go by itself in time: TERM, then KILL. And a reaper that does not obey goes before it.
    pub(super) async fn climb_down(&mut self, tree: &mut Tree<P::Stdin>) {
        match tree.rung.take() {
            Some((_, Rung::FirstWord)) => {
                self.never_reaped(tree).await;
                tree.clear = true;
            }
            Some((_, Rung::Eof)) => self.close_stdin(tree).await,
            Some((_, Rung::Term)) => {
                tree.rung = Some(rung(self.close.term, Rung::Kill));
                self.platform.wake_reaper();
                let _ = self.control.write_all(&[TERM]).await;
            }
            Some((_, Rung::Kill)) => self.kill(tree).await,
            Some((_, Rung::Reaper)) => self.platform.kill_reaper(),
            None => {}
        }
    }
}

fn rung(patience: Duration, next: Rung) -> (Pin<Box<Sleep>>, Rung) {
    (Box::pin(tokio::time::sleep(patience)), next)
}
