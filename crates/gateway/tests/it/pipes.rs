//! One agent on two pipes.

use linetender::session::Ended;
use linetender_gateway::{Gateway, stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::oneshot;

use crate::kit::{config, in_time, is_answered};

#[tokio::test]
async fn told_to_stop_it_still_answers_what_it_can_and_tells_of_the_rest() {
    for era in ["legacy", "modern"] {
        let gateway =
            Gateway::start(config("[gateway]\ndrain = 1200\n[servers.a]\n{bad}\nargs = ['--era', 'legacy']"));
        let (agent, ours) = tokio::io::duplex(1 << 16);
        let (stop, stops) = oneshot::channel::<()>();
        let (input, output) = tokio::io::split(ours);
        let serves = stdio::serve(&gateway, input, output, async { drop(stops.await) });
        let (hears, mut says) = tokio::io::split(agent);
        let talks = async {
            let mut hears = BufReader::new(hears).lines();
            let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
            let call = |id: u64, tool: &str, arguments: Value| {
                let mut params = json!({ "name": tool, "arguments": arguments });
                if era == "modern" {
                    params["_meta"] = meta.clone();
                }
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
            };
            let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let mut say = vec![
                call(1, "a__sleep", json!({ "ms": 400 })),
                call(2, "a__hang", json!({})),
                call(3, "a__echo", json!({})),
            ];
            if era == "legacy" {
                say.insert(0, json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }));
            }
            for message in say {
                says.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
            let (mut stop, mut told) = (Some(stop), std::collections::BTreeMap::new());
            while let Ok(Some(line)) = hears.next_line().await {
                let heard: Value = serde_json::from_str(&line).unwrap();
                if heard["id"] == 3 {
                    // All of them have begun.
                    drop(stop.take());
                }
                told.extend(heard["id"].as_u64().map(|id| (id, heard)));
            }
            told
        };
        let (ended, told) = in_time(async { tokio::join!(serves, talks) }).await;
        assert_eq!(ended, linetender::session::Ended::Stopped);
        assert!(is_answered(&told[&1]) && is_answered(&told[&3]), "{era}: {told:?}");
        let fields = &told[&2]["result"]["_meta"]["linetender"];
        assert_eq!(
            (&fields["phase"], &fields["delivery"]),
            (&json!("at the server"), &json!("unknown")),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn an_agent_whose_output_is_closed_first_is_gone_if_its_input_is_closed_too() {
    for (closes, is) in [(true, Ended::AgentGone), (false, Ended::AgentDeaf)] {
        let gateway = Gateway::start(config("[servers.a]\n{bad}"));
        let (mut says, input) = tokio::io::duplex(1 << 16);
        let (nobody, output) = tokio::io::duplex(1 << 10);
        drop(nobody);
        // Answered at once, so it is written before the end of the input can be read.
        says.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        let serves = stdio::serve(&gateway, input, output, std::future::pending());
        let vanishes = async {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            (!closes).then_some(says)
        };
        let (ended, _says) = in_time(async { tokio::join!(serves, vanishes) }).await;
        assert_eq!(ended, is);
    }
}
