//! S53: what a server keeps in a session is gone with the session.

use std::time::Duration;

use linetender::{CallError, CallErrorKind, Era, Eras, Raw, ServerState};

use crate::kit::{Web, manners, web_with};
use crate::look::{in_time, policy};

async fn perhaps(era: Era) -> Web {
    let keeps = policy(|settings| settings.state = ServerState::Unknown);
    web_with(manners(era), |server| server.eras(Eras::Only(era)).policy(keeps)).await
}

/// Five calls at once, and what the agent is told of each.
async fn five(web: &Web, name: &str) -> Vec<Result<(), CallError>> {
    let calls: Vec<_> = (0..5)
        .map(|number| {
            let (line, arguments) = (web.line.clone(), format!(r#"{{"nonce":"{name}{number}"}}"#));
            tokio::task::spawn(async move { line.call_tool("write", Raw(&arguments)).await.map(drop) })
        })
        .collect();
    let mut told = Vec::new();
    for call in calls {
        told.push(in_time(call).await.unwrap());
    }
    told
}

#[tokio::test]
async fn s53_calls_do_not_cross_to_the_next_session_before_their_agent_knows() {
    let web = perhaps(Era::Legacy).await;
    web.call("write", r#"{"nonce":"use"}"#).await.unwrap();
    web.server.forget_sessions();
    for (number, told) in five(&web, "a").await.into_iter().enumerate() {
        let error = told.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::ContextReplaced, "{error}");
        assert!(matches!(error.delivery.name(), "refused" | "not executed"), "{error}");
        assert_eq!(error.fields()["reason"], "context-replaced");
        assert_eq!(web.runs(&format!("a{number}")), 0);
    }
    web.works().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(five(&web, "b").await.iter().all(Result::is_ok));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn s53_calls_of_an_agent_that_used_no_session_are_recovered() {
    let web = perhaps(Era::Legacy).await;
    web.works().await;
    web.server.forget_sessions();
    assert!(five(&web, "a").await.iter().all(Result::is_ok));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn s53_without_a_session_there_is_nothing_to_lose() {
    let mut web = perhaps(Era::Modern).await;
    web.call("write", r#"{"nonce":"use"}"#).await.unwrap();
    web.restart().await;
    in_time(web.line.redial()).await.unwrap();
    assert!(five(&web, "a").await.iter().all(Result::is_ok));
    web.leaves_nothing().await;
}
