use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::{QUEUED, Target, Writer};

const LONG: Duration = Duration::from_secs(20);

/// A writer to a pipe, and the pipe's other end.
fn to_a_pipe() -> (Writer, BufReader<File>) {
    let (from, to) = std::io::pipe().unwrap();
    let writer = Writer::start(Target::File(File::from(OwnedFd::from(to))));
    (writer, BufReader::new(File::from(OwnedFd::from(from))))
}

#[test]
fn messages_arrive_in_order_before_a_flush_returns() {
    let (writer, from) = to_a_pipe();
    for number in 0..100 {
        writer.push(format!("{number}\n").as_bytes());
    }
    writer.flush(LONG);
    let read: Vec<String> = from.lines().take(100).map(Result::unwrap).collect();
    assert_eq!(read, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_never_reads_costs_messages_and_no_time() {
    let (writer, from) = to_a_pipe();
    let message = [b"x".repeat(1023), b"\n".to_vec()].concat();
    // The thread has at most one queue full, a second one waits, and the pipe holds less than either.
    let pushed = 4 * QUEUED / message.len();
    for _ in 0..pushed {
        writer.push(&message);
    }
    writer.flush(Duration::from_millis(1));
    let mut read = 0;
    for line in from.lines() {
        let line = line.unwrap();
        if let Some(rest) = line.strip_prefix("linetender: ") {
            let dropped: usize = rest.split(' ').next().unwrap().parse().unwrap();
            assert!(dropped > 0);
            read += dropped;
        } else {
            read += 1;
        }
        if read == pushed {
            return;
        }
    }
    panic!("{read} of {pushed} messages arrived or were counted");
}

#[test]
fn a_reader_that_is_gone_fails_nobody() {
    let (writer, from) = to_a_pipe();
    drop(from);
    for _ in 0..10 {
        writer.push(b"nobody reads this\n");
        writer.flush(LONG);
    }
}
