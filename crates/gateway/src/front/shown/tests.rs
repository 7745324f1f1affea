use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{Credentials, LOOK};
use crate::bearers::{Bearers, Known, Refused, Shown, Verdict};
use crate::principal::Principal;

/// Bearers that a test tells what stands.
#[derive(Debug, Default)]
struct Told {
    version: AtomicU64,
    taken_back: AtomicBool,
}

impl Bearers for Told {
    fn known(&self, _: &str, _: Option<&str>) -> Option<Verdict> {
        None
    }

    fn check<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(std::future::ready(Err(Refused::Invalid(String::new()))))
    }

    fn look(&self) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(std::future::ready(self.version.load(Ordering::Acquire)))
    }

    fn stands(&self, shown: &Shown<'_>) -> bool {
        shown.name != "ci" || !self.taken_back.load(Ordering::Acquire)
    }

    fn issuer(&self) -> Option<String> {
        None
    }

    fn scopes(&self) -> Vec<String> {
        Vec::new()
    }
}

fn principal(name: &str, until: Option<SystemTime>) -> Principal {
    let (name, realm) = (name.to_owned(), "test".to_owned());
    Principal::known(Known { name, groups: Vec::new(), realm, until, stamp: 0 })
}

#[tokio::test(start_paused = true)]
async fn g12_what_belongs_to_a_token_that_is_taken_back_ends_within_a_second() {
    let told = Arc::<Told>::default();
    let credentials = Credentials::new(Some(Arc::clone(&told) as Arc<dyn Bearers>));
    let (ci, alice) = (principal("ci", None), principal("alice", None));
    let (hers, its) = (credentials.shown_by(&alice), credentials.shown_by(&ci));
    let looking = async {
        loop {
            tokio::time::sleep(LOOK).await;
            if credentials.look().await {
                return Instant::now();
            }
        }
    };
    let begun = Instant::now();
    told.taken_back.store(true, Ordering::Release);
    told.version.fetch_add(1, Ordering::Release);
    let (fell, ()) = tokio::join!(looking, its.has_nothing_to_say());
    assert!(fell - begun < Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(1));
    assert!(its.was_taken_back() && !hers.was_taken_back(), "and nobody else's");
    assert!(credentials.shown_by(&ci).was_taken_back(), "also what begins now, before the next look");
    drop((its, hers));
    assert!(credentials.open().by_number.is_empty(), "what is over is forgotten");
}

#[tokio::test(start_paused = true)]
async fn g12_a_token_that_can_be_renewed_ends_what_listens_and_nothing_else_when_it_expires() {
    let credentials = Credentials::new(Some(Arc::<Told>::default() as Arc<dyn Bearers>));
    let past = SystemTime::UNIX_EPOCH;
    let shown = credentials.shown_by(&principal("alice", Some(past)));
    shown.must_be_shown_again().await;
    assert!(!shown.was_taken_back());
    assert!(!credentials.look().await, "nothing is taken back");
    assert!(!shown.is_shown_by(&principal("alice", None)), "another token is shown anew");
}

#[tokio::test(start_paused = true)]
async fn whoever_shows_no_token_has_nothing_to_show_again() {
    let shown = Credentials::new(None).shown_by(&Principal::user(1));
    let again = tokio::time::timeout(Duration::from_secs(3600), shown.must_be_shown_again());
    assert!(again.await.is_err());
}
