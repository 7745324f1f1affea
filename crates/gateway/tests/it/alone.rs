//! Requests that stand by themselves: what an agent with a session may rely on, they may too.

use crate::kit::{Answer, House, config, in_time, is_answered, text};
use crate::peer::{Peer, Way};
use linetender::Era;
use linetender_gateway::front::Served;
use serde_json::{Value, json};
use std::collections::VecDeque;

const ONE: &str = "
[servers.bad]
{bad}
";

/// Twelve at once: four with the server, eight that wait.
const NARROW: &str = "
[servers.bad]
{bad}
policy = { limits = { in_flight = 4, queue = 8 } }
";

/// At either address.
const SLEEPS: [(&str, &str); 2] = [("/mcp", "bad__sleep"), ("/mcp/bad", "sleep")];

/// A call of somebody who says who they are; `more` is put beside the arguments.
async fn call_as(house: &House, client: &str, at: (&str, &str), more: &Value) -> Answer {
    let mut params = json!({ "name": at.1, "arguments": more });
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": client, "version": "1" });
    house.modern(at.0, "tools/call", params).await
}

/// Waits until the server runs so many.
async fn run(peer: &Peer, calls: u32) {
    in_time(async {
        while peer.runs("it") < calls {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn is_shed(answer: &Value) -> bool {
    answer["result"]["_meta"]["linetender"]["retryAfter"] == 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_one_that_asks_for_everything_is_one_agent_however_many_requests_it_makes() {
    let house = House::up(NARROW).await;
    for at in SLEEPS {
        let greedy =
            |_| Box::pin(async { call_as(&house, "greedy", at, &json!({ "ms": 900 })).await.last().await });
        let mut theirs: VecDeque<_> = (0..20).map(greedy).collect();
        let (mut shed, mut answered) = (0, 0);
        // When eight were refused, four are with the server, and eight wait.
        while shed < 8 {
            let (at, answer) = first(&mut theirs).await;
            assert!(is_shed(&answer), "{answer}");
            drop(theirs.remove(at));
            shed += 1;
        }
        let modest = || async { call_as(&house, "modest", at, &json!({ "ms": 1 })).await.last().await };
        let mine = async {
            let (one, two, three) = tokio::join!(modest(), modest(), modest());
            assert!(![one, two, three].iter().any(is_shed), "room is made for each");
        };
        let rest = async {
            while !theirs.is_empty() {
                let (at, answer) = first(&mut theirs).await;
                *if is_shed(&answer) { &mut shed } else { &mut answered } += 1;
                drop(theirs.remove(at));
            }
        };
        tokio::join!(mine, rest);
        assert_eq!((shed, answered), (11, 9), "their newest made room");
    }
}

/// The first of several that is done.
async fn first<F: Future<Output = Value> + Unpin>(all: &mut VecDeque<F>) -> (usize, Value) {
    let next = std::future::poll_fn(|context| {
        for (at, one) in all.iter_mut().enumerate() {
            if let std::task::Poll::Ready(answer) = std::pin::Pin::new(one).poll(context) {
                return std::task::Poll::Ready((at, answer));
            }
        }
        std::task::Poll::Pending
    });
    in_time(next).await
}

#[tokio::test]
async fn whatever_fails_says_which_server_when_why_whether_it_ran_and_when_to_try_again() {
    let house = House::open("[servers.dead]\n{bad}\nargs = ['--exit', '3']\n[servers.bad]\n{bad}").await;
    for (path, tool, prompt, server) in [
        ("/mcp", "dead__echo", "dead__any", "dead"),
        ("/mcp/dead", "echo", "any", "dead"),
        ("/mcp", "bad__kill", "", "bad"),
        ("/mcp/bad", "kill", "", "bad"),
    ] {
        let told =
            house.modern(path, "tools/call", json!({ "name": tool, "arguments": {} })).await.last().await;
        assert_eq!((&told["result"]["isError"], &told["id"]), (&json!(true), &json!("m")), "{told}");
        assert_eq!(told["result"]["resultType"], "complete", "{told}");
        has_five(&told["result"]["_meta"]["linetender"], server);
        if !prompt.is_empty() {
            let told = house.modern(path, "prompts/get", json!({ "name": prompt })).await;
            assert_eq!(told.status, 200, "only the protocol's own errors have a status of their own");
            let told = told.last().await;
            assert!(told["error"]["code"].as_i64().is_some_and(|code| code > 7000), "{told}");
            has_five(&told["error"]["data"], server);
        }
    }
}

fn has_five(fields: &Value, server: &str) {
    assert_eq!((&fields["source"], &fields["server"]), (&json!("linetender"), &json!(server)), "{fields}");
    for field in ["phase", "cause", "delivery", "nextTry"] {
        assert!(fields[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {fields}");
    }
}

#[tokio::test]
async fn g02_told_to_stop_it_answers_calls_that_stand_by_themselves() {
    let peer = Peer::start(Way::Pipe, Era::Modern);
    let mut house = House::up(&peer.config("bad", "")).await;
    let address = *house;
    let sleep = |(path, name): (&'static str, &'static str), ms: u64| async move {
        let answer = address
            .modern(path, "tools/call", json!({ "name": name, "arguments": { "ms": ms, "nonce": "it" } }))
            .await;
        (answer.is_stream(), answer.last().await)
    };
    // Those that are answered at once, and those that have become streams.
    let calls = async {
        tokio::join!(
            sleep(SLEEPS[0], 300),
            sleep(SLEEPS[1], 300),
            sleep(SLEEPS[0], 1500),
            sleep(SLEEPS[1], 1500)
        )
    };
    let stop = async {
        run(&peer, 4).await;
        house.stop();
    };
    let ((one, two, three, four), ()) = tokio::join!(calls, stop);
    for (answer, is_stream) in [(one, false), (two, false), (three, true), (four, true)] {
        assert_eq!(answer.0, is_stream);
        assert!(is_answered(&answer.1), "{}", answer.1);
    }
    assert_eq!(house.ended().await, Served::Finished);
}

#[tokio::test]
async fn g03_a_server_that_is_taken_away_answers_what_stands_by_itself_too() {
    let peer = Peer::start(Way::Pipe, Era::Modern);
    let house = House::up(&peer.config("bad", "")).await;
    let sleeps = async |at: (&str, &str)| {
        let params = json!({ "name": at.1, "arguments": { "ms": 700, "nonce": "it" } });
        house.modern(at.0, "tools/call", params).await.last().await
    };
    let reload = async {
        run(&peer, 2).await;
        house.gateway.apply(config("[servers.other]\n{bad}"));
    };
    let (one, two, ()) = tokio::join!(sleeps(SLEEPS[0]), sleeps(SLEEPS[1]), reload);
    for answer in [one, two] {
        assert!(text(&answer).contains("700"), "{answer}");
    }
    let gone = house.modern("/mcp/bad", "tools/call", json!({ "name": "echo", "arguments": {} })).await;
    assert_eq!(gone.status, 404);
}

#[tokio::test]
async fn what_is_larger_or_deeper_than_a_server_may_be_sent_never_gets_there() {
    let house = House::up(&format!("{ONE}policy = {{ limits = {{ message = 4096, depth = 16 }} }}")).await;
    let deep = (0..16).fold(json!(1), |inside, _| json!([inside]));
    for (path, name) in [("/mcp", "bad__echo"), ("/mcp/bad", "echo")] {
        for arguments in [json!({ "long": "x".repeat(5000) }), json!({ "deep": deep })] {
            let refused =
                house.modern(path, "tools/call", json!({ "name": name, "arguments": arguments })).await;
            let refused = refused.last().await;
            assert_eq!(refused["error"]["code"], -32600, "{path}: {refused}");
        }
        let fits =
            house.modern(path, "tools/call", json!({ "name": name, "arguments": {} })).await.last().await;
        assert_eq!(text(&fits), "{}");
    }
}
