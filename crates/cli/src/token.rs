//! `linetender token`: the tokens with which agents use a gateway.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

use anstyle::AnsiColor;
use linetender::visible;
use linetender_auth::{Error, ErrorKind, NewToken, TokenEntry, TokenFile};
use serde_json::{Value, json};

use crate::args::{AddToken, ListTokens, RemoveToken, Token, TokenCommand, TokenPlace};
use crate::auth::moment;
use crate::login::target::{Failed, on_runtime};
use crate::places;
use crate::table::{Cell, Table};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

const HEAD: [&str; COLUMNS] = ["NAME", "STATE", "VALID UNTIL", "CREATED", "GROUPS"];
const COLUMNS: usize = 5;

pub(crate) fn token(args: &Token) -> ExitCode {
    let done = match &args.command {
        TokenCommand::Add(args) => add(args),
        TokenCommand::List(args) => list(args),
        TokenCommand::Remove(args) => remove(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.say(),
    }
}

fn add(args: &AddToken) -> Result<(), Failed> {
    let (file, shown) = file(&args.at)?;
    let making = async { file.add(&args.name, &args.group, args.expires).await.map_err(failed) };
    let NewToken { token, expires } = on_runtime(making)?;
    // Not masked: it is for the person, or the program behind the pipe.
    writeln!(io::stdout().lock(), "{}", token.expose()).and_then(|()| io::stdout().flush()).map_err(|error| {
        Failed::new(format!(
            "the token was made, but cannot be printed ({error}); remove it, and make another: linetender token remove {}",
            args.name
        ))
    })?;
    let until = expires.map(|at| format!(", valid until {}", moment(at))).unwrap_or_default();
    let text = format!(
        "Token of {}{until}. It is shown only now: {shown} holds its hash.\nGateways that use that file accept it within a second, as a header: Authorization: Bearer lt_…",
        args.name
    );
    // Only an explanation.
    let _ = writeln!(io::stderr(), "{}", visible::block(&text));
    Ok(())
}

fn list(args: &ListTokens) -> Result<(), Failed> {
    let (file, shown) = file(&args.at)?;
    let tokens = file.list()?;
    match if args.json { print_json(&tokens) } else { print_table(&tokens, &shown) } {
        // Whoever reads it has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failed::new(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

fn remove(args: &RemoveToken) -> Result<(), Failed> {
    let (file, shown) = file(&args.at)?;
    if !on_runtime(async { file.remove(&args.name).await.map_err(failed) })? {
        return Err(Failed::new(format!("there is no token of {} in {shown}", args.name)));
    }
    let text =
        format!("Removed the token of {}. Gateways that use {shown} refuse it within a second.", args.name);
    let _ = writeln!(io::stderr(), "{}", visible::line(&text));
    Ok(())
}

/// The file that is meant, and what it is called in texts.
fn file(at: &TokenPlace) -> Result<(TokenFile, String), Failed> {
    let path = at.file.clone().or_else(places::usual_tokens).ok_or_else(|| {
        Failed::misuse("neither HOME nor XDG_CONFIG_HOME is set; name the file with --file FILE".to_owned())
    })?;
    let shown = path.display().to_string();
    Ok((TokenFile::at(path), shown))
}

/// What was typed is to blame if the name cannot be used.
fn failed(error: Error) -> Failed {
    match error.kind() {
        ErrorKind::Config => Failed::misuse(error.to_string()),
        _ => error.into(),
    }
}

fn print_json(tokens: &[TokenEntry]) -> io::Result<()> {
    let tokens: Vec<Value> = tokens.iter().map(document).collect();
    let document = json!({ "version": VERSION, "tokens": tokens });
    writeln!(io::stdout().lock(), "{}", visible::json(&format!("{document:#}")))
}

fn document(token: &TokenEntry) -> Value {
    json!({
        "name": token.name,
        "groups": token.groups,
        "created": token.created.map(moment),
        "valid_until": token.expires.map(moment),
        "state": if token.is_expired() { "expired" } else { "valid" },
    })
}

fn print_table(tokens: &[TokenEntry], shown: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    if tokens.is_empty() {
        let text = format!("There are no tokens in {shown}. To make one: linetender token add NAME");
        return writeln!(out, "{}", visible::line(&text));
    }
    let mut table = Table::new(HEAD);
    for token in tokens {
        let (state, colour) =
            if token.is_expired() { ("expired", AnsiColor::Red) } else { ("valid", AnsiColor::Green) };
        let time = |at: Option<SystemTime>| at.map_or_else(Cell::none, |at| Cell::plain(&moment(at)));
        table.row([
            Cell::plain(&token.name),
            Cell::styled(state, colour.on_default()),
            time(token.expires),
            time(token.created),
            Cell::plain(&token.groups.join(", ")),
        ]);
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    write!(out, "{}", table.fitted(width))
}
