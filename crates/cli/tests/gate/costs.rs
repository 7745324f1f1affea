//! What the gateway costs: in small what `tools/measure-serve` measures at length. No figure is judged here, only that there
//! are some, and of what they are said to be.

use linetender_badserver::webserver::{Config, WebServer};
use linetender_drill::bench::gateways::{self, Era, Plan};
use serde_json::Value;

use crate::agent::LINETENDER;
use crate::kit::Gate;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_measured_in_either_era_at_either_address_and_on_either_way() {
    let web = WebServer::start(Config::default()).unwrap();
    let gate = Gate::new(&format!("[servers.web]\nurl = '{}'\n[servers.pipe]\n{{bad}}\n", web.url()));
    let serving = gate.serves().await;
    let (pid, address) = (serving.pid(), gate.web.address);
    for (era, name) in [(Era::Legacy, "legacy"), (Era::Modern, "modern")] {
        let over_http = [
            format!("direct={}", web.url()),
            format!("all:web__=http://{address}/mcp"),
            format!("serve@{pid}=http://{address}/mcp/web"),
        ];
        let over_pipes = [
            format!("direct={LINETENDER} __badserver --era {name}"),
            format!("all:pipe__=http://{address}/mcp"),
            format!("serve@{pid}=http://{address}/mcp/pipe"),
        ];
        for endpoints in [over_http, over_pipes] {
            let plan = Plan {
                rounds: 2,
                sizes: vec![100, 200_000],
                in_flight: vec![1, 3],
                calls: 8,
                ..Plan::new(era, endpoints.into())
            };
            let mut tables = Vec::new();
            gateways::calls(&plan, |table| tables.push(table.to_json())).await.unwrap();
            assert_eq!(tables.len(), 4, "every size with so many in flight");
            for table in &tables {
                is_measured(table);
            }
        }
    }
}

fn is_measured(table: &Value) {
    let endpoints = table["endpoints"].as_array().unwrap();
    assert_eq!((table["rounds"].as_u64(), endpoints.len()), (Some(2), 3), "{table}");
    for endpoint in endpoints {
        assert!(endpoint["p50_us"].as_f64().unwrap() > 0.0, "{endpoint}");
        let knows_process = endpoint["endpoint"] == "serve";
        assert_eq!(
            endpoint["processor_us"].as_f64().is_some_and(|micros| micros > 0.0),
            knows_process,
            "{endpoint}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_take_up_that_only_listen_is_measured_and_given_back() {
    let web = WebServer::start(Config::default()).unwrap();
    let servers: Vec<_> =
        (0..3).map(|number| format!("[servers.s{number}]\nurl = '{}'\n", web.url())).collect();
    let gate = Gate::new(&servers.concat());
    let serving = gate.serves().await;
    let pid = u32::try_from(serving.pid()).unwrap();
    let at_rest =
        gateways::idle(pid, 20, &format!("http://{}/mcp", gate.web.address)).await.unwrap().to_json();
    let descriptors = |at: usize| at_rest["moments"][at]["descriptors"].as_u64().unwrap();
    for (here, gone) in [(1, 2), (3, 4)] {
        // Connections to servers that nobody needs any more are closed in the meantime, too.
        assert!(descriptors(here) > descriptors(gone) + 10, "{at_rest}");
        assert!(descriptors(here) >= 20, "{at_rest}");
        assert!(at_rest["moments"][here]["pss_kib"].as_u64().unwrap() > 0, "{at_rest}");
    }
}
