//! H01 and H14: certificates and redirects.

use linetender::{Era, Eras, Line, Raw, Server, State};
use linetender_badserver::webserver::{Config, Fault, WebServer};

use crate::kit::{ERAS, manners, web};
use crate::look::{in_time, speaks};

#[tokio::test]
async fn a_trusted_certificate_works_and_an_untrusted_one_parks_the_line() {
    for era in ERAS {
        let config = Config { tls: true, manners: manners(era), ..Config::default() };
        let server = WebServer::start(config).unwrap();
        let certificate = server.certificate().unwrap().to_vec();
        let url = server.url();
        let line = Line::open(Server::http("bad", &url).trust(certificate).eras(Eras::Only(era)));
        in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
        in_time(line.close()).await;

        let line = Line::open(Server::http("bad", &url).eras(Eras::Only(era)));
        let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
        speaks(&error);
        assert!(error.cause.to_lowercase().contains("certificate"), "{error}");
        let status = in_time(line.wait_for(|status| status.state == State::Parked)).await;
        assert_eq!(status.budget, 5000, "that is a matter of configuration");
        in_time(line.close()).await;
    }
}

#[tokio::test]
async fn h14_only_a_redirect_within_the_origin_is_followed_and_no_credential_leaves_it() {
    let elsewhere = WebServer::start(Config { manners: manners(Era::Legacy), ..Config::default() }).unwrap();
    for era in ERAS {
        let web = web(era).await;
        let redirect = |to: &str| Fault::new("redirect", serde_json::json!({ "to": to, "code": 307 }));
        web.server.set(|manners| manners.fault_on("tools/call", redirect("/moved")));
        web.call("write", r#"{"nonce":"n"}"#).await.unwrap();
        web.server.set(|manners| manners.fault_on("tools/call", redirect(&elsewhere.url())));
        let error = web.call("write", r#"{"nonce":"m"}"#).await.unwrap_err();
        speaks(&error);
        assert!(error.cause.contains("redirect"), "{error}");
        web.server.set(|manners| manners.faults.clear());
        web.works().await;
        web.leaves_nothing().await;
    }
    assert_eq!(elsewhere.counters().connections, 0, "nobody went there");
}

#[tokio::test]
async fn a_header_of_the_users_is_sent_with_everything_and_shown_nowhere() {
    let server = WebServer::start(Config { manners: manners(Era::Legacy), ..Config::default() }).unwrap();
    let configured = Server::http("bad", &server.url()).header("Authorization", "Bearer tell-nobody");
    assert!(!format!("{configured:?}").contains("tell-nobody"));
    let line = Line::open(configured);
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    let seen = server.seen();
    assert!(seen.len() >= 3);
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Bearer tell-nobody")));
    in_time(line.close()).await;
}
