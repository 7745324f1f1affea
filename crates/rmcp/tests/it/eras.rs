//! A client of either lifecycle, on a server of either era.

use linetender::{Era, Eras};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::json;

use crate::kit::{bad, call, in_time, our_words, says};

#[tokio::test(flavor = "multi_thread")]
async fn every_lifecycle_works_on_every_server_and_through_a_death() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let modes = [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: preferred_versions.clone() },
        ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
    ];
    for (flag, era) in [("legacy", Era::Legacy), ("modern", Era::Modern)] {
        for mode in &modes {
            let bad = bad(&["--era", flag]);
            let transport = linetender_rmcp::transport(bad.server.clone().eras(Eras::Only(era)));
            let client = in_time(().serve_with_lifecycle(transport, mode.clone())).await;
            let client = client.unwrap_or_else(|error| panic!("{flag} {mode:?}: {error}"));
            assert!(in_time(client.list_all_tools()).await.unwrap().len() > 10, "{flag} {mode:?}");
            assert_eq!(says(&client, "echo", json!({ "n": 1 })).await, r#"{"n":1}"#, "{flag} {mode:?}");
            our_words(&call(&client, "kill", json!({})).await.unwrap());
            says(&client, "echo", json!({ "n": 2 })).await;
            assert!(!client.is_transport_closed());
        }
    }
}
