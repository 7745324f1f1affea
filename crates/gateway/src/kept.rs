//! Whole results whose agents were given a part. Each is found by its id and by whoever got the part, for a while, in bounded memory.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use linetender::Code;
use linetender_wire::frame::{self, Frame, Message, Outcome, respell, sole, string};
use tokio::time::Instant;

use crate::budget::{Budget, Class, GiveWay, Held, Owner};
use crate::cut::{self, Place, Whole};
use crate::ends::Ended;
use crate::failed::Failed;
use crate::listing::View;
use crate::principal::Principal;

/// How the addresses of all of them begin.
const ADDRESS: &str = "linetender://results/";

/// How long one is kept.
const LASTS: Duration = Duration::from_secs(10 * 60);
const IN_WORDS: &str = "10 minutes";

/// The most that are kept, and of one principal.
const MOST: usize = 1024;
const MOST_OF_ONE: usize = 64;

/// They have so large a part of the budget at most.
const PART: usize = 4;

/// What a result has in the modern era.
const MODERN: &str = r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#;

/// The results that are kept. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct KeptResults {
    budget: Budget,
    most: usize,
    /// The oldest first.
    kept: Arc<Mutex<VecDeque<Arc<One>>>>,
}

/// Whose result it is, and of which server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of<'a> {
    pub(crate) principal: &'a Principal,
    /// The server's number.
    pub(crate) berth: u64,
    pub(crate) limit: usize,
}

struct One {
    id: String,
    principal: Principal,
    berth: u64,
    limit: usize,
    whole: Whole,
    since: Instant,
    /// Whether it had to give way.
    gone: AtomicBool,
    held: Mutex<Option<Held>>,
}

impl std::fmt::Debug for One {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("One").field("bytes", &self.whole.text.len()).finish_non_exhaustive()
    }
}

