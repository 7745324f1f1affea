//! An agent that sends several messages as one array hears the answers to them as one array.
//!
//! Nothing between the agent's two pipes knows of that: messages are taken apart where the agent is read, and each is
//! answered by itself, whoever answers it. Only where answers are written are those of one batch kept until the last of them is there.
//! Everything else is written at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use linetender_wire::frame::{Batch, Frame, Message, Passed, Routing};
use linetender_wire::{Item, Lines, queue};
use tokio::sync::Notify;

/// What the answers of an agent's open batches may weigh together: a quarter of what may wait for it. A batch that passes it is
/// answered in several arrays.
const COLLECTED: usize = super::BYTES_TO_AGENT / 4;

/// The open batches of one agent. Whoever reads the agent and whoever writes to it share them.
#[derive(Clone, Debug, Default)]
pub struct Batches(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    /// Says that an array is complete without another answer.
    complete: Notify,
    /// Says that one was taken.
    taken: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// The batch that each request which is not answered came in, by its id as it was spelt.
    of: HashMap<Box<str>, u64>,
    open: HashMap<u64, Open>,
    last: u64,
    /// What the answers of all of them weigh.
    weighs: usize,
    /// Arrays that are complete, and what they weigh.
    complete: VecDeque<Bytes>,
    unwritten: usize,
}

/// A batch that is not all answered.
#[derive(Debug, Default)]
struct Open {
    /// How many answers are missing.
    waits: usize,
    /// The array without its end. Empty until there is an answer.
    array: Vec<u8>,
}

impl Batches {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read of the agent in these lines, before it is handed on: batches begin, and what is taken back leaves them.
    pub fn read(&self, lines: &mut Lines, item: Option<Item>) -> Option<Item> {
        while let Some(batch) = lines.batch() {
            self.begins(&batch);
        }
        if let Some(Item::Frame(frame)) = &item {
            self.heard(frame);
        }
        item
    }

    /// Returns when the agent may be read on: not while it leaves unread what its batches were answered without anybody else's help.
    /// Cancel-safe.
    pub async fn room(&self) {
        while self.table().unwritten > COLLECTED {
            self.0.taken.notified().await;
        }
    }

    /// The agent sent a batch, of which nothing was handed on yet.
    fn begins(&self, batch: &Batch) {
        let mut table = self.table();
        let table = &mut *table;
        table.last += 1;
        let mut open = Open::default();
        for frame in &batch.frames {
            // What listens is answered when it ends, which may be never.
            let Message::Request { id, method, .. } = frame.message() else { continue };
            // An id that is in use has its first answer in the batch that used it first.
            if method != "subscriptions/listen" && !table.of.contains_key(id) {
                table.of.insert(id.into(), table.last);
                open.waits += 1;
            }
        }
        for refusal in batch.refusals() {
            table.weighs += open.add(&refusal);
        }
        table.open.insert(table.last, open);
        self.look_at(table, table.last);
    }

    /// The agent said this, by itself or in a batch: a request that it takes back is not answered any more.
    // MCP 2025-03-26, "Cancellation": receivers SHOULD not send a response for the cancelled request.
    fn heard(&self, frame: &Frame) {
        let Message::Notification { method: "notifications/cancelled", params } = frame.message() else {
            return;
        };
        let routing = Routing::of("notifications/cancelled", params).ok();
        let Some(id) = routing.and_then(|routing| routing.request_id) else { return };
        let mut table = self.table();
        let Some(batch) = table.of.remove(id.get()) else { return };
        if let Some(open) = table.open.get_mut(&batch) {
            open.waits -= 1;
        }
        self.look_at(&mut table, batch);
    }

    /// If a batch waits for nothing more, or all of them weigh too much, its array is complete.
    fn look_at(&self, table: &mut Table, batch: u64) {
        let Some(waits) = table.open.get(&batch).map(|open| open.waits) else { return };
        if waits > 0 && table.weighs <= COLLECTED {
            return;
        }
        if let Some(array) = table.take(batch) {
            table.unwritten += array.len();
            table.complete.push_back(array);
            self.0.complete.notify_one();
        }
        if waits > 0 {
            table.open.insert(batch, Open { waits, array: Vec::new() });
        }
    }

