//! The defaults are those of the fault catalogue, and configuration can reach every number.

use std::time::Duration;

use linetender_core::{Policy, ServerState};

#[test]
fn the_defaults_are_those_of_the_catalogue() {
    let policy = *Policy::default().settings();
    assert_eq!(policy.state, ServerState::Unknown);
    assert!(!policy.trust_annotations);
    let secs = [
        (policy.dial.start, 60),
        (policy.dial.handshake, 30),
        (policy.dial.probe_wait, 2),
        (policy.call.limit, 300),
        (policy.call.cap, 600),
        (policy.call.hang_after, 1800),
        (policy.call.abandoned_after, 60),
        (policy.call.wait_for_line, 5),
        (policy.call.question_cap, 3600),
        (policy.probe.keepalive, 30),
        (policy.probe.timeout, 5),
        (policy.budget.uptime_per_token, 60),
        (policy.budget.useful_uptime_per_token, 20),
        (policy.backoff.useful_cap, 1),
        (policy.backoff.cap, 30),
        (policy.park.probe, 30),
        (policy.park.probe_cap, 300),
        (policy.park.wake, 5),
        (policy.park.wake_cap, 60),
        (policy.close.stdin, 2),
        (policy.close.term, 2),
    ];
    for (span, expected) in secs {
        assert_eq!(span, Duration::from_secs(expected));
    }
    assert_eq!(policy.backoff.base, Duration::from_millis(100));
    assert_eq!(policy.close.settle, Duration::from_millis(30));
    assert_eq!((policy.budget.tokens, policy.budget.millis_per_answer, policy.probe.failures), (5, 100, 2));
    assert_eq!((policy.budget.useful_answers, policy.budget.useful_tokens), (3, 30));
    assert_eq!(policy.backoff.useful_base, Duration::from_millis(50));
    assert_eq!((policy.retry.percent, policy.retry.reserve_per_sec), (10, 1));
    let limits = policy.limits;
    assert_eq!((limits.message, limits.depth, limits.stderr), (16 << 20, 128, 64 << 10));
    assert_eq!((limits.in_flight, limits.queue), (128, 256));
}

#[cfg(feature = "serde")]
mod from_config {
    use linetender_core::{Policy, ServerState};
    use std::time::Duration;

    #[test]
    fn what_is_not_written_keeps_its_default() {
        let text = r#"{"state": "process", "probe": {"keepalive": 10000}}"#;
        let policy = *serde_json::from_str::<Policy>(text).unwrap().settings();
        let default = *Policy::default().settings();
        assert_eq!(policy.state, ServerState::Process);
        assert_eq!(policy.probe.keepalive, Duration::from_secs(10));
        assert_eq!(policy.probe.timeout, default.probe.timeout);
        assert_eq!(policy.budget, default.budget);
    }

    #[test]
    fn a_policy_survives_the_round_trip() {
        let mut settings = linetender_core::Settings::default();
        settings.park.wake = Duration::from_millis(4_321);
        let policy = Policy::new(settings).unwrap();
        let text = serde_json::to_string(&policy).unwrap();
        assert!(text.contains(r#""wake":4321"#), "{text}");
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }

    #[test]
    fn a_bad_number_and_a_misspelt_name_are_refused_where_they_stand() {
        let error = |text| serde_json::from_str::<Policy>(text).unwrap_err().to_string();
        assert!(
            error(r#"{"probe": {"keepalive": 0}}"#).starts_with("probe.keepalive must be longer than zero")
        );
        assert!(error(r#"{"probe": {"keepalife": 5}}"#).contains("unknown field `keepalife`"));
    }
}
