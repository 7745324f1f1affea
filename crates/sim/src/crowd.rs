//! Many futures in one task, polled in an order that the seed chooses.
//!
//! A death wakes all callers in one moment, and in which order the runtime lets them go on is chance. Here it is a choice
//! like all others, so that it can be made again.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::rng::Rng;

type Member = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The futures. Ready when all of them are.
pub(crate) struct Crowd {
    members: Vec<Option<Member>>,
    woken: Arc<Woken>,
    wakers: Vec<Waker>,
    rng: Rng,
}

/// Who was woken since they were last looked at.
#[derive(Default)]
struct Woken(Mutex<(BTreeSet<usize>, Option<Waker>)>);

/// One member's bell.
struct Bell {
    of: usize,
    woken: Arc<Woken>,
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, (BTreeSet<usize>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let task = {
            let mut woken = self.woken.lock();
            woken.0.insert(self.of);
            woken.1.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Crowd {
    pub(crate) fn new(members: Vec<Member>, rng: Rng) -> Self {
        let woken = Arc::<Woken>::default();
        woken.lock().0.extend(0..members.len());
        let bell = |of| Waker::from(Arc::new(Bell { of, woken: Arc::clone(&woken) }));
        let wakers = (0..members.len()).map(bell).collect();
        Self { members: members.into_iter().map(Some).collect(), woken, wakers, rng }
    }
}

impl Future for Crowd {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut turn: Vec<usize> = {
            let mut woken = this.woken.lock();
            woken.1 = Some(context.waker().clone());
            std::mem::take(&mut woken.0).into_iter().collect()
        };
        while !turn.is_empty() {
            let of = turn.swap_remove(this.rng.size(0, turn.len()));
            let mut own = Context::from_waker(&this.wakers[of]);
            if let Some(member) = &mut this.members[of]
                && member.as_mut().poll(&mut own).is_ready()
            {
                this.members[of] = None;
            }
        }
        if this.members.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }
}
