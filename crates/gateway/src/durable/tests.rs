//! Calls on a directory that fails when it is told to.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender::session::{Replied, Settled};
use linetender::{Delivery, Evidence, ServerRefusal};
use linetender_core::lease::{Entry, Revision};
use linetender_fleet::directory::{Changed, Later, Recalled, There};
use linetender_fleet::{Away, Directory, Local};
use linetender_wire::frame;
use tokio::sync::{mpsc, oneshot};

use super::{Call, Durable, Ending, Identity, Shared, Told, Waiting};
use crate::budget::{Budget, Owner};
use crate::failed::Failed;
use crate::principal::Principal;

const UP: u8 = 0;
const DOWN: u8 = 1;
/// It does what it is asked, and does not answer.
const DEAF: u8 = 2;

const KEPT: Duration = Duration::from_secs(60);
const MIB: usize = 1024 * 1024;

#[derive(Default)]
struct Shaky {
    local: Local,
    mode: AtomicU8,
    notes: AtomicUsize,
    keeps: AtomicU64,
}

impl Shaky {
    fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    fn is(&self, mode: u8) -> bool {
        self.mode.load(Ordering::SeqCst) == mode
    }
}

fn away<T>() -> Result<T, Away> {
    Err(Away("it is down".to_owned()))
}

impl Directory for Shaky {
    fn look<'a>(&'a self, line: &'a str) -> Later<'a, There> {
        self.local.look(line)
    }

    fn put<'a>(&'a self, line: &'a str, at: Option<Revision>, entry: Entry) -> Later<'a, Option<Revision>> {
        self.local.put(line, at, entry)
    }

    fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>> {
        self.local.watch()
    }

    fn recall<'a>(&'a self, call: &'a str) -> Later<'a, Recalled> {
        if self.is(UP) { self.local.recall(call) } else { Box::pin(std::future::ready(away())) }
    }

    fn note<'a>(
        &'a self,
        call: &'a str,
        at: Option<Revision>,
        note: &'a [u8],
    ) -> Later<'a, Option<Revision>> {
        self.notes.fetch_add(1, Ordering::SeqCst);
        if self.is(DOWN) {
            return Box::pin(std::future::ready(away()));
        }
        let done = self.local.note(call, at, note);
        if self.is(DEAF) { Box::pin(std::future::ready(away())) } else { done }
    }

    fn keeps(&self) -> Option<Duration> {
        let keeps = self.keeps.load(Ordering::SeqCst);
        (keeps > 0).then(|| Duration::from_secs(keeps))
    }

    fn is_memory(&self) -> bool {
        self.local.is_memory()
    }

    fn forget(&self, call: &str, noted: Revision) {
        self.local.forget(call, noted);
    }
}

/// A node, and how often it asked its line.
struct Node {
    durable: Durable,
    ran: Arc<AtomicUsize>,
}

/// Nodes that are gone.
type Gone = Arc<Mutex<Vec<u64>>>;

impl Node {
    fn new(number: u64, directory: &Arc<Shaky>, gone: &Gone) -> Self {
        let gone = Arc::clone(gone);
        let lives = move |node| !gone.lock().unwrap().contains(&node);
        let shared = Shared::new(directory.clone(), number, lives);
        Self { durable: Durable::new(shared, &Budget::new(64 * MIB)), ran: Arc::default() }
    }

    fn begin(
        &self,
        key: &str,
        arguments: &str,
        line: impl Future<Output = Settled> + Send + 'static,
    ) -> Waiting {
        self.begin_of(1, key, arguments, line).unwrap()
    }

