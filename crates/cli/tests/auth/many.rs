//! A01: a token ends while calls of several processes are under way.

use serde_json::json;

use crate::agent::Agent;
use crate::kit::Home;
use crate::provider::Provider;

/// Calls of all processes together.
const CALLS: usize = 50;

/// A line asks for a key after so many refusals in a row, and then once a second: new processes before that.
const BEFORE_NEW_PROCESSES: usize = 15;

/// How often, unless `LINETENDER_AUTH_ROUNDS` says otherwise.
const ROUNDS: usize = 2;

#[test]
fn a01_fifty_refused_calls_of_three_processes_renew_the_token_once_and_run_once() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("many");
    home.login(&[&provider.mcp]);
    let mut agents = Vec::new();
    let rounds = std::env::var("LINETENDER_AUTH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    for round in 0..rounds.unwrap_or(ROUNDS) {
        if round % BEFORE_NEW_PROCESSES == 0 {
            agents = shims(&home, &provider);
        }
        // The answer takes long enough for all of them to have been refused.
        let before = provider.set(&json!({ "refuse_tokens": true, "delay": 200 }));
        for number in 0..CALLS {
            let name = format!("{round}-{number}");
            let params = json!({ "name": "echo", "arguments": { "run": name } });
            agents[number % 3].send(&json!(name), "tools/call", &params);
        }
        for number in 0..CALLS {
            // They come in any order; what counts is that each agent hears as many as it asked.
            let heard = agents[number % 3].hear();
            let text = heard["result"]["content"][0]["text"].as_str().unwrap_or_default();
            let id = heard["id"].as_str().unwrap_or_default();
            assert!(heard["result"]["isError"].is_null() && text.contains(id), "{heard}");
        }
        let after = provider.counts();
        assert_eq!(after.token - before.token, 1, "round {round}");
        for number in 0..CALLS {
            assert_eq!(after.ran.get(&format!("{round}-{number}")), Some(&1), "round {round}: {number}");
        }
    }
}

/// Three of them, each connected.
fn shims(home: &Home, provider: &Provider) -> Vec<Agent> {
    let mut agents: Vec<Agent> = (0..3).map(|_| home.shim(&provider.mcp)).collect();
    for agent in &mut agents {
        let (text, failed) = crate::kit::call(agent, "echo");
        assert!(!failed, "{text}");
    }
    agents
}
