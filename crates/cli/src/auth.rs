//! `linetender auth` and `linetender logout`: which logins there are, and the end of one.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use linetender::{Redacted, visible};
use linetender_auth::{Account, LoggedOut, Standing, list};
use serde_json::{Value, json};

use crate::login::target::{self, Failed};
use crate::table::{Cell, Table};
use crate::{args, keys, places};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

/// The longest text that a server or an authorization server gets into the table.
const SHOWN: usize = 300;

const HEAD: [&str; COLUMNS] = ["SERVER", "STATE", "VALID UNTIL", "CLIENT", "SCOPES", "AUTHORIZATION SERVER"];
const COLUMNS: usize = 6;

pub(crate) fn auth(args: &args::Auth) -> ExitCode {
    let read = keys::store().and_then(|store| {
        let accounts = list(&store).map_err(|error| error.to_string())?;
        Ok((accounts, store.readable_by_others()))
    });
    let (accounts, open) = match read {
        Ok(read) => read,
        Err(why) => return Failed::new(why).say(),
    };
    for file in open {
        let text = format!(
            "Others can read {0}, which holds tokens. Run: {1}\nIf somebody may have read it, log out and in again.",
            file.display(),
            places::to_close(&file)
        );
        let _ = writeln!(io::stderr(), "{}", visible::block(&text));
    }
    match if args.json { print_json(&accounts) } else { print_table(&accounts) } {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => Failed::new(format!("cannot print: {error}")).say(),
    }
}

pub(crate) fn logout(args: &args::Logout) -> ExitCode {
    let ended = target::on_runtime(async {
        let target = target::find(&args.of)?;
        let store = keys::store().map_err(Failed::new)?;
        let done = linetender_auth::logout(&store, &target.url).await?;
        Ok((target.shown, done))
    });
    let (shown, done) = match ended {
        Ok(ended) => ended,
        Err(failed) => return failed.say(),
    };
    let text = match done {
        LoggedOut::Nobody => format!("You are not logged in to {shown}."),
        LoggedOut::Revoked => {
            format!("Logged out of {shown}. The authorization server has revoked the tokens.")
        }
        LoggedOut::NotRevoked(error) => format!(
            "Logged out of {shown} on this machine. The authorization server did not revoke the tokens, so they stay valid until they expire: {error}"
        ),
        _ => format!(
            "Logged out of {shown} on this machine. The authorization server cannot revoke tokens, so they stay valid until they expire."
        ),
    };
    match writeln!(io::stdout().lock(), "{}", visible::line(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failed::new(format!("cannot print: {error}")).say(),
    }
}

fn print_json(accounts: &[Account]) -> io::Result<()> {
    let logins: Vec<Value> = accounts.iter().map(document).collect();
    let document = json!({ "version": VERSION, "logins": logins });
    writeln!(io::stdout().lock(), "{}", visible::json(&format!("{document:#}")))
}

fn document(account: &Account) -> Value {
    let (state, _) = state(&account.standing);
    let mut document = json!({
        "server": shown(&account.server),
        "issuer": shown(&account.issuer),
        "client": shown(&account.client_id),
        "client_origin": account.client_origin,
        "scopes": all_shown(&account.scopes),
        "valid_until": account.expires_at.map(moment),
        "state": state,
    });
    match &account.standing {
        Standing::Ended { reason } => document["reason"] = shown(reason).into(),
        Standing::WantsScopes { scopes } => document["wanted_scopes"] = json!(all_shown(scopes)),
        Standing::Renewing { pid, since } => {
            document["reason"] = format!(
                "process {pid} asked for a new token at {}, and has not stored the answer yet; if that process has ended, the next one tries again",
                moment(*since)
            )
            .into();
        }
        Standing::Renews | Standing::Ends => {}
    }
    document
}

fn print_table(accounts: &[Account]) -> io::Result<()> {
    // Colours are for people: not for files, pipes, or those who do not want any.
    let mut out = anstream::stdout().lock();
    if accounts.is_empty() {
        return writeln!(out, "Nobody is logged in to a server. To log in: linetender login SERVER|URL");
    }
    let mut table = Table::new(HEAD);
    for account in accounts {
        let (state, style) = state(&account.standing);
        table.row([
            Cell::plain(&shown(&account.server)),
            Cell::styled(state, style),
            account.expires_at.map_or_else(Cell::none, |until| Cell::plain(&moment(until))),
            Cell::plain(&shown(&account.client_id)),
            Cell::plain(&shown(&account.scopes.join(" "))),
            Cell::plain(&shown(&account.issuer)),
        ]);
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    write!(out, "{}", table.fitted(width))
}

fn state(standing: &Standing) -> (&'static str, Style) {
    let (state, colour) = match standing {
        Standing::Renews => ("renews", AnsiColor::Green),
        Standing::Renewing { .. } => ("renewing", AnsiColor::Yellow),
        Standing::Ends => ("ends", AnsiColor::Yellow),
        Standing::Ended { .. } => ("ended", AnsiColor::Red),
        Standing::WantsScopes { .. } => ("wants-scopes", AnsiColor::Red),
    };
    (state, colour.on_default())
}

fn shown(text: &str) -> String {
    Redacted::head(text, SHOWN).to_string()
}

/// A scope is a server's text too, and may be a token.
fn all_shown(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| shown(text)).collect()
}

/// A moment as everybody reads it.
pub(crate) fn moment(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}
