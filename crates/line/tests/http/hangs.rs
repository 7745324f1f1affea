//! S26 over HTTP: a server that hangs while its callers give up. A call that was given up owes nothing there.

use std::time::Duration;

use linetender::{Era, Eras, Policy, Raw};
use linetender_badserver::webserver::Fault;
use serde_json::json;

use crate::kit::{manners, web_with};
use crate::look::{eventually, in_time, policy};

fn quick() -> Policy {
    policy(|settings| {
        settings.probe.timeout = Duration::from_millis(300);
        settings.call.abandoned_after = Duration::from_secs(600);
    })
}

#[tokio::test]
async fn a_proxy_that_answers_for_a_silent_server_is_no_sign_of_life() {
    let web =
        web_with(manners(Era::Legacy), |server| server.policy(quick()).eras(Eras::Only(Era::Legacy))).await;
    web.works().await;
    // What stands before the server answers for it.
    web.server.set(|manners| manners.fault_on("ping", Fault::new("status", json!({ "code": 502 }))));
    let line = web.line.clone();
    let given_up = tokio::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"given-up"}"#)).await });
    eventually(|| (web.runs("given-up") > 0).then_some(())).await;
    let line = web.line.clone();
    let waits =
        tokio::spawn(async move { line.call_tool("sleep", Raw(r#"{"nonce":"waits","ms":3000}"#)).await });
    eventually(|| (web.runs("waits") > 0).then_some(())).await;
    given_up.abort();
    let status = in_time(web.line.wait_for(|status| status.generation > 1)).await;
    assert!(!waits.is_finished(), "two missed probes end the generation, not an exchange that is waited for");
    assert_eq!(status.budget, 4000);
    let answer = in_time(waits).await.unwrap().unwrap();
    assert!(answer.raw().contains("waits"), "{}", answer.raw());
    assert_eq!(web.runs("waits"), 1);
    web.server.set(|manners| manners.faults.clear());
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_at_a_server_that_answers_its_probe_changes_nothing() {
    let web =
        web_with(manners(Era::Legacy), |server| server.policy(quick()).eras(Eras::Only(Era::Legacy))).await;
    for number in 0..5 {
        let arguments = format!(r#"{{"nonce":"n{number}"}}"#);
        let call = web.line.call_tool("hang", Raw(&arguments));
        assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
    }
    web.works().await;
    assert_eq!((web.generation(), web.line.status().budget), (1, 5000));
    web.leaves_nothing().await;
}
