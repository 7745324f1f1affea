//! Every request ends in one outcome, whatever became of it, and whoever sees it is told once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender::{
    Deadline, Delivery, Doubt, Options, Outcome, Raw, Receipt, Stage, UnderWay, Verdict, Witness,
};

use crate::kit::bad;
use crate::look::{eventually, in_time, kill};

/// What was seen, and what is to be said.
#[derive(Debug, Default)]
struct Seen {
    under_way: Mutex<Vec<Arc<UnderWay>>>,
    ended: Mutex<Vec<(String, Verdict, u32, Option<u64>)>>,
    refuses: Mutex<Option<&'static str>>,
    receipt: Mutex<Option<&'static str>>,
}

impl Witness for Seen {
    fn came(&self, call: &Arc<UnderWay>) -> Result<(), String> {
        self.under_way.lock().unwrap().push(Arc::clone(call));
        self.refuses.lock().unwrap().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    fn ended(&self, call: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        let mut under_way = self.under_way.lock().unwrap();
        let before = under_way.len();
        under_way.retain(|other| other.number != call.number);
        assert_eq!(under_way.len() + 1, before, "each call ends once");
        let what = call.tool.as_deref().unwrap_or(&call.method).to_owned();
        self.ended.lock().unwrap().push((what, outcome.verdict, outcome.tries, outcome.generation));
        let fails = self.receipt.lock().unwrap().take()?;
        Some(Box::pin(async move { Err(fails.to_owned()) }))
    }
}

impl Seen {
    fn last(&self) -> (String, Verdict, u32, Option<u64>) {
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
    assert_eq!(seen.last(), ("echo".into(), Verdict::Refused, 0, None));
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
    assert_eq!(seen.last().1, Verdict::Refused);

    *seen.refuses.lock().unwrap() = None;
    *seen.receipt.lock().unwrap() = Some("the disk is full");
    let error = bad.call("echo", r#"{"nonce":"b"}"#).await.unwrap_err();
    assert_eq!(error.delivery, Delivery::Answered, "{error}");
    assert!(error.for_model().contains("a retry would execute it again"), "{}", error.for_model());
    assert!(bad.book.runs().contains_key("b"));
    assert_eq!(seen.last().1, Verdict::Answered);
    bad.leaves_nothing().await;
}
