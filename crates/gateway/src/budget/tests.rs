use super::{Budget, Class, GiveWay, Held, OverBudget, Owner, SMALL};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

const MIB: usize = 1024 * 1024;

#[derive(Default)]
struct Told(AtomicUsize);

impl GiveWay for Told {
    fn give_way(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn owner(principal: u64, group: u64) -> Owner {
    Owner { principal, group }
}

fn held(budget: &Budget, class: Class, owner: Owner, bytes: usize) -> (Held, Arc<Told>) {
    let told = Arc::<Told>::default();
    let holder: Weak<Told> = Arc::downgrade(&told);
    let mut held = budget.hold(class, owner, holder);
    held.grow(bytes).unwrap();
    (held, told)
}

#[test]
fn o09_what_is_kept_for_convenience_gives_way_first_then_what_nobody_reads() {
    let budget = Budget::new(10 * MIB);
    let (tape, tape_told) = held(&budget, Class::Tape, owner(1, 1), 4 * MIB);
    let (answer, answer_told) = held(&budget, Class::Answer, owner(1, 2), 5 * MIB);
    let (mut body, _) = held(&budget, Class::Body, owner(1, 3), MIB);
    body.grow(MIB).unwrap();
    assert!(tape.is_gone() && !answer.is_gone() && tape_told.0.load(Ordering::Relaxed) == 1);
    body.grow(4 * MIB).unwrap();
    assert!(answer.is_gone() && answer_told.0.load(Ordering::Relaxed) == 1);
    body.grow(4 * MIB).unwrap();
    assert_eq!(body.grow(1), Err(OverBudget), "there is nobody else");
    body.becomes(Class::Call);
    let mut next = budget.hold(Class::Body, owner(2, 9), Weak::<Told>::new());
    assert_eq!(next.grow(SMALL + 1), Err(OverBudget), "what was taken is nobody's victim");
    drop((body, tape, answer));
    assert_eq!(budget.used(), 0);
    next.grow(10 * MIB).unwrap();
}

#[test]
fn o09_the_largest_gives_way_by_whom_it_is_for_and_never_to_somebody_who_has_as_much() {
    let budget = Budget::new(10 * MIB);
    let (mut one, _) = held(&budget, Class::Body, owner(1, 1), 3 * MIB);
    let (two, _) = held(&budget, Class::Body, owner(1, 2), 3 * MIB);
    let (three, _) = held(&budget, Class::Body, owner(2, 3), 4 * MIB);
    assert_eq!(one.grow(MIB), Err(OverBudget), "its principal has most, and it would have most of that");
    let (four, _) = held(&budget, Class::Body, owner(3, 4), 2 * MIB);
    assert!(three.is_gone() ^ (one.is_gone() || two.is_gone()));
    assert!(!three.is_gone(), "of a principal that has less");
    drop((one, two, three, four));
    assert_eq!(budget.used(), 0);
}

#[test]
fn x05_a_small_request_gets_through_when_everything_is_used_up() {
    let budget = Budget::new(10 * MIB);
    let mut call = budget.hold(Class::Call, owner(1, 1), Weak::<Told>::new());
    // Beyond the budget, as what is forced can be.
    assert_eq!(call.force(30 * MIB), Err(OverBudget));
    let body = |group| budget.hold(Class::Body, owner(1, group), Weak::<Told>::new());
    let mut tape = budget.hold(Class::Tape, owner(1, 2), Weak::<Told>::new());
    assert_eq!(tape.grow(1), Err(OverBudget), "it is for requests");
    let mut small = body(3);
    small.grow(SMALL / 2).unwrap();
    small.grow(SMALL / 2).unwrap();
    assert_eq!(small.grow(1), Err(OverBudget), "it is not small any more");
    small.becomes(Class::Call);
    let others: Vec<_> = (4..)
        .map(|group| {
            let mut other = body(group);
            other.grow(SMALL).map(|()| other)
        })
        .map_while(Result::ok)
        .collect();
    assert_eq!(others.len() + 1, 10 * MIB / 8 / 2 / SMALL, "one principal has half of it");
    budget.hold(Class::Body, owner(2, 1), Weak::<Told>::new()).grow(SMALL).unwrap();
    drop(call);
    // With room again it may grow, out of the reserve.
    let mut grows = others.into_iter().next().unwrap();
    grows.grow(MIB).unwrap();
    assert_eq!((budget.0.reserve.used(), budget.used()), (SMALL, 2 * SMALL + MIB));
    drop((grows, small, tape));
    assert_eq!(budget.used(), 0);
}

#[test]
fn o09_large_lists_of_servers_leave_less_to_agents_but_never_nothing() {
    let budget = Budget::new(8 * MIB);
    let fits = |bytes| budget.hold(Class::Body, owner(1, 1), Weak::<Told>::new()).grow(bytes).is_ok();
    budget.beside_lists(4 * MIB);
    assert!(fits(8 * MIB), "of an ordinary size");
    budget.beside_lists(7 * MIB);
    assert!(fits(5 * MIB) && !fits(6 * MIB));
    budget.beside_lists(usize::MAX);
    assert!(fits(2 * MIB) && !fits(3 * MIB));
    budget.beside_lists(0);
    assert!(fits(8 * MIB), "the server is gone");
}

proptest! {
    #[test]
    fn what_is_dropped_is_not_counted_any_more(steps in proptest::collection::vec((0_u8..5, 0_u64..4, 0_usize..3 * MIB, any::<bool>()), 1..80)) {
        let budget = Budget::new(8 * MIB);
        let mut all: Vec<Held> = Vec::new();
        for (what, group, bytes, odd) in steps {
            let class = [Class::Tape, Class::Answer, Class::Body, Class::Reading, Class::Call, Class::Result][usize::from(what)];
            match (odd, all.pop()) {
                (true, Some(mut last)) => {
                    if last.grow(bytes).is_err() && !last.is_gone() {
                        last.shrink(last.bytes / 2);
                    }
                    all.insert(0, last);
                }
                (_, last) => {
                    let mut new = budget.hold(class, owner(group / 2, group), Weak::<Told>::new());
                    if new.grow(bytes).is_err() {
                        let _ = new.force(bytes / 4);
                    }
                    all.push(new);
                    all.extend(last.filter(|_| bytes % 3 > 0));
                }
            }
            let sum: usize = all.iter().filter(|held| !held.is_gone()).map(|held| held.bytes).sum();
            prop_assert_eq!(budget.used(), sum);
        }
        drop(all);
        prop_assert_eq!(budget.used(), 0);
    }
}
