use super::{Answer, Ask, Entry, Held, Lease, Node, Now, Revision, Standing, Terms};
use crate::Instant;
use core::time::Duration;

fn at(millis: u64) -> Now {
    Now { boot: Instant::ORIGIN + Duration::from_millis(1_000_000 + millis), wall: 0 }
}

fn put(ask: Ask) -> (Option<Revision>, Held) {
    match ask {
        Ask::Put { expected, entry } => (expected, entry.held),
        Ask::Look => panic!("a look"),
    }
}

/// A node on a line whose name it made up, as far as its claim.
fn claimed() -> (Lease, u64, Entry) {
    let mut lease = Lease::minted(Node(1), Terms::default());
    lease.want(true);
    let (number, ask) = lease.poll(at(0)).unwrap();
    assert_eq!(ask, Ask::Look);
    lease.answered(at(1), number, Answer::Seen(None));
    let (number, ask) = lease.poll(at(300)).unwrap();
    let (expected, held) = put(ask);
    assert!(expected.is_none() && matches!(held, Held::By(..)), "at once: nobody else can have it");
    (lease, number, Entry { held, lease: Duration::from_secs(20), written: 0 })
}

#[test]
fn a_name_is_new_only_until_it_was_claimed() {
    let (mut lease, number, _) = claimed();
    lease.answered(at(301), number, Answer::Put(Revision(7)));
    assert!(matches!(lease.standing(at(302)), Standing::Owner { .. }));
    lease.seal();
    lease.cleared();
    let (number, release) = lease.poll(at(600)).unwrap();
    assert_eq!(put(release), (Some(Revision(7)), Held::Free));
    lease.answered(at(601), number, Answer::Put(Revision(8)));
    // Others had it since, and the directory lost that: it must not be taken at once.
    lease.see(at(60_000), None);
    let (_, ask) = lease.poll(at(60_000)).unwrap();
    assert_eq!(put(ask), (None, Held::Unclear));
}

/// Whoever is no longer to have the line lets go of it, also if its claim is heard of late.
#[test]
fn a_claim_that_succeeds_too_late_is_let_go_of() {
    let (mut lease, number, entry) = claimed();
    lease.want(false);
    lease.failed(number);
    lease.see(at(2_000), Some((Revision(7), entry)));
    assert!(matches!(lease.standing(at(2_000)), Standing::Sealed { .. }));
}

#[test]
fn a_renewal_counts_from_when_it_was_sent_also_if_its_answer_was_lost() {
    let (mut lease, number, _) = claimed();
    lease.answered(at(301), number, Answer::Put(Revision(7)));
    let (_, renewal) = lease.poll(at(5_400)).unwrap();
    let Ask::Put { expected: Some(Revision(7)), entry } = renewal else { panic!("{renewal:?}") };
    // No answer for three seconds: it looks, and finds its own.
    assert!(lease.poll(at(8_000)).is_none());
    let (number, look) = lease.poll(at(8_500)).unwrap();
    assert_eq!(look, Ask::Look);
    lease.answered(at(8_600), number, Answer::Seen(Some((Revision(8), entry))));
    let Standing::Owner { until, .. } = lease.standing(at(8_600)) else { panic!("lost") };
    assert_eq!(until, at(5_400 + 16_000).boot);
}

/// News that come late, or never, cost a question and not the time between two looks.
#[test]
fn old_news_and_missed_news_lead_to_a_look_at_once() {
    let other = Entry {
        held: Held::By(super::Fence { node: Node(2), claim: 1 }, 4),
        lease: Duration::from_secs(20),
        written: 0,
    };
    let mut lease = Lease::new(Node(1), Terms::default());
    lease.want(true);
    let (number, _) = lease.poll(at(0)).unwrap();
    lease.answered(at(1), number, Answer::Seen(Some((Revision(9), other))));
    assert_eq!(lease.poll(at(300)), None, "another has it");
    for (late, then) in [(true, 600), (false, 1_600)] {
        if late {
            lease.told(at(then), Some((Revision(8), other)));
        } else {
            lease.missed();
        }
        assert_eq!(lease.wake_at().map(|wakes| wakes <= at(then).boot), Some(true));
        let (number, ask) = lease.poll(at(then)).unwrap();
        assert_eq!(ask, Ask::Look);
        lease.answered(at(then + 1), number, Answer::Seen(Some((Revision(9), other))));
        assert_eq!(lease.poll(at(then + 400)), None);
    }
}
