//! Lines to a server that wants a login: the library as a whole, in several processes.

use std::time::{Duration, Instant};

use linetender_auth::logout_through;
use serde_json::json;

use crate::act::Actor;
use crate::processes::rounds;
use crate::provider::{Provider, asker};

/// Waits until every one of them is in this state, and says how long that took.
async fn until(actors: &mut [Actor], state: &str) -> Duration {
    let began = Instant::now();
    for actor in actors {
        loop {
            actor.tell("state");
            let now = actor.answer().unwrap();
            if now == state {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(5), "{now} instead of {state}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    began.elapsed()
}

/// Every one of them calls, all at once.
fn call(actors: &mut [Actor], numbers: &[usize]) -> Vec<String> {
    for (actor, number) in actors.iter_mut().zip(numbers) {
        actor.tell(&format!("line {number}"));
    }
    let answers = actors.iter_mut().map(|actor| actor.answer().unwrap());
    answers.flat_map(|answers| serde_json::from_value::<Vec<String>>(answers).unwrap()).collect()
}

#[tokio::test]
async fn a_login_and_a_logout_are_seen_by_the_lines_of_every_process() {
    let Some(provider) = Provider::start("lines-login") else { return };
    let mut actors: Vec<Actor> = (0..3).map(|_| Actor::start(&provider, None)).collect();
    for said in call(&mut actors, &[1, 1, 1]) {
        assert!(said.contains("not executed") && said.contains("linetender login test"), "{said}");
    }
    for _ in 0..2 {
        provider.login().await;
        let took = until(&mut actors, "Up").await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(call(&mut actors, &[2, 2, 2]).iter().all(|said| said == "done"));
        logout_through(&provider.store(), &provider.at.mcp, &asker()).await.unwrap();
        let took = until(&mut actors, "NeedsAuth").await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        for said in call(&mut actors, &[1, 1, 1]) {
            assert!(said.contains("logged out") && said.contains("linetender login test"), "{said}");
        }
    }
}

/// A01. `LINETENDER_AUTH_ROUNDS=100` for more rounds.
#[tokio::test]
async fn fifty_calls_in_three_processes_whose_token_ends_run_once_after_one_token_request() {
    let Some(provider) = Provider::start("lines-fifty") else { return };
    provider.login().await;
    let mut actors = Vec::new();
    for round in 0..rounds("LINETENDER_AUTH_ROUNDS", 5) {
        // A line asks about 20 refused keys in a row, and then no more than one per second.
        if round % 15 == 0 {
            actors = (0..3).map(|_| Actor::start(&provider, None)).collect();
            call(&mut actors, &[1, 1, 1]);
        }
        let before = provider.set(json!({ "refuse_tokens": true })).await;
        let answers = call(&mut actors, &[17, 17, 16]);
        assert!(answers.iter().all(|said| said == "done"), "round {round}: {answers:?}");
        let after = provider.counts().await;
        assert_eq!((after.token, after.calls), (before.token + 1, before.calls + 50), "round {round}");
    }
}

/// A02 and A04.
#[tokio::test]
async fn what_a_line_cannot_do_is_refused_with_the_command_to_type() {
    let Some(provider) = Provider::start("lines-words") else { return };
    provider.login().await;
    let mut actors = [Actor::start(&provider, None)];
    assert_eq!(call(&mut actors, &[1]), ["done"]);
    provider.set(json!({ "scope": "mcp:write" })).await;
    let said = call(&mut actors, &[1]).remove(0);
    assert!(said.contains("mcp:write") && said.contains("linetender login test"), "{said}");
    provider.set(json!({ "scope": "mcp:read", "revoke_all": true })).await;
    provider.login().await;
    until(&mut actors, "Up").await;
    assert_eq!(call(&mut actors, &[1]), ["done"]);
    provider.set(json!({ "revoke_all": true })).await;
    let said = call(&mut actors, &[1]).remove(0);
    assert!(said.contains("invalid_grant") && said.contains("linetender login test"), "{said}");
    until(&mut actors, "NeedsAuth").await;
    let began = Instant::now();
    call(&mut actors, &[20]);
    assert!(began.elapsed() < Duration::from_secs(2), "refused at once");
}
