//! How an answer travels: as one body, or on a stream that can carry more than the answer.

use std::sync::Arc;

use serde_json::Value;

use super::body::{Out, Sink};
use super::manners::{Answers, Manners};
use super::post::Asked;
use super::replay::Replay;
use super::reply::{self, Answer};

/// What can be told before the answer.
pub(super) enum Teller {
    /// One body has no room for more than the answer.
    Mute,
    Live(Sink),
    Kept(Arc<Replay>),
}

impl Teller {
    pub(super) async fn tell(&self, message: &Value) {
        match self {
            Self::Mute => {}
            Self::Live(sink) => sink.say(reply::event(None, &message.to_string())).await,
            Self::Kept(replay) => replay.tell(&message.to_string()),
        }
    }
}

/// Does the work, and answers with the message it comes to.
pub(super) async fn respond<F>(
    asked: &Asked,
    how: Answers,
    manners: &Manners,
    work: impl FnOnce(Teller) -> F,
) -> Answer
where
    F: Future<Output = Value> + Send + 'static,
{
    match how {
        Answers::Json => reply::json(200, &work(Teller::Mute).await),
        Answers::Sse => {
            let hint = reply::retry(manners.retry_ms);
            reply::events(Out::live(&asked.tap, |sink| {
                let work = work(Teller::Live(sink.clone()));
                async move {
                    sink.say(hint).await;
                    let message = work.await;
                    sink.say(reply::event(None, &message.to_string())).await;
                    Ok(())
                }
            }))
        }
        Answers::Primed => resumable(asked, 0, manners, work),
    }
}

/// An answer on a stream that is cut this often before it gets through. The work goes on without its stream.
pub(super) fn resumable<F>(
    asked: &Asked,
    cuts: u64,
    manners: &Manners,
    work: impl FnOnce(Teller) -> F,
) -> Answer
where
    F: Future<Output = Value> + Send + 'static,
{
    let replay = asked.house.replays.open(cuts);
    let work = work(Teller::Kept(Arc::clone(&replay)));
    let told = Arc::clone(&replay);
    asked.house.run(async move {
        let message = work.await;
        told.tell(&message.to_string());
        told.end();
    });
    follow(asked, replay, 0, manners)
}

/// A stream that says what another one did not get to say.
pub(super) fn follow(asked: &Asked, replay: Arc<Replay>, from: usize, manners: &Manners) -> Answer {
    let hint = reply::retry(manners.retry_ms);
    reply::events(Out::live(&asked.tap, |sink| async move {
        sink.say(hint).await;
        replay.follow(from, sink).await
    }))
}
