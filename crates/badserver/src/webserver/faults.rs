//! Faults in the middle of a call: each is a tool.

mod any;
mod bomb;
mod cuts;
mod floods;
mod refusals;

use http::header::{HeaderName, HeaderValue};

use super::body::Gone;
use super::calls::Call;
use super::reply::Answer;

/// Makes the fault that a call names; nothing, if it names none.
pub(super) async fn run(call: &Call) -> Option<Result<Answer, Gone>> {
    if let Some(refused) = refusals::run(call) {
        return Some(Ok(refused));
    }
    if let Some(flood) = floods::run(call) {
        return Some(Ok(flood));
    }
    if let Some(answer) = any::run(call).await {
        return Some(answer);
    }
    cuts::run(call).await
}

fn put(answer: &mut Answer, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
