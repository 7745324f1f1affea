//! Every request ends in one outcome, whatever became of it, and whoever sees it is told once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender::{
    Deadline, Delivery, Doubt, Options, Outcome, Raw, Receipt, Stage, TraceContext, UnderWay, Verdict,
    Witness,
};

use crate::kit::{Dir, bad, bad_with};
use crate::look::{eventually, in_time, kill};

/// What was asked, what became of it, how often it was tried, and where last.
type Ended = (String, Verdict, u32, Option<u64>);

/// Where a call was tried, how often, and the revision that is spoken there.
type Crossed = (Vec<u64>, u32, Option<String>);

/// What was seen, and what is to be said.
#[derive(Debug, Default)]
struct Seen {
    under_way: Mutex<Vec<Arc<UnderWay>>>,
    ended: Mutex<Vec<Ended>>,
    refuses: Mutex<Option<&'static str>>,
    receipt: Mutex<Option<&'static str>>,
}

impl Witness for Seen {
    fn came(&self, call: &Arc<UnderWay>, _: Option<&str>) -> Result<(), String> {
        self.under_way.lock().unwrap().push(Arc::clone(call));
        self.refuses.lock().unwrap().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    fn ended(&self, call: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        let mut under_way = self.under_way.lock().unwrap();
        let before = under_way.len();
        under_way.retain(|other| other.number != call.number);
        assert_eq!(under_way.len() + 1, before, "each call ends once");
        let what = call.tool.as_deref().unwrap_or(&call.method).to_owned();
        self.ended.lock().unwrap().push((what, outcome.verdict, outcome.attempts, outcome.generation));
        let fails = self.receipt.lock().unwrap().take()?;
        Some(Box::pin(async move { Err(fails.to_owned()) }))
    }
}

impl Seen {
    fn last(&self) -> Ended {
        self.ended.lock().unwrap().last().cloned().expect("something ended")
    }
}

#[tokio::test]
async fn every_verdict_is_told_once_and_nothing_stays_under_way() {
    let (bad, seen) = (bad(&[]), Arc::new(Seen::default()));
    bad.line.seen_by(Arc::clone(&seen) as Arc<dyn Witness>);
    bad.up().await;

    bad.call("echo", r#"{"nonce":"a"}"#).await.unwrap();
    assert_eq!(seen.last(), ("echo".into(), Verdict::Answered, 1, Some(1)));

    in_time(bad.line.request("no/such", (), Options::default())).await.unwrap_err();
    assert_eq!(seen.last(), ("no/such".into(), Verdict::Answered, 1, Some(1)), "an error is an answer");

    // Its caller goes away while the server has it.
    let line = bad.line.clone();
    let hung = tokio::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"h"}"#)).await });
    eventually(|| bad.book.runs().contains_key("h").then_some(())).await;
    assert_eq!(seen.under_way.lock().unwrap()[0].stage(), Stage::AtServer);
    hung.abort();
    let _ = hung.await;
    let unknown = Delivery::Unknown(Doubt::Cancelled);
    assert_eq!(seen.last(), ("hang".into(), Verdict::Cancelled(unknown), 1, Some(1)));

    let short = Deadline::Within { quiet: Duration::from_millis(50), total: Duration::from_millis(50) };
    let options = Options::default().deadline(short);
    let late = bad.line.call_tool_with("hang", Raw(r#"{"nonce":"l"}"#), options);
    in_time(late).await.unwrap_err();
    assert_eq!(seen.last(), ("hang".into(), Verdict::Unknown(Doubt::Deadline), 1, Some(1)));

    // The server dies under one.
    let line = bad.line.clone();
    let lost = tokio::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"d"}"#)).await });
    eventually(|| bad.book.runs().contains_key("d").then_some(())).await;
    kill("-9", bad.line.pid().unwrap());
    in_time(lost).await.unwrap().unwrap_err();
    assert_eq!(seen.last(), ("hang".into(), Verdict::Unknown(Doubt::Lost), 1, Some(1)));

    bad.call("echo", r#"{"nonce":"again"}"#).await.unwrap();
    assert_eq!(seen.last(), ("echo".into(), Verdict::Answered, 1, Some(2)));
    bad.line.close().await;
    bad.call("echo", r#"{"nonce":"z"}"#).await.unwrap_err();
    assert_eq!(seen.last(), ("echo".into(), Verdict::NOT_SENT, 0, None));
    assert!(seen.under_way.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_witness_that_cannot_bear_witness_refuses_or_holds_back_the_answer() {
    let (bad, seen) = (bad(&[]), Arc::new(Seen::default()));
    bad.line.seen_by(Arc::clone(&seen) as Arc<dyn Witness>);
    bad.up().await;
    *seen.refuses.lock().unwrap() = Some("the disk is full");
    let error = bad.call("echo", r#"{"nonce":"a"}"#).await.unwrap_err();
    assert!(error.not_executed() && error.cause.contains("the disk is full"), "{error}");
    assert!(!bad.book.runs().contains_key("a"));
    assert_eq!(seen.last().1, Verdict::NOT_SENT);

    *seen.refuses.lock().unwrap() = None;
    *seen.receipt.lock().unwrap() = Some("the disk is full");
    let error = bad.call("echo", r#"{"nonce":"b"}"#).await.unwrap_err();
    assert_eq!(error.delivery, Delivery::Answered, "{error}");
    assert!(error.for_model().contains("a retry would execute it again"), "{}", error.for_model());
    assert!(bad.book.runs().contains_key("b"));
    assert_eq!(seen.last().1, Verdict::Answered);
    bad.leaves_nothing().await;
}

/// Continues every trace that it sees.
#[derive(Debug, Default)]
struct Tracing {
    came: Mutex<Vec<Option<TraceContext>>>,
    ended: Mutex<Vec<Crossed>>,
}

impl Witness for Tracing {
    fn came(&self, call: &Arc<UnderWay>, params: Option<&str>) -> Result<(), String> {
        let theirs = TraceContext::of_params(params);
        if let Some(theirs) = &theirs {
            call.traced(TraceContext::new(theirs.trace, 0xabc, 1, None).unwrap());
        }
        self.came.lock().unwrap().push(theirs);
        Ok(())
    }

    fn ended(&self, _: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        let revision = outcome.revision.map(str::to_owned);
        assert!(outcome.id.is_some(), "{outcome:?}");
        self.ended.lock().unwrap().push((outcome.generations.to_vec(), outcome.attempts, revision));
        None
    }
}

#[tokio::test]
async fn a_call_that_crosses_a_death_takes_its_trace_along() {
    let (tracing, dir) = (Arc::new(Tracing::default()), Dir::new());
    let bad = bad_with(&[], |server| server.safe_tool("exact"));
    bad.line.seen_by(Arc::clone(&tracing) as Arc<dyn Witness>);
    let (heard, answer, dies) = (dir.file("heard"), dir.file("answer"), dir.file("dies"));
    std::fs::write(&answer, "{}").unwrap();
    let theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = format!(
        r#"{{"name":"exact","arguments":{{"heard":{heard:?},"answer":{answer:?},"dies":{dies:?},"n":1.50}},"_meta":META}}"#
    );
    bad.up().await;
    let traced = params.replace("META", &format!(r#"{{"traceparent":"{theirs}","tracestate":"a=b","k":1}}"#));
    in_time(bad.line.request("tools/call", Raw(&traced), Options::default())).await.unwrap();
    let came = tracing.came.lock().unwrap().pop().unwrap().unwrap();
    assert_eq!((came.to_string().as_str(), came.state.as_deref()), (theirs, Some("a=b")));
    let (generations, tries, revision) = tracing.ended.lock().unwrap().pop().unwrap();
    assert_eq!((generations, tries), (vec![1, 2], 2));
    assert!(revision.is_some_and(|revision| revision.starts_with("202")));
    let ours = r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000abc-01","k":1}"#;
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), params.replace("META", ours));

    // What is no context is none of ours: every byte of it stays.
    let odd = params.replace("META", r#"{"traceparent":"00-nonsense", "k" : 1}"#);
    in_time(bad.line.request("tools/call", Raw(&odd), Options::default())).await.unwrap();
    assert_eq!(tracing.came.lock().unwrap().pop(), Some(None));
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), odd);
    assert_eq!(tracing.ended.lock().unwrap().pop(), Some((vec![2], 1, None)));
    bad.leaves_nothing().await;
}
