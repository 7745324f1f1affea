//! A program that opens a line and forgets to call [`linetender::reaper::run_if_asked`] first in `main`, or with the word
//! `late` calls it inside a runtime: it prints what its call is told. Tests run it; `hold.rs` shows how it is done.
//!
//! Each start leaves a file in `$TMPDIR/starts`, and ten starts are the end: it must never be started as its own reaper.

use std::io;
use std::time::Duration;

use linetender::{Line, Raw, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let starts = std::env::temp_dir().join("starts");
    std::fs::create_dir_all(&starts)?;
    std::fs::write(starts.join(std::process::id().to_string()), "")?;
    if std::fs::read_dir(&starts)?.count() >= 10 {
        return Ok(());
    }
    if std::env::args().nth(1).as_deref() == Some("late") {
        let _ = linetender::reaper::run_if_asked();
    }
    let line = Line::open(Server::stdio("echo", ["cat"]));
    match tokio::time::timeout(Duration::from_secs(20), line.call_tool("echo", Raw("{}"))).await {
        Ok(Ok(answer)) => println!("{}", answer.text()),
        Ok(Err(error)) => println!("{error}"),
        Err(_) => println!("no answer"),
    }
    Ok(())
}
