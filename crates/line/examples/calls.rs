//! Makes so many calls, one after the other: for counting instructions.
//!
//! `valgrind --tool=callgrind target/release/examples/calls 1000 target/release/badserver`

use std::process::ExitCode;

use linetender::{Era, Eras, Line, Raw, Server};

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let mut words = std::env::args().skip(1);
    let (Some(count), Some(command)) =
        (words.next().and_then(|count| count.parse::<u32>().ok()), words.next())
    else {
        eprintln!("usage: calls COUNT COMMAND");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answered = runtime.block_on(async {
        let line = Line::open(Server::stdio("example", [command]).eras(Eras::Only(Era::Legacy)));
        let mut answered = 0;
        for _ in 0..count {
            answered += u32::from(line.call_tool("echo", Raw(r#"{"message":"hello"}"#)).await.is_ok());
        }
        line.close().await;
        answered
    });
    println!("{answered} of {count} answered");
    ExitCode::SUCCESS
}
