//! H08, H09, H13, H15: sessions that are lost, servers that come back as something else.

use linetender::{CallError, Era, Eras, Raw, ServerState, State};
use linetender_badserver::webserver::{Config, Fault, Manners, Speaks, UnknownSession, WebServer};
use serde_json::json;

use crate::kit::{ERAS, manners, web, web_with};
use crate::look::{eventually, in_time, policy, speaks};

#[tokio::test]
async fn h08_a_lost_session_is_renewed_once_for_all_and_nothing_runs_twice() {
    for unknown in [
        UnknownSession::NotFound,
        UnknownSession::NotFoundById,
        UnknownSession::BadRequest,
        UnknownSession::Unauthorized,
        UnknownSession::Error(-32600),
        UnknownSession::Error(-32002),
        UnknownSession::Error(-32602),
        UnknownSession::Error(-32001),
    ] {
        let web = web(Era::Legacy).await;
        web.works().await;
        web.server.set(|manners| manners.unknown_session = unknown);
        web.server.forget_sessions();
        let calls: Vec<_> = (0..20)
            .map(|number| {
                let line = web.line.clone();
                tokio::task::spawn(async move {
                    line.call_tool("write", Raw(&format!(r#"{{"nonce":"n{number}"}}"#))).await
                })
            })
            .collect();
        let mut answered = 0;
        for call in calls {
            match in_time(call).await.unwrap() {
                Ok(_) => answered += 1,
                Err(CallError { answered: Some(_), .. }) => {}
                Err(error) => speaks(&error),
            }
        }
        web.back(1).await;
        web.works().await;
        assert_eq!(web.generation(), 2, "{unknown:?}: one new session for all");
        assert_eq!(web.server.counters().initializes, 2, "{unknown:?}");
        let runs = web.book.runs();
        assert!(
            (0..20).all(|number| runs.get(&format!("n{number}")).is_none_or(|runs| *runs == 1)),
            "{runs:?}"
        );
        // Where the refusal proves that nothing ran, nobody notices anything.
        let proves = [UnknownSession::NotFound, UnknownSession::NotFoundById, UnknownSession::BadRequest];
        // H27: with 200, the list that it gave before is refused in the same words. (After -32600 a ping may end the session first.)
        if proves.contains(&unknown) || matches!(unknown, UnknownSession::Error(-32002 | -32602)) {
            assert_eq!(answered, 20, "{unknown:?}");
        }
        assert_eq!(web.line.status().budget, 5000, "free: that session had answered a caller");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h27_an_error_from_before_the_session_was_lost_is_an_answer() {
    let web = web(Era::Legacy).await;
    web.works().await;
    // The list that would show what the error means does not come, and meanwhile another call finds the session lost.
    web.server.set(|manners| manners.fault_on("tools/list", Fault::new("hang", json!({})).times(1)));
    let before = web.server.counters().posts;
    let line = web.line.clone();
    let refused = tokio::task::spawn(async move {
        line.call_tool("status", Raw(r#"{"nonce":"n","code":200,"with_id":true,"error":-32602}"#)).await
    });
    eventually(|| (web.server.counters().posts >= before + 2).then_some(())).await;
    let _ = web.call("deny", r#"{"nonce":"denied"}"#).await;
    let error = in_time(refused).await.unwrap().unwrap_err();
    assert!(error.answered.is_some(), "{error}");
    assert_eq!(web.book.attempts()["n"].len(), 1, "it was answered, perhaps after it ran");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h08_streams_that_are_open_run_on() {
    use linetender_badserver::webserver::Answers;
    let web = web(Era::Legacy).await;
    web.works().await;
    web.server.set(|manners| manners.answers = Answers::Sse);
    let line = web.line.clone();
    let slow =
        tokio::task::spawn(
            async move { line.call_tool("sleep", Raw(r#"{"nonce":"slow","ms":1500}"#)).await },
        );
    eventually(|| web.book.runs().contains_key("slow").then_some(())).await;
    web.server.forget_sessions();
    web.works().await;
    assert_eq!(web.generation(), 2);
    in_time(slow).await.unwrap().expect("it had an answer coming, and got it");
    assert_eq!(web.runs("slow"), 1);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h08_a_session_that_never_served_is_not_free() {
    // A balancer without affinity: the session is gone as soon as it is there.
    let web = web(Era::Legacy).await;
    web.server.forget_sessions();
    let _ = web.call("write", r#"{"nonce":"n"}"#).await;
    web.back(1).await;
    assert!(web.line.status().budget < 5000, "{}", web.line.status().budget);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h09_a_restarted_server_is_found_again() {
    for era in ERAS {
        let mut web = web(era).await;
        web.works().await;
        web.restart().await;
        web.works().await;
        let generation = web.generation();
        match era {
            Era::Legacy => assert_eq!(generation, 2, "its session was lost"),
            Era::Modern => assert_eq!(generation, 1, "unseen"),
        }
        web.leaves_nothing().await;
    }
}

/// A server that behaves like this, and no line to it yet.
fn serving(manners: Manners) -> WebServer {
    WebServer::start(Config { manners, ..Config::default() }).unwrap()
}

#[tokio::test]
async fn h13_a_web_page_is_no_mcp_endpoint() {
    let mut manners = manners(Era::Legacy);
    manners.fault_on("initialize", Fault::new("html", json!({})));
    manners.fault_on("server/discover", Fault::new("html", json!({})));
    let server = serving(manners);
    let line = linetender::Line::open(linetender::Server::http("bad", &server.url()));
    let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    assert!(
        error.cause.contains("not an MCP endpoint") || error.cause.contains("no MCP endpoint"),
        "{error}"
    );
    let status = in_time(line.wait_for(|status| status.state == State::Parked)).await;
    assert_eq!(status.budget, 5000, "that is a matter of configuration");
    in_time(line.close()).await;
}

#[tokio::test]
async fn h15_a_server_that_changes_its_era_is_asked_once_more() {
    for (before, after) in [(Speaks::Modern, Speaks::Legacy), (Speaks::Legacy, Speaks::Modern)] {
        let mut first = manners(Era::Legacy);
        first.speaks = before;
        let mut web = web_with(first, |server| server.eras(Eras::Auto)).await;
        web.works().await;
        web.server.set(|manners| manners.speaks = after);
        web.restart().await;
        // The call that finds out may fail; the line must not.
        let _ = web.call("echo", r#"{"nonce":"found out"}"#).await;
        in_time(async {
            // An error of the server's own is an answer, and serves nobody.
            while web.line.call_tool("echo", Raw("{}")).await.is_err() {
                web.line.wait_for(|status| status.state == State::Up).await;
            }
        })
        .await;
        assert!(web.generation() <= 4, "{} generations", web.generation());
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h11_a_handshake_that_is_told_to_come_back_later_does() {
    let mut manners = manners(Era::Legacy);
    let later = Fault::new("status", json!({ "code": 503, "retry_after": 2 })).times(1);
    manners.fault_on("initialize", later);
    let server = serving(manners);
    let start = crate::look::stopwatch();
    let only = linetender::Server::http("bad", &server.url()).eras(Eras::Only(Era::Legacy));
    let line = linetender::Line::open(only);
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    let took = start.elapsed();
    assert!((1900..4000).contains(&took.as_millis()), "{took:?}");
    in_time(line.close()).await;
}

#[tokio::test]
async fn credentials_that_are_missing_are_said_to_be() {
    let mut manners = manners(Era::Legacy);
    let challenge = json!({ "code": 401, "challenge": "Bearer realm=\"x\"" });
    manners.fault_on("initialize", Fault::new("status", challenge.clone()));
    manners.fault_on("server/discover", Fault::new("status", challenge));
    let server = serving(manners);
    let line = linetender::Line::open(linetender::Server::http("bad", &server.url()));
    let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    in_time(line.wait_for(|status| status.state == State::NeedsAuth)).await;
    in_time(line.close()).await;
}

#[tokio::test]
async fn h08_nothing_crosses_to_the_new_session_of_a_stateful_server() {
    for round in 0..5 {
        let stateful = policy(|settings| settings.state = ServerState::Process);
        let web =
            web_with(manners(Era::Legacy), |server| server.eras(Eras::Only(Era::Legacy)).policy(stateful))
                .await;
        web.works().await;
        web.server.forget_sessions();
        let calls: Vec<_> = (0..20)
            .map(|number| {
                let line = web.line.clone();
                tokio::task::spawn(async move {
                    line.call_tool("write", Raw(&format!(r#"{{"nonce":"n{number}"}}"#))).await
                })
            })
            .collect();
        for call in calls {
            let error = in_time(call).await.unwrap().expect_err("it was sent to the session that is gone");
            speaks(&error);
            assert_eq!(error.delivery.name(), "refused", "{error}");
        }
        let runs = web.book.runs();
        assert!((0..20).all(|number| !runs.contains_key(&format!("n{number}"))), "round {round}: {runs:?}");
        web.back(1).await;
        let error = web.call("echo", "{}").await.unwrap_err();
        assert_eq!(error.fields()["reason"], "context-replaced", "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        web.works().await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h18_what_was_answered_under_its_id_is_never_sent_again() {
    for era in ERAS {
        let web = web(era).await;
        for code in [400, 403, 404, 405, 413, 429, 500, 503] {
            for with in ["with_id", "with_result"] {
                let nonce = format!("{with}-{code}");
                let arguments =
                    format!(r#"{{"nonce":"{nonce}","code":{code},"{with}":true,"error":-32002,"run":true}}"#);
                match web.call("status", &arguments).await {
                    Ok(_) => assert_ne!(with, "with_id", "{nonce}"),
                    Err(error) => assert!(with == "with_id" && error.answered.is_some(), "{nonce}: {error}"),
                }
                assert_eq!(web.runs(&nonce), 1, "{nonce}");
            }
        }
        assert_eq!((web.generation(), web.line.status().budget), (1, 5000), "{era:?}: nothing was lost");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h19_a_call_that_ran_until_its_session_expired_is_not_said_to_have_not_run() {
    for unknown in [UnknownSession::NotFound, UnknownSession::NotFoundById, UnknownSession::BadRequest] {
        let web = web(Era::Legacy).await;
        web.works().await;
        web.server.set(|manners| manners.unknown_session = unknown);
        let told = web.call("deny", r#"{"nonce":"n","ms":1200}"#).await;
        match unknown {
            UnknownSession::NotFoundById => {
                assert!(told.is_err_and(|error| error.answered.is_some()), "late, so it is the answer");
            }
            _ => assert_eq!(told.unwrap_err().delivery.name(), "unknown", "{unknown:?}"),
        }
        web.back(1).await;
        web.works().await;
        assert_eq!(web.runs("n"), 1, "{unknown:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h33_where_only_counts_permit_it_no_refused_call_is_sent_again() {
    let counted = crate::look::policy(|settings| settings.retry_on = linetender::RetryOn::NOT_EXECUTED);
    let web =
        web_with(manners(Era::Legacy), |server| server.eras(Eras::Only(Era::Legacy)).policy(counted)).await;
    web.works().await;
    let error = web.call("deny", r#"{"nonce":"n"}"#).await.unwrap_err();
    assert_eq!((error.delivery.name(), web.runs("n")), ("refused", 1), "{error}");
    web.back(1).await;
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h19_h20_a_404_while_the_session_lives_or_behind_a_redirect_proves_nothing() {
    let web = web(Era::Legacy).await;
    for (tool, arguments) in [
        ("status", r#"{"nonce":"n","code":404,"run":true}"#),
        ("status", r#"{"nonce":"n","code":400,"run":true}"#),
        ("redirect", r#"{"nonce":"n","to":"/nowhere","run":true}"#),
        ("redirect", r#"{"nonce":"n","code":308,"to":"/nowhere","run":true}"#),
        ("redirect", r#"{"nonce":"n","to":"/too-much","run":true}"#),
    ] {
        let error = web.call(tool, arguments).await.unwrap_err();
        speaks(&error);
        assert_eq!((error.delivery.name(), web.runs("n")), ("unknown", 1), "{arguments}: {error}");
        std::fs::write(web.book.path(), "").unwrap();
    }
    assert_eq!(web.generation(), 1, "its session lives");
    web.leaves_nothing().await;
}
