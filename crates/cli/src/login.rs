//! `linetender login`: a person logs in, once, for all processes of this user.

mod browser;
mod paste;
pub(crate) mod target;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use linetender::visible;
use linetender_auth::{Client, Error, Grant, LoggedIn, Login, Loopback, Pending, Secret, Store, list};

use crate::auth::moment;
use crate::{args, keys};
use target::{Failed, Target};

/// How long a person may take.
const WITHIN: Duration = Duration::from_secs(5 * 60);

/// How often the time that is left is shown.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn login(args: &args::Login) -> ExitCode {
    match target::on_runtime(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.say(),
    }
}

async fn run(args: &args::Login) -> Result<(), Failed> {
    let target = target::find(&args.of)?;
    let client = client(args, &target)?;
    if !matches!(client.grant, Grant::Person) {
        return Err(Failed::misuse(format!(
            "{} is configured for a machine account (grant = \"client_credentials\"): linetender logs in by itself",
            target.shown
        )));
    }
    let store = keys::store().map_err(Failed::new)?;
    let login = Login::new(&store, &target.url, client)?;
    let login = if args.register { login.registering_anew() } else { login };
    let prepared = login.prepare(None).await?;
    // Also if the address is pasted: the browser may be on this machine after all.
    let loopback = prepared.listen().await?;
    let pending = prepared.start(loopback.redirect_uri()).await?;
    tell(&format!("To log in to {} at {}, visit this address:", target.shown, pending.issuer()));
    // Not masked: it is for the person's browser, and nobody else reads a terminal.
    tell(&format!("\n  {}\n", pending.url()));
    let redirected = if args.paste {
        paste::redirected(&pending, &loopback, WITHIN).await?
    } else {
        came_back(&pending, &loopback).await?
    };
    let done = pending.finish(&redirected).await?;
    told(&store, &target, &done).map_err(|error| Failed::new(format!("cannot print: {error}")))
}

/// What was typed counts more than what the config file says.
fn client(args: &args::Login, target: &Target) -> Result<Client, Failed> {
    let mut client = keys::client(&target.oauth).map_err(Failed::new)?;
    if args.client_id.is_some() {
        client.id.clone_from(&args.client_id);
        client.secret = None;
    }
    if let Some(variable) = &args.client_secret_env {
        let secret = args::variable_of(variable).map_err(Failed::misuse)?;
        client.secret = Some(Secret::new(secret));
    }
    if args.issuer.is_some() {
        client.issuer.clone_from(&args.issuer);
    }
    if args.client_metadata_url.is_some() {
        client.metadata_url.clone_from(&args.client_metadata_url);
    }
    if !args.scope.is_empty() {
        client.scopes.clone_from(&args.scope);
    }
    Ok(client)
}

/// Opens a browser if there is one, and waits for it to come back.
async fn came_back(pending: &Pending, loopback: &Loopback) -> Result<String, Error> {
    match browser::open(pending.url()) {
        Ok(()) => tell("A browser has been opened there."),
        Err(why) => tell(&format!(
            "Open it in a browser on this machine ({why}). Is the browser on another machine? Stop this with Ctrl-C, and add --paste."
        )),
    }
    let progress = async {
        let mut left = WITHIN;
        let mut ticks = tokio::time::interval(TICK);
        let is_terminal = io::stderr().is_terminal();
        if !is_terminal {
            tell(&format!("Waiting {} for the browser to come back.", span(WITHIN)));
        }
        loop {
            ticks.tick().await;
            if is_terminal {
                let _ =
                    write!(io::stderr(), "\rWaiting for the browser to come back, {} left …  ", span(left));
            }
            left = left.saturating_sub(TICK);
        }
    };
    let came = tokio::select! {
        came = loopback.wait(pending, WITHIN) => came,
        never = progress => never,
    };
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr());
    }
    came
}

/// Who is logged in now, with what, and until when.
fn told(store: &Store, target: &Target, done: &LoggedIn) -> io::Result<()> {
    let accounts = list(store).unwrap_or_default();
    let until =
        accounts.iter().find(|account| account.server == done.server).and_then(|account| account.expires_at);
    let scopes = if done.scopes.is_empty() { "none named".to_owned() } else { done.scopes.join(" ") };
    let ends = match (until, done.stays) {
        (None, true) => "linetender renews the login by itself.".to_owned(),
        (None, false) => "The authorization server did not say when it ends.".to_owned(),
        (Some(until), true) => {
            format!("The token is valid until {}, and linetender renews it by itself.", moment(until))
        }
        (Some(until), false) => format!(
            "It ends at {}: the authorization server gives no refresh token, so log in again then.",
            moment(until)
        ),
    };
    let text = format!(
        "Logged in to {}.\nAuthorization server: {}\nScopes: {scopes}\n{ends}",
        target.shown, done.issuer
    );
    if let Some(aside) = &done.moved_aside {
        tell(&format!(
            "A damaged file with logins at {} was in the way: it is now {}. `linetender logout` deletes it. Logins to other servers that \
             were in it have to be made again.",
            done.issuer,
            aside.display()
        ));
    }
    let lines = text.lines().map(|line| visible::line(line).into_owned()).collect::<Vec<_>>().join("\n");
    writeln!(io::stdout().lock(), "{lines}")
}

/// Tells the person what to do. On stderr: stdout is for what came of it.
fn tell(text: &str) {
    let lines: Vec<_> = text.split('\n').map(|line| visible::line(line).into_owned()).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// `4m 5s`.
fn span(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}
