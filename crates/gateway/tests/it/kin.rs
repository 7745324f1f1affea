//! Sessions among several gateways: any of them serves a session, and a session outlives its gateway. The gateways are real; what is
//! between them is a pipe instead of NATS.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use linetender_badserver::Book;
use linetender_gateway::kin::{Kin, Later, NotReached, Stream};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use crate::kit::{House, in_time, is_answered};

const ONE: &str = r#"
[servers.bad]
{bad}
args = ["--era", "legacy", "--full"]
"#;

/// Everybody who is there, and where to knock.
#[derive(Clone, Default)]
struct Town(Arc<Mutex<BTreeMap<u64, mpsc::Sender<DuplexStream>>>>);

struct Neighbour {
    own: u64,
    /// It has not found the key of the day yet.
    keyless: AtomicBool,
    town: Town,
    come: tokio::sync::Mutex<mpsc::Receiver<DuplexStream>>,
}

impl Town {
    /// Moves in.
    fn neighbour(&self, own: u64) -> Arc<Neighbour> {
        let (door, come) = mpsc::channel(4);
        self.0.lock().unwrap().insert(own, door);
        Arc::new(Neighbour {
            own,
            keyless: AtomicBool::new(false),
            town: self.clone(),
            come: tokio::sync::Mutex::new(come),
        })
    }

    fn leaves(&self, own: u64) {
        self.0.lock().unwrap().remove(&own);
    }
}

impl fmt::Debug for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbour({})", self.own)
    }
}

impl Kin for Neighbour {
    fn own(&self) -> u64 {
        self.own
    }

    fn is_there(&self, node: u64) -> bool {
        self.town.0.lock().unwrap().contains_key(&node)
    }

    fn home(&self, _session: &str, tried: &[u64]) -> Option<u64> {
        self.town.0.lock().unwrap().keys().copied().find(|node| !tried.contains(node))
    }

    fn key(&self, day: u64) -> Later<'_, Option<[u8; 32]>> {
        Box::pin(std::future::ready(Some([day.to_le_bytes()[0]; 32])))
    }

    fn known_keys(&self, day: u64, _again: bool) -> Later<'_, Vec<[u8; 32]>> {
        let keys =
            if self.keyless.load(Ordering::SeqCst) { vec![] } else { vec![[day.to_le_bytes()[0]; 32]] };
        Box::pin(std::future::ready(keys))
    }

    fn reach(&self, node: u64) -> Later<'_, Result<Box<dyn Stream>, NotReached>> {
        Box::pin(async move {
            let door = self.town.0.lock().unwrap().get(&node).cloned().ok_or(NotReached::Nobody)?;
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            door.send(theirs).await.map_err(|_| NotReached::Nobody)?;
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    }

    fn accept(&self) -> Later<'_, Option<Box<dyn Stream>>> {
        Box::pin(async {
            self.come.lock().await.recv().await.map(|stream| Box::new(stream) as Box<dyn Stream>)
        })
    }
}

async fn houses<const N: usize>(town: &Town) -> [House; N] {
    let mut houses = Vec::new();
    for number in 0..N {
        houses.push(House::up_among(ONE, town.neighbour(number as u64)).await);
    }
    houses.try_into().ok().unwrap()
}

fn call(nonce: &str) -> Value {
    json!({ "name": "bad__echo", "arguments": { "nonce": nonce } })
}

#[tokio::test]
async fn a_session_works_at_every_gateway_and_its_streams_too() {
    let town = Town::default();
    let [one, other] = houses(&town).await;
    let agent = one.agent("/mcp").await;
    let there = agent.also(&other, "/mcp");
    for (id, agent) in [(1, &agent), (2, &there), (3, &agent), (4, &there)] {
        let answer = in_time(agent.request(id, "tools/call", call("n"))).await.json().await;
        assert!(is_answered(&answer), "{answer}");
    }
    // Progress of a call at the other gateway comes on the call's own stream, through both.
    let params = json!({ "name": "bad__progress", "arguments": { "times": 3, "ms": 1 }, "_meta": { "progressToken": "t" } });
    let mut answer = in_time(there.request(5, "tools/call", params)).await;
    let mut told = 0;
    while let Some(event) = in_time(answer.event()).await {
        told += u32::from(event.data["method"] == "notifications/progress");
    }
    assert_eq!(told, 3);
}

#[tokio::test]
async fn a_session_outlives_its_gateway() {
    let town = Town::default();
    let [mut one, other] = houses(&town).await;
    let agent = one.agent("/mcp").await;
    let there = agent.also(&other, "/mcp");
    assert!(is_answered(&in_time(there.request(1, "tools/call", call("a"))).await.json().await));
    town.leaves(0);
    one.stop();
    in_time(one.ended()).await;
    for id in 2..5 {
        let answer = in_time(there.request(id, "tools/call", call("b"))).await.json().await;
        assert!(is_answered(&answer), "{answer}");
    }
    // Its streams are gone.
    assert_eq!(in_time(there.stream(Some("1-1"))).await.status, 404);
    assert_eq!(in_time(there.delete()).await, 200);
}

#[tokio::test]
async fn the_key_of_a_call_is_passed_on_with_its_session() {
    let book = Book::at(std::env::temp_dir().join(format!("linetender-kin-{}", std::process::id())));
    let kept =
        format!("[servers.bad]\n{{bad}}\nargs = ['--book', '{}']\ndurable = true\n", book.path().display());
    let town = Town::default();
    let one = House::up_among(&kept, town.neighbour(0)).await;
    let other = House::up_among(ONE, town.neighbour(1)).await;
    let agent = one.agent("/mcp/bad").await;
    let params = json!({ "name": "echo", "arguments": { "nonce": "n" } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    for house in [&one, &other, &other] {
        let headers = [("mcp-session-id", agent.session.as_str()), ("idempotency-key", "k")];
        let answer = in_time(house.send(Method::POST, "/mcp/bad", &headers, message.clone())).await;
        assert!(is_answered(&answer.json().await));
    }
    assert_eq!(book.runs().get("n"), Some(&1));
    let _ = std::fs::remove_file(book.path());
}

#[tokio::test]
async fn a_gateway_without_the_key_says_so_and_nothing_was_run() {
    let town = Town::default();
    let home = town.neighbour(0);
    let one = House::up_among(ONE, Arc::clone(&home) as Arc<dyn Kin>).await;
    let other = House::up_among(ONE, town.neighbour(1)).await;
    let there = one.agent("/mcp").await.also(&other, "/mcp");
    home.keyless.store(true, Ordering::SeqCst);
    let answer = in_time(there.request(1, "tools/call", call("n"))).await;
    assert_eq!(answer.status, 503);
    let said = answer.json().await.to_string();
    assert!(said.contains("NATS does not answer") && said.contains("not executed"), "{said}");
    home.keyless.store(false, Ordering::SeqCst);
    assert!(is_answered(&in_time(there.request(2, "tools/call", call("n"))).await.json().await));
}

#[tokio::test]
async fn an_id_that_nobody_sealed_is_nobodys() {
    let town = Town::default();
    let [one, other] = houses(&town).await;
    let agent = one.agent("/mcp").await;
    let mut forged = agent.also(&other, "/mcp");
    let last = forged.session.pop().unwrap();
    forged.session.push(if last == 'A' { 'B' } else { 'A' });
    assert_eq!(in_time(forged.request(1, "tools/call", call("n"))).await.status, 404);
    let elsewhere = agent.also(&other, "/mcp/bad");
    assert_eq!(in_time(elsewhere.request(2, "tools/list", json!({}))).await.status, 404);
}
