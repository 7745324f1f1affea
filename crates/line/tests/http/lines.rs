//! Lines to these servers, where the official conformance suite found something or could have.

use linetender::{Era, Eras, Line, Raw, Server, State};
use linetender_badserver::webserver::Fault;
use serde_json::json;

use crate::alone::{Web, in_time, web};

fn line(web: &Web, eras: Eras) -> Line {
    Line::open(Server::http("web", &format!("http://{}/mcp", web.addr())).eras(eras))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_own_stream_is_open_before_anything_is_asked() {
    // What overtakes the stream does so only now and then.
    for _ in 0..50 {
        let web = web(|_| {});
        let line = line(&web, Eras::Only(Era::Legacy));
        in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
        let seen = web.server.seen();
        let streams = seen.iter().position(|one| one.verb == "GET").unwrap();
        let asks =
            seen.iter().position(|one| one.method.as_deref().is_some_and(|ask| ask.starts_with("tools/")));
        assert!(Some(streams) < asks, "{seen:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_credentials_is_heard_whatever_else_it_says() {
    for challenge in [true, false] {
        for eras in [Eras::Auto, Eras::Only(Era::Legacy), Eras::Only(Era::Modern)] {
            let web = web(|manners| {
                let refused = json!({ "code": 401, "challenge": challenge, "with_id": true });
                manners.fault_on("initialize", Fault::new("status", refused.clone()));
                manners.fault_on("server/discover", Fault::new("status", refused));
            });
            let line = line(&web, eras);
            let now = in_time(
                line.wait_for(|now| !matches!(now.state, State::Idle | State::Dialing | State::Ending)),
            )
            .await;
            assert_eq!((now.state, now.generation), (State::NeedsAuth, 1), "{now:?}");
        }
    }
}
