//! Servers at an address.

use insta::assert_snapshot;
use linetender_badserver::webserver::{Config, Ending, Fault, Manners, Sockets, Speaks, WebServer};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::kit::Shim;

struct Web {
    server: WebServer,
    runtime: Runtime,
}

impl Web {
    fn with(change: impl FnOnce(Config) -> Config) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let manners = Manners { speaks: Speaks::Legacy, ..Manners::default() };
        let server = {
            let _entered = runtime.enter();
            WebServer::start(change(Config { manners, ..Config::default() })).unwrap()
        };
        Self { server, runtime }
    }

    /// One that answers every greeting in this way.
    fn greets(tool: &str, arguments: Value) -> Self {
        Self::with(|mut config| {
            config.manners.fault_on("initialize", Fault::new(tool, arguments));
            config
        })
    }

    fn status(code: u16) -> Self {
        Self::greets("status", json!({ "code": code }))
    }

    fn shim(&self) -> Shim {
        Shim::start(&[&self.server.url()])
    }

    fn works(&self) -> Shim {
        Shim::works(&[&self.server.url()])
    }
}

#[test]
fn connection_refused() {
    let mut web = Web::with(|config| config);
    let url = web.server.url();
    web.runtime.block_on(web.server.stop(Ending::Reset));
    assert_snapshot!(Shim::start(&[&url]).parked().why());
}

#[test]
fn no_such_host() {
    assert_snapshot!(Shim::start(&["http://linetender-test.invalid/mcp"]).parked().why());
}

#[test]
fn wants_credentials() {
    assert_snapshot!(Web::status(401).shim().needs_auth().why());
}

#[test]
fn forbidden() {
    assert_snapshot!(Web::status(403).shim().parked().why());
}

#[test]
fn wrong_path() {
    let web = Web::with(|config| config);
    let url = web.server.url().replace("/mcp", "/mpc");
    assert_snapshot!(Shim::start(&[&url]).parked().why());
}

#[test]
fn method_not_allowed() {
    assert_snapshot!(Web::status(405).shim().parked().why());
}

#[test]
fn fails_on_its_side() {
    assert_snapshot!(Web::status(500).shim().parked().why());
}

#[test]
fn down_behind_a_proxy() {
    assert_snapshot!(Web::status(502).shim().parked().why());
}

#[test]
fn too_many_requests() {
    let web = Web::greets("status", json!({ "code": 429, "retry_after": 60 }));
    let shim = web.shim();
    shim.until("waiting", |line| line["state"] == "waiting");
    assert_snapshot!(shim.why());
}

#[test]
fn certificate_not_trusted() {
    let web = Web::with(|config| Config { tls: true, ..config });
    assert_snapshot!(web.shim().parked().why());
}

#[test]
fn answers_with_a_web_page() {
    assert_snapshot!(Web::greets("html", json!({})).shim().parked().why());
}

#[test]
fn session_forgotten() {
    let web = Web::with(|config| config);
    let mut shim = web.works();
    web.server.forget_sessions();
    shim.echo();
    assert_snapshot!(shim.back().why());
}

#[test]
fn cut_in_the_middle_of_the_greeting() {
    assert_snapshot!(Web::greets("half_body", json!({})).shim().parked().why());
}

#[test]
fn hangs_while_nobody_uses_it() {
    let web = Web::with(|config| config);
    let shim = web.works();
    web.server.set(|manners| manners.sockets = Sockets::Silent);
    shim.until("gone", |line| line["generation"].as_u64() > Some(1));
    web.server.set(|manners| manners.sockets = Sockets::Open);
    assert_snapshot!(shim.back().why());
}

#[test]
fn stopped_while_it_served() {
    let mut web = Web::with(|config| config);
    let shim = web.works();
    web.runtime.block_on(web.server.stop(Ending::Reset));
    assert_snapshot!(shim.parked().why());
}
