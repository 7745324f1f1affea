//! Tables on the page.

use super::super::html::Html;
use super::super::tables::{Line, Mark, Table};

/// What may be wider than a phone scrolls by itself, also by keyboard.
pub(super) fn scroll(html: &mut Html, words: &str, body: impl FnOnce(&mut Html)) {
    html.within(
        "div",
        &[("class", &"scroll"), ("role", &"region"), ("tabindex", &"0"), ("aria-label", &words)],
        body,
    );
}

pub(super) fn table(html: &mut Html, table: &Table, class: &'static str) {
    scroll(html, "Table", |html| {
        html.within("table", &[("class", &class)], |html| {
            html.raw("<thead><tr><th scope=\"col\">target</th>");
            for head in &table.head {
                html.put("th", &[("scope", &"col")], head);
            }
            html.raw("</tr></thead>");
            html.within("tbody", &[], |html| {
                for own in &table.lines {
                    line(html, own);
                }
            });
        });
    });
}

fn line(html: &mut Html, line: &Line) {
    let class = if line.ours { "ours" } else { "peer" };
    html.within("tr", &[("class", &class)], |html| {
        html.within("th", &[("scope", &"row")], |html| {
            html.text(&line.name).raw(" ").put("small", &[], &line.version);
        });
        for cell in &line.cells {
            let class = match cell.mark {
                Mark::Plain => "plain",
                Mark::Best => "best",
                Mark::Broken => "broken",
            };
            html.put("td", &[("class", &class)], &cell.text);
        }
    });
}
