//! Calls a tool of a server at a URL, and prints what became of the call as JSON: how a program handles a failed call.
//!
//! `cargo run -p linetender --example verdict -- URL TOOL [JSON] [NAME] [RETRY_ON]`
//!
//! - A call that failed was *not executed* only if linetender counted that itself: then it can be sent again.
//! - *Refused* is what the server, or a proxy before it, says. *Unknown* is what nobody knows. After either, look for the
//!   call's effects before calling again.
//! - `RETRY_ON` says after which verdicts linetender itself sends a call again: `not-executed,session-lost`, or `none`. With
//!   `not-executed` alone no call is executed twice, whatever the server answers.

use std::error::Error;

use linetender::{Delivery, Line, Policy, Raw, RetryOn, RetryReason, Server, Settings};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default| words.get(at).map_or(default, String::as_str);
    let (Some(url), Some(tool)) = (words.first(), words.get(1)) else {
        return Err("usage: verdict URL TOOL [JSON] [NAME] [RETRY_ON]".into());
    };
    let mut settings = Settings::default();
    if let Some(words) = words.get(4) {
        settings.retry_on = retry_on(words)?;
    }
    let line = Line::open(Server::http(word(3, "server"), url).policy(Policy::new(settings)?));
    let told = match line.call_tool(tool, Raw(word(2, "{}"))).await {
        Ok(answer) => {
            json!({ "delivery": "answered", "text": answer.text(), "isError": answer.is_tool_error() })
        }
        Err(error) => json!({
            "delivery": error.delivery.name(),
            "reason": error.delivery.reason(),
            "attempts": error.attempts,
            "text": error.for_model(),
            "next": match error.delivery {
                Delivery::NotExecuted(_) => "call again, once the server is back",
                Delivery::Refused(_) | Delivery::Unknown(_) => "look for its effects first",
                Delivery::Answered => "do not call again",
            },
        }),
    };
    println!("{told}");
    line.close().await;
    Ok(())
}

/// `none`, or the words of `retry_on` with commas between them.
fn retry_on(words: &str) -> Result<RetryOn, String> {
    let known =
        |word: &str| RetryReason::from_name(word).ok_or_else(|| format!("not a word of retry_on: {word}"));
    words.split(',').filter(|word| *word != "none").map(known).collect()
}
