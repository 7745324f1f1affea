//! The owner's end: what comes from the asker goes to the line as one agent's words, and back.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};

use super::near::Tally;
use super::owed::Owed;
use super::{ACKNOWLEDGED, GOES, HANDS, MOVE};
use crate::frame::{self, Limits, Passed};
use crate::lines::{About, Item, Lines};
use crate::queue;

/// Small messages are gathered up to about this much.
const BATCH: usize = 64 * 1024;

/// What an asker is told besides what the line says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Stand {
    /// Nothing: it is served.
    #[default]
    Serves,
    /// It is to move on when its calls have ended, and why.
    Moves(String),
    /// Nothing more is taken from it: what it says now is not acknowledged, and goes to the next owner.
    Hands,
    /// The owner goes now.
    Leaves,
}

/// Serves an asker on another machine until it goes, the line lets go of it, or the owner [leaves](Stand::Leaves). `to` and `from` are
/// one agent's ends of the line.
///
/// Others use the line beside it: one that is [handed over](Stand::Hands) is let go of when everything that it asked before is answered.
///
/// # Errors
/// If the stream breaks.
pub async fn serve_far(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    limits: Limits,
    to: mpsc::Sender<Passed>,
    from: queue::Receiver<Passed>,
    stand: watch::Receiver<Stand>,
) -> io::Result<()> {
    serve_on(stream, limits, to, from, stand, None, Some(Owed::default())).await
}

pub(super) async fn serve_on(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    limits: Limits,
    to: mpsc::Sender<Passed>,
    mut from: queue::Receiver<Passed>,
    mut stand: watch::Receiver<Stand>,
    tally: Option<Tally>,
    mut owed: Option<Owed>,
) -> io::Result<()> {
    let mut lines = Lines::new(limits);
    let mut handed: VecDeque<Passed> = VecDeque::new();
    let (mut read, mut acknowledged) = (0_u64, 0);
    let mut out = Vec::new();
    let mut takes = true;
    // What it was told before it came holds for it too.
    stand.mark_changed();
    while takes || !handed.is_empty() || !owed.as_ref().is_some_and(Owed::is_nothing) {
        tokio::select! {
            biased;
            // One after the other, as the line takes them; meanwhile the line is heard, or neither would ever move.
            place = to.reserve(), if !handed.is_empty() => {
                let Ok(place) = place else { break };
                if let Some(message) = handed.pop_front() {
                    place.send(message);
                }
            }
            text = from.recv() => {
                let Some(text) = text else { break };
                pass(&mut out, &text, &mut owed);
                while out.len() < BATCH
                    && let Some(text) = from.try_recv()
                {
                    pass(&mut out, &text, &mut owed);
                }
            }
            told = stand.changed() => {
                if told.is_err() {
                    break;
                }
                match &*stand.borrow_and_update() {
                    Stand::Serves => {}
                    Stand::Moves(why) => control(&mut out, MOVE, &frame::one_line(why.clone().into())),
                    Stand::Hands => {
                        takes = false;
                        control(&mut out, HANDS, b"");
                    }
                    Stand::Leaves => break,
                }
            }
            bytes = stream.read_buf(lines.buffer()), if takes && handed.is_empty() => {
                let bytes = bytes?;
                if bytes == 0 {
                    return Ok(());
                }
                read += bytes as u64;
                while let Some(item) = lines.take() {
                    if let (Item::Frame(frame), Some(owed)) = (&item, &mut owed) {
                        owed.asked(frame);
                    }
                    take(item, &mut handed, &mut out);
                }
                let whole = read - lines.unfinished() as u64;
                let before = std::mem::replace(&mut acknowledged, whole);
                match &tally {
                    _ if whole == before => {}
                    Some(tally) => tally.add(whole - before)?,
                    None => control(&mut out, ACKNOWLEDGED, whole.to_string().as_bytes()),
                }
            }
        }
        // Also before anything is handed to the line: what it runs was acknowledged.
        if !out.is_empty() {
            stream.write_all(&out).await?;
            out.clear();
            // The room of one large message is not kept for all the small ones after it.
            out.shrink_to(4 * BATCH);
        }
    }
    // What the line has said is still passed on.
    while let Some(text) = from.try_recv() {
        add(&mut out, &text);
    }
    control(&mut out, GOES, b"");
    stream.write_all(&out).await?;
    stream.shutdown().await
}

