//! A server that an operator parked.

use serde_json::{Value, json};

use crate::kit::Home;

#[test]
fn a_parked_server_is_out_of_service_for_whoever_comes_later_too() {
    for scope in ["session", "identity"] {
        let home =
            Home::new(&format!("parked-{scope}"), &format!("[servers.a]\nscope = \"{scope}\"\n{{bad}}\n"));
        let (_serves, address) = home.listens();
        let order = |word: &str| {
            let output = home.linetender(&[word, "a"]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        let agent = || {
            let url = format!("http://{address}/mcp");
            crate::kit::Agent::of(home.linetender(&["run", &url]).stderr(std::process::Stdio::null()))
                .greeted()
        };
        let call = json!({ "name": "a__echo", "arguments": {} });
        order("park");
        let mut late = agent();
        let answer = late.ask("tools/call", &call);
        assert_eq!(answer["result"]["_meta"]["linetender"]["delivery"], "not executed", "{scope}: {answer}");
        assert!(answer.to_string().contains("parked by an operator"), "{scope}: {answer}");
        let status = home.linetender(&["status", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        let holders = status["holders"].as_array().unwrap().iter();
        let lines = holders.flat_map(|holder| holder["report"]["lines"].as_array().unwrap());
        let of_a: Vec<_> = lines.filter(|line| line["server"] == "a").collect();
        assert!(of_a.len() == 2 && of_a.iter().all(|line| line["state"] == "parked"), "{scope}: {status:#}");
        // The server was not even started for it.
        assert!(of_a.iter().any(|line| line["generation"] == 0), "{scope}: {status:#}");
        order("wake");
        late.wait_for("a__echo", "{}");
        agent().wait_for("a__echo", "{}");
    }
}
