//! A target whose agents speak `OpenAPI` and not MCP, which passes on only what a tool declares.

use crate::kit::{Dir, rows, run};

const ROUTES: &str = include_str!("routes.py");

#[test]
fn a_target_of_routes_keeps_what_it_can_and_is_found_out() {
    let dir = Dir::new();
    let routes = dir.write("routes.py", ROUTES);
    let adapter = format!(
        "name = 'routes'\nspeaks = 'openapi'\neras = ['legacy']\n[stdio]\n\
         command = ['python3', '{routes}', '{{port}}', '{{server...}}']\nurl = 'http://127.0.0.1:{{port}}'\n"
    );
    let adapter = dir.write("routes.toml", &adapter);
    let words = ["--suite", "board", "--row", "S03", "--row", "S09-busy", "--row", "S11", "--slack", "5"];
    let (kept, results, told) = run(&[&words[..], &["--target", &adapter]].concat());
    assert!(!kept && results.targets[0].speaks == "openapi", "{told}");
    let row = |name: &str| rows(&results).find(|row| row.row == name).cloned().unwrap();
    // The nonces of these are in the book, and arguments of other types than text arrived too.
    assert!(row("S03").kept && row("S09-busy").kept, "{told}");
    let died = row("S11");
    assert!(died.findings.iter().any(|finding| finding.ends_with("Connection closed")), "{died:?}");
    // The call died with its server; the next one could have waited for another.
    assert_eq!((died.calls.doomed, died.calls.lost()), (1, 1), "{died:?}");
}
