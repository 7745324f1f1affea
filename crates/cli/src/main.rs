//! The `linetender` command: arguments in, words and exit codes out.

mod act;
mod args;
mod audit;
mod auth;
mod bearers;
mod call;
mod calls;
mod configured;
mod dial;
mod doctor;
#[cfg(feature = "drill")]
mod drill;
mod fleet;
mod follow;
mod hold;
mod holders;
mod inside;
mod journal;
mod keys;
mod log;
mod login;
mod logs;
mod made;
mod pipes;
mod places;
mod program;
mod run;
mod runtime;
mod serve;
mod share;
mod status;
mod stop;
mod table;
mod token;
mod tools;
mod top;
mod traces;
mod watchdog;
mod why;
mod wrap;

use std::process::ExitCode;

use clap::Parser as _;
use linetender_holder::holder::Act;

/// Static binaries have this one: musl's own takes as long for a call as all the rest.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
        args::Command::Keeper(keeper) => share::keeper(&keeper),
        args::Command::Serve(serve) => serve::run(&serve),
        args::Command::Status(status) => status::status(&status),
        args::Command::Fleet(args) => fleet::fleet(&args),
        args::Command::Why(why) => why::why(&why),
        args::Command::Journal(journal) => journal::journal(&journal),
        args::Command::Top(args::Top {}) => top::top(),
        args::Command::Calls(calls) => calls::calls(&calls),
        args::Command::Redial(redial) => act::of_server(&redial.of, |server| Act::Redial { server }),
        args::Command::Park(park) => act::of_server(&park.of, |server| Act::Park { server }),
        args::Command::Wake(wake) => act::of_server(&wake.of, |server| Act::Wake { server }),
        args::Command::Drain(drain) => act::of_server(&drain.of, |server| Act::Drain { server }),
        args::Command::Reload(reload) => act::of_process(reload.pid, reload.json, &Act::Reload),
        args::Command::LogLevel(args::LogLevel { level, pid, json }) => {
            act::of_process(pid, json, &Act::LogLevel { level })
        }
        args::Command::Audit(audit) => audit::audit(&audit),
        args::Command::Logs(logs) => logs::logs(&logs),
        args::Command::Completions(completions) => made::completions(&completions),
        args::Command::Man(man) => made::man(&man),
        args::Command::Doctor(doctor) => doctor::doctor(&doctor),
        args::Command::Tools(tools) => tools::tools(&tools),
        args::Command::Call(call) => call::call(&call),
        args::Command::Inside(args) => inside::inside(&args),
        args::Command::Login(login) => login::login(&login),
        args::Command::Logout(logout) => auth::logout(&logout),
        args::Command::Auth(auth) => auth::auth(&auth),
        args::Command::Token(token) => token::token(&token),
        args::Command::Wrap(wrap) => wrap::wrap(&wrap),
        #[cfg(feature = "drill")]
        args::Command::Drill(drill) => drill::drill(&drill),
    }
}
