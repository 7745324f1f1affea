//! The transport of 2024-11-05, HTTP+SSE: one event stream on which every answer comes, and messages that are posted to the URL
//! that it names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linetender::{
    Answer, CallError, CallErrorKind, HttpServer, HttpTransport, Line, Options, Policy, Raw, Server,
    ServerState, State,
};
use linetender_badserver::webserver::{
    Config, Ending, Fault, Manners, SseDoor, Streams, UnknownSession, Wants, WebServer,
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::desk::{Desk, bearer, key};
use crate::kit::{Web, book};
use crate::look::{eventually, in_time, policy, speaks};

fn explicit(server: HttpServer) -> HttpServer {
    server.transport(HttpTransport::Sse)
}

/// A server, and a line to it that may not come up.
fn opened(manners: Manners, change: impl FnOnce(HttpServer) -> HttpServer) -> Web {
    let book = book();
    let config = Config { book: Some(book.path().to_owned()), manners, ..Config::default() };
    let server = WebServer::start(config).unwrap();
    let line = Line::open(change(Server::http("bad", &server.sse_url())));
    Web { server, line, book }
}

async fn up(manners: Manners, change: impl FnOnce(HttpServer) -> HttpServer) -> Web {
    let web = opened(manners, change);
    in_time(web.line.ready()).await.unwrap();
    in_time(web.line.list_tools()).await.unwrap();
    web
}

fn spawn(web: &Web, tool: &'static str, arguments: String) -> JoinHandle<Result<Answer, CallError>> {
    let line = web.line.clone();
    tokio::spawn(async move { line.call_tool(tool, Raw(&arguments)).await })
}

/// What a line ends with that cannot work until somebody changes something.
async fn parked(web: &Web) -> CallError {
    let error = in_time(web.line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    let status = web.until(State::Parked).await;
    assert_eq!(status.budget, 5000, "a matter of configuration: {error}");
    error
}

#[tokio::test]
async fn calls_are_answered_on_the_stream() {
    let web = up(Manners::default(), explicit).await;
    web.works().await;
    let many: Vec<_> =
        (0..30).map(|number| spawn(&web, "write", format!(r#"{{"nonce":"n{number}"}}"#))).collect();
    for (number, call) in many.into_iter().enumerate() {
        let answer = in_time(call).await.unwrap().unwrap();
        assert!(answer.raw().contains(&format!(r"n{number}\")), "{}", answer.raw());
    }
    let progress = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&progress);
    let heard = move |_: &str| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let options = Options::default().on_progress(heard);
    in_time(web.line.call_tool_with("progress", Raw(r#"{"nonce":"p","n":3}"#), options)).await.unwrap();
    assert_eq!(progress.load(Ordering::Relaxed), 3);
    web.server.change_tools();
    in_time(async {
        while !web.line.list_tools().await.unwrap().iter().any(|tool| &*tool.name == "extra_1") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let counters = web.server.counters();
    assert_eq!(
        (counters.gets, counters.initializes, counters.discovers),
        (1, 1, 0),
        "one stream, one handshake"
    );
    assert_eq!((web.generation(), web.server.event_streams()), (1, 1));
    assert_eq!(web.line.odd(), (0, Vec::new()), "nothing is heard that nobody asked for");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_does_not_know_the_newer_transport_is_asked_in_this_one_and_remembered() {
    let mut web = up(Manners::default(), |server| server).await;
    web.works().await;
    let first = web.server.counters();
    assert_eq!((first.discovers, first.initializes, first.gets), (1, 2, 1), "both were asked for once");
    web.restart().await;
    web.back(1).await;
    web.works().await;
    let second = web.server.counters();
    assert_eq!((second.discovers, second.initializes, second.gets), (1, 3, 2), "this one was remembered");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_call_that_was_taken_before_the_stream_was_cut_may_have_run() {
    for how in ["cut", "reset", "restarted"] {
        let mut web = up(Manners::default(), explicit).await;
        web.works().await;
        let call = spawn(&web, "sleep", r#"{"nonce":"n","ms":60000}"#.to_owned());
        eventually(|| (web.runs("n") > 0).then_some(())).await;
        match how {
            "cut" => web.server.cut_event_streams(),
            "reset" => web.server.end_connections(Ending::Reset),
            _ => web.restart().await,
        }
        let error = in_time(call).await.unwrap().unwrap_err();
        speaks(&error);
        assert_eq!(error.delivery.name(), "unknown", "{how}: {error}");
        assert!(error.cause.contains("event stream"), "{how}: {error}");
        web.back(1).await;
        web.works().await;
        assert_eq!((web.generation(), web.runs("n")), (2, 1), "{how}");
        assert_eq!(web.line.status().budget, 5000, "{how}: free, it had answered a caller");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_stream_that_never_served_is_not_free() {
    let web = up(Manners::default(), explicit).await;
    web.server.cut_event_streams();
    web.back(1).await;
    assert!(web.line.status().budget < 5000);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_read_only_call_of_a_trusted_server_that_was_lost_with_its_stream_is_asked_again() {
    let web = up(Manners::default(), |server| explicit(server).safe_tool("sleep")).await;
    let call = spawn(&web, "sleep", r#"{"nonce":"n","ms":500}"#.to_owned());
    eventually(|| (web.runs("n") > 0).then_some(())).await;
    web.server.cut_event_streams();
    in_time(call).await.unwrap().unwrap();
    assert_eq!(web.runs("n"), 2, "it is said to be safe");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn calls_that_a_forgotten_session_refused_are_sent_again_and_nothing_runs_twice() {
    for unknown in [UnknownSession::NotFound, UnknownSession::BadRequest, UnknownSession::NotFoundById] {
        let web = up(Manners { unknown_session: unknown, ..Manners::default() }, explicit).await;
        web.works().await;
        // The stream stays open, as behind a proxy that holds it while the server behind it is another.
        web.server.forget_sessions();
        let calls: Vec<_> =
            (0..20).map(|number| spawn(&web, "write", format!(r#"{{"nonce":"n{number}"}}"#))).collect();
        for call in calls {
            in_time(call).await.unwrap().unwrap_or_else(|error| panic!("{unknown:?}: {error}"));
        }
        let runs = web.book.runs();
        assert!((0..20).all(|number| runs.get(&format!("n{number}")) == Some(&1)), "{unknown:?}: {runs:?}");
        assert_eq!((web.generation(), web.line.status().budget), (2, 5000), "{unknown:?}");
        eventually(|| (web.server.event_streams() == 1).then_some(())).await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_refusal_proves_nothing_while_the_session_lives_or_after_the_tool_ran() {
    let web = up(Manners::default(), explicit).await;
    web.works().await;
    for code in [400, 404, 500] {
        let error = web.call("status", &format!(r#"{{"nonce":"n{code}","code":{code},"run":true}}"#)).await;
        let error = error.unwrap_err();
        assert_eq!((error.delivery.name(), web.runs(&format!("n{code}"))), ("unknown", 1), "{error}");
    }
    assert_eq!(web.generation(), 1, "its session lives");
    // It ran for a second, and was refused then.
    let error = web.call("deny", r#"{"nonce":"n","ms":1200}"#).await.unwrap_err();
    assert_eq!((error.delivery.name(), web.runs("n")), ("unknown", 1), "{error}");
    web.back(1).await;
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_post_that_cannot_connect_was_not_sent() {
    let mut web = up(Manners::default(), explicit).await;
    web.works().await;
    web.server.stop(Ending::Reset).await;
    let call = spawn(&web, "write", r#"{"nonce":"n"}"#.to_owned());
    web.server.restart(Ending::Reset).await.unwrap();
    in_time(call).await.unwrap().expect("unseen");
    assert_eq!(web.runs("n"), 1);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_post_that_broke_is_its_calls_alone() {
    let web = up(Manners::default(), explicit).await;
    web.works().await;
    let error = web.call("reset_after_run", r#"{"nonce":"n"}"#).await.unwrap_err();
    assert_eq!((error.delivery.name(), web.runs("n")), ("unknown", 1), "{error}");
    web.works().await;
    assert_eq!((web.generation(), web.line.status().budget), (1, 5000));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn an_endpoint_at_another_origin_is_refused_and_told_nothing() {
    for explicitly in [true, false] {
        let other = WebServer::start(Config::default()).unwrap();
        let key = "canary-5f1c9e";
        let endpoint = Some(format!("http://{}/messages?session_id=secret-session", other.address()));
        let manners = Manners { endpoint, ..Manners::default() };
        let web = opened(manners, |server| {
            let server = server.header("authorization", &format!("Bearer {key}"));
            if explicitly { explicit(server) } else { server }
        });
        let error = parked(&web).await;
        assert!(error.cause.contains("another origin"), "{error}");
        assert!(!error.cause.contains("secret-session") && !error.to_string().contains(key), "{error}");
        assert_eq!(other.counters().connections, 0, "no credentials go there");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn an_endpoint_that_is_no_url_is_refused() {
    let long = format!("/messages?x={}", "x".repeat(10_000));
    for endpoint in ["", "http://", "ftp://127.0.0.1/x", "//evil.example/x", "/a b", "\u{1f}", &long] {
        let manners = Manners { endpoint: Some(endpoint.to_owned()), ..Manners::default() };
        let web = opened(manners, explicit);
        let error = parked(&web).await;
        assert!(error.cause.contains("cannot be used"), "{endpoint:.40}: {error}");
        assert!(error.cause.len() < 1000, "{error}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn an_endpoint_may_be_spelt_in_any_way_at_the_same_origin() {
    let web = up(Manners::default(), explicit).await;
    let origin = web.server.sse_url().replace("/sse", "");
    web.leaves_nothing().await;
    for endpoint in
        ["messages?session_id={session}".to_owned(), format!("{origin}/messages?session_id={{session}}")]
    {
        let web = opened(Manners::default(), explicit);
        let spelt = endpoint.replace(&origin, &web.server.sse_url().replace("/sse", ""));
        web.server.set(|manners| manners.endpoint = Some(spelt));
        in_time(web.line.close()).await;
        let line = Line::open(explicit(Server::http("bad", &web.server.sse_url())));
        in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
        in_time(line.close()).await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn an_endpoint_that_never_comes_is_waited_for_no_longer_than_a_start() {
    let manners = Manners { streams: Streams::Silent, ..Manners::default() };
    let short = policy(|settings| {
        settings.dial.start = Duration::from_millis(400);
        settings.dial.handshake = Duration::from_millis(400);
    });
    let web = opened(manners, |server| explicit(server).policy(short));
    let error = in_time(web.line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    assert_eq!(error.delivery.name(), "not executed", "{error}");
    let status = in_time(web.line.wait_for(|status| status.budget < 5000)).await;
    let why = status.cause.unwrap().to_string();
    assert!(why.contains("named no endpoint"), "{why}");
    web.server.set(|manners| manners.streams = Streams::Open);
    web.back(1).await;
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn where_nothing_says_so_a_stream_without_an_endpoint_is_no_server() {
    let manners = Manners { streams: Streams::Silent, ..Manners::default() };
    let quick = policy(|settings| settings.dial.probe_wait = Duration::from_millis(200));
    let web = opened(manners, |server| server.policy(quick));
    let error = parked(&web).await;
    assert!(error.cause.contains("not an MCP endpoint"), "{error}");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_stream_that_is_refused_is_no_server() {
    let web = opened(Manners { streams: Streams::Refused, ..Manners::default() }, explicit);
    let error = parked(&web).await;
    assert!(error.cause.contains("405") && error.cause.contains("event stream"), "{error}");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn streams_that_end_at_once_are_charged_and_not_opened_in_a_storm() {
    let web = opened(Manners { streams: Streams::Empty, ..Manners::default() }, explicit);
    web.until(State::Parked).await;
    assert!(web.server.counters().gets <= 8, "{}", web.server.counters().gets);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_takes_messages_and_answers_none_is_found_by_its_silence() {
    let quick = policy(|settings| {
        settings.probe.over_http = true;
        settings.probe.keepalive = Duration::from_millis(300);
        settings.probe.timeout = Duration::from_millis(200);
    });
    let web = up(Manners::default(), |server| explicit(server).policy(quick)).await;
    web.works().await;
    web.server.set(|manners| manners.sse = SseDoor::Mute);
    in_time(web.line.wait_for(|status| status.state != State::Up && status.generation == 1)).await;
    in_time(web.line.wait_for(|status| status.generation > 1)).await;
    web.server.set(|manners| manners.sse = SseDoor::Answers);
    in_time(web.line.ready()).await.unwrap();
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_message_above_the_limit_ends_its_call_and_nothing_else() {
    let small = policy(|settings| settings.limits.message = 100_000);
    let web = up(Manners::default(), |server| explicit(server).policy(small)).await;
    let error = web.call("big", r#"{"nonce":"n","bytes":300000}"#).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::BadAnswer, "{error}");
    web.works().await;
    assert_eq!((web.generation(), web.runs("n")), (1, 1));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_refused_key_is_replaced_on_the_stream_and_on_messages() {
    let desk = Desk::with(key(1), [key(2), key(3)]);
    let manners = Manners { wants: Some(Wants::key(bearer(2))), ..Manners::default() };
    let keys = Arc::<Desk>::clone(&desk);
    // The stream is refused: another key opens it.
    let web = up(manners, |server| explicit(server).keys(keys)).await;
    web.works().await;
    web.wants(3);
    let calls: Vec<_> =
        (0..10).map(|number| spawn(&web, "write", format!(r#"{{"nonce":"n{number}"}}"#))).collect();
    for call in calls {
        in_time(call).await.unwrap().expect("the next key does");
    }
    assert_eq!(web.generation(), 1, "the stream goes on");
    let runs = web.book.runs();
    assert!((0..10).all(|number| runs.get(&format!("n{number}")) == Some(&1)), "{runs:?}");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let mut server = WebServer::start(Config::default()).unwrap();
    let url = server.sse_url();
    server.stop(Ending::Reset).await;
    let line = Line::open(explicit(Server::http("bad", &url)));
    let call = tokio::spawn({
        let line = line.clone();
        async move { line.call_tool("echo", Raw("{}")).await }
    });
    in_time(line.wait_for(|status| status.generation == 1)).await;
    server.restart(Ending::Reset).await.unwrap();
    in_time(call).await.unwrap().unwrap();
    assert_eq!(line.status().budget, 5000);
    in_time(line.close()).await;
}

#[tokio::test]
async fn a_server_found_to_speak_this_transport_may_learn_the_other() {
    let mut web = up(Manners::default(), |server| server).await;
    web.works().await;
    // It answers POST at the same URL from now on.
    web.server.set(|manners| {
        manners.fault_on("GET", Fault::new("status", json!({ "code": 404 })));
        manners.sse = SseDoor::Streamable;
    });
    web.restart().await;
    web.back(1).await;
    web.works().await;
    assert_eq!(web.generation(), 2);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn messages_that_reach_another_copy_of_the_server_are_told_from_a_lost_session() {
    // As behind a load balancer without affinity: whoever gets the message has no such stream.
    let endpoint = Some("/messages?session_id=elsewhere".to_owned());
    let web = opened(Manners { endpoint, ..Manners::default() }, explicit);
    let status = in_time(web.line.wait_for(|status| status.budget < 5000)).await;
    let why = status.cause.unwrap().to_string();
    assert!(why.contains("session affinity"), "{why}");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn over_http_2_the_stream_and_its_messages_share_a_connection() {
    let web = up(Manners::default(), |server| explicit(server).http2()).await;
    let many: Vec<_> =
        (0..20).map(|number| spawn(&web, "write", format!(r#"{{"nonce":"n{number}"}}"#))).collect();
    for call in many {
        in_time(call).await.unwrap().unwrap();
    }
    assert_eq!(web.server.counters().connections, 1);
    web.server.cut_event_streams();
    web.back(1).await;
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn an_answer_on_the_stream_counts_whatever_becomes_of_its_post() {
    let web = up(Manners::default(), explicit).await;
    web.works().await;
    // The message is answered, and the POST that brought it is not.
    web.server.set(|manners| manners.sse = SseDoor::HoldsPosts);
    for number in 0..40 {
        let answer = web.call("write", &format!(r#"{{"nonce":"n{number}"}}"#)).await.unwrap();
        assert!(answer.raw().contains("content"), "{}", answer.raw());
    }
    assert_eq!((web.generation(), web.runs("n0")), (1, 1));
    web.server.set(|manners| manners.sse = SseDoor::Answers);
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    let web = up(Manners::default(), explicit).await;
    let call = web.line.call_tool("hang", Raw(r#"{"nonce":"n"}"#));
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    eventually(|| {
        let cancels = |seen: &linetender_badserver::webserver::Seen| {
            seen.method.as_deref() == Some("notifications/cancelled")
        };
        web.server.seen().iter().any(cancels).then_some(())
    })
    .await;
    web.works().await;
    assert_eq!((web.generation(), web.line.status().budget), (1, 5000));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn headers_go_with_the_stream_and_with_every_message() {
    let web = up(Manners::default(), |server| explicit(server).header("x-key", "hush-hush")).await;
    web.works().await;
    let seen = web.server.seen();
    assert!(seen.len() > 4 && seen.iter().all(|one| one.header("x-key") == Some("hush-hush")), "{seen:?}");
    assert!(seen.iter().any(|one| one.verb == "GET" && one.header("accept") == Some("text/event-stream")));
    web.leaves_nothing().await;
}

/// Every call ends, none runs twice, and what is said of each is true.
#[tokio::test]
async fn under_a_mix_of_faults_nothing_hangs_and_nothing_runs_twice() {
    let stateless = Policy::default().with_state(ServerState::None);
    let mut web = up(Manners::default(), |server| explicit(server).policy(stateless)).await;
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let line = web.line.clone();
            tokio::spawn(async move {
                let mut told = Vec::new();
                for number in 0..60 {
                    let nonce = format!("c{caller}-{number}");
                    let arguments = format!(r#"{{"nonce":"{nonce}","ms":{}}}"#, (caller * 7 + number) % 20);
                    let said = match in_time(line.call_tool("sleep", Raw(&arguments))).await {
                        Ok(_) => "answered",
                        Err(error) => error.delivery.name(),
                    };
                    told.push((nonce, said));
                }
                told
            })
        })
        .collect();
    let mut fault = 0;
    while callers.iter().any(|caller| !caller.is_finished()) {
        match fault % 5 {
            0 => web.server.cut_event_streams(),
            1 => web.server.forget_sessions(),
            2 => web.server.end_connections(Ending::Reset),
            3 => web.restart().await,
            _ => web.server.end_connections(Ending::Fin),
        }
        fault += 1;
        // It serves between its deaths: one that does not is parked, and then most calls are refused.
        tokio::time::sleep(Duration::from_millis(10)).await;
        in_time(web.line.wait_for(|status| status.state == State::Up)).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let mut counts = std::collections::BTreeMap::<_, u32>::new();
    for caller in callers {
        for (nonce, said) in in_time(caller).await.unwrap() {
            let runs = web.runs(&nonce);
            let is_true = match said {
                "answered" => runs == 1,
                "not executed" => runs == 0,
                _ => runs <= 1,
            };
            assert!(is_true, "{nonce} is said to be {said}, and ran {runs} times");
            *counts.entry(said).or_default() += 1;
        }
    }
    assert!(counts["answered"] > 240, "{counts:?} after {fault} faults");
    web.works().await;
    web.leaves_nothing().await;
}
