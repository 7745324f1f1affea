//! One login for all processes of a user.

use std::time::Duration;

use serde_json::Value;

use crate::agent::Agent;
use crate::kit::{Home, call, lines, until};
use crate::provider::Provider;

/// A login or a logout reaches every process within a second; a busy machine has another one.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn three_shims_and_a_gateway_share_one_login_and_one_logout() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("shared");
    let url = provider.mcp.as_str();
    let mut agents: Vec<(Agent, &str)> = (0..3).map(|_| (home.shim(url), "echo")).collect();
    agents.push((home.gateway(&format!("[servers.protected]\nurl = '{url}'\n")), "protected__echo"));
    let by_url = format!("linetender login {url}");
    let expect_refused = |agents: &mut Vec<(Agent, &str)>| {
        for (number, (agent, tool)) in agents.iter_mut().enumerate() {
            let command = if number < 3 { by_url.as_str() } else { "linetender login protected" };
            let (text, failed) = call(agent, tool);
            assert!(failed && text.contains(command), "{number}: {text}");
        }
    };
    expect_refused(&mut agents);
    assert!(lines(&home).iter().all(|line| line["state"] == "needs-auth"), "{:?}", lines(&home));
    for (round, words) in [[url], ["protected"]].iter().enumerate() {
        let (said, stdout) = home.login(words);
        assert!(stdout.contains("Logged in to") && stdout.contains(&provider.issuer), "{said} {stdout}");
        let took = until("up everywhere", || {
            let down: Vec<_> = lines(&home).into_iter().filter(|line| line["state"] != "up").collect();
            if down.is_empty() { Ok(()) } else { Err(format!("{down:?}")) }
        });
        assert!(took < SOON, "up after {took:?}");
        for (agent, tool) in &mut agents {
            let (text, failed) = call(agent, tool);
            assert!(!failed && text.contains("hello"), "{text}");
        }
        let auth: Value = serde_json::from_str(&home.prints(&["auth", "--json"])).unwrap();
        assert_eq!(auth["logins"][0]["server"], url, "{auth}");
        assert_eq!(auth["logins"][0]["issuer"], provider.issuer.as_str(), "{auth}");
        assert_eq!(auth["logins"][0]["state"], "renews", "{auth}");
        let table = home.prints(&["auth"]);
        assert!(table.contains("renews") && table.contains("mcp:read"), "{table}");

        let said = home.prints(&["logout", words[0]]);
        assert!(said.starts_with("Logged out of ") && said.contains("revoked"), "{said}");
        assert_eq!(provider.counts().revoked, round as u64 + 1);
        let took = until("down everywhere", || {
            let up: Vec<_> = lines(&home).into_iter().filter(|line| line["state"] != "needs-auth").collect();
            if up.is_empty() { Ok(()) } else { Err(format!("{up:?}")) }
        });
        assert!(took < SOON, "down after {took:?}");
        expect_refused(&mut agents);
        assert!(home.prints(&["logout", words[0]]).contains("not logged in"));
        assert!(home.prints(&["auth"]).contains("Nobody is logged in"));
    }
}
