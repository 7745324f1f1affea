//! What was said on a stream, for whoever comes back for the rest; bounded, and honest about what is missing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use linetender_wire::frame;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::budget::{Budget, Class, GiveWay, Held, Owner};

/// The most messages that are kept of a stream, and what they may weigh. The newest is always kept.
const MESSAGES: usize = 1024;
const BYTES: usize = 16 * 1024 * 1024;

/// What the answers of a batch may weigh that are kept to be handed over as one.
const COLLECTED: usize = 1024 * 1024;

/// How long whoever reads a stream may leave its last message there, when room is wanted; one that is not the last, a tenth of that.
const LEFT_THERE: Duration = Duration::from_secs(10);

/// One stream.
#[derive(Debug)]
pub(super) struct Tape {
    /// Its number in its session.
    pub(super) number: u64,
    kept: Mutex<Kept>,
    /// What it draws on for what it keeps.
    held: Mutex<Option<Held>>,
    /// Says that something was added, or that somebody else reads it.
    added: watch::Sender<()>,
}

#[derive(Debug)]
struct Kept {
    messages: VecDeque<Bytes>,
    /// The number of the oldest that is kept. The first message of all is number one.
    oldest: u64,
    bytes: usize,
    over: bool,
    form: Form,
    /// Up to where somebody has read, and when they came to its end.
    read: u64,
    read_out: Option<Instant>,
    /// Up to where whoever reads it now has.
    reads_behind: u64,
    /// When the newest message came.
    newest: Instant,
    /// How many read it now or wait to, whose turn it is, and since when nobody does.
    readers: usize,
    turn: u64,
    unread: Instant,
}

/// How a stream may be handed over that is over before its response has begun.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// As its only message.
    Plain,
    /// As one array: nothing but answers of a batch is on it.
    Array,
    /// Only as a stream.
    Stream,
}

/// Somebody reads a stream, until this is dropped.
pub(super) struct Reader(Arc<Tape>);

/// What there is at a place of a stream.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum There {
    /// A message, on one line.
    Message(Bytes),
    /// So many are gone, because nobody read them in time.
    Missed(u64),
    /// It is over.
    End,
}

impl Tape {
    pub(super) fn new(number: u64) -> Self {
        let kept = Kept {
            messages: VecDeque::new(),
            oldest: 1,
            bytes: 0,
            over: false,
            form: Form::Plain,
            read: 0,
            read_out: None,
            reads_behind: 0,
            newest: Instant::now(),
            readers: 0,
            turn: 0,
            unread: Instant::now(),
        };
        Self { number, kept: Mutex::new(kept), held: Mutex::new(None), added: watch::Sender::new(()) }
    }

