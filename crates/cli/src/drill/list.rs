//! `linetender drill list`.

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use linetender_drill::drills::{Pick, Suite};

use super::args::ListArgs;
use crate::table::{Cell, Table};

pub(super) fn list(args: &ListArgs) -> Result<ExitCode, String> {
    let dim = Style::new().fg_color(Some(AnsiColor::BrightBlack.into()));
    let mut table = Table::new(["ROW", "OVER", "SERVER", "PROMISES", "WHAT HAPPENS"]);
    for scenario in Suite::from(args.suite).scenarios(&Pick::default())? {
        let server = &scenario.server;
        let cells = match &scenario.skip {
            Some(why) => {
                let title = format!("{} (not played: {why})", scenario.title);
                [
                    Cell::styled(&scenario.name, dim),
                    Cell::none(),
                    Cell::none(),
                    Cell::none(),
                    Cell::styled(&title, dim),
                ]
            }
            None => [
                Cell::plain(&scenario.name),
                Cell::plain(server.over.word()),
                Cell::plain(server.kind.word()),
                Cell::plain(&scenario.promises.join(" ")),
                Cell::plain(&scenario.title),
            ],
        };
        table.row(cells);
    }
    let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    anstream::print!("{}", table.fitted(width));
    Ok(ExitCode::SUCCESS)
}
