//! Answers that are too slow, too long, or longer than they look.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::bomb;
use crate::webserver::body::{Out, Sink};
use crate::webserver::calls::Call;
use crate::webserver::reply::{self, Answer};

const CHUNK: usize = 64 << 10;
const BOMB: u64 = 64 << 20;

pub(super) fn run(call: &Call) -> Option<Answer> {
    let tap = &call.asked.tap;
    let most = call.number("bytes").unwrap_or(u64::MAX);
    Some(match call.name.as_str() {
        "drip" => {
            call.runs(true);
            drip(call)
        }
        "endless_body" => {
            call.runs(true);
            let first = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":""#, call.asked.id());
            reply::answer(
                200,
                "application/json",
                Out::live(tap, |sink| async move { endless(sink, first, most).await }),
            )
        }
        "endless_event" => {
            call.runs(true);
            let first = format!(r#"data: {{"jsonrpc":"2.0","id":{},"result":{{"x":""#, call.asked.id());
            reply::events(Out::live(tap, |sink| async move { endless(sink, first, most).await }))
        }
        "bomb" => {
            call.runs(true);
            let bytes = bomb::gzip(call.asked.id(), call.number("bytes").unwrap_or(BOMB));
            let mut answer = reply::answer(200, "application/json", Out::whole(bytes));
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            answer
        }
        _ => return None,
    })
}

fn drip(call: &Call) -> Answer {
    let text = call.echo().to_string();
    let length = text.len();
    let pause = Duration::from_millis(call.number("ms").unwrap_or(1));
    let body = Out::live(&call.asked.tap, |sink| async move {
        for byte in text.into_bytes() {
            sink.say(vec![byte]).await;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    });
    let mut answer = reply::answer(200, "application/json", body);
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    answer
}

async fn endless<T>(sink: Sink, first: String, most: u64) -> T {
    sink.say(first).await;
    let chunk = Bytes::from(vec![b'x'; CHUNK]);
    for _ in 0..most / CHUNK as u64 {
        sink.say(chunk.clone()).await;
    }
    std::future::pending().await
}
