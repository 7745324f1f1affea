//! A node that owns a line as long as it may, and calls a tool of its server all the time. Tests stop it in the middle.
//!
//! `cargo run -p linetender-fleet --all-features --example owner -- NATS NODE BOOK`

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::{Line, Server};
use linetender_badserver::AS_SERVER;
use linetender_core::lease::{Node, Standing, Terms};
use linetender_fleet::{Asked, Fleet, Nats, Options, Ownership, Stand};

/// Short enough to be watched.
const SHORT: Terms = Terms {
    lease: Duration::from_secs(4),
    renew: Duration::from_secs(1),
    margin: Duration::from_secs(1),
    patience: Duration::from_millis(500),
    answer: Duration::from_secs(1),
    pause: Duration::from_millis(50),
};

fn main() -> ExitCode {
    // The server that it holds, and that server's reaper, are this program too.
    if let Some(done) = linetender::reaper::run_if_asked().or_else(linetender_badserver::run_if_asked) {
        return done;
    }
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [servers, node, book] = &words[..] else {
        eprintln!("usage: owner NATS NODE BOOK");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(own(servers, node.parse().expect("a number"), book));
    ExitCode::SUCCESS
}

async fn own(servers: &str, node: u64, book: &str) {
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
    let directory = Nats::connect(options).await.expect("an address");
    let fleet = Fleet::join(Node(node), SHORT, Arc::new(directory), Arc::new(linetender_fleet::now));
    let files = fleet.line("files");
    files.order(Asked::Want(true)).await;
    let (mut stand, mut calls) = (files.stand(), 0_u64);
    loop {
        let now = stand.borrow_and_update().clone();
        match now.standing {
            Standing::Owner { .. } => serve(&files, &now, book, node, &mut calls).await,
            // The line was closed: nothing of it runs.
            Standing::Sealed { .. } => files.order(Asked::Cleared).await,
            Standing::Elsewhere { .. } | Standing::Nobody => {}
        }
        if stand.changed().await.is_err() {
            return;
        }
    }
}

/// Serves for as long as it is the owner.
async fn serve(files: &Ownership, stand: &Stand, book: &str, node: u64, calls: &mut u64) {
    let (Standing::Owner { fence, .. }, Some(lifeline)) = (stand.standing, stand.lifeline.clone()) else {
        return;
    };
    let own = std::env::current_exe().expect("a program");
    let argv: [OsString; 4] = [own.into(), AS_SERVER.into(), "--book".into(), book.into()];
    let line = Line::open(Server::stdio("files", argv).leased(lifeline));
    while files.accepts(fence) {
        *calls += 1;
        let nonce = serde_json::json!({ "nonce": format!("{node}-{calls}") });
        let _ = tokio::time::timeout(Duration::from_secs(1), line.call_tool("echo", nonce)).await;
    }
    line.close().await;
}
