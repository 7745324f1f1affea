//! H01, H02b, H04, O02: what lies between.

use std::time::Duration;

use linetender::{CallErrorKind, Delivery, Era, Eras, Line, Raw, RetryReason, Server, ServerRefusal, State};
use linetender_badserver::proxy::{Fault, Proxy};
use linetender_badserver::webserver::{Ending, Sockets};

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::kit::{ERAS, manners, web, web_with};
use crate::look::{in_time, policy, speaks, stopwatch};

#[tokio::test]
async fn h01_a_refused_connection_runs_nothing_and_is_tried_again() {
    for era in ERAS {
        let mut web = web(era).await;
        web.works().await;
        let port = web.server.port();
        web.server.stop(Ending::Reset).await;
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        speaks(&error);
        assert_eq!(error.delivery.name(), "not executed", "{error}");
        assert!(error.cause.contains("connect"), "{error}");
        let config = linetender_badserver::webserver::Config {
            port,
            book: Some(web.book.path().to_owned()),
            manners: manners(era),
            ..Default::default()
        };
        web.server = linetender_badserver::webserver::WebServer::start(config).unwrap();
        in_time(async { while web.line.call_tool("echo", Raw("{}")).await.is_err() {} }).await;
        assert_eq!(web.runs("n"), 0);
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h25_calls_wait_while_their_server_restarts_and_none_is_lost() {
    for era in ERAS {
        let mut web = web(era).await;
        web.works().await;
        let (port, budget) = (web.server.port(), web.line.status().budget);
        web.server.stop(Ending::Reset).await;
        let calls: Vec<_> = (0..10)
            .map(|number| {
                let line = web.line.clone();
                tokio::spawn(async move {
                    line.call_tool("write", Raw(&format!(r#"{{"nonce":"n{number}"}}"#))).await
                })
            })
            .collect();
        // The line says what it waits for.
        let status = in_time(web.line.wait_for(|status| status.next_try().is_some())).await;
        let why = status.cause.map(|why| why.text.clone()).unwrap_or_default();
        assert!(why.contains("connect"), "{why}");
        assert_eq!((status.state, status.generation), (State::Suspect, 1));
        let config = linetender_badserver::webserver::Config {
            port,
            book: Some(web.book.path().to_owned()),
            manners: manners(era),
            ..Default::default()
        };
        web.server = linetender_badserver::webserver::WebServer::start(config).unwrap();
        for call in calls {
            in_time(call).await.unwrap().expect("it waited for the server");
        }
        assert!((0..10).all(|number| web.runs(&format!("n{number}")) == 1), "{:?}", web.book.runs());
        assert!(web.line.status().budget >= budget, "nothing was charged: {}", web.line.status().budget);
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h37_calls_whose_streams_are_refused_are_told_so_and_not_sent_again() {
    let book = crate::kit::book();
    let config = linetender_badserver::webserver::Config {
        book: Some(book.path().to_owned()),
        manners: manners(Era::Modern),
        ..Default::default()
    };
    let server = linetender_badserver::webserver::WebServer::start(config).unwrap();
    let line = Line::open(Server::http("bad", &server.url()).http2().eras(Eras::Only(Era::Modern)));
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    let fault = linetender_badserver::webserver::Fault::new("refused", serde_json::json!({})).times(40);
    server.set(|manners| manners.fault_on("tools/call", fault));
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let line = line.clone();
            tokio::spawn(
                async move { line.call_tool("write", Raw(&format!(r#"{{"nonce":"n{number}"}}"#))).await },
            )
        })
        .collect();
    for call in calls {
        let error = in_time(call).await.unwrap().expect_err("the server refused it");
        assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::RefusedStream), "{error}");
        assert!(
            error.for_model().contains("refuse a call like this after it was executed"),
            "{}",
            error.for_model()
        );
    }
    assert!((0..10).all(|number| !book.runs().contains_key(&format!("n{number}"))), "{:?}", book.runs());
    in_time(line.close()).await;
    let _ = std::fs::remove_file(book.path());
}

#[tokio::test]
async fn h01_a_name_that_is_nowhere_and_an_address_that_is_none() {
    for (url, parked) in
        [("http://no-such-host.invalid/mcp", false), ("stdio:nonsense", true), ("http://127.0.0.1:1/", false)]
    {
        let line = Line::open(Server::http("bad", url));
        let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
        speaks(&error);
        assert_eq!(error.delivery.name(), "not executed", "{url} {error}");
        if parked {
            in_time(line.wait_for(|status| status.state == State::Parked)).await;
            assert_eq!(line.status().budget, 5000);
        }
        in_time(line.close()).await;
    }
}

#[tokio::test]
async fn h02b_a_silent_peer_is_found_out_by_the_deadline_and_replaced() {
    let quick = policy(|settings| {
        settings.call.limit = Duration::from_millis(300);
        settings.call.cap = Duration::from_millis(300);
        settings.probe.timeout = Duration::from_millis(200);
        settings.dial.start = Duration::from_secs(2);
    });
    for era in ERAS {
        let web = web_with(manners(era), |server| server.policy(quick).eras(Eras::Only(era))).await;
        web.works().await;
        let proxy = Proxy::start(web.server.address()).unwrap();
        let url = format!("http://{}/mcp", proxy.addr());
        let line = Line::open(Server::http("bad", &url).policy(quick).eras(Eras::Only(era)));
        in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
        proxy.set(Fault::Silence).await;
        let error = in_time(line.call_tool("write", Raw(r#"{"nonce":"n"}"#))).await.unwrap_err();
        speaks(&error);
        assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::TimedOut, "unknown"), "{error}");
        in_time(line.wait_for(|status| status.generation > 1)).await;
        proxy.set(Fault::None).await;
        in_time(async { while line.call_tool("echo", Raw("{}")).await.is_err() {} }).await;
        in_time(line.close()).await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h03_a_reset_in_mid_exchange_is_unknown_and_the_line_goes_on() {
    for era in ERAS {
        let web = web(era).await;
        let proxy = Proxy::start(web.server.address()).unwrap();
        let url = format!("http://{}/mcp", proxy.addr());
        let line = Line::open(Server::http("bad", &url).eras(Eras::Only(era)));
        in_time(line.ready()).await.unwrap();
        let asking = line.clone();
        let call = tokio::task::spawn(async move { asking.call_tool("hang", Raw(r#"{"nonce":"h"}"#)).await });
        crate::look::eventually(|| web.book.runs().contains_key("h").then_some(())).await;
        let start = stopwatch();
        proxy.set(Fault::Reset).await;
        let error = in_time(call).await.unwrap().unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2));
        speaks(&error);
        assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"), "{error}");
        proxy.set(Fault::None).await;
        in_time(async { while line.call_tool("echo", Raw("{}")).await.is_err() {} }).await;
        assert_eq!(web.runs("h"), 1);
        in_time(line.close()).await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h04_a_connection_that_went_stale_in_the_pool_is_not_noticed() {
    for era in ERAS {
        let web = web(era).await;
        for number in 0..20 {
            // It answers, and closes the connection without having said so.
            web.call("early_close", &format!(r#"{{"nonce":"e{number}"}}"#)).await.unwrap();
            web.server.delivered().await;
            web.call("write", &format!(r#"{{"nonce":"w{number}"}}"#)).await.unwrap();
            assert_eq!(web.runs(&format!("w{number}")), 1);
        }
        assert_eq!(web.generation(), 1);
        web.leaves_nothing().await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn o02_without_descriptors_nothing_is_sent_and_no_server_pays_for_it() {
    let quick = policy(|settings| settings.probe.timeout = Duration::from_millis(100));
    for era in ERAS {
        let web = web_with(manners(era), |server| server.policy(quick).eras(Eras::Only(era))).await;
        web.works().await;
        // Of the whole process: each test has one of its own (nextest).
        let (budget, limit) = (web.line.status().budget, getrlimit(Resource::Nofile));
        setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..limit }).unwrap();
        web.server.end_connections(Ending::Reset);
        let told = web.call("write", r#"{"nonce":"n"}"#).await;
        // A server that is silent for so long is given up.
        let ended = web.line.wait_for(|now| !matches!(now.state, State::Up | State::Suspect));
        let ended = tokio::time::timeout(Duration::from_secs(1), ended).await;
        setrlimit(Resource::Nofile, limit).unwrap();
        assert!(ended.is_err(), "{ended:?}");
        let error = told.unwrap_err();
        speaks(&error);
        assert_eq!(error.delivery.name(), "not executed", "{error}");
        assert!(error.cause.contains("this machine cannot open a connection: Too many open"), "{error}");
        web.call("echo", "{}").await.unwrap();
        assert_eq!((web.generation(), web.line.status().budget, web.runs("n")), (1, budget, 0));
        web.leaves_nothing().await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn o02_without_descriptors_what_is_under_way_is_answered_all_the_same() {
    for era in ERAS {
        let web = web(era).await;
        web.works().await;
        let line = web.line.clone();
        let slow =
            tokio::spawn(async move { line.call_tool("sleep", Raw(r#"{"ms":1500,"nonce":"slow"}"#)).await });
        crate::look::eventually(|| web.book.runs().contains_key("slow").then_some(())).await;
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..limit }).unwrap();
        let told = web.call("write", r#"{"nonce":"n"}"#).await;
        setrlimit(Resource::Nofile, limit).unwrap();
        in_time(slow).await.unwrap().unwrap();
        // It may still go out, on the connection of the one that was under way.
        match told {
            Ok(_) => assert_eq!(web.runs("n"), 1),
            Err(error) => {
                assert_eq!((error.delivery.name(), web.runs("n")), ("not executed", 0), "{error}");
            }
        }
        assert_eq!(web.generation(), 1);
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn with_permission_a_call_whose_http2_stream_was_refused_is_sent_again_once() {
    let book = crate::kit::book();
    let config = linetender_badserver::webserver::Config {
        book: Some(book.path().to_owned()),
        manners: manners(Era::Modern),
        ..Default::default()
    };
    let server = linetender_badserver::webserver::WebServer::start(config).unwrap();
    let permitted = policy(|settings| settings.retry_on = settings.retry_on.with(RetryReason::RefusedStream));
    let to = Server::http("bad", &server.url()).http2().eras(Eras::Only(Era::Modern)).policy(permitted);
    let line = Line::open(to);
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    let fault = linetender_badserver::webserver::Fault::new("refused", serde_json::json!({})).times(1);
    server.set(|manners| manners.fault_on("tools/call", fault));
    in_time(line.call_tool("write", Raw(r#"{"nonce":"n"}"#))).await.unwrap();
    assert_eq!(book.runs()["n"], 1);
    server.set(|manners| manners.sockets = Sockets::Open);
    in_time(line.close()).await;
    let _ = std::fs::remove_file(book.path());
}
