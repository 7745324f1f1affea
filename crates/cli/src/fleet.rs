//! `linetender fleet`: gateways that share their servers, and which gateway runs which.

use std::io::{self, Write as _};
use std::process::ExitCode;

use linetender::visible;
use linetender_holder::holder::{FleetReport, Found, Reply};

use crate::table::{Cell, Table};
use crate::{args, holders};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

pub(crate) fn fleet(args: &args::FleetArgs) -> ExitCode {
    holders::with_all(async |found| {
        let fleets: Vec<_> = found.iter().filter_map(of).collect();
        if args.json {
            let document = serde_json::json!({ "version": VERSION, "fleets": fleets });
            let text = format!("{document:#}");
            return holders::printed(writeln!(io::stdout().lock(), "{}", visible::json(&text)));
        }
        if fleets.is_empty() {
            eprintln!("linetender: no gateway of a fleet is running (linetender serve with [gateway.fleet])");
            return ExitCode::FAILURE;
        }
        holders::printed(fleets.iter().try_for_each(|fleet| print(fleet)))
    })
}

fn of(found: &Found) -> Option<&FleetReport> {
    match &found.reply {
        Reply::Report(report) => report.fleet.as_ref(),
        Reply::Silent(_) => None,
    }
}

fn print(report: &FleetReport) -> io::Result<()> {
    let FleetReport { fleet, node, connected, nodes, servers } = report;
    let away = if *connected { "" } else { "; NATS is not connected" };
    let sentence = format!("Fleet {fleet}, as gateway {node} sees it{away}:");
    let mut gateways = Table::new(["GATEWAY", "VERSION", "RUNS", ""]);
    for one in nodes {
        let leaves = if one.leaves { "leaves" } else { "" };
        gateways.row([
            Cell::plain(&one.node),
            Cell::plain(&one.version),
            Cell::number(one.runs),
            Cell::plain(leaves),
        ]);
    }
    let mut table = Table::new(["SERVER", "RUNS AT", ""]);
    for server in servers {
        let at = server.runs_at.as_deref().unwrap_or("nowhere");
        let moves = if server.moves { "moves" } else { "" };
        table.row([Cell::plain(&server.server), Cell::plain(at), Cell::plain(moves)]);
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}\n\n{}\n{}", visible::line(&sentence), gateways.fitted(width), table.fitted(width))
}
