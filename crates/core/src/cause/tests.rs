use core::time::Duration;
use std::vec;
use std::vec::Vec;

use super::{Cause, Conclusion, Detail, Leaf, Leaves, NOTES, NoteKind, Plan};
use crate::class::{Class, Route};

fn every_leaf() -> Vec<Leaf> {
    let plans = Plan::ALL.into_iter().map(Leaf::Planned);
    plans.chain(Class::ALL.into_iter().map(Leaf::Failed)).collect()
}

#[test]
fn each_leaf_has_a_place_of_its_own() {
    for a in every_leaf() {
        for b in every_leaf() {
            assert_eq!(Leaves::of(a).has(b), a == b, "{a:?} {b:?}");
        }
        assert_eq!(Leaves::of(a).iter().collect::<Vec<_>>(), vec![a]);
        assert_eq!(Leaves::of(a).planned(), a.planned());
    }
}

#[test]
fn leaf_names_are_words_and_differ() {
    let mut names: Vec<_> = every_leaf().into_iter().map(Leaf::name).collect();
    assert!(
        names.iter().all(|name| name.len() > 3 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), every_leaf().len());
}

#[test]
fn union_is_a_join() {
    let sets: Vec<_> = every_leaf().into_iter().map(Leaves::of).collect();
    for &a in &sets {
        assert_eq!(a.union(a), a);
        for &b in &sets {
            assert_eq!(a.union(b), b.union(a));
            assert_eq!(a.union(b).planned(), a.planned() && b.planned());
            for &c in &sets {
                assert_eq!(a.union(b).union(c), a.union(b.union(c)));
            }
        }
    }
}

#[test]
fn one_failure_makes_the_end_unplanned() {
    let mixed = Cause::planned(Plan::Recycle).join(Cause::failed(Class::Exit, "killed"));
    assert!(!mixed.leaves().planned());
    assert_eq!(std::format!("{:?}", mixed.leaves()), r#"{"recycle", "exit"}"#);
    assert_eq!(mixed.leaves().failures().collect::<Vec<_>>(), vec![Class::Exit]);
}

#[test]
fn the_first_failure_stays_the_headline() {
    let first = Cause::failed(Class::Exit, "first").join(Cause::failed(Class::Transport, "second"));
    assert_eq!(first.headline().detail, Detail::Seen("first"));
    assert_eq!(first.notes().count(), 1);

    let planned = Cause::planned(Plan::Recycle).join(Cause::failed(Class::Exit, "crash"));
    let planned = planned.join(Cause::failed(Class::Transport, "later"));
    assert_eq!(planned.headline().detail, Detail::Seen("crash"));
    let notes: Vec<_> = planned.notes().map(|note| note.kind).collect();
    let leaf = |leaf| NoteKind::Leaf(leaf);
    assert_eq!(notes, [leaf(Leaf::Planned(Plan::Recycle)), leaf(Leaf::Failed(Class::Transport))]);
}

#[test]
fn two_plans_keep_the_first_as_headline() {
    let cause: Cause<()> = Cause::planned(Plan::IdleStop).join(Cause::planned(Plan::Close));
    assert_eq!(cause.headline().kind, NoteKind::Leaf(Leaf::Planned(Plan::IdleStop)));
    assert_eq!(cause.headline().detail, Detail::Concluded(Conclusion::Asked));
    assert!(cause.leaves().has(Leaf::Planned(Plan::Close)));
}

#[test]
fn a_cleanup_error_is_a_note_and_never_a_leaf() {
    let mut cause = Cause::planned(Plan::Redial);
    cause.add_teardown("lock not held");
    assert!(cause.leaves().planned());
    assert_eq!(cause.notes().next().unwrap().kind, NoteKind::Teardown);

    cause.add_notes_of(Cause::failed(Class::Exit, "143"));
    assert!(cause.leaves().planned(), "what comes after the end has begun is no reason for it");
    assert!(cause.notes().all(|note| note.kind == NoteKind::Teardown));
    assert_eq!(cause.notes().count(), 2);
}

#[test]
fn notes_are_capped_and_the_rest_counted() {
    let mut cause = Cause::failed(Class::Exit, 0);
    for n in 1..=10 {
        cause.add_teardown(n);
    }
    assert_eq!(cause.notes().count(), NOTES);
    assert_eq!(cause.dropped(), 6);
    let twice = cause.clone().join(cause.clone());
    assert_eq!(twice.dropped(), 6 + 6 + 5);
    let mut late = Cause::failed(Class::Exit, 0);
    late.add_notes_of(cause);
    assert_eq!((late.notes().count(), late.dropped()), (NOTES, 1 + 6));
}

#[test]
fn the_longest_retry_after_wins() {
    let short = Cause::failed(Class::Overload, ()).with_retry_after(Duration::from_secs(1));
    let long = Cause::failed(Class::Overload, ()).with_retry_after(Duration::from_secs(3));
    assert_eq!(
        long.clone().with_retry_after(Duration::from_secs(2)).retry_after(),
        Some(Duration::from_secs(3))
    );
    assert_eq!(short.clone().join(long.clone()).retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(long.join(short).retry_after(), Some(Duration::from_secs(3)));
}

#[test]
fn routes_of_sets() {
    let route = |classes: &[Class]| {
        let leaves = classes.iter().map(|&class| Leaves::of(Leaf::Failed(class)));
        leaves.reduce(Leaves::union).unwrap().route()
    };
    assert_eq!(route(&[Class::Exit]), Route::Wait);
    assert_eq!(route(&[Class::Config]), Route::Park);
    assert_eq!(route(&[Class::Config, Class::Exit]), Route::Wait);
    assert_eq!(route(&[Class::Auth]), Route::NeedsAuth);
    assert_eq!(route(&[Class::Auth, Class::Config, Class::Exit]), Route::NeedsAuth);
    assert_eq!(Leaves::of(Leaf::Planned(Plan::Recycle)).route(), Route::Wait);
}
