use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt as _;
use linetender_wire::hop::Far as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use super::{BYTES, GiveUp, Input, Output, Place, begin};
use crate::nats::chance;
use crate::nats::cluster::Cluster;

const SOON: Duration = Duration::from_secs(20);

struct Pair {
    ours: (Input, Output),
    theirs: (Input, Output),
    other: Client,
}

/// Returns when NATS has done all that it was told on this connection. That everything was sent says less.
async fn settled(client: &Client) {
    assert!(client.request("nobody", "".into()).await.is_err());
}

async fn pair(cluster: &Cluster) -> Pair {
    let connect = || async { async_nats::connect(cluster.addresses()).await.unwrap() };
    let (client, other) = (connect().await, connect().await);
    let place = || Place::new("test", u128::from(chance()));
    let (own, far) = (place(), place());
    let (heard, hears) = (own.listen(&client).await.unwrap(), far.listen(&other).await.unwrap());
    // Both are known to NATS before anybody writes.
    settled(&client).await;
    settled(&other).await;
    let theirs = begin(other.clone(), &far, hears, &own, GiveUp::default());
    let ours = begin(client, &own, heard, &far, GiveUp::default());
    Pair { ours, theirs, other }
}

#[tokio::test]
#[ignore = "needs NATS: tools/real-nats"]
async fn what_is_written_is_read_to_its_end_and_more_than_the_window_waits() {
    let cluster = Cluster::start(1).await;
    let Pair { ours: (mut input, mut output), theirs: (mut hears, mut says), other: _other } =
        pair(&cluster).await;
    let much: Vec<u8> = (0..3 * BYTES).map(|at| at.to_le_bytes()[0]).collect();
    let sent = much.clone();
    #[expect(clippy::disallowed_methods, reason = "a test owns its tasks")]
    let mut writes = tokio::spawn(async move {
        output.write_all(&sent).await.unwrap();
        drop(output);
    });
    // Nobody reads: it cannot all be under way.
    assert!(timeout(Duration::from_millis(500), &mut writes).await.is_err());
    let mut read = Vec::new();
    timeout(SOON, hears.read_to_end(&mut read)).await.unwrap().unwrap();
    assert!(read == much, "{} bytes of {}", read.len(), much.len());
    writes.await.unwrap();
    says.write_all(b"thanks").await.unwrap();
    drop(says);
    let mut thanks = String::new();
    timeout(SOON, input.read_to_string(&mut thanks)).await.unwrap().unwrap();
    assert_eq!(thanks, "thanks");
    assert_eq!(input.taken(7), Some(7), "it ended as it should: only what was acknowledged was taken");
}

#[tokio::test]
#[ignore = "needs NATS: tools/real-nats"]
async fn what_was_written_to_nobody_did_not_arrive_and_that_is_known_at_once() {
    let cluster = Cluster::start(1).await;
    let connect = || async { async_nats::connect(cluster.addresses()).await.unwrap() };
    let (client, other) = (connect().await, connect().await);
    let (own, far) = (Place::new("test", 1), Place::new("test", 2));
    let (heard, mut hears) = (own.listen(&client).await.unwrap(), far.listen(&other).await.unwrap());
    settled(&other).await;
    let (mut input, mut output) = begin(client, &own, heard, &far, GiveUp::default());
    output.write_all(b"arrives").await.unwrap();
    assert!(timeout(SOON, hears.next()).await.unwrap().unwrap().payload.ends_with(b"arrives"));
    // Nobody listens there from now on, and NATS knows that.
    hears.unsubscribe().await.unwrap();
    settled(&other).await;
    let begun = Instant::now();
    output.write_all(b"does not").await.unwrap();
    let mut rest = Vec::new();
    timeout(SOON, input.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert_eq!(input.taken(3), Some(7), "of fifteen bytes, seven");
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[tokio::test]
#[ignore = "needs NATS: tools/real-nats"]
async fn last_words_arrive_also_if_nobody_reads_there_any_more() {
    let cluster = Cluster::start(1).await;
    let Pair { ours: (mut input, mut output), theirs: (hears, mut says), other: _other } =
        pair(&cluster).await;
    drop(hears);
    says.write_all(b"first").await.unwrap();
    let mut read = [0; 5];
    timeout(SOON, input.read_exact(&mut read)).await.unwrap().unwrap();
    output.write_all(b"unheard").await.unwrap();
    // Nothing tells that it has come there: it has by then, or the test shows nothing.
    tokio::time::sleep(Duration::from_millis(200)).await;
    says.write_all(b"goodbye").await.unwrap();
    drop(says);
    let mut rest = String::new();
    timeout(SOON, input.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, "goodbye");
    assert_eq!(input.taken(0), Some(0), "and it is known that nothing was taken");
}