    fn begin_of(
        &self,
        uid: u32,
        key: &str,
        arguments: &str,
        line: impl Future<Output = Settled> + Send + 'static,
    ) -> Result<Waiting, Failed> {
        let (principal, ran) = (Principal::user(uid), Arc::clone(&self.ran));
        let params = format!(r#"{{"name":"tool","arguments":{arguments}}}"#);
        let identity = Identity::of(&principal, "server", key, &params).unwrap();
        let owner = Owner { principal: principal.number(), group: 0 };
        let call =
            Call { identity, owner, server: "server".into(), kept: KEPT, bytes: params.len(), since: 0 };
        self.durable.ask(call, async move {
            ran.fetch_add(1, Ordering::SeqCst);
            line.await
        })
    }

    async fn call(&self, key: &str, arguments: &str, text: &str) -> String {
        words(&self.begin(key, arguments, std::future::ready(answer(text))).ended().await)
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }
}

fn answer(text: &str) -> Settled {
    let text = frame::response("9", &[r#"{"content":""#, text, r#""}"#]);
    Settled { replied: Replied { text: text.into(), error: None }, delivery: Delivery::Answered }
}

fn not_executed() -> Settled {
    Settled { delivery: Delivery::NotExecuted(Evidence::Queued), ..answer("server down") }
}

fn refused(refusal: ServerRefusal) -> Settled {
    Settled { delivery: Delivery::Refused(refusal), ..answer(refusal.name()) }
}

/// What the caller is told.
fn words(told: &Told) -> String {
    let frame = match &told.ending {
        Ending::Answered(frame) => frame.with_id("0"),
        Ending::Failed(failed) => failed.outcome().unwrap(),
    };
    let value: serde_json::Value = serde_json::from_slice(frame.text()).unwrap();
    let one = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    one(&value["result"]["content"])
        .or_else(|| one(&value["result"]["content"][0]["text"]))
        .or_else(|| one(&value["error"]["message"]))
        .unwrap()
}

/// A line that answers when it is told to.
fn slow() -> (oneshot::Sender<Settled>, impl Future<Output = Settled> + Send + 'static) {
    let (tell, told) = oneshot::channel();
    (tell, async move { told.await.unwrap_or_else(|_| not_executed()) })
}

fn fleet() -> (Arc<Shaky>, Gone, Node, Node) {
    let (directory, gone) = (Arc::<Shaky>::default(), Gone::default());
    let nodes = [1, 2].map(|number| Node::new(number, &directory, &gone));
    let [one, two] = nodes;
    (directory, gone, one, two)
}

/// Lets everything happen that can.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_runs_once_here_and_elsewhere_and_only_with_its_arguments() {
    let (_directory, _gone, one, two) = fleet();
    let (finish, line) = slow();
    let first = one.begin("k", "{}", line);
    let second = one.begin("k", "{}", std::future::ready(answer("twice")));
    let third = two.begin("k", "{}", std::future::ready(answer("twice")));
    assert!(first.is_first && !second.is_first && third.is_first);
    settle().await;
    let other = one.call("k", r#"{"a":1}"#, "other").await;
    assert!(other.contains("other arguments"), "{other}");
    finish.send(answer("once")).unwrap();
    for waiting in [first, second, third] {
        assert_eq!(words(&waiting.ended().await), "once");
    }
    for node in [&one, &two] {
        assert_eq!(node.call("k", "{}", "again").await, "once");
        let other = node.call("k", r#"{"a":1}"#, "other").await;
        assert!(other.contains("other arguments"), "{other}");
    }
    assert_eq!((one.ran(), two.ran()), (1, 0));
    assert_eq!(one.call("l", "{}", "another").await, "another");
    let his = one.begin_of(2, "k", "{}", std::future::ready(answer("his"))).unwrap();
    assert_eq!(words(&his.ended().await), "his");
    assert!(one.durable.under_way().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_without_its_agent() {
    let (_directory, _gone, one, two) = fleet();
    let (finish, line) = slow();
    drop(one.begin("k", "{}", line));
    settle().await;
    finish.send(answer("late")).unwrap();
    assert_eq!(two.call("k", "{}", "again").await, "late");
    assert_eq!((one.ran(), two.ran()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_dead_node_is_unknown_and_is_not_run_again() {
    let (_directory, gone, one, two) = fleet();
    let (finish, line) = slow();
    let _agent = one.begin("k", "{}", line);
    settle().await;
    let waiting = two.begin("k", "{}", std::future::ready(answer("twice")));
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(waiting.told.borrow().is_none(), "it is waited for");
    gone.lock().unwrap().push(1);
    let told = words(&waiting.ended().await);
    assert!(told.contains("node that ran this call died") && told.contains("unknown whether"), "{told}");
    let told = two.call("k", "{}", "twice").await;
    assert!(told.contains("node that ran this call died"), "{told}");
    assert_eq!(two.ran(), 0);
    // It was cut off, and not dead.
    finish.send(answer("late")).unwrap();
    settle().await;
    assert_eq!(two.call("k", "{}", "twice").await, "late");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_executed_may_be_tried_again() {
    let (_directory, _gone, one, two) = fleet();
    let told = one.begin("k", "{}", std::future::ready(not_executed())).ended().await;
    assert_eq!(words(&told), "server down");
    assert_eq!(two.call("k", "{}", "now").await, "now");
    assert_eq!(one.call("k", "{}", "again").await, "now");
    assert_eq!((one.ran(), two.ran()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_refused_is_final_as_it_may_have_run() {
    for refusal in ServerRefusal::ALL {
        let (_directory, _gone, one, two) = fleet();
        let told = one.begin("k", "{}", std::future::ready(refused(refusal))).ended().await;
        assert_eq!(words(&told), refusal.name());
        for node in [&one, &two] {
            assert_eq!(node.call("k", "{}", "twice").await, refusal.name());
        }
        assert_eq!((one.ran(), two.ran()), (1, 0), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_directory_nothing_is_begun() {
    let (directory, _gone, one, two) = fleet();
    for mode in [DOWN, DEAF] {
        directory.set(mode);
        let told = one.call(&mode.to_string(), "{}", "never").await;
        assert!(told.contains("it is down") && told.contains("was not executed"), "{told}");
    }
    assert_eq!(one.ran(), 0);
    directory.set(UP);
    // It says that the second runs, which is put right: by who knows that it does not, or after a while.
    let waiting = two.begin("2", "{}", std::future::ready(answer("two")));
    settle().await;
    assert!(waiting.told.borrow().is_none(), "it cannot know");
    assert_eq!(one.call("2", "{}", "one").await, "one");
    assert_eq!(words(&waiting.ended().await), "one");
    directory.set(DEAF);
    one.call("3", "{}", "never").await;
    directory.set(UP);
    assert_eq!(two.call("3", "{}", "two").await, "two");
    assert!(one.durable.0.never_ran.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_noted_is_told_and_noted_later() {
    for mode in [DOWN, DEAF] {
        let (directory, gone, one, two) = fleet();
        let (finish, line) = slow();
        let waiting = one.begin("k", "{}", line);
        settle().await;
        directory.set(mode);
        finish.send(answer("done")).unwrap();
        assert_eq!(words(&waiting.ended().await), "done");
        let told = two.call("k", "{}", "twice").await;
        assert!(told.contains("it is down"), "{told}");
        assert_eq!(one.call("k", "{}", "twice").await, "done", "this node knows it");
        directory.set(UP);
        tokio::time::sleep(Duration::from_secs(40)).await;
        gone.lock().unwrap().push(1);
        assert_eq!(two.call("k", "{}", "twice").await, "done");
        assert_eq!((one.ran(), two.ran()), (1, 0));
        assert!(one.durable.under_way().calls.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_never_noted_stays_unknown() {
    let (directory, _gone, one, two) = fleet();
    let (finish, line) = slow();
    let waiting = one.begin("k", "{}", line);
    settle().await;
    directory.set(DOWN);
    finish.send(answer("done")).unwrap();
    assert_eq!(words(&waiting.ended().await), "done");
    tokio::time::sleep(KEPT + Duration::from_secs(10)).await;
    assert!(one.durable.under_way().calls.is_empty());
    directory.set(UP);
    let told = one.call("k", "{}", "twice").await;
    assert!(told.contains("could not be recorded"), "{told}");
    assert_eq!((one.ran(), two.ran()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_record_is_written_as_long_as_its_call_runs_and_forgotten_after_its_time() {
    let (directory, _gone, one, _two) = fleet();
    let (finish, line) = slow();
    let waiting = one.begin("k", "{}", line);
    tokio::time::sleep(KEPT * 2 + Duration::from_secs(1)).await;
    assert_eq!(directory.notes.load(Ordering::SeqCst), 7, "its beginning, and thrice in its time");
    finish.send(answer("done")).unwrap();
    assert_eq!(words(&waiting.ended().await), "done");
    tokio::time::sleep(KEPT.checked_sub(Duration::from_secs(1)).unwrap()).await;
    assert_eq!(one.call("k", "{}", "again").await, "done");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(one.call("k", "{}", "again").await, "again");
    assert_eq!(one.ran(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_forgets_sooner_is_told_more_often() {
    let (directory, _gone, one, _two) = fleet();
    directory.keeps.store(KEPT.as_secs() / 2, Ordering::SeqCst);
    let _agent = one.begin("k", "{}", std::future::pending());
    tokio::time::sleep(KEPT + Duration::from_secs(1)).await;
    assert_eq!(directory.notes.load(Ordering::SeqCst), 7);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_to_be_kept_is_answered_once() {
    let (_directory, _gone, one, two) = fleet();
    let large = "x".repeat(MIB);
    assert_eq!(one.call("k", "{}", &large).await, large);
    let told = two.call("k", "{}", "again").await;
    assert!(told.contains("was not kept") && told.contains("was executed"), "{told}");
    // There is room for some of this size in memory, and for a part of that of one principal.
    let medium = "x".repeat(MIB - 70 * 1024);
    for at in 0..8 {
        assert_eq!(one.call(&format!("m{at}"), "{}", &medium).await, medium);
    }
    let kept = async |at: usize| two.call(&format!("m{at}"), "{}", "again").await == medium;
    assert!(kept(0).await && kept(3).await && !kept(7).await);
    assert_eq!(two.ran(), 0);
    let told = two.call("m7", "{}", "again").await;
    assert!(told.contains("was not kept"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_back_is_taken_from_its_server_and_unknown() {
    let (_directory, _gone, one, two) = fleet();
    let (finish, line) = slow();
    let waiting = one.begin("k", "{}", line);
    settle().await;
    waiting.cancel().now();
    let told = words(&waiting.ended().await);
    assert!(told.contains("cancelled") && told.contains("unknown whether"), "{told}");
    assert!(finish.is_closed());
    assert_eq!(two.call("k", "{}", "again").await, told);
    assert_eq!(two.ran(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_panics_is_told() {
    let (_directory, _gone, one, two) = fleet();
    let told = one.begin("k", "{}", async { panic!("a test") }).ended().await;
    assert!(words(&told).contains("internal error"), "{}", words(&told));
    assert_eq!(two.call("k", "{}", "again").await, words(&told));
    one.durable.idle().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_begins_many_is_refused_and_another_is_not() {
    let (_directory, _gone, one, two) = fleet();
    let begun: Vec<_> =
        (0..5000).map(|at| one.begin_of(1, &at.to_string(), "{}", std::future::pending())).collect();
    assert_eq!(begun.iter().filter(|begun| begun.is_ok()).count(), super::UNDER_WAY / 2);
    let refused = begun.iter().find_map(|begun| begun.as_ref().err()).unwrap();
    assert!(refused.code() > 0);
    let his = one.begin_of(2, "k", "{}", std::future::ready(answer("his"))).unwrap();
    assert_eq!(words(&his.ended().await), "his");
    assert!(tokio::time::timeout(Duration::from_secs(1), one.durable.idle()).await.is_err());
    // What runs elsewhere is not waited for.
    drop(two.begin_of(1, "0", "{}", std::future::pending()).unwrap());
    settle().await;
    two.durable.idle().await;
}

async fn state(node: &Node, uid: u32, name: &str) -> &'static str {
    match node.durable.look(name, &Principal::user(uid)).await.unwrap().map(|seen| seen.state) {
        None => "none",
        Some(super::State::Working) => "working",
        Some(super::State::Cancelled) => "cancelled",
        Some(super::State::Ended(Ending::Answered(_))) => "answered",
        Some(super::State::Ended(Ending::Failed(_))) => "failed",
    }
}

#[tokio::test(start_paused = true)]
async fn any_node_says_how_far_a_call_has_got_to_its_owner_alone() {
    let (directory, gone, one, two) = fleet();
    let (finish, line) = slow();
    let waiting = one.begin("k", "{}", line);
    let name = Identity::of(&Principal::user(1), "server", "k", r#"{"name":"tool","arguments":{}}"#).unwrap();
    let (task, name) = (name.task(), name.name);
    assert_eq!(super::name_of_task(&task), Some(&*name));
    assert_eq!(super::name_of_task(&task[1..]).or(super::name_of_task(&format!("{task}0"))), None);
    assert_eq!(state(&one, 1, &name).await, "none");
    assert!(waiting.ended_within(Duration::from_secs(1)).await.is_none());
    for node in [&one, &two] {
        assert_eq!((state(node, 1, &name).await, state(node, 2, &name).await), ("working", "none"));
    }
    directory.set(DOWN);
    assert!(two.durable.look(&name, &Principal::user(1)).await.is_err());
    directory.set(UP);
    gone.lock().unwrap().push(1);
    assert_eq!((state(&one, 1, &name).await, state(&two, 1, &name).await), ("working", "failed"));
    finish.send(answer("done")).unwrap();
    settle().await;
    assert_eq!((state(&one, 1, &name).await, state(&two, 1, &name).await), ("answered", "answered"));
    tokio::time::sleep(KEPT).await;
    one.durable.sweep();
    assert_eq!(state(&two, 1, &name).await, "none");
    // What was not executed is told too, until it is begun anew; and so is what was taken back.
    drop(one.begin("k", "{}", std::future::ready(not_executed())));
    settle().await;
    assert_eq!(state(&two, 1, &name).await, "answered");
    let (_finish, line) = slow();
    drop(one.begin("k", "{}", line));
    settle().await;
    let identity = one.durable.look(&name, &Principal::user(1)).await.unwrap().unwrap().identity;
    two.durable.cancel(&identity);
    settle().await;
    assert_eq!(state(&one, 1, &name).await, "working", "it runs elsewhere");
    one.durable.cancel(&identity);
    settle().await;
    assert_eq!(state(&one, 1, &name).await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_begun_anew_is_not_forgotten_with_what_was_not_executed() {
    let (_directory, _gone, one, _two) = fleet();
    drop(one.begin("k", "{}", std::future::ready(not_executed())));
    tokio::time::sleep(KEPT / 2).await;
    let (finish, line) = slow();
    let waiting = one.begin("k", "{}", line);
    tokio::time::sleep(KEPT).await;
    one.durable.sweep();
    let second = one.begin("k", r#"{"a":1}"#, std::future::ready(answer("other"))).ended().await;
    assert!(words(&second).contains("other arguments"), "{}", words(&second));
    finish.send(answer("once")).unwrap();
    assert_eq!(words(&waiting.ended().await), "once");
}
