//! A01 to A04: credentials that change while a server is held.

use std::sync::Arc;
use std::time::Duration;

use linetender::{CallError, Delivery, Era, Eras, Line, NoKey, Raw, Redacted, Server, ServerRefusal, State};
use linetender_badserver::webserver::{Config, Ending, Fault, Manners, Streams, Wants, WebServer};
use serde_json::json;

use crate::desk::{Desk, bearer, key, later, login};
use crate::kit::{ERAS, Web, book, manners};
use crate::look::{eventually, in_time};

pub const TYPE: &str = "the login expired: run `linetender login bad`";

/// A server that wants this key, and a line that gets its keys from the desk.
pub fn opened(era: Era, wanted: u32, desk: &Arc<Desk>, change: impl FnOnce(&mut Manners)) -> Web {
    let mut manners = manners(era);
    manners.wants = Some(Wants::key(bearer(wanted)));
    change(&mut manners);
    let book = book();
    let server =
        WebServer::start(Config { book: Some(book.path().to_owned()), manners, ..Config::default() })
            .unwrap();
    let keys = Arc::<Desk>::clone(desk);
    let line = Line::open(Server::http("bad", &server.url()).eras(Eras::Only(era)).keys(keys));
    Web { server, line, book }
}

pub async fn up(era: Era, wanted: u32, desk: &Arc<Desk>) -> Web {
    let web = opened(era, wanted, desk, |_| {});
    in_time(web.line.ready()).await.unwrap();
    in_time(web.line.list_tools()).await.unwrap();
    web.works().await;
    web
}

impl Web {
    pub fn wants(&self, number: u32) {
        self.server.set(|manners| manners.wants = Some(Wants::key(bearer(number))));
    }

    /// The sessions that its requests named, apart from the first.
    fn sessions(&self) -> Vec<String> {
        let mut sessions: Vec<String> = self
            .server
            .seen()
            .iter()
            .filter_map(|one| one.header("mcp-session-id").map(Into::into))
            .collect();
        sessions.dedup();
        sessions
    }

    fn starts(&self) -> u64 {
        let counters = self.server.counters();
        counters.initializes + counters.discovers
    }