impl GiveWay for One {
    fn give_way(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

impl One {
    fn is_over(&self) -> bool {
        self.gone.load(Ordering::Acquire) || self.since.elapsed() >= LASTS
    }
}

impl KeptResults {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone(), most: budget.whole() / PART, kept: Arc::default() }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<One>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of those whose time is up, and of those that gave way.
    pub(crate) fn sweep(&self) {
        self.kept().retain(|one| !one.is_over());
    }

    /// An answer within the limit. Any other message, and one that cannot be cut, stays as it is.
    pub(crate) fn cut(&self, frame: Frame, of: Of<'_>) -> Frame {
        if frame.text().len() <= of.limit {
            return frame;
        }
        let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message() else {
            return frame;
        };
        match cut::cut(result, of.limit, |whole| self.keep(whole, of)) {
            // Not carrying what counts the whole: that is kept elsewhere, and counted there.
            Some(result) => frame.with_outcome(&result).carrying(frame::Kept::default()),
            None => frame,
        }
    }

    /// Keeps one, if there is room or can be made among them.
    fn keep(&self, whole: Whole, Of { principal, berth, limit }: Of<'_>) -> Option<Place> {
        let mut key = [0; 16];
        // Without random bytes its address could be guessed.
        getrandom::fill(&mut key).ok()?;
        let (id, bytes) = (format!("{:032x}", u128::from_be_bytes(key)), whole.text.len());
        self.make_room(principal, bytes)?;
        let (principal, uri) = (principal.clone(), format!("{ADDRESS}{id}"));
        let owner = Owner { principal: principal.number(), group: berth };
        let (since, gone, held) = (Instant::now(), AtomicBool::new(false), Mutex::default());
        let one = Arc::new(One { id, principal, berth, limit, whole, since, gone, held });
        let holder: Weak<One> = Arc::downgrade(&one);
        let mut held = self.budget.hold(Class::Result, owner, holder);
        held.grow(bytes).ok()?;
        *one.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        self.kept().push_back(one);
        Some(Place { uri, lasts: IN_WORDS })
    }

    fn make_room(&self, principal: &Principal, bytes: usize) -> Option<()> {
        if bytes > self.most {
            return None;
        }
        let mut kept = self.kept();
        kept.retain(|one| !one.is_over());
        let is_own = |one: &&Arc<One>| one.principal.number() == principal.number();
        while kept.iter().filter(is_own).count() >= MOST_OF_ONE {
            let oldest = kept.iter().position(|one| is_own(&one))?;
            kept.remove(oldest);
        }
        let weigh = |one: &Arc<One>| one.whole.text.len();
        while kept.len() >= MOST || kept.iter().map(weigh).sum::<usize>() + bytes > self.most {
            // Whoever keeps most makes room.
            let mut each: HashMap<u64, usize> = HashMap::new();
            for one in kept.iter() {
                *each.entry(one.principal.number()).or_default() += weigh(one);
            }
            let (most, _) = each.into_iter().max_by_key(|(_, bytes)| *bytes)?;
            let oldest = kept.iter().position(|one| one.principal.number() == most)?;
            kept.remove(oldest);
        }
        Some(())
    }

    /// The answer to a request for one of them; `None` if it asks for something else.
    pub(crate) fn read(
        &self,
        asked: &Frame,
        view: &View,
        principal: &Principal,
        modern: bool,
    ) -> Option<(Frame, Ended)> {
        let Message::Request { id, method: "resources/read", params } = asked.message() else { return None };
        let uri = string(sole(params?, "uri").ok()??)?;
        let (key, offset) = parts(&uri)?;
        self.sweep();
        let kept = self.kept().iter().find(|one| one.id == key).cloned();
        // Whoever may not see the server any more, or asks elsewhere, asks for something that is not there.
        let own = kept.filter(|one| one.principal == *principal && view.route(one.berth).is_some());
        let Some(one) = own else {
            let cause = format!(
                "no such result: a result that was cut is kept for {IN_WORDS}, for whoever called the tool, while there is memory for it"
            );
            let failed = Failed::unroutable(Code::NotHere.number(), cause, &view.names());
            let reply = frame::parse(&failed.reply(id, "resources/read", modern), NO_LIMITS).ok()?;
            return Some((reply, Ended::Refused(failed.code())));
        };
        Some((one.told(id, &uri, offset, modern), Ended::Answered))
    }
}

const NO_LIMITS: frame::Limits = frame::Limits { length: usize::MAX, depth: usize::MAX };

impl One {
    fn told(&self, id: &str, uri: &str, offset: Option<usize>, modern: bool) -> Frame {
        let text = &self.whole.text;
        let from = (offset.unwrap_or(0).min(text.len())..=text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        let to = match offset {
            None => text.len(),
            Some(_) => (from..=text.len().min(from + self.limit))
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(from),
        };
        let mut meta = format!(r#""offset":{from},"bytes":{},"total":{}"#, to - from, text.len());
        if to < text.len() {
            let _ = write!(meta, r#","next":"{ADDRESS}{}?offset={to}""#, self.id);
        }
        let (modern, mime, uri) = (if modern { MODERN } else { "" }, self.whole.mime, respell(uri));
        let head = format!(
            r#"{{{modern}"contents":[{{"uri":{uri},"mimeType":"{mime}","_meta":{{"linetender":{{{meta}}}}},"text":"#
        );
        frame::response(id, &[&head, &respell(&text[from..to]), "}]}"])
    }
}

/// The id in an address of one of them, and from where it is to be read. No server's own address looks like that: it would have a scheme.
fn parts(uri: &str) -> Option<(&str, Option<usize>)> {
    let rest = uri.strip_prefix(ADDRESS)?;
    let (id, offset) = match rest.split_once("?offset=") {
        Some((id, offset)) => (id, Some(offset.parse().ok()?)),
        None => (rest, None),
    };
    (id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
        .then_some((id, offset))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{KeptResults, LASTS, MOST_OF_ONE, Of, Whole, frame};
    use crate::budget::Budget;
    use crate::config::{Settings, load};
    use crate::ends::Ended;
    use crate::listing::{Berth, Listing, View};
    use crate::principal::Principal;
    use linetender::Rig;
    use std::sync::Arc;

    const MIB: usize = 1024 * 1024;

    fn keep(results: &KeptResults, of: u32, bytes: usize) -> bool {
        let principal = Principal::user(of);
        let whole = Whole { mime: "text/plain", text: "x".repeat(bytes) };
        results.keep(whole, Of { principal: &principal, berth: 0, limit: 1024 }).is_some()
    }

    fn owners(results: &KeptResults) -> Vec<Principal> {
        results.kept().iter().map(|one| one.principal.clone()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn they_are_few_and_small_together_and_last_for_their_time() {
        let budget = Budget::new(8 * MIB);
        let results = KeptResults::new(&budget);
        assert!(!keep(&results, 1, 2 * MIB + 1), "one that is larger than their part");
        assert!(keep(&results, 1, MIB) && keep(&results, 2, MIB / 2) && keep(&results, 1, MIB / 2));
        assert!(keep(&results, 3, MIB / 2), "whoever has most makes room");
        assert_eq!(owners(&results), [Principal::user(2), Principal::user(1), Principal::user(3)]);
        for _ in 0..2 * MOST_OF_ONE {
            assert!(keep(&results, 1, 10));
        }
        assert_eq!(owners(&results).iter().filter(|of| **of == Principal::user(1)).count(), MOST_OF_ONE);
        tokio::time::advance(LASTS.checked_sub(Duration::from_secs(1)).unwrap()).await;
        results.sweep();
        assert!(!owners(&results).is_empty());
        tokio::time::advance(Duration::from_secs(1)).await;
        results.sweep();
        assert!(owners(&results).is_empty());
    }

    #[tokio::test]
    async fn one_is_found_by_its_owner_and_is_not_there_for_anybody_else() {
        let config = load("t", "[servers.a]\ncommand='x'", &|_| None).unwrap();
        let rig = Rig::new();
        let berths = config.servers.into_iter().map(|entry| {
            let line = rig.lazy(entry.server.clone());
            Arc::new(Berth { number: 0, entry, line })
        });
        let berths: Vec<_> = berths.collect();
        let view =
            Arc::clone(&Listing::of(&berths, &Settings::default(), None).seen_by(&Principal::user(1)).all);
        let results = KeptResults::new(&Budget::new(8 * MIB));
        assert!(keep(&results, 1, 10));
        let id = results.kept()[0].id.clone();
        let read = |id: &str, of: u32, view: &View| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"linetender://results/{id}"}}}}"#
            );
            let asked = frame::parse(&text.into(), super::NO_LIMITS).unwrap();
            results.read(&asked, view, &Principal::user(of), false)
        };
        assert_eq!(read(&id, 1, &view).unwrap().1, Ended::Answered);
        let never = read(&"0".repeat(32), 1, &view);
        assert!(matches!(never, Some((_, Ended::Refused(_)))));
        assert_eq!(read(&id, 2, &view), never, "as if it had never been");
        assert!(
            matches!(read(&id, 1, &View::default()), Some((_, Ended::Refused(_)))),
            "its server is not seen"
        );
        for other in ["", "x", "file:///x", &id[1..], &format!("{id}/x"), &format!("{id}?offset=x")] {
            assert!(read(other, 1, &view).is_none(), "{other} is a server's");
        }
    }

    #[tokio::test]
    async fn they_are_the_first_to_give_way() {
        let budget = Budget::new(4 * MIB);
        let results = KeptResults::new(&budget);
        assert!(keep(&results, 1, MIB));
        let mut body = budget.hold(
            crate::budget::Class::Body,
            crate::budget::Owner::default(),
            std::sync::Weak::<super::One>::new(),
        );
        body.grow(4 * MIB).unwrap();
        results.sweep();
        assert!(owners(&results).is_empty());
        assert!(!keep(&results, 1, MIB), "there is no room");
    }
}
