//! A request that ends at the gateway, before a line is chosen for it, is seen by whoever counts: once.

use std::sync::{Arc, Mutex};

use linetender::{Code, Follower, Line, Outcome, Receipt, Rig, UnderWay, Verdict, Witness};
use serde_json::{Value, json};

use crate::kit::{House, in_time};

const CONFIG: &str = "[servers.a]\n{bad}\ntools.exclude = ['kill']\n[servers.b]\n{bad}";

/// What was seen: at a line or at the door, method, tool, verdict, code.
type Seen = (bool, String, Option<String>, Verdict, Option<i64>);

#[derive(Clone, Debug, Default)]
struct Book(Arc<Mutex<Vec<Seen>>>);

#[derive(Debug)]
struct Eye {
    book: Book,
    door: bool,
}

impl Book {
    fn taken(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Follower for Book {
    fn follow(&self, line: &Line) {
        line.seen_by(Arc::new(Eye { book: self.clone(), door: false }));
    }

    fn at_the_door(&self) -> Option<Arc<dyn Witness>> {
        Some(Arc::new(Eye { book: self.clone(), door: true }))
    }
}

impl Witness for Eye {
    fn came(&self, _: &Arc<UnderWay>, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn ended(&self, call: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        let tool = call.tool.as_deref().map(str::to_owned);
        self.book.0.lock().unwrap().push((
            self.door,
            call.method.to_string(),
            tool,
            outcome.verdict,
            outcome.code,
        ));
        None
    }
}

async fn house() -> (House, Book) {
    let book = Book::default();
    let house = House::open_on(Rig::new().followed_by(book.clone()), "127.0.0.1:0", CONFIG).await;
    for line in house.gateway.lines() {
        in_time(line.catalogue()).await.unwrap();
    }
    book.taken();
    (house, book)
}

fn at_the_door(method: &str, tool: Option<&str>, verdict: Verdict, code: Option<i64>) -> Seen {
    (true, method.to_owned(), tool.map(str::to_owned), verdict, code)
}

#[tokio::test]
async fn a_request_that_the_gateway_ends_is_seen_once_in_either_era_at_either_address() {
    let (house, book) = house().await;
    let not_here = Some(i64::from(Code::NotHere.number()));
    // What was asked, how it ends, and with which code.
    let cases: [(&str, &str, Value, Verdict, Option<i64>); 6] = [
        ("/mcp", "tools/list", json!({}), Verdict::Answered, None),
        ("/mcp", "tools/call", json!({ "name": "nobody__echo" }), Verdict::NOT_SENT, not_here),
        ("/mcp", "tools/call", json!({ "name": "a__kill" }), Verdict::NOT_SENT, not_here),
        ("/mcp", "tools/call", json!({}), Verdict::NOT_SENT, Some(-32602)),
        ("/mcp", "no/such", json!({}), Verdict::NOT_SENT, Some(-32601)),
        ("/mcp/a", "tools/call", json!({ "name": "kill" }), Verdict::NOT_SENT, not_here),
    ];
    for (path, method, params, verdict, code) in cases {
        let tool = params["name"].as_str().map(str::to_owned);
        let expected = at_the_door(method, tool.as_deref(), verdict, code);
        if tool.is_some() || method != "tools/call" {
            house.modern(path, method, params.clone()).await.json().await;
            assert_eq!(book.taken(), std::slice::from_ref(&expected), "{method} {params} at {path}, modern");
        }
        let agent = house.agent(path).await;
        book.taken();
        agent.ask(method, params.clone()).await;
        assert_eq!(book.taken(), [expected], "{method} {params} at {path}, legacy");
    }
}

#[tokio::test]
async fn a_request_that_a_line_ends_is_not_seen_at_the_door() {
    let (house, book) = house().await;
    let agent = house.agent("/mcp").await;
    assert_eq!(book.taken(), [at_the_door("initialize", None, Verdict::Answered, None)]);
    for _ in 0..2 {
        agent.call("b__echo", json!({ "n": 1 })).await;
        house.modern("/mcp", "tools/call", json!({ "name": "b__echo" })).await.json().await;
        house.modern("/mcp/b", "tools/call", json!({ "name": "echo" })).await.json().await;
    }
    let seen = book.taken();
    let calls: Vec<_> = seen.iter().filter(|(_, method, ..)| method == "tools/call").collect();
    assert_eq!(calls.len(), 6, "{seen:?}");
    assert!(seen.iter().all(|(door, ..)| !door), "{seen:?}");
}

#[tokio::test]
async fn what_http_alone_can_refuse_is_seen_too() {
    let (house, book) = house().await;
    let post = http::Method::POST;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a__echo" } });
    // Without a session; with one that is unknown; with a version that nobody speaks; and two requests with one id.
    house.send(post.clone(), "/mcp", &[], call.to_string()).await.json().await;
    let refused = |code| at_the_door("tools/call", Some("a__echo"), Verdict::NOT_SENT, Some(code));
    assert_eq!(book.taken(), [refused(-32600)]);
    house.send(post.clone(), "/mcp", &[("mcp-session-id", "x")], call.to_string()).await.json().await;
    assert_eq!(book.taken(), [refused(-32001)]);
    let versions = [("mcp-protocol-version", "2026-07-28")];
    house.send(post.clone(), "/mcp", &versions, call.to_string()).await.json().await;
    assert_eq!(book.taken(), [refused(-32602)]);
    let agent = house.agent("/mcp").await;
    book.taken();
    agent.post(&json!([call, call])).await.json().await;
    assert_eq!(book.taken(), [refused(-32600), refused(-32600)]);
}

#[tokio::test]
async fn x16_each_call_of_a_batch_counts_and_is_seen() {
    let book = Book::default();
    let config = format!("[gateway]\nprincipal_requests = 16\n{CONFIG}");
    let house = House::open_on(Rig::new().followed_by(book.clone()), "127.0.0.1:0", &config).await;
    let calls = |count: usize| -> Value {
        let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "echo", "arguments": {} } });
        (1..=count).map(call).collect()
    };
    let seen = |seen: Vec<Seen>| seen.into_iter().filter(|seen| seen.1 == "tools/call").collect::<Vec<_>>();
    let agent = house.agent("/mcp/b").await;
    for _ in 0..3 {
        // What is in progress ends with its response, which may be read before that.
        let answers = in_time(async {
            loop {
                let answer = agent.post(&calls(10)).await;
                if answer.status != 429 {
                    return answer.all().await;
                }
                book.taken();
            }
        });
        answers.await;
        assert_eq!(seen(book.taken()).len(), 10);
        let refused = agent.post(&calls(20)).await;
        assert_eq!(refused.status, 429);
        assert_eq!(refused.headers["retry-after"], "1");
        let code = Some(i64::from(Code::Overloaded.number()));
        let each = at_the_door("tools/call", Some("echo"), Verdict::NOT_SENT, code);
        assert_eq!(seen(book.taken()), vec![each; 20], "none of it was executed");
    }
}