    /// So many calls at once, each with a nonce of its own.
    fn calls(&self, number: usize) -> Vec<tokio::task::JoinHandle<Result<linetender::Answer, CallError>>> {
        let call = |number| {
            let line = self.line.clone();
            let arguments = format!(r#"{{"nonce":"n{number}"}}"#);
            tokio::spawn(async move { line.call_tool("write", Raw(&arguments)).await })
        };
        (0..number).map(call).collect()
    }
}

#[tokio::test]
async fn a01_fifty_calls_are_refused_for_one_key_and_one_question_mends_them_all() {
    for era in ERAS {
        let desk = Desk::with(key(1), [key(2)]);
        let web = up(era, 1, &desk).await;
        let (starts, before) = (web.starts(), web.server.counters().refused);
        web.wants(2);
        // All of them are refused before there is another key.
        desk.close();
        let calls = web.calls(50);
        eventually(|| (web.server.counters().refused >= before + 50).then_some(())).await;
        desk.open();
        for call in calls {
            in_time(call).await.unwrap().unwrap();
        }
        let refusals = desk.refusals();
        assert_eq!(refusals.len(), 1, "{era:?}: one question for all of them");
        assert_eq!(refusals[0].status, 401);
        assert_eq!(refusals[0].key, key(1).unwrap());
        assert!(refusals[0].challenge.contains("oauth-protected-resource"), "{}", refusals[0].challenge);
        for number in 0..50 {
            assert_eq!(web.runs(&format!("n{number}")), 1, "{era:?}: each ran once");
        }
        assert_eq!((web.generation(), web.starts()), (1, starts), "{era:?}: the connection was kept");
        if era == Era::Legacy {
            assert_eq!(web.sessions().len(), 1, "{:?}", web.sessions());
        }
        assert_eq!(web.line.status().budget, 5000);
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a01_a_call_that_is_refused_twice_is_told_and_keys_that_never_work_are_not_asked_for_without_end() {
    for era in ERAS {
        let desk = Desk::with(key(1), (2..100).map(key));
        let web = up(era, 1, &desk).await;
        web.wants(1000);
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        assert!(error.cause.contains("requires authentication"), "{error}");
        assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::Auth), "{error}");
        // The first key was good once; of the next three, none ever was.
        web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        web.until(State::NeedsAuth).await;
        let asked = desk.refusals().len();
        assert!((3..=4).contains(&asked), "{era:?}: {asked}");
        for _ in 0..20 {
            web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        }
        assert_eq!(desk.refusals().len(), asked);
        assert_eq!(web.runs("n"), 0);
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a02_without_a_login_calls_are_refused_at_once_with_the_command_and_served_a_moment_after_it() {
    for era in ERAS {
        let desk = Desk::with(key(1), [login(TYPE)]);
        let web = up(era, 1, &desk).await;
        web.wants(2);
        let error = web.call("write", r#"{"nonce":"lost"}"#).await.unwrap_err();
        assert!(error.for_model().contains(TYPE), "{}", error.for_model());
        assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::Auth), "{error}");
        let status = web.until(State::NeedsAuth).await;
        assert!(status.cause.as_ref().unwrap().text.contains(TYPE), "{status:?}");
        let start = tokio::time::Instant::now();
        let error = web.call("echo", "{}").await.unwrap_err();
        assert!(error.for_model().contains(TYPE), "{}", error.for_model());
        assert!(start.elapsed() < Duration::from_secs(2), "refused at once");
        assert_eq!(desk.refusals().len(), 1, "{era:?}: nobody asks again and again");
        let start = tokio::time::Instant::now();
        desk.change(key(2), [login(TYPE)]);
        web.until(State::Up).await;
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        web.works().await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a02_a_line_without_a_login_says_what_to_type_from_its_first_call_on() {
    for era in ERAS {
        let desk = Desk::with(Ok(None), [login(TYPE)]);
        let web = opened(era, 1, &desk, |_| {});
        let error = web.call("echo", "{}").await.unwrap_err();
        assert!(error.for_model().contains(TYPE), "{}", error.for_model());
        web.until(State::NeedsAuth).await;
        assert_eq!(web.generation(), 1);
        let refused = &desk.refusals()[0];
        assert!(refused.key.is_none() && refused.challenge.contains("resource_metadata"), "{refused:?}");
        // A change that is none, and a key that was refused before, do not bring it up.
        desk.change(login(TYPE), [login(TYPE)]);
        desk.change(key(1), [login(TYPE)]);
        web.until(State::Up).await;
        web.works().await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a03_while_no_key_can_be_had_a_good_one_is_used_on_and_a_refused_one_costs_no_call() {
    for era in ERAS {
        let desk = Desk::with(key(1), [later("as.example does not answer")]);
        let web = up(era, 1, &desk).await;
        desk.change(later("as.example does not answer"), [later("as.example does not answer")]);
        eventually(|| (desk.questions() >= 2).then_some(())).await;
        web.works().await;
        assert_eq!((web.generation(), desk.refusals().len()), (1, 0));
        // The key expires, and a second later there is another.
        web.wants(2);
        desk.quietly(later("down"), [later("down"), key(2)]);
        for call in web.calls(10) {
            in_time(call).await.unwrap().unwrap();
        }
        assert_eq!((web.generation(), desk.refusals().len()), (1, 2), "{era:?}");
        assert!((0..10).all(|number| web.runs(&format!("n{number}")) == 1));
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a03_a_line_that_gets_no_key_waits_as_for_any_server_and_comes_up_by_itself() {
    let desk = Desk::with(later("as.example does not answer"), [later("down")]);
    let web = opened(Era::Modern, 1, &desk, |_| {});
    let waiting = web.until(State::Waiting).await;
    assert!(waiting.cause.unwrap().text.contains("as.example does not answer"));
    assert_eq!(web.server.counters().posts, 0, "nothing is sent without a key");
    desk.quietly(key(1), [key(1)]);
    web.until(State::Up).await;
    web.works().await;
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a04_a_scope_that_is_missing_again_and_again_is_asked_for_once_and_the_rest_works_on() {
    for era in ERAS {
        let words = "the tool needs files:write: run `linetender login bad --scope files:write`";
        let desk = Desk::with(key(1), [login(words)]);
        let web = up(era, 1, &desk).await;
        web.server.set(|manners| {
            let wants = Wants { scoped_tool: Some("write".into()), ..Wants::key(bearer(1)) };
            manners.wants = Some(wants);
        });
        for number in 0..20 {
            let error = web.call("write", &format!(r#"{{"nonce":"n{number}"}}"#)).await.unwrap_err();
            assert!(error.for_model().contains(words), "{}", error.for_model());
            web.works().await;
        }
        let refusals = desk.refusals();
        assert_eq!(refusals.len(), 1, "{era:?}");
        assert!(refusals[0].status == 403 && refusals[0].challenge.contains("insufficient_scope"));
        assert_eq!(web.generation(), 1, "{era:?}: other tools work");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a04_new_keys_that_are_all_too_weak_are_asked_for_twice_at_most_for_each_call() {
    let desk = Desk::with(key(1), (2..1000).map(key));
    let web = up(Era::Modern, 1, &desk).await;
    web.server.set(|manners| {
        let keys = (1..1000).map(bearer).collect();
        let scoped_tool = Some("write".to_owned());
        manners.wants = Some(Wants { keys, challenges: true, scoped_tool, ..Wants::default() });
    });
    for number in 0..10 {
        web.call("write", &format!(r#"{{"nonce":"n{number}"}}"#)).await.unwrap_err();
    }
    assert_eq!(desk.refusals().len(), 20, "one for each call, and one for its re-send with the next key");
    assert_eq!(web.generation(), 1);
    assert!((0..10).all(|number| web.runs(&format!("n{number}")) == 0), "each attempt was refused");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_logout_ends_the_connection_and_the_key_is_sent_no_more() {
    for era in ERAS {
        let desk = Desk::with(key(1), [login(TYPE)]);
        let web = up(era, 1, &desk).await;
        let logged_out = "not logged in: run `linetender login bad`";
        desk.change(login(logged_out), [login(logged_out)]);
        let status = web.until(State::NeedsAuth).await;
        assert!(status.cause.unwrap().text.contains(logged_out));
        let error = web.call("echo", "{}").await.unwrap_err();
        assert!(error.for_model().contains(logged_out), "{}", error.for_model());
        let seen = web.server.seen().len();
        desk.change(key(1), [login(TYPE)]);
        web.until(State::Up).await;
        web.works().await;
        let sent = web.server.seen();
        assert!(sent[seen..].iter().all(|one| one.header("authorization") == Some(&bearer(1))));
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn another_login_takes_the_place_of_the_key_in_a_connection_that_lives() {
    for era in ERAS {
        let desk = Desk::with(key(1), [login(TYPE)]);
        let web = up(era, 1, &desk).await;
        web.server.set(|manners| {
            manners.wants =
                Some(Wants { keys: vec![bearer(1), bearer(2)], challenges: true, ..Wants::default() });
        });
        desk.change(key(2), [login(TYPE)]);
        eventually(|| (desk.questions() >= 2).then_some(())).await;
        web.wants(2);
        web.works().await;
        assert_eq!((web.generation(), desk.refusals().len()), (1, 0), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_key_that_changes_during_the_handshake_is_taken_at_once() {
    for era in ERAS {
        // The question about the refused key hangs; the login comes meanwhile.
        let desk = Desk::with(key(1), [key(2)]);
        desk.close();
        let web = opened(era, 2, &desk, |_| {});
        eventually(|| (!desk.refusals().is_empty()).then_some(())).await;
        desk.open();
        desk.change(key(2), [key(2)]);
        web.until(State::Up).await;
        web.works().await;
        assert_eq!(web.generation(), 1, "{era:?}");
        web.leaves_nothing().await;

        // The handshake is under way with a key that was good when it began.
        let desk = Desk::with(key(1), [login(TYPE)]);
        let web = opened(era, 1, &desk, |manners| {
            let slow = Fault::new("sleep", json!({ "ms": 500 })).times(1);
            manners.fault_on("initialize", slow.clone());
            manners.fault_on("server/discover", slow);
        });
        eventually(|| (web.starts() == 1).then_some(())).await;
        web.wants(2);
        desk.change(key(2), [login(TYPE)]);
        web.until(State::Up).await;
        web.works().await;
        assert_eq!((web.generation(), desk.refusals().len()), (1, 0), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn keys_that_the_server_refuses_in_the_handshake_are_renewed_twice_and_no_more() {
    for era in ERAS {
        let desk = Desk::with(key(1), (2..100).map(key));
        let web = opened(era, 3, &desk, |_| {});
        web.until(State::Up).await;
        assert_eq!((desk.refusals().len(), web.generation()), (2, 1), "{era:?}: the third key is good");
        web.leaves_nothing().await;

        let desk = Desk::with(key(1), (2..100).map(key));
        let web = opened(era, 1000, &desk, |_| {});
        web.until(State::NeedsAuth).await;
        assert_eq!((desk.refusals().len(), web.generation()), (2, 1), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn the_servers_own_stream_comes_back_with_the_new_key() {
    for era in ERAS {
        let desk = Desk::with(key(1), [key(2)]);
        let web = up(era, 1, &desk).await;
        eventually(|| (web.server.listeners() == 1).then_some(())).await;
        web.wants(2);
        web.server.end_connections(Ending::Reset);
        eventually(|| (web.server.counters().refused > 0).then_some(())).await;
        eventually(|| (web.server.listeners() == 1).then_some(())).await;
        web.works().await;
        assert_eq!((web.generation(), desk.refusals().len()), (1, 1), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_its_own_stream_whatever_the_key_costs_two_questions() {
    let desk = Desk::with(key(1), (2..1000).map(key));
    let web = opened(Era::Legacy, 1, &desk, |manners| {
        let keys = Vec::new();
        manners.wants = Some(Wants { keys, challenges: true, only: vec!["GET".into()], ..Wants::default() });
        manners.streams = Streams::Open;
    });
    in_time(web.line.ready()).await.unwrap();
    web.works().await;
    eventually(|| (desk.refusals().len() == 2).then_some(())).await;
    for _ in 0..20 {
        web.works().await;
    }
    assert_eq!((web.generation(), desk.refusals().len()), (1, 2));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn what_nobody_waits_for_is_said_again_with_the_new_key() {
    let desk = Desk::with(key(1), [key(2)]);
    let web = opened(Era::Legacy, 1, &desk, |manners| {
        let only = vec!["notifications/initialized".to_owned()];
        manners.wants = Some(Wants { only, ..Wants::key(bearer(2)) });
    });
    in_time(web.line.ready()).await.unwrap();
    web.works().await;
    let seen = web.server.seen();
    let said = seen.iter().filter(|one| one.method.as_deref() == Some("notifications/initialized"));
    let said: Vec<_> = said.map(|one| one.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(said, [bearer(1), bearer(2)]);
    assert_eq!(web.generation(), 1);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_key_is_renewed_before_the_server_refuses_it() {
    let due = |number| Ok(key(number).unwrap().map(|key| key.renew_at(std::time::SystemTime::UNIX_EPOCH)));
    let desk = Desk::with(due(1), [login(TYPE)]);
    let web = up(Era::Modern, 1, &desk).await;
    desk.quietly(due(2), [login(TYPE)]);
    // Not at once, although it is long due: this clock may be wrong.
    eventually(|| (desk.questions() == 2).then_some(())).await;
    web.wants(2);
    web.works().await;
    assert_eq!((web.generation(), desk.refusals().len()), (1, 0));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn refusals_without_a_challenge_are_refusals_of_the_key_too() {
    for era in ERAS {
        let desk = Desk::with(key(1), [key(2)]);
        let web = opened(era, 2, &desk, |manners| {
            if let Some(wants) = &mut manners.wants {
                wants.challenges = false;
            }
        });
        web.until(State::Up).await;
        web.works().await;
        assert_eq!((web.generation(), desk.refusals().len()), (1, 1), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_call_waits_for_a_key_no_longer_than_it_may_take() {
    let desk = Desk::with(key(1), [key(2)]);
    let web = up(Era::Modern, 1, &desk).await;
    web.wants(2);
    desk.close();
    let patience = linetender::Deadline::after(Duration::from_millis(300));
    let options = linetender::Options::default().deadline(patience);
    let asking = web.line.call_tool_with("write", Raw(r#"{"nonce":"late"}"#), options);
    let error = in_time(asking).await.unwrap_err();
    assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::Auth), "{error}");
    desk.open();
    web.works().await;
    assert_eq!(web.runs("late"), 0);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn nothing_that_is_printed_holds_a_key() {
    let desk = Desk::with(key(77), [login(TYPE)]);
    let web = up(Era::Modern, 77, &desk).await;
    let bare = bearer(77).replace("Bearer ", "");
    desk.quietly(key(77), [login(&format!("it was given {bare}, which is no good"))]);
    web.wants(2);
    let error = web.call("write", "{}").await.unwrap_err();
    let status = web.until(State::NeedsAuth).await;
    let printed = format!("{error:?} {error} {} {status:?} {:?}", error.for_model(), desk.refusals());
    assert!(!printed.contains("desk-token"), "{printed}");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn servers_are_the_same_only_with_the_same_keys() {
    let (one, two) = (Desk::with(key(1), [key(1)]), Desk::with(key(1), [key(1)]));
    let server =
        |desk: &Arc<Desk>| Server::http("a", "http://127.0.0.1:1/mcp").keys(Arc::<Desk>::clone(desk));
    assert_eq!(server(&one), server(&one));
    assert_ne!(server(&one), server(&two));
    assert_ne!(server(&one), Server::http("a", "http://127.0.0.1:1/mcp"));
}

/// Read them aloud: would you know what to do?
#[tokio::test]
async fn texts_say_what_to_type() {
    use std::fmt::Write as _;
    let mut page = String::new();
    let mut show = |row: &str, error: &CallError| {
        let address = |text: String| {
            let cut = text.split("http://127.0.0.1:").collect::<Vec<_>>().join("http://…");
            let digits =
                cut.split("http://…").map(|part| part.trim_start_matches(|one: char| one.is_ascii_digit()));
            steady(&digits.collect::<Vec<_>>().join("http://…"))
        };
        writeln!(page, "{row}\n  person: {}", address(error.to_string())).unwrap();
        writeln!(page, "  model:  {}\n", address(error.for_model())).unwrap();
    };
    let write = |nonce: &str| format!(r#"{{"nonce":"{nonce}"}}"#);

    let desk = Desk::with(key(1), [login(TYPE)]);
    let web = up(Era::Modern, 1, &desk).await;
    web.wants(2);
    show("A02 the call that found out", &web.call("write", &write("a")).await.unwrap_err());
    web.until(State::NeedsAuth).await;
    show("A02 the next call", &web.call("write", &write("b")).await.unwrap_err());
    web.leaves_nothing().await;

    let desk = Desk::with(
        key(1),
        [Err(NoKey::Later {
            words: Redacted::head("the authorization server https://as.example does not answer", 200),
            after: Some(Duration::from_secs(60)),
        })],
    );
    let web = up(Era::Modern, 1, &desk).await;
    web.wants(2);
    show("A03 no token at the moment", &web.call("write", &write("a")).await.unwrap_err());
    web.leaves_nothing().await;

    let words = "a tool needs the scope files:write: run `linetender login bad --scope files:write`";
    let desk = Desk::with(key(1), [login(words)]);
    let web = up(Era::Modern, 1, &desk).await;
    web.server.set(|manners| {
        manners.wants = Some(Wants { scoped_tool: Some("write".into()), ..Wants::key(bearer(1)) });
    });
    show("A04 a scope is missing", &web.call("write", &write("a")).await.unwrap_err());
    web.leaves_nothing().await;

    let desk = Desk::with(key(1), (2..10).map(key));
    let web = up(Era::Modern, 1, &desk).await;
    web.wants(1000);
    show("refused twice", &web.call("write", &write("a")).await.unwrap_err());
    web.leaves_nothing().await;
    insta::assert_snapshot!("keys", page);
}

/// Times differ from run to run; the words do not.
fn steady(text: &str) -> String {
    match text.split_once("next try: ") {
        Some((before, after)) => {
            format!("{before}next try: …{}", if after.ends_with(')') { ")" } else { "." })
        }
        None => text.to_owned(),
    }
}