    /// The same, drawing on a budget for what it keeps.
    pub(super) fn drawing_on(number: u64, budget: &Budget, owner: Owner) -> Arc<Self> {
        let tape = Arc::new(Self::new(number));
        let holder: Weak<Self> = Arc::downgrade(&tape);
        *tape.held() = Some(budget.hold(Class::Tape, owner, holder));
        tape
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in what is said, with room for it. The newest is always kept: it may be an answer. Whoever has to give way for it is
    /// locked meanwhile, so of this tape no more than its own account is.
    fn put(&self, message: Bytes, last: bool, is_answer: bool) {
        let message = frame::one_line(message);
        let bytes = message.len();
        let refused = self.held().as_mut().is_some_and(|held| held.grow(bytes).is_err());
        if refused {
            let left = self.let_go();
            if let Some(held) = &mut *self.held() {
                held.anew(left);
                let _ = held.force(bytes);
            }
        }
        let mut kept = self.kept();
        let gone = kept.push(message);
        kept.over |= last;
        if !is_answer || (kept.bytes > COLLECTED && !last) {
            kept.stops_collecting();
        }
        drop(kept);
        if gone > 0
            && let Some(held) = &mut *self.held()
        {
            held.shrink(gone);
        }
        self.added.send_replace(());
    }

    /// Lets go of what it keeps, but for a newest message that somebody is about to read; how many bytes are left. A stream may
    /// go on for as long as its session, so that it is not over is no reason to keep anything.
    fn let_go(&self) -> usize {
        let mut kept = self.kept();
        let patience = if kept.over { LEFT_THERE } else { LEFT_THERE / 10 };
        let wanted = kept.readers > 0 && kept.reads_behind < kept.last() && kept.newest.elapsed() < patience;
        // What is collected is wanted all of it, within the half second that this may take.
        let newest = if kept.form == Form::Array { kept.messages.len() } else { 1 };
        kept.drop_oldest(if wanted { newest } else { 0 });
        kept.bytes
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message that is no answer.
    pub(super) fn push(&self, message: Bytes) {
        self.put(message, false, false);
    }

    /// An answer, which is not the last.
    pub(super) fn answer(&self, message: Bytes) {
        self.put(message, false, true);
    }

    /// The last message, and the end, in one.
    pub(super) fn finish(&self, message: Bytes) {
        self.put(message, true, true);
    }

    /// It is for the answers of a batch, and these are there already.
    pub(super) fn collect(&self, answers: &[Bytes]) {
        self.kept().form = Form::Array;
        for answer in answers {
            self.answer(answer.clone());
        }
    }

    pub(super) fn end(&self) {
        self.kept().over = true;
        self.added.send_replace(());
    }

    /// The only message of a stream that is over, or all of them if they are the answers of a batch. What comes later is read by
    /// whoever reads the stream.
    pub(super) fn whole(&self) -> Option<Bytes> {
        let mut kept = self.kept();
        if !kept.over {
            kept.stops_collecting();
        }
        if !kept.over || kept.oldest > 1 {
            return None;
        }
        let form = kept.form;
        match (form, &*kept.messages.make_contiguous()) {
            (Form::Plain, [only]) => Some(only.clone()),
            (Form::Array, all @ [_, ..]) => Some(frame::array(all)),
            _ => None,
        }
    }

    /// Whether it is over, and nothing was ever said on it.
    pub(super) fn is_void(&self) -> bool {
        let kept = self.kept();
        kept.over && kept.oldest == 1 && kept.messages.is_empty()
    }

    pub(super) fn is_over(&self) -> bool {
        self.kept().over
    }

    /// When somebody came to its end, if anybody did.
    pub(super) fn read_out(&self) -> Option<Instant> {
        self.kept().read_out
    }

    /// Somebody reads it, or waits to, from behind this message on.
    pub(super) fn reader(self: &Arc<Self>, behind: u64) -> Reader {
        let mut kept = self.kept();
        kept.readers += 1;
        kept.reads_behind = behind;
        Reader(Arc::clone(self))
    }

    /// Somebody reads it from now on, and nobody else: each reader keeps what it was handed, so many would keep it as often. Its
    /// turn.
    pub(super) fn take_turn(&self) -> u64 {
        let mut kept = self.kept();
        kept.turn += 1;
        let turn = kept.turn;
        drop(kept);
        self.added.send_replace(());
        turn
    }

    /// Waits until it is somebody else's turn.
    pub(super) async fn is_taken_over(&self, turn: u64) {
        let mut added = self.added.subscribe();
        while self.kept().turn == turn && added.changed().await.is_ok() {}
    }

    /// Whether nobody has read it for so long.
    pub(super) fn is_unread(&self, since: Duration) -> bool {
        let kept = self.kept();
        kept.readers == 0 && kept.unread.elapsed() >= since
    }

    /// How many bytes of it are kept.
    pub(super) fn weighs(&self) -> usize {
        self.kept().bytes
    }

    /// Waits until there is anything on it that is to be read now.
    pub(super) async fn begins(&self) {
        let mut added = self.added.subscribe();
        let empty = || {
            let kept = self.kept();
            !kept.over && (kept.form == Form::Array || (kept.messages.is_empty() && kept.oldest == 1))
        };
        while empty() && added.changed().await.is_ok() {}
    }

    /// Waits until it is over.
    pub(super) async fn ends(&self) {
        let mut added = self.added.subscribe();
        while !self.kept().over && added.changed().await.is_ok() {}
    }

    /// Up to where somebody has read.
    pub(super) fn read(&self) -> u64 {
        self.kept().read
    }

    /// Waits for what comes behind a message, and says which number it has.
    pub(super) async fn behind(&self, number: u64) -> (u64, There) {
        let mut added = self.added.subscribe();
        loop {
            if let Some(there) = self.look(number) {
                return there;
            }
            if added.changed().await.is_err() {
                return (number, There::End);
            }
        }
    }

    fn look(&self, number: u64) -> Option<(u64, There)> {
        let mut kept = self.kept();
        // An event that never was is named by whoever likes to.
        let next = number.saturating_add(1);
        if next < kept.oldest {
            return Some((kept.oldest - 1, There::Missed(kept.oldest - next)));
        }
        let message = usize::try_from(next - kept.oldest).ok().and_then(|at| kept.messages.get(at).cloned());
        match message {
            Some(message) => {
                kept.read = kept.read.max(next);
                kept.reads_behind = next;
                Some((next, There::Message(message)))
            }
            None if kept.over => {
                kept.read_out.get_or_insert_with(Instant::now);
                Some((number, There::End))
            }
            None => None,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut kept = self.0.kept();
        kept.readers -= 1;
        kept.unread = Instant::now();
    }
}

impl GiveWay for Tape {
    fn give_way(&self) {
        let left = self.let_go();
        // If its account is in use, something is being put in, and that finds out.
        if let Ok(mut held) = self.held.try_lock()
            && let Some(held) = &mut *held
        {
            held.anew(left);
        }
    }
}

impl Kept {
    /// From now on its messages are handed over one by one.
    fn stops_collecting(&mut self) {
        if self.form == Form::Array {
            self.form = Form::Stream;
        }
    }

    /// One more message; how many bytes of others went for it.
    fn push(&mut self, message: Bytes) -> usize {
        self.bytes += message.len();
        self.messages.push_back(message);
        self.newest = Instant::now();
        let mut gone = 0;
        while self.messages.len() > MESSAGES || (self.bytes > BYTES && self.messages.len() > 1) {
            gone += self.drop_first();
        }
        gone
    }

    /// The number of the newest message; of the last that there was, if none is kept.
    fn last(&self) -> u64 {
        self.oldest - 1 + self.messages.len() as u64
    }

    fn drop_first(&mut self) -> usize {
        let gone = self.messages.pop_front().map_or(0, |gone| gone.len());
        self.bytes -= gone;
        self.oldest += 1;
        gone
    }

    /// Leaves so many of the newest.
    fn drop_oldest(&mut self, leaves: usize) {
        while self.messages.len() > leaves {
            self.drop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Budget, COLLECTED, LEFT_THERE, MESSAGES, Owner, Tape, There};
    use bytes::Bytes;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test]
    async fn what_was_said_can_be_read_again_from_any_place() {
        let tape = Tape::new(1);
        tape.push("a".into());
        tape.push("b".into());
        assert_eq!(tape.behind(0).await, (1, There::Message("a".into())));
        assert_eq!(tape.behind(1).await, (2, There::Message("b".into())));
        assert_eq!(tape.behind(0).await, (1, There::Message("a".into())));
        assert_eq!(tape.read(), 2);
        let ((number, there), ()) = tokio::join!(tape.behind(2), async { tape.push("c".into()) });
        assert_eq!((number, there), (3, There::Message("c".into())));
        tape.end();
        assert_eq!(tape.behind(3).await, (3, There::End));
        assert_eq!(tape.behind(u64::MAX).await, (u64::MAX, There::End), "nobody was told of such an event");
    }

    #[tokio::test]
    async fn what_was_said_is_one_line_for_whoever_reads_it() {
        let tape = Tape::new(1);
        tape.push("{\r\n}".into());
        assert_eq!(tape.behind(0).await, (1, There::Message("{  }".into())));
    }

    #[tokio::test]
    async fn who_does_not_read_is_told_how_much_is_missing() {
        let tape = Tape::new(1);
        for number in 0..MESSAGES + 10 {
            tape.push(number.to_string().into());
        }
        assert_eq!(tape.behind(0).await, (10, There::Missed(10)));
        assert_eq!(tape.behind(10).await, (11, There::Message("10".into())));
        tape.push(Bytes::from(vec![b'x'; BYTES + 1]));
        let (last, there) = tape.behind(0).await;
        assert_eq!(there, There::Missed(last), "only the newest is left, however large");
        assert!(matches!(tape.behind(last).await.1, There::Message(_)));
    }

    #[tokio::test]
    async fn answers_of_a_batch_are_handed_over_as_one_unless_something_else_is_said_or_they_are_too_much() {
        let large = || Bytes::from(vec![b'1'; COLLECTED]);
        let batch = || {
            let tape = Tape::new(1);
            tape.collect(&["0".into()]);
            tape
        };
        let tape = batch();
        tape.answer("1".into());
        assert!(tokio::time::timeout(Duration::from_millis(10), tape.begins()).await.is_err());
        tape.finish(large());
        tape.begins().await;
        assert_eq!(tape.whole().unwrap().len(), "[0,1,]".len() + COLLECTED, "there is nothing to wait for");
        let says: [fn(&Tape); 2] =
            [|tape| tape.push("2".into()), |tape| tape.answer(vec![b'1'; COLLECTED].into())];
        for says in says {
            let tape = batch();
            says(&tape);
            tape.begins().await;
            tape.end();
            assert_eq!(tape.whole(), None);
        }
        // Whoever has waited long enough reads what there is, and the rest when it comes.
        let tape = batch();
        assert_eq!(tape.whole(), None);
        tape.begins().await;
        tape.finish("1".into());
        assert_eq!((tape.whole(), tape.behind(1).await), (None, (2, There::Message("1".into()))));
        let tape = batch();
        tape.end();
        assert_eq!(tape.whole().unwrap(), "[0]", "all that it waited for was taken back");
    }

    const LARGE: usize = 900 * 1024;

    /// Two streams, of which only one can keep something large.
    fn two() -> [Arc<Tape>; 2] {
        let budget = Budget::new(1024 * 1024);
        [1, 2].map(|number| Tape::drawing_on(number, &budget, Owner { principal: 1, group: number }))
    }

    fn large() -> Bytes {
        Bytes::from(vec![b'x'; LARGE])
    }

    #[tokio::test(start_paused = true)]
    async fn o09_the_newest_message_is_kept_for_whoever_is_about_to_read_it() {
        let [one, other] = two();
        let _readers = (one.reader(0), other.reader(0));
        // Somebody waits for either: there is no room, and that is found out.
        one.push(large());
        other.push(large());
        assert_eq!((one.weighs(), other.weighs()), (LARGE, LARGE));
        // Whoever was there for so long and has not read it does not read.
        tokio::time::advance(LEFT_THERE).await;
        other.push(large());
        assert_eq!((one.weighs(), other.weighs()), (0, LARGE));
        assert_eq!(one.behind(0).await, (1, There::Missed(1)), "and is told so");
    }

    #[tokio::test(start_paused = true)]
    async fn x05_what_is_collected_for_somebody_stays_when_room_is_wanted_but_not_for_long() {
        let [one, other] = two();
        one.collect(&[]);
        let _reader = one.reader(0);
        one.answer(Bytes::from(vec![b'x'; LARGE / 2]));
        one.answer(Bytes::from(vec![b'x'; LARGE / 2]));
        other.push(large());
        assert_eq!(one.weighs(), LARGE, "each of them is an answer");
        tokio::time::advance(LEFT_THERE).await;
        other.push(large());
        assert_eq!(one.weighs(), 0);
    }

    #[tokio::test]
    async fn x05_what_was_read_or_is_read_by_nobody_gives_way_though_its_stream_goes_on() {
        let [one, other] = two();
        one.push(large());
        other.push(large());
        assert_eq!((one.weighs(), other.weighs()), (0, LARGE), "nobody reads it");
        let _reader = other.reader(0);
        assert_eq!(other.behind(0).await, (1, There::Message(large())));
        one.push(large());
        assert_eq!((one.weighs(), other.weighs()), (LARGE, 0), "it was read");
        assert_eq!(one.behind(0).await, (1, There::Missed(1)));
        // Whoever comes back for it is about to read it again.
        let _again = one.reader(1);
        other.push(large());
        assert_eq!((one.weighs(), other.weighs()), (LARGE, LARGE));
    }

    #[test]
    fn o09_a_stream_that_is_over_and_that_nobody_reads_gives_up_everything() {
        let [one, other] = two();
        one.finish(large());
        other.push(large());
        assert_eq!((one.weighs(), other.weighs()), (0, LARGE));
    }
}