fn pass(out: &mut Vec<u8>, text: &Passed, owed: &mut Option<Owed>) {
    add(out, text);
    if let Some(owed) = owed {
        owed.answered(text);
    }
}

fn take(item: Item, handed: &mut VecDeque<Passed>, out: &mut Vec<u8>) {
    match item {
        Item::Frame(frame) => handed.push_back(frame.into()),
        // An asker that wants to know whether somebody is there hears an acknowledgement.
        Item::Noise(_) => {}
        Item::Unreadable { about: About::Question(Some(id)), bad, .. } => {
            let error = serde_json::json!({ "code": -32600, "message": format!("the message is {bad}") });
            add(out, &frame::error_reply(&id, &error.to_string()).into());
        }
        Item::Unreadable { .. } => {}
    }
}

fn add(out: &mut Vec<u8>, text: &Passed) {
    match text {
        Passed::Frame(frame) => out.extend_from_slice(&frame::one_line(frame.text().clone())),
        Passed::Text(text) => out.extend_from_slice(&frame::one_line(text.clone())),
    }
    out.push(b'\n');
}

fn control(out: &mut Vec<u8>, kind: u8, words: &[u8]) {
    out.push(kind);
    out.extend_from_slice(words);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::{Owed, Stand, serve_on};
    use crate::frame::{Limits, Passed};
    use crate::queue::{self, Sender};
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::sync::{mpsc, watch};

    const LIMITS: Limits = Limits { length: 1 << 20, depth: 64 };
    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;

    struct House {
        asker: DuplexStream,
        handed: mpsc::Receiver<Passed>,
        line: Sender<Passed>,
        stand: watch::Sender<Stand>,
        serves: tokio::task::JoinHandle<std::io::Result<()>>,
    }

    /// An owner whose stream holds so many bytes.
    fn house(holds: usize) -> House {
        house_of(holds, None)
    }

    fn house_of(holds: usize, owed: Option<Owed>) -> House {
        let (asker, owner) = tokio::io::duplex(holds);
        let (to, handed) = mpsc::channel(1);
        let (line, from) = queue::queue(16, 1 << 20);
        let (stand, stands) = watch::channel(Stand::Serves);
        #[expect(clippy::disallowed_methods, reason = "a test owns its tasks")]
        let serves = tokio::spawn(serve_on(owner, LIMITS, to, from, stands, None, owed));
        House { asker, handed, line, stand, serves }
    }

    async fn reads(asker: &mut DuplexStream, bytes: usize) -> String {
        let mut text = vec![0; bytes];
        asker.read_exact(&mut text).await.unwrap();
        String::from_utf8(text).unwrap()
    }

    async fn yields() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Whoever dies after it handed a call over has acknowledged it: the other way round a call that ran would be sent again.
    #[tokio::test]
    async fn nothing_is_handed_to_the_line_before_its_acknowledgement_is_written() {
        // There is no room for an acknowledgement until the asker reads.
        let mut house = house(1);
        house.line.try_send(Bytes::from_static(b"{}").into()).unwrap();
        yields().await;
        let call = format!("{CALL}\n");
        let (mut reader, mut writer) = tokio::io::split(house.asker);
        #[expect(clippy::disallowed_methods, reason = "a test owns its tasks")]
        let writes = tokio::spawn(async move { writer.write_all(call.as_bytes()).await });
        let mut heard = Vec::new();
        // `{}` and its break, then `=N` and its break: until the last byte of that, nothing was handed over.
        let whole = format!("{{}}\n={}\n", CALL.len() + 1);
        while heard.len() < whole.len() - 1 {
            yields().await;
            assert!(
                house.handed.try_recv().is_err(),
                "handed over after {:?}",
                String::from_utf8_lossy(&heard)
            );
            heard.push(reader.read_u8().await.unwrap());
        }
        heard.push(reader.read_u8().await.unwrap());
        assert_eq!(String::from_utf8(heard).unwrap(), whole);
        assert_eq!(house.handed.recv().await.unwrap().text(), CALL.as_bytes());
        writes.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn half_a_message_is_not_acknowledged_and_a_question_is() {
        let mut house = house(1024);
        let (half, rest) = CALL.split_at(10);
        house.asker.write_all(format!("?\n{half}").as_bytes()).await.unwrap();
        assert_eq!(reads(&mut house.asker, 3).await, "=2\n");
        house.asker.write_all(format!("{rest}\n").as_bytes()).await.unwrap();
        let whole = format!("={}\n", 2 + CALL.len() + 1);
        assert_eq!(reads(&mut house.asker, whole.len()).await, whole);
        assert!(house.handed.recv().await.is_some());
    }

    #[tokio::test]
    async fn whoever_hands_over_takes_nothing_more_and_says_that_it_goes() {
        let mut house = house(1024);
        house.stand.send_replace(Stand::Moves("the server\nasked".to_owned()));
        assert_eq!(reads(&mut house.asker, 18).await, "!the server asked\n");
        house.stand.send_replace(Stand::Hands);
        yields().await;
        house.asker.write_all(format!("{CALL}\n").as_bytes()).await.unwrap();
        yields().await;
        assert!(house.handed.try_recv().is_err(), "it goes to the next owner");
        assert_eq!(reads(&mut house.asker, 2).await, "~\n", "and the asker knows why");
        // What was under way is still answered.
        house.line.try_send(Bytes::from_static(b"{\"id\":0}").into()).unwrap();
        assert_eq!(reads(&mut house.asker, 9).await, "{\"id\":0}\n");
        house.stand.send_replace(Stand::Leaves);
        let mut rest = String::new();
        house.asker.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, ".\n");
        house.serves.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn whoever_is_handed_over_from_afar_leaves_when_it_is_owed_nothing() {
        let mut house = house_of(1024, Some(Owed::default()));
        house.asker.write_all(format!("{CALL}\n").as_bytes()).await.unwrap();
        let acknowledged = format!("={}\n", CALL.len() + 1);
        assert_eq!(reads(&mut house.asker, acknowledged.len()).await, acknowledged);
        house.stand.send_replace(Stand::Hands);
        assert_eq!(reads(&mut house.asker, 2).await, "~\n");
        yields().await;
        assert!(!house.serves.is_finished(), "it is owed an answer");
        let other = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        house.line.try_send(Bytes::from_static(other.as_bytes()).into()).unwrap();
        yields().await;
        assert!(!house.serves.is_finished(), "which this is not");
        house.line.try_send(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).into()).unwrap();
        house.serves.await.unwrap().unwrap();
        let mut rest = String::new();
        house.asker.read_to_string(&mut rest).await.unwrap();
        assert!(rest.ends_with("\"result\":{}}\n.\n"), "{rest}");
    }

    #[tokio::test]
    async fn whoever_only_listens_is_owed_nothing() {
        let mut house = house_of(1024, Some(Owed::default()));
        let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}"#;
        house.asker.write_all(format!("{listen}\n").as_bytes()).await.unwrap();
        assert!(house.handed.recv().await.is_some());
        house.stand.send_replace(Stand::Hands);
        house.serves.await.unwrap().unwrap();
        let mut rest = String::new();
        house.asker.read_to_string(&mut rest).await.unwrap();
        assert!(rest.ends_with("~\n.\n"), "{rest}");
    }

    /// A line that takes nothing while it has something to say is heard all the same.
    #[tokio::test]
    async fn a_line_that_is_full_is_still_heard() {
        let mut house = house(1 << 16);
        for _ in 0..3 {
            house.asker.write_all(format!("{CALL}\n").as_bytes()).await.unwrap();
        }
        let acknowledged = format!("={}\n", 3 * (CALL.len() + 1));
        assert_eq!(reads(&mut house.asker, acknowledged.len()).await, acknowledged);
        yields().await;
        house.line.try_send(Bytes::from_static(b"{\"id\":7}").into()).unwrap();
        assert_eq!(reads(&mut house.asker, 9).await, "{\"id\":7}\n");
        for _ in 0..3 {
            assert!(house.handed.recv().await.is_some());
        }
    }
}
