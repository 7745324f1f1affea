//! Several processes behind one login.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::act::Actor;
use crate::provider::Provider;

/// A number from the environment: small in everyday runs, large by command.
pub(crate) fn rounds(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// 50 calls in 3 processes are refused at once. `LINETENDER_AUTH_ROUNDS=100` for more rounds.
#[tokio::test]
async fn three_processes_with_fifty_refused_calls_send_one_token_request() {
    let Some(provider) = Provider::start("three") else { return };
    provider.login().await;
    let mut actors: Vec<Actor> = (0..3).map(|_| Actor::start(&provider, None)).collect();
    for round in 0..rounds("LINETENDER_AUTH_ROUNDS", 5) {
        let before = provider.set(json!({ "refuse_tokens": true })).await;
        for (actor, number) in actors.iter_mut().zip([17, 17, 16]) {
            actor.tell(&format!("calls {number}"));
        }
        for actor in &mut actors {
            let answers = actor.answer().expect("it lives");
            assert!(
                answers.as_array().unwrap().iter().all(|answer| *answer == 200),
                "round {round}: {answers}"
            );
        }
        let after = provider.counts().await;
        assert_eq!((after.token, after.mcp), (before.token + 1, before.mcp + 50), "round {round}");
    }
}

#[tokio::test]
async fn who_waits_for_a_stopped_process_names_it_or_goes_on_with_a_valid_token() {
    let Some(provider) = Provider::start("stopped") else { return };
    provider.login().await;
    let mut stopped = Actor::start(&provider, None);
    // It holds the lock while the authorization server takes its time.
    provider.set(json!({ "refuse_tokens": true, "token": "hang" })).await;
    let before = provider.counts().await;
    stopped.tell("calls");
    while provider.counts().await.token == before.token {
        tokio::task::yield_now().await;
    }
    let pid = stopped.child.id();
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let mut other = Actor::start(&provider, None);
    let began = Instant::now();
    other.tell("calls 2");
    let answer = other.answer().unwrap();
    assert!(answer[0]["later"].as_str().unwrap().contains(&format!("process {pid} ")), "{answer}");
    assert_eq!(answer[0], answer[1]);
    assert!(began.elapsed() < Duration::from_secs(60), "both waited together");
    // A token that should be renewed, but is still good.
    provider.age(3500);
    other.tell("key");
    assert_eq!(other.answer(), Some(json!({ "Ok": true })));
    signal("-CONT");
}

#[tokio::test]
async fn a_token_that_cannot_be_stored_is_used_and_stored_later() {
    let Some(provider) = Provider::start("unstored") else { return };
    let faults = provider.folder.with_extension("faults");
    std::fs::create_dir_all(&faults).unwrap();
    provider.login().await;
    let mut actor = Actor::start(&provider, Some(&faults));
    let fault = faults.join("auth answer opened.always");
    std::fs::write(&fault, "").unwrap();
    let before = provider.set(json!({ "refuse_tokens": true })).await;
    let old = provider.grant();
    for _ in 0..2 {
        actor.tell("calls 3");
        let answers = actor.answer().unwrap();
        assert!(answers.as_array().unwrap().iter().all(|answer| *answer == 200), "{answers}");
    }
    assert_eq!(provider.counts().await.token, before.token + 1);
    assert_eq!(provider.grant()["refresh"], old["refresh"]);
    let listed = linetender_auth::list(&provider.store()).unwrap();
    let pid = actor.child.id();
    assert!(
        matches!(listed[0].standing, linetender_auth::Standing::Renewing { pid: by, .. } if by == pid),
        "{listed:?}"
    );
    // Another process does not try the token that is good no more.
    std::fs::remove_file(&fault).unwrap();
    let mut other = Actor::start(&provider, None);
    other.tell("calls 2");
    assert_eq!(other.answer(), Some(json!([200, 200])));
    assert_eq!(provider.counts().await.token, before.token + 1);
    let _ = std::fs::remove_dir_all(&faults);
}
