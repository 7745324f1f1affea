//! A config that changes while it is served.

use crate::kit::Home;

#[test]
fn a_file_that_changes_is_read_again() {
    let home = Home::new("reload", "[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.wait_for("b__echo", "the servers are: a");
    home.write("[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    agent.wait_for("b__echo", "{}");
    home.write("[servers.a]\n{bad}\n[servers.c]\n{bad}\n");
    agent.wait_for("c__echo", "{}");
    agent.wait_for("b__echo", "the servers are: a, c");
}
