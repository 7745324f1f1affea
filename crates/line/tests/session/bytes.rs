//! What we do not understand passes unchanged: byte for byte where the eras agree, member for member where they do not.

use linetender::{Era, Rig, session};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::agent::{META, Raw, members};
use crate::look::in_time;
use crate::peer::{ERAS, Peer, WAYS, Way};

/// Members that a bridge adds to a result of the other era, and nothing else does.
const ADDED: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Objects that a careless reader would not give back as they were.
fn corpus() -> Vec<(&'static str, String)> {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    vec![
        ("plain", r#"{"content":[{"type":"text","text":"x"}]}"#.to_owned()),
        ("unknown fields", r#"{"zeta":null,"content":[],"alpha":{"b":1,"a":2},"x-vendor":[true,false]}"#.into()),
        ("unknown content", r#"{"content":[{"type":"hologram","frames":[[0.10,1e0]],"mimeType":"x/y"}]}"#.into()),
        ("odd numbers", r#"{"content":[],"n":[1.50,1e400,-0,-0.0,1E+2,0.1e-999,12345678901234567890123456789]}"#.into()),
        ("big integers", r#"{"content":[],"n":[18446744073709551616,-9223372036854775809,9007199254740993]}"#.into()),
        ("escapes", r#"{"content":[{"type":"text","text":"\u0041\/\u00e9\ud83d\ude00\u2028\u0000é😀 "}],"\u006bey":"\ud800"}"#.into()),
        ("lone surrogate in a name", r#"{"content":[],"\ud800":1}"#.into()),
        ("twice", r#"{"content":[],"same":1,"same":2}"#.into()),
        ("spaces", "{ \"content\" : [ ] ,\t\"a\":  { }  }".into()),
        ("looks like ours", r#"{"content":[{"type":"text","text":"{\"resultType\":\"input_required\"}"}],"id":7}"#.into()),
        ("deep", format!(r#"{{"content":[],"deep":{deep}}}"#)),
        ("long", format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "long é ".repeat(10 << 17))),
    ]
}

/// One agent on one server, and the files between them.
struct Case {
    agent: Raw,
    peer: Peer,
    server: Era,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn params_and_results_come_out_as_they_were_spelt() {
    for way in WAYS {
        for server in ERAS {
            for version in ["2025-11-25", "2026-07-28"] {
                let peer = Peer::start(way, server);
                let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), version);
                agent.greet().await;
                let mut case = Case { agent, peer, server };
                for (name, text) in corpus() {
                    case.answers_with(&text, &format!("{name}, {version} on {server:?}, {way:?}")).await;
                    if name != "long" {
                        case.is_asked_with(&text, &format!("{name}, {version} on {server:?}, {way:?}")).await;
                    }
                }
            }
        }
    }
}

impl Case {
    /// The paths that the tool works with, and what it is to answer, once and when it is asked again.
    fn arguments(&self, answer: &str) -> String {
        std::fs::write(self.peer.dir.file("answer"), answer).unwrap();
        let path = |name| json!(self.peer.dir.text(name)).to_string();
        format!(r#""answer":{},"then":{},"heard":{}"#, path("answer"), path("then"), path("heard"))
    }

    fn agrees(&self) -> bool {
        self.agent.era() == self.server
    }

    /// A call in the agent's era, with more members in its params and one more argument.
    fn call(&self, answer: &str, more: &str, argument: &str) -> String {
        let meta = self.agent.params(json!({}));
        let meta = match self.agent.era() {
            Era::Legacy => String::new(),
            Era::Modern => format!(r#""_meta":{},"#, meta["_meta"]),
        };
        let arguments = self.arguments(answer);
        format!(r#"{{{meta}"name":"exact",{more} "arguments":{{{arguments},"x":{argument}}}}}"#)
    }

    async fn make(&mut self, params: &str) -> String {
        self.agent
            .say(format!(r#"{{"jsonrpc":"2.0","id":"é \u0031","method":"tools/call","params":{params}}}"#))
            .await;
        let text = self.agent.hear_text().await;
        assert!(!text.contains(['\n', '\r']), "one line: {text}");
        let answer = members(&text);
        assert_eq!(answer["id"], r#""é \u0031""#, "{text}");
        answer.get("result").unwrap_or_else(|| panic!("{text}")).clone()
    }

    /// A result on its way up.
    async fn answers_with(&mut self, text: &str, case: &str) {
        let params = self.call(text, "", "1");
        let result = self.make(&params).await;
        if self.agrees() || self.agent.era() == Era::Legacy {
            assert!(result == text, "{case}: {}", head(&result));
        } else {
            assert!(result.ends_with(text.trim_start_matches('{').trim_start()), "{case}: {}", head(&result));
            assert!(result.contains(r#""resultType":"complete""#), "{case}: {}", head(&result));
            let front = &result[..result.len() - text.trim_start_matches('{').trim_start().len()];
            let front = members(&format!("{}}}", front.trim_end().trim_end_matches(',')));
            assert!(front.keys().all(|name| ADDED.contains(&&**name)), "{case}: {front:?}");
        }
    }

    /// Params on their way down.
    async fn is_asked_with(&mut self, text: &str, case: &str) {
        let params = self.call("{}", &format!(r#""odd":{text},"#), text);
        self.make(&params).await;
        let heard = std::fs::read_to_string(self.peer.dir.file("heard")).unwrap();
        if self.agrees() {
            assert_eq!(heard, params, "{case}");
            return;
        }
        let (mut before, mut after) = (members(&params), members(&heard));
        let (_, meta) = (before.remove("_meta"), after.remove("_meta"));
        assert_eq!(before, after, "{case}");
        let meta = members(&meta.unwrap_or_else(|| "{}".to_owned()));
        let modern = meta.keys().filter(|name| name.starts_with(META)).count();
        assert_eq!(modern > 0, self.server == Era::Modern, "{case}: {meta:?}");
    }
}

fn head(text: &str) -> String {
    text.chars().take(300).collect()
}

#[tokio::test]
async fn only_the_token_is_exchanged_in_what_an_agent_says() {
    for server in ERAS {
        let peer = Peer::start(Way::Pipe, server);
        let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
        agent.greet().await;
        let mut case = Case { agent, peer, server };
        let arguments = case.arguments("{}");
        let params = format!(
            r#"{{ "odd":1.50,"_meta" : {{"traceparent":"00-1-2-01","progressToken" :"mine", "n":1e400}},"name":"exact","arguments":{{{arguments}}}}}"#
        );
        case.make(&params).await;
        let heard = std::fs::read_to_string(case.peer.dir.file("heard")).unwrap();
        assert!(!heard.contains(r#""mine""#), "{heard}");
        let mut meta = members(&members(&heard)["_meta"]);
        meta.retain(|name, _| !name.starts_with(META));
        assert_eq!(meta.remove("traceparent").as_deref(), Some(r#""00-1-2-01""#), "{heard}");
        assert_eq!(meta.remove("n").as_deref(), Some("1e400"), "{heard}");
        assert!(meta.remove("progressToken").is_some_and(|token| token.parse::<u64>().is_ok()), "{heard}");
        assert!(meta.is_empty(), "{heard}");
        assert!(heard.contains(r#""odd":1.50,"_meta" : {"#), "{heard}");
    }
}

#[tokio::test]
async fn a_question_reaches_a_legacy_agent_as_the_server_spelt_it() {
    for way in WAYS {
        let peer = Peer::start(way, Era::Modern);
        let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
        agent.greet().await;
        let asked =
            r#"{"message":"wh\u0069ch?","requestedSchema":{"z":1.50,"a":1e400,"n":18446744073709551616}}"#;
        let state = r#"{"b":1.50,"a":"\u0041"}"#;
        let needs = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"one":{{"method":"elicitation/create","params":{asked}}}}},"requestState":{state}}}"#
        );
        std::fs::write(peer.dir.file("then"), r#"{"content":[],"resultType":"complete"}"#).unwrap();
        let mut case = Case { agent, peer, server: Era::Modern };
        let params = case.call(&needs, "", "1.50");
        case.agent
            .say(format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}"#))
            .await;
        let question = members(&case.agent.hear_text().await);
        assert_eq!((&*question["method"], &*question["params"]), (r#""elicitation/create""#, asked));
        let told = r#"{"action":"accept","content":{"n":1.50,"z":1e400}}"#;
        case.agent.say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{told}}}"#, question["id"])).await;
        let answer = members(&case.agent.hear_text().await);
        assert_eq!(answer["result"], r#"{"content":[],"resultType":"complete"}"#);
        let heard = members(&std::fs::read_to_string(case.peer.dir.file("heard")).unwrap());
        assert_eq!(heard["requestState"], state);
        assert_eq!(members(&heard["inputResponses"])["one"], told);
        assert_eq!(heard["arguments"], members(&params)["arguments"]);
    }
}

#[tokio::test]
async fn an_answer_with_line_breaks_crosses_from_http_to_a_pipe_whole_and_on_one_line() {
    for server in ERAS {
        let peer = Peer::start(Way::Http, server);
        let spread = "{\n  \"content\": [\r\n    { \"type\": \"text\",\n\t\"text\": \"a\\nb\" }\n  ],\n  \"n\": 1.50\n}";
        std::fs::write(peer.dir.file("answer"), spread).unwrap();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (bad, rig) = (peer.server(), Rig::new());
        let session = tokio::spawn(async move {
            session::serve(bad, &rig, input, output, async { drop(stopped.await) }).await
        });
        let (hears, mut says) = tokio::io::split(ours);
        let mut lines = BufReader::new(hears).lines();
        let hello =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#;
        let arguments = json!({ "answer": peer.dir.text("answer"), "spread": true });
        for (id, method, params) in [
            (1, "initialize", hello.to_owned()),
            (2, "tools/call", format!(r#"{{"name":"exact","arguments":{arguments}}}"#)),
        ] {
            let text =
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
            in_time(says.write_all(text.as_bytes())).await.unwrap();
            let line = in_time(lines.next_line()).await.unwrap().unwrap();
            let answer = members(&line);
            assert_eq!(answer["id"], id.to_string(), "{line}");
            if id == 2 {
                assert_eq!(answer["result"], spread.replace(['\n', '\r'], " "));
            }
        }
        drop(stop);
        in_time(session).await.unwrap();
    }
}
