//! A call of which nothing is promised: whether it runs, what is answered, and when, are drawn independently.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use http::header::{HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::Value;

use super::{cuts, put, refusals};
use crate::book::LOOKS_LOST;
use crate::webserver::body::Gone;
use crate::webserver::calls::Call;
use crate::webserver::legacy::{self, SESSION};
use crate::webserver::post::Era;
use crate::webserver::reply::{self, Answer};
use crate::webserver::tap::{Ending, Flow};

/// Statuses of answers that are no result.
const STATUSES: [u16; 12] = [200, 400, 401, 403, 404, 405, 413, 429, 429, 500, 502, 503];

/// Codes of errors in them: those that mean something to a client, and one that does not.
const CODES: [i64; 8] = [-32020, -32021, -32022, -32600, -32602, -32001, -32002, -32603];

/// How long a call takes, in milliseconds. A refusal that comes late is not prompt.
const PAUSES: [u64; 6] = [0, 0, 0, 5, 30, 150];

/// Choices that follow from the call: its nonce, its id and its path.
struct Dice(u64);

impl Dice {
    fn of(call: &Call) -> Self {
        let mut hash = DefaultHasher::new();
        let path = call.asked.head.uri.path();
        (call.asked.nonce(), call.asked.id().to_string(), path, call.number("seed")).hash(&mut hash);
        Self(hash.finish())
    }

    fn below(&mut self, most: usize) -> usize {
        // Marsaglia's xorshift. Its state is never 0.
        self.0 |= u64::from(self.0 == 0);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % most.max(1)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What is answered.
#[derive(Clone, Copy)]
enum Answers {
    Result,
    /// This status, with an error, with words or with nothing.
    Status,
    /// 401 with a challenge, or 403 with the scope that is wanted.
    Challenge,
    /// As if the session were not known; and perhaps it is not any more.
    Session,
    Redirect,
    /// The connection ends before the headers, or in the body.
    Cut,
    Silence,
    /// HTTP/2: `RST_STREAM(REFUSED_STREAM)`. On HTTP/1 the connection is closed.
    RefusedStream,
    /// HTTP/2: GOAWAY below the stream.
    Disowned,
}

pub(super) async fn run(call: &Call) -> Option<Result<Answer, Gone>> {
    if call.name != "any" {
        return None;
    }
    let mut dice = Dice::of(call);
    let answers = draw(call, &mut dice);
    let runs = dice.below(2) == 0;
    let pause = Duration::from_millis(dice.pick(&PAUSES));
    // A result is what comes of running it.
    call.runs(runs || matches!(answers, Answers::Result));
    tokio::time::sleep(pause).await;
    Some(answer(call, answers, &mut dice).await)
}

fn draw(call: &Call, dice: &mut Dice) -> Answers {
    use Answers::{Challenge, Cut, Disowned, Redirect, RefusedStream, Result, Session, Silence, Status};
    let mut all = vec![Result, Result, Status, Status, Status, Status, Status, Session, Session, Cut];
    if call.asked.head.version == http::Version::HTTP_2 {
        all.extend([RefusedStream, Disowned, Disowned]);
    }
    if call.asked.head.uri.path() != MOVED {
        all.push(Redirect);
    }
    if call.flag("challenges") {
        all.extend([Challenge, Challenge]);
    }
    if call.flag("silence") && dice.below(4) == 0 {
        all.push(Silence);
    }
    dice.pick(&all)
}

async fn answer(call: &Call, answers: Answers, dice: &mut Dice) -> Result<Answer, Gone> {
    match answers {
        Answers::Result => Ok(reply::json(200, &call.echo())),
        Answers::Status => Ok(status(call, dice)),
        Answers::Challenge => {
            call.refuses("auth");
            let (code, error) = dice.pick(&[(401, "invalid_token"), (403, "insufficient_scope")]);
            let mut answer = reply::text(code, "refused on purpose");
            put(&mut answer, WWW_AUTHENTICATE, &format!("Bearer error=\"{error}\", scope=\"files:write\""));
            Ok(answer)
        }
        Answers::Session => Ok(session(call, dice)),
        Answers::Redirect => {
            call.refuses("redirect");
            let mut answer = reply::text(dice.pick(&[307, 308]), "");
            put(&mut answer, LOCATION, MOVED);
            Ok(answer)
        }
        Answers::Cut if dice.below(2) == 0 => Ok(cuts::half_body(call)),
        Answers::Cut => {
            call.asked.tap.turn(Flow::Ended(dice.pick(&[Ending::Reset, Ending::Fin])));
            Err(Gone::cut())
        }
        Answers::Silence => std::future::pending().await,
        Answers::RefusedStream => cuts::refuse_stream(call),
        Answers::Disowned => cuts::disown(call).await,
    }
}

fn status(call: &Call, dice: &mut Dice) -> Answer {
    let (status, code) = (dice.pick(&STATUSES), dice.pick(&CODES));
    let body = dice.below(3);
    let mut answer = match body {
        0 => reply::json(status, &reply::error(call.asked.id(), code, "refused on purpose")),
        1 => reply::json(status, &reply::error(&Value::Null, code, "refused on purpose")),
        _ => reply::text(status, "refused on purpose"),
    };
    if matches!(status, 429 | 503) && dice.below(2) == 0 {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(dice.below(2)));
    }
    refusals::promise(call, &answer, (body < 2).then_some(code));
    answer
}

/// The refusal of a session that is not known. Half of the sessions live on.
fn session(call: &Call, dice: &mut Dice) -> Answer {
    let house = &call.asked.house;
    let how = house.manners().unknown_session;
    let session = call.asked.header(SESSION).filter(|_| call.era == Era::Legacy);
    let reason = match session.filter(|_| dice.below(2) == 0) {
        Some(session) => {
            house.close_session(session);
            "session-lost"
        }
        None => LOOKS_LOST,
    };
    call.refuses(reason);
    legacy::unknown(&call.asked, how)
}

/// Where a redirect leads.
const MOVED: &str = "/moved";
