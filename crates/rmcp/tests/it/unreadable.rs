//! A server whose messages `rmcp` cannot read: JSON all the same, so they come as far as the client.

use linetender::{Era, Eras, Server};
use rmcp::ServiceExt as _;
use rmcp::service::ServiceError;
use serde_json::json;

use crate::kit::{call, in_time, says};

/// Answers with a number that no float can hold, unless the tool is another.
const SERVER: &str = r#"
tell() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) tell "\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"odd\",\"version\":\"1\"}}" ;;
    *'"tools/list"'*) tell "\"id\":$id,\"result\":{\"tools\":[]}" ;;
    *'"number"'*) tell "\"id\":$id,\"result\":{\"content\":[],\"n\":1e999}" ;;
    *'"error"'*'"source"'*) tell "\"id\":$asked,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"was refused\"}]}" ;;
    *'"code"'*) tell "\"id\":$id,\"error\":{\"code\":\"a word\",\"message\":\"no\"}" ;;
    *'"ask"'*) asked=$id; tell '"id":"q","method":"roots/list","params":{"n":1e999}' ;;
    *'"note"'*) tell '"method":"notifications/message","params":{"n":1e999}'
        tell "\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"noted\"}]}" ;;
    *'"ping"'*) tell "\"id\":$id,\"result\":{}" ;;
    esac
done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_rmcp_cannot_read_is_never_silence() {
    let server = Server::stdio("odd", ["sh", "-c", SERVER]).eras(Eras::Only(Era::Legacy));
    let server = server.reaper(linetender_badserver::program());
    let client = in_time(().serve(linetender_rmcp::transport(server))).await.unwrap();
    for tool in ["number", "code"] {
        let error = call(&client, tool, json!({})).await.unwrap_err();
        let ServiceError::McpError(error) = error else { panic!("{tool}: {error}") };
        assert!(!(-32768..=-32000).contains(&error.code.0), "{error:?}");
        assert!(error.message.contains("odd: rmcp cannot parse the server's response"), "{error:?}");
        assert_eq!(error.data.unwrap()["source"], "linetender");
    }
    assert_eq!(says(&client, "note", json!({})).await, "noted");
    assert_eq!(says(&client, "ask", json!({})).await, "was refused");
    assert!(!client.is_transport_closed());
    in_time(client.cancel()).await.unwrap();
}
