//! Questions of the server's, and the handler's answers.

#![allow(deprecated, reason = "roots are on their way out, and servers in the field ask for them")]

use linetender::Server;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, ListRootsResult, Root,
};
use rmcp::service::{RequestContext, RoleClient};
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::{Value, json};

use crate::kit::{call, example, in_time, legacy, says};

#[derive(Clone)]
struct Obliging;

impl ClientHandler for Obliging {
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///here")]))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "colour": "blue" })))
    }

    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = serde_json::from_value(json!({ "roots": {}, "elicitation": {} })).unwrap();
        info
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_roots_is_told() {
    let bad = legacy(&[]);
    let client = in_time(Obliging.serve(linetender_rmcp::transport(bad.server.clone()))).await.unwrap();
    for round in 0..3 {
        let told = says(&client, "question", json!({ "nonce": format!("q{round}") })).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["id"], "roots", "the server's own id");
        assert_eq!(told["result"]["roots"][0]["uri"], "file:///here", "{told}");
        // The next generation asks under the same id.
        call(&client, "kill", json!({})).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_elicits() {
    let server = Server::stdio("asks", [example("asks")]).reaper(linetender_badserver::program());
    let client = in_time(Obliging.serve(linetender_rmcp::transport(server))).await.unwrap();
    assert_eq!(in_time(client.list_all_tools()).await.unwrap()[0].name, "ask");
    let told = says(&client, "ask", json!({})).await;
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), json!({ "colour": "blue" }));
    in_time(client.cancel()).await.unwrap();
}