    /// What is to be written of something that the agent is to hear, if anything is now.
    pub fn pass(&self, said: Passed) -> Option<Passed> {
        if self.table().of.is_empty() {
            return Some(said);
        }
        // It may be large, and the agent is read meanwhile.
        let batch = said.frame().ok().and_then(|frame| match frame.message() {
            Message::Response { id: Some(id), .. } => self.table().of.remove(id),
            _ => None,
        });
        let Some(batch) = batch else { return Some(said) };
        let mut table = self.table();
        let table = &mut *table;
        let open = table.open.get_mut(&batch)?;
        open.waits -= 1;
        table.weighs += open.add(said.text());
        if open.waits > 0 && table.weighs <= COLLECTED {
            return None;
        }
        let waits = open.waits;
        let array = table.take(batch);
        if waits > 0 {
            table.open.insert(batch, Open { waits, array: Vec::new() });
        }
        array.map(Into::into)
    }

    /// The next thing to be written of what comes from this queue. When that has ended, first what is left of each batch; then `None`.
    /// Cancel-safe.
    pub async fn next(&self, from: &mut queue::Receiver<Passed>) -> Option<Passed> {
        loop {
            if let Some(array) = self.complete() {
                return Some(array);
            }
            tokio::select! {
                said = from.recv() => match said {
                    Some(said) => if let Some(said) = self.pass(said) {
                        return Some(said);
                    },
                    None => return self.rest(),
                },
                () = self.0.complete.notified() => {}
            }
        }
    }

    /// The same, if there is anything now.
    pub(super) fn try_next(&self, from: &mut queue::Receiver<Passed>) -> Option<Passed> {
        loop {
            if let Some(array) = self.complete() {
                return Some(array);
            }
            if let Some(said) = self.pass(from.try_recv()?) {
                return Some(said);
            }
        }
    }

    fn complete(&self) -> Option<Passed> {
        let mut table = self.table();
        let array = table.complete.pop_front()?;
        table.unwritten -= array.len();
        self.0.taken.notify_one();
        Some(array.into())
    }

    /// Nothing more will be answered.
    fn rest(&self) -> Option<Passed> {
        let mut guard = self.table();
        let table = &mut *guard;
        table.of.clear();
        table.weighs = 0;
        for array in table.open.drain().filter_map(|(_, open)| open.whole()) {
            table.unwritten += array.len();
            table.complete.push_back(array);
        }
        drop(guard);
        self.complete()
    }
}

impl Table {
    /// Takes out a batch: its array, if there is any answer in it.
    fn take(&mut self, batch: u64) -> Option<Bytes> {
        let open = self.open.remove(&batch)?;
        self.weighs -= open.array.len();
        open.whole()
    }
}

impl Open {
    /// One more answer; what it weighs.
    fn add(&mut self, answer: &Bytes) -> usize {
        self.array.push(if self.array.is_empty() { b'[' } else { b',' });
        self.array.extend_from_slice(answer);
        answer.len() + 1
    }

