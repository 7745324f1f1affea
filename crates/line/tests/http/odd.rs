//! Servers that are well and do something odd: nobody but the request that met it may notice.

use std::time::Duration;

use linetender::{Era, Eras, HttpServer, Kind, Line, Policy, Raw, Server, Settings};
use linetender_badserver::webserver::{Fault, Manners, Speaks, Streams};
use serde_json::{Value, json};

use crate::alone::{Web, eventually, in_time, web};

fn speaks(era: Era) -> impl Fn(&mut Manners) {
    move |manners| {
        manners.speaks = match era {
            Era::Legacy => Speaks::Legacy,
            Era::Modern => Speaks::Modern,
        };
    }
}

fn server(web: &Web) -> HttpServer {
    Server::http("web", &format!("http://{}/mcp", web.addr()))
}

fn asked(web: &Web, method: &str) -> usize {
    web.server.seen().iter().filter(|one| one.method.as_deref() == Some(method)).count()
}

/// Waits until the server's tools are known.
async fn lists_tools(line: &Line) {
    let mut catalogues = line.catalogues();
    let listed = catalogues.wait_for(|catalogue| catalogue.list(Kind::Tools).next().is_some());
    drop(in_time(listed).await.unwrap());
}

#[tokio::test]
async fn a_list_that_could_not_be_read_is_read_again() {
    for code in [503, 429] {
        let web = web(|manners| {
            speaks(Era::Legacy)(manners);
            let refused = Fault::new("status", json!({ "code": code, "retry_after": 1 }));
            manners.fault_on("tools/list", refused.times(1));
        });
        let line = Line::open(server(&web).eras(Eras::Only(Era::Legacy)));
        lists_tools(&line).await;
        assert!(asked(&web, "tools/list") >= 2);
    }
}

#[tokio::test]
async fn a_list_that_hangs_keeps_no_other_back() {
    let web = web(|manners| {
        speaks(Era::Legacy)(manners);
        manners.full = true;
        manners.fault_on("resources/list", Fault::new("hang", json!({})));
    });
    // It is given up when nobody looks any more.
    let mut settings = Settings::default();
    settings.dial.handshake = Duration::from_secs(600);
    let line = Line::open(server(&web).eras(Eras::Only(Era::Legacy)).policy(Policy::new(settings).unwrap()));
    lists_tools(&line).await;
}

#[tokio::test]
async fn h11_a_probe_that_is_put_off_is_no_missed_one() {
    let web = web(speaks(Era::Legacy));
    let mut settings = Settings::default();
    settings.probe.over_http = true;
    settings.probe.keepalive = Duration::from_millis(50);
    let line = Line::open(server(&web).eras(Eras::Only(Era::Legacy)).policy(Policy::new(settings).unwrap()));
    in_time(line.ready()).await.unwrap();
    for refused in [json!({ "code": 429, "retry_after": 5 }), json!({ "code": 503, "retry_after": 5 })] {
        let before = asked(&web, "ping");
        web.server.set(|manners| manners.fault_on("ping", Fault::new("status", refused.clone())));
        eventually(|| asked(&web, "ping") >= before + 6).await;
        assert_eq!(line.status().generation, 1, "{refused}");
    }
}

/// A probe is use. What was connected before may be dead, and nobody can tell.
#[tokio::test]
async fn h39_after_a_sleep_the_next_call_has_a_new_connection_and_no_probe_before_it() {
    let web = web(speaks(Era::Legacy));
    let line = Line::open(server(&web).eras(Eras::Only(Era::Legacy)));
    lists_tools(&line).await;
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    let before = (asked(&web, "ping"), web.server.counters().connections);
    line.slept().await;
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    let after = (asked(&web, "ping"), web.server.counters().connections);
    assert_eq!(after, (before.0, before.1 + 1));
    assert_eq!(line.status().generation, 1);
}

/// Many servers have resources and no templates, whatever their capabilities say.
#[tokio::test]
async fn h40_a_list_that_the_server_does_not_know_is_none_and_has_no_other_read_again() {
    let web = web(|manners| {
        speaks(Era::Legacy)(manners);
        manners.full = true;
        manners.fault_on(
            "resources/templates/list",
            Fault::new("status", json!({ "code": 200, "with_id": true, "error": -32601 })),
        );
    });
    let line = Line::open(server(&web).eras(Eras::Only(Era::Legacy)));
    lists_tools(&line).await;
    assert_eq!(in_time(line.list_resource_templates()).await.unwrap().len(), 0);
    // A list that failed is tried again after a second.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let lists = || {
        web.server
            .seen()
            .iter()
            .filter_map(|one| one.method.clone())
            .filter(|asked| asked.ends_with("/list"))
            .count()
    };
    assert_eq!((lists(), asked(&web, "resources/templates/list")), (4, 1));
}

#[tokio::test]
async fn an_odd_reaction_to_the_first_question_is_followed_by_the_other_era() {
    let reactions: [(&str, Value); 6] = [
        ("status", json!({ "code": 500 })),
        ("status", json!({ "code": 501 })),
        ("status", json!({ "code": 403 })),
        ("status", json!({ "code": 401, "challenge": false })),
        ("html", json!({})),
        ("reset_before", json!({})),
    ];
    for (tool, arguments) in reactions {
        let web = web(|manners| {
            speaks(Era::Legacy)(manners);
            manners.fault_on("server/discover", Fault::new(tool, arguments.clone()));
        });
        let line = Line::open(server(&web));
        let ready = in_time(line.ready()).await;
        assert!(ready.is_ok(), "{tool} {arguments}: {ready:?}");
        assert_eq!((asked(&web, "initialize"), line.status().generation), (1, 1), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn one_bad_request_to_a_modern_server_is_nobody_elses() {
    let web = web(speaks(Era::Modern));
    let line = Line::open(server(&web).eras(Eras::Only(Era::Modern)));
    in_time(line.ready()).await.unwrap();
    for (tool, arguments) in [
        ("no_id", r#"{"status":400}"#),
        ("status", r#"{"code":404}"#),
        ("status", r#"{"code":422}"#),
        ("status", r#"{"code":403,"challenge":true}"#),
    ] {
        let (other, odd) =
            tokio::join!(line.call_tool("sleep", Raw(r#"{"ms":300}"#)), line.call_tool(tool, Raw(arguments)));
        assert!(odd.is_err(), "{tool} {arguments}");
        assert!(other.is_ok(), "{tool} {arguments}: the other is answered");
        assert_eq!(line.status().generation, 1, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn h07_a_stream_that_was_open_is_opened_again_whatever_refuses_it_once() {
    for code in [404, 405] {
        let web = web(|manners| {
            speaks(Era::Legacy)(manners);
            manners.streams = Streams::CloseAfter(Duration::from_millis(20));
        });
        let line = Line::open(server(&web).eras(Eras::Only(Era::Legacy)));
        in_time(line.ready()).await.unwrap();
        let streams = || web.server.seen().iter().filter(|one| one.verb == "GET").count();
        eventually(|| streams() >= 1).await;
        web.server.set(|manners| {
            manners.fault_on("GET", Fault::new("status", json!({ "code": code })).times(1));
        });
        let before = streams();
        eventually(|| streams() >= before + 3).await;
        assert_eq!(line.status().generation, 1);
    }
}
