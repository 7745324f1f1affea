//! A gateway with one server that keeps outcomes, among others of its kind. Tests kill it in the middle of a call. Prints its address.
//!
//! `cargo run -p linetender-fleet --all-features --example node -- NATS BOOK`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::Rig;
use linetender_badserver::AS_SERVER;
use linetender_fleet::{Nats, Options};
use linetender_gateway::front::{self, Doors};
use linetender_gateway::{Gateway, Shared, config};
use tokio::net::TcpListener;

fn main() -> ExitCode {
    // The server that it holds, and that server's reaper, are this program too.
    if let Some(done) = linetender::reaper::run_if_asked().or_else(linetender_badserver::run_if_asked) {
        return done;
    }
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [servers, book] = &words[..] else {
        eprintln!("usage: node NATS BOOK");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(servers, book));
    ExitCode::SUCCESS
}

async fn serve(servers: &str, book: &str) {
    // A process of this machine: its number says whether it lives.
    let node = std::process::id();
    let options = Options {
        servers: vec![servers.to_owned()],
        fleet: "test".to_owned(),
        node: node.to_string(),
        replicas: 1,
        calls_kept: Duration::from_secs(600),
        nkey: None,
        roots: None,
        certificate: None,
    };
    let directory = Arc::new(Nats::connect(options).await.expect("an address"));
    let lives = |node: u64| std::path::Path::new(&format!("/proc/{node}/cmdline")).exists();
    let shared = Shared::new(directory, node.into(), lives);
    let own = std::env::current_exe().expect("a program");
    let text = format!(
        "[servers.slow]\ncommand = '{}'\nargs = ['{AS_SERVER}', '--book', '{book}']\ndurable = true\n",
        own.display()
    );
    let config = config::load("example", &text, &|_| None).expect("a config");
    let gateway = Gateway::start_among(Rig::new(), config, shared);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let doors = Doors::over(gateway.settings(), listener).expect("a door");
    front::serve(&gateway, doors, std::future::pending()).await.expect("nobody has to show anything");
}
