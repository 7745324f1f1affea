//! The `linetender` command: arguments in, words and exit codes out.

mod args;
mod auth;
mod bearers;
#[cfg(feature = "drill")]
mod drill;
mod hold;
mod journal;
mod keys;
mod log;
mod login;
mod pipes;
mod places;
mod run;
mod runtime;
mod serve;
mod status;
mod stop;
mod table;
mod token;
mod watchdog;
mod why;
mod wrap;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Every server runs under a reaper, and that is this binary too.
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    // Whoever started us may ignore or block signals; and a full `ulimit -f` must be an error, not a death.
    linetender::signals::own();
    linetender::allocator::return_large_blocks();
    // The servers that misbehave on purpose, for drills.
    #[cfg(feature = "drill")]
    if let Some(done) = linetender_badserver::run_if_asked() {
        return done;
    }
    // Servers run as the same user, and shall not read what we hold.
    linetender::guard::hide();
    let _flush = log::Flush;
    match args::Args::parse().command {
        args::Command::Run(run) => run::run(&run),
        args::Command::Serve(serve) => serve::run(&serve),
        args::Command::Status(status) => status::status(&status),
        args::Command::Why(why) => why::why(&why),
        args::Command::Journal(journal) => journal::journal(&journal),
        args::Command::Login(login) => login::login(&login),
        args::Command::Logout(logout) => auth::logout(&logout),
        args::Command::Auth(auth) => auth::auth(&auth),
        args::Command::Token(token) => token::token(&token),
        args::Command::Wrap(wrap) => wrap::wrap(&wrap),
        #[cfg(feature = "drill")]
        args::Command::Drill(drill) => drill::drill(&drill),
    }
}
