//! H34: every call that linetender sends again by itself leaves a record, and H35: none runs twice where only counts permit a
//! re-send.

use std::sync::{Arc, Mutex};

use linetender::{
    Delivery, Era, Eras, Outcome, Receipt, Retry, RetryOn, RetryReason, ServerRefusal, UnderWay, Verdict,
    Witness,
};
use linetender_badserver::webserver::Fault;
use serde_json::json;

use crate::kit::{Web, manners, web_with};
use crate::look::policy;

/// The retries and ends of all calls, in order.
#[derive(Debug, Default)]
struct Records {
    retries: Mutex<Vec<Retry>>,
    ended: Mutex<Vec<(Verdict, u32, RetryOn)>>,
}

impl Witness for Records {
    fn came(&self, _: &Arc<UnderWay>, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn retried(&self, _: &Arc<UnderWay>, retry: Retry) {
        self.retries.lock().unwrap().push(retry);
    }

    fn ended(&self, _: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        self.ended.lock().unwrap().push((outcome.verdict, outcome.attempts, outcome.retried));
        None
    }
}

async fn observed(era: Era, retry_on: RetryOn) -> (Web, Arc<Records>) {
    let policy = policy(|settings| settings.retry_on = retry_on);
    let web = web_with(manners(era), |server| server.eras(Eras::Only(era)).policy(policy)).await;
    let records = Arc::new(Records::default());
    web.line.seen_by(Arc::clone(&records) as Arc<dyn Witness>);
    (web, records)
}

impl Records {
    fn last(&self) -> (Verdict, u32, RetryOn) {
        *self.ended.lock().unwrap().last().expect("a call ended")
    }
}

#[tokio::test]
async fn h34_a_call_that_is_sent_again_is_recorded_with_its_reason_and_both_generations() {
    let (web, records) = observed(Era::Legacy, RetryOn::default()).await;
    web.works().await;
    assert_eq!(records.last(), (Verdict::Answered, 1, RetryOn::NOTHING));
    web.server.forget_sessions();
    web.call("write", r#"{"nonce":"n"}"#).await.unwrap();
    assert_eq!(web.runs("n"), 1);
    let retried = RetryOn::NOTHING.with(RetryReason::SessionLost);
    assert_eq!(records.last(), (Verdict::Answered, 2, retried));
    let [retry] = records.retries.lock().unwrap()[..] else { panic!("{records:?}") };
    assert_eq!((retry.reason, retry.from, retry.to, retry.attempt), (RetryReason::SessionLost, 1, 2, 2));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h34_a_call_that_follows_a_redirect_is_recorded_too() {
    for era in crate::kit::ERAS {
        let (web, records) = observed(era, RetryOn::default()).await;
        let redirect = Fault::new("redirect", json!({ "to": "/mcp", "run": true })).times(1);
        web.server.set(|manners| manners.fault_on("tools/call", redirect));
        web.call("write", r#"{"nonce":"n"}"#).await.unwrap();
        assert_eq!(web.runs("n"), 2, "the server executed it and then redirected it");
        let retried = RetryOn::NOTHING.with(RetryReason::Protocol);
        assert_eq!(records.last(), (Verdict::Answered, 2, retried));
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h34_a_redirect_that_is_not_followed_any_more_is_no_attempt() {
    for era in crate::kit::ERAS {
        let (web, records) = observed(era, RetryOn::default()).await;
        let redirect = Fault::new("redirect", json!({ "to": "/mcp", "run": true }));
        web.server.set(|manners| manners.fault_on("tools/call", redirect));
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        assert_eq!((error.attempts, web.runs("n")), (4, 4), "{error}");
        assert_eq!(records.retries.lock().unwrap().len(), 3);
        web.leaves_nothing().await;
    }
}

/// The specification has codes for these. The agent reads them; programs read the verdict too, and so does the audit.
#[tokio::test]
async fn h10_a_refusal_with_a_code_of_the_specification_is_told_as_refused() {
    for (code, refusal) in
        [(-32021, ServerRefusal::MissingCapability), (-32022, ServerRefusal::UnsupportedVersion)]
    {
        let (web, records) = observed(Era::Modern, RetryOn::default()).await;
        let arguments = json!({ "code": 400, "with_id": true, "error": code });
        web.server.set(|manners| manners.fault_on("tools/call", Fault::new("status", arguments).times(1)));
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        assert_eq!(error.delivery, Delivery::Refused(refusal), "{error}");
        assert_eq!(error.answered.map(|error| error.code()), Some(Some(code)));
        assert_eq!(records.last().0, Verdict::Refused(refusal));
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h33_a_call_that_was_sent_again_and_refused_again_says_so() {
    let (web, _records) = observed(Era::Legacy, RetryOn::default()).await;
    let error = web.call("deny", r#"{"nonce":"n"}"#).await.unwrap_err();
    assert_eq!((error.delivery.name(), error.attempts, web.runs("n")), ("refused", 2, 2), "{error}");
    assert!(error.for_model().contains("linetender sent the call 2 times."), "{}", error.for_model());
    assert_eq!(error.fields()["attempts"], 2);
}

/// Whatever a server answers after it executed a call, it gets the call once.
#[tokio::test]
async fn h35_where_only_counts_permit_it_no_answer_makes_a_call_run_twice() {
    for era in crate::kit::ERAS {
        let (web, records) = observed(era, RetryOn::NOT_EXECUTED).await;
        let statuses =
            [301, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 421, 425, 429, 500, 502, 503, 504];
        let answers =
            statuses.map(|code| (code, json!({ "code": code, "run": true, "retry_after": 0 }), "status"));
        let redirect = (307, json!({ "to": "/mcp", "run": true }), "redirect");
        for (number, (code, arguments, tool)) in answers.into_iter().chain([redirect]).enumerate() {
            let nonce = format!("n{number}");
            web.server.set(|manners| manners.fault_on("tools/call", Fault::new(tool, arguments).times(1)));
            let told = web.call("write", &json!({ "nonce": nonce }).to_string()).await;
            assert_eq!(web.runs(&nonce), 1, "{era:?} {code}: {told:?}");
            assert!(
                !matches!(records.last().0.delivery(), Delivery::NotExecuted(_)),
                "{era:?} {code}: {told:?}"
            );
            web.server.set(|manners| manners.faults.clear());
        }
        assert!(records.retries.lock().unwrap().is_empty(), "{records:?}");
    }
}
