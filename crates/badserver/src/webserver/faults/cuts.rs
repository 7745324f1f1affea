//! Answers that end too early, or never begin.

use std::time::Duration;

use http::header::CONTENT_LENGTH;

use crate::webserver::body::{Gone, Out};
use crate::webserver::calls::Call;
use crate::webserver::reply::{self, Answer};
use crate::webserver::tap::{Ending, Flow};
use crate::webserver::{answers, legacy};

pub(super) async fn run(call: &Call) -> Option<Result<Answer, Gone>> {
    let tap = &call.asked.tap;
    Some(match call.name.as_str() {
        "reset_before" => {
            call.runs(false);
            tap.turn(Flow::Ended(Ending::Reset));
            Err(Gone::cut())
        }
        "reset_after_run" => {
            call.runs(true);
            tap.turn(Flow::Ended(Ending::Reset));
            Err(Gone::cut())
        }
        "close_before" => {
            call.runs(true);
            tap.turn(Flow::Ended(Ending::Fin));
            Err(Gone::cut())
        }
        "refused" => {
            call.runs(false);
            refuse_stream(call)
        }
        "disowned" => {
            call.runs(false);
            disown(call).await
        }
        "silent" => {
            call.runs(true);
            std::future::pending().await
        }
        "deny" => {
            call.runs(true);
            tokio::time::sleep(Duration::from_millis(call.number("ms").unwrap_or(0))).await;
            call.asked.house.forget_sessions();
            call.refuses("session-lost");
            Ok(legacy::unknown(&call.asked, call.asked.house.manners().unknown_session))
        }
        "half_body" => {
            call.runs(true);
            Ok(half_body(call))
        }
        "cut_sse" => Ok(cut_sse(call)),
        "cut_sse_resumable" => {
            call.runs(true);
            let (times, message) = (call.number("times").unwrap_or(1), call.echo());
            let manners = call.asked.house.manners();
            Ok(answers::resumable(&call.asked, times, &manners, |_| async { message }))
        }
        "early_close" => {
            call.runs(true);
            tap.turn(Flow::LastWrite(Ending::Fin));
            Ok(reply::json(200, &call.echo()))
        }
        "goaway" => {
            call.runs(true);
            tap.turn(Flow::Leaving);
            // The connection looks at its tap before the answer is there, or HTTP/1 could not say so in its headers.
            tokio::task::yield_now().await;
            Ok(reply::json(200, &call.echo()))
        }
        _ => return None,
    })
}

/// HTTP/2: `RST_STREAM(REFUSED_STREAM)`. On HTTP/1 the connection is closed.
pub(super) fn refuse_stream(call: &Call) -> Result<Answer, Gone> {
    call.refuses("refused-stream");
    Err(Gone::refused())
}

/// HTTP/2: GOAWAY below every stream that is open. On HTTP/1 the connection is closed.
pub(super) async fn disown(call: &Call) -> Result<Answer, Gone> {
    if call.asked.head.version != http::Version::HTTP_2 {
        call.asked.tap.turn(Flow::Ended(Ending::Fin));
        return Err(Gone::cut());
    }
    call.refuses("goaway");
    call.asked.tap.turn(Flow::Disowned);
    std::future::pending().await
}

/// The length is that of the whole body; half of it comes.
pub(super) fn half_body(call: &Call) -> Answer {
    let text = call.echo().to_string();
    let (length, half) = (text.len(), text.as_bytes()[..text.len() / 2].to_vec());
    let body = Out::live(&call.asked.tap, |sink| async move {
        sink.say_now(half).await;
        Err(Gone::cut())
    });
    let mut answer = reply::answer(200, "application/json", body);
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    answer
}

/// A comment, so that something was seen, and no answer.
fn cut_sse(call: &Call) -> Answer {
    call.runs(true);
    let abrupt = call.flag("abrupt");
    reply::events(Out::live(&call.asked.tap, |sink| async move {
        sink.say_now(": working\n\n").await;
        if abrupt { Err(Gone::cut()) } else { Ok(()) }
    }))
}
