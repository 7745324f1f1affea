//! A panic in one of our own tasks, as a value: whoever owns the task treats it as a death.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

/// Some code of ours panicked. The panic hook has reported where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Panicked;

/// Runs this until it ends or panics. Whatever it borrows can be used afterwards, and may be half changed.
///
/// # Errors
/// If it panicked.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// The same for work that waits for nothing.
///
/// # Errors
/// If it panicked.
pub fn caught_now<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

/// What a lock guards. If a panic left it half changed, it is made anew first.
pub fn renewed<T>(mutex: &Mutex<T>, renew: impl FnOnce(&mut T)) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| {
        mutex.clear_poison();
        let mut content = poisoned.into_inner();
        renew(&mut content);
        content
    })
}

#[cfg(test)]
mod tests {
    use super::{Panicked, caught, caught_now, renewed};
    use std::sync::Mutex;

    #[test]
    fn what_a_panic_left_half_changed_is_made_anew_once() {
        let lock = Mutex::new(1);
        let half = || {
            let mut content = lock.lock().unwrap();
            *content = 2;
            panic!("on purpose");
        };
        assert_eq!(caught_now(half), Err::<(), _>(Panicked));
        assert_eq!(*renewed(&lock, |content| *content = 1), 1);
        *renewed(&lock, |_| unreachable!("it is not poisoned any more")) = 3;
        assert_eq!(*lock.lock().unwrap(), 3);
    }

    /// With `panic = "abort"` in a profile nothing here could be supervised: this test would not return.
    #[tokio::test]
    async fn a_panic_is_a_value_and_what_it_borrowed_is_still_there() {
        let mut steps = Vec::new();
        let work = async {
            steps.push(1);
            tokio::task::yield_now().await;
            steps.push(2);
            panic!("on purpose");
        };
        assert_eq!(caught(work).await, Err::<(), _>(Panicked));
        assert_eq!(steps, [1, 2]);
        assert_eq!(caught_now(|| panic!("on purpose")), Err::<(), _>(Panicked));
    }

    #[test]
    fn no_profile_aborts_on_a_panic() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(!manifest.lines().any(|line| line.trim_start().starts_with("panic")), "panics must unwind");
    }
}
