//! A gateway inside a program of your own: `cargo run -p linetender-gateway --example embed -- FILE`.

use std::process::ExitCode;

use linetender_gateway::{Gateway, config, front};

fn main() -> ExitCode {
    // Every server runs under a reaper, and that is this program too. It comes before any thread.
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("which file?");
        return ExitCode::FAILURE;
    };
    serve(&file)
}

#[tokio::main]
async fn serve(file: &str) -> ExitCode {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let config = match config::load(file, &text, &|_| None) {
        Ok(config) => config,
        Err(problem) => {
            eprintln!("{file}:{}: {problem}", problem.line());
            return ExitCode::FAILURE;
        }
    };
    let doors = match front::Doors::open(&config.gateway, None) {
        Ok(doors) => doors,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let gateway = Gateway::start(config);
    match front::serve(&gateway, doors, std::future::pending()).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
