//! Work that wakes itself.
//!
//! A task that hands something to itself (its own exchange brings its answer, its own connection brings its request) is woken
//! for that while it runs. A runtime takes that for more work than one thread can do, and wakes another, which finds nothing:
//! two system calls, and mostly more than the work itself. So what comes while one looks is only noted, and one looks again.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often one looks again before others have their turn.
const LOOKS: usize = 16;

/// Work that looks again by itself when it was woken by itself.
#[derive(Debug)]
pub struct Steady<F> {
    work: F,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Rings, unless somebody looks anyway.
#[derive(Debug, Default)]
struct Bell {
    looking: AtomicBool,
    rung: AtomicBool,
    whom: Mutex<Option<Waker>>,
}

impl<F> Steady<F> {
    /// Wraps some work.
    pub fn new(work: F) -> Self {
        let bell = Arc::<Bell>::default();
        let waker = Waker::from(Arc::clone(&bell));
        Self { work, bell, waker }
    }

    /// The work itself.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.work
    }
}

impl<F: Future + Unpin> Future for Steady<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { work, bell, waker } = self.get_mut();
        bell.is_for(context.waker());
        for _ in 0..LOOKS {
            bell.looks();
            if let Poll::Ready(done) = Pin::new(&mut *work).poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(done);
            }
            if bell.is_quiet() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Bell {
    /// Whoever is to be woken from now on.
    fn is_for(&self, whom: &Waker) {
        let mut known = self.whom.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *known {
            Some(known) => known.clone_from(whom),
            None => *known = Some(whom.clone()),
        }
    }

    /// Somebody looks: what rang before is seen now.
    fn looks(&self) {
        self.looking.store(true, Ordering::SeqCst);
        self.rung.store(false, Ordering::SeqCst);
    }

    /// Whether it did not ring since. From now on it is heard.
    fn is_quiet(&self) -> bool {
        // In this order: who rings notes it first, and then asks whether somebody looks.
        self.looking.store(false, Ordering::SeqCst);
        !self.rung.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if !self.looking.load(Ordering::SeqCst) {
            let whom = self.whom.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(whom) = whom {
                whom.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOKS, Steady};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};
    use tokio::task::JoinSet;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How often it was polled when its task was polled once; and how often that was woken.
    fn looked(wakes_itself: usize) -> (usize, usize, Poll<()>) {
        let (count, mut polls) = (Arc::<Count>::default(), 0);
        let work = std::future::poll_fn(|context| {
            polls += 1;
            if polls <= wakes_itself {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        });
        let waker = Waker::from(Arc::clone(&count));
        let seen = Pin::new(&mut Steady::new(work)).poll(&mut Context::from_waker(&waker));
        (polls, count.0.load(Ordering::SeqCst), seen)
    }

    #[test]
    fn who_wakes_itself_is_looked_at_again_and_wakes_nobody() {
        assert_eq!(looked(3), (4, 0, Poll::Ready(())));
    }

    #[test]
    fn who_wakes_itself_for_ever_gives_others_their_turn() {
        assert_eq!(looked(LOOKS * 2), (LOOKS, 1, Poll::Pending));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_is_woken_by_another_is_woken_whenever_that_is() {
        for _ in 0..2000 {
            let (tell, told) = tokio::sync::oneshot::channel();
            let (mut one, mut other) = (JoinSet::new(), JoinSet::new());
            one.spawn(Steady::new(told));
            other.spawn(async move { tell.send(7) });
            assert_eq!(one.join_next().await.unwrap().unwrap(), Ok(7));
        }
    }
}