    fn whole(mut self) -> Option<Bytes> {
        if self.array.is_empty() {
            return None;
        }
        self.array.push(b']');
        Some(self.array.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{Batches, COLLECTED, Table};
    use bytes::Bytes;
    use linetender_wire::frame::{self, Limits, Passed};
    use linetender_wire::queue::{self, Receiver, Sender};
    use serde_json::{Value, json};
    use std::time::Duration;

    const LIMITS: Limits = Limits { length: 1_000_000, depth: 128 };

    fn said(batches: &Batches, batch: &Value) {
        let batch = frame::parse_batch(&batch.to_string().into(), LIMITS).unwrap();
        batches.begins(&batch);
        batch.frames.iter().for_each(|frame| batches.heard(frame));
    }

    fn ask(id: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call" })
    }

    fn cancel(id: u32) -> Value {
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
    }

    fn answer(id: &Value, result: &str) -> Passed {
        Bytes::from(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).into()
    }

    fn pipe() -> (Sender<Passed>, Receiver<Passed>) {
        queue::queue(1024, usize::MAX)
    }

    /// What is written of what is there now: the ids of each array, or of a message that stands alone.
    fn written(batches: &Batches, from: &mut Receiver<Passed>) -> Vec<Value> {
        let texts = std::iter::from_fn(|| batches.try_next(from));
        texts.map(|text| ids(&serde_json::from_slice(text.text()).unwrap())).collect()
    }

    fn ids(message: &Value) -> Value {
        match message {
            Value::Array(all) => all.iter().map(|one| one["id"].clone()).collect(),
            one => one.get("id").or(one.get("method")).cloned().unwrap(),
        }
    }

    #[test]
    fn answers_of_a_batch_are_written_with_the_last_of_them_and_all_else_at_once() {
        let (batches, (to, mut from)) = (Batches::default(), pipe());
        said(&batches, &json!([ask(&json!(1)), ask(&json!("1")), { "method": "notifications/a" }, 7]));
        said(&batches, &json!([ask(&json!(3))]));
        for text in [answer(&json!(1), ""), frame::notification("notifications/progress", None).into()] {
            to.try_send(text).unwrap();
        }
        to.try_send(answer(&json!(2), "")).unwrap();
        assert_eq!(written(&batches, &mut from), [json!("notifications/progress"), json!(2)]);
        to.try_send(answer(&json!(3), "")).unwrap();
        to.try_send(answer(&json!("1"), "")).unwrap();
        assert_eq!(written(&batches, &mut from), [json!([3]), json!([null, 1, "1"])]);
        to.try_send(answer(&json!(1), "")).unwrap();
        assert_eq!(written(&batches, &mut from), [json!(1)], "its batch is over");
        said(&batches, &json!([{ "method": "notifications/a" }]));
        assert_eq!(written(&batches, &mut from), [Value::Null; 0]);
        let table = batches.table();
        assert!(table.open.is_empty() && table.of.is_empty() && table.weighs == 0);
    }

    #[tokio::test]
    async fn a_request_that_is_taken_back_or_never_ends_leaves_its_batch() {
        let (batches, (to, mut from)) = (Batches::default(), pipe());
        let listen = json!({ "id": 9, "method": "subscriptions/listen" });
        said(&batches, &json!([ask(&json!(1)), ask(&json!(2)), ask(&json!(3)), cancel(2), listen]));
        to.try_send(answer(&json!(1), "")).unwrap();
        assert_eq!(written(&batches, &mut from), [Value::Null; 0]);
        let (next, ()) = tokio::join!(batches.next(&mut from), async {
            tokio::task::yield_now().await;
            batches.heard(&Passed::from(cancel(3).to_string()).into_frame().unwrap());
        });
        assert_eq!(ids(&serde_json::from_slice(next.unwrap().text()).unwrap()), json!([1]));
        said(&batches, &json!([ask(&json!(4)), cancel(4)]));
        assert_eq!(written(&batches, &mut from), [Value::Null; 0], "nothing is left to be answered");
    }

    #[tokio::test]
    async fn what_there_is_of_a_batch_is_written_when_it_is_too_much_and_at_the_end() {
        let (batches, (to, mut from)) = (Batches::default(), pipe());
        said(&batches, &(0..5).map(|id| ask(&json!(id))).collect());
        let large = "x".repeat(COLLECTED / 2);
        for id in 0..3 {
            to.try_send(answer(&json!(id), &large)).unwrap();
        }
        assert_eq!(written(&batches, &mut from), [json!([0, 1])], "two of them are too much");
        to.try_send(answer(&json!(3), "")).unwrap();
        assert_eq!(written(&batches, &mut from), [Value::Null; 0]);
        drop(to);
        let rest = batches.next(&mut from).await.unwrap();
        assert_eq!(ids(&serde_json::from_slice(rest.text()).unwrap()), json!([2, 3]), "one is not answered");
        assert!(batches.next(&mut from).await.is_none());
    }

    /// An agent that asks for errors and reads none is not read on, whether its batches wait for something or not.
    #[tokio::test]
    async fn what_an_agent_does_not_read_of_its_batches_is_bounded() {
        for request in ["", r#"{"jsonrpc":"2.0","id":NUMBER,"method":"hangs"},"#] {
            let batches = Batches::default();
            let odd = ["7"; 1000].join(",");
            let mut number = 0;
            while tokio::time::timeout(Duration::ZERO, batches.room()).await.is_ok() {
                number += 1;
                assert!(number < 1000, "a thousand batches of a hundred kilobytes");
                let request = request.replace("NUMBER", &number.to_string());
                let text = format!("[{request}{odd}]");
                batches.begins(&frame::parse_batch(&text.into(), LIMITS).unwrap());
            }
            let Table { weighs, unwritten, .. } = *batches.table();
            assert!(weighs <= COLLECTED && unwritten < COLLECTED + 200_000, "{weighs} and {unwritten}");
            let (_to, mut from): (Sender<Passed>, Receiver<Passed>) = queue::queue(1, 1);
            while batches.try_next(&mut from).is_some() {}
            batches.room().await;
            assert_eq!(batches.table().unwritten, 0);
        }
    }
}
