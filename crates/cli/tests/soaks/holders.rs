//! S23: the process that holds the lines is killed.

use std::io::BufRead as _;
use std::process::Stdio;

use crate::look::{descendants, eventually, kill, lives, stopwatch};
use crate::soak;

/// How often: a person's soak does it a hundred times.
const TIMES: u32 = 5;

#[tokio::test]
async fn s23_nothing_outlives_a_killed_holder() {
    for _ in 0..TIMES {
        let mut holder = soak(&["hold", "5"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        std::io::BufReader::new(holder.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        let pid = i32::try_from(holder.id()).unwrap();
        // Five lines, each a reaper, a server and a grandchild, one of which has a session of its own.
        let tree = eventually(|| Some(descendants(pid)).filter(|tree| tree.len() >= 15)).await;
        let start = stopwatch();
        kill("-9", pid);
        holder.wait().unwrap();
        eventually(|| (!tree.iter().any(|&pid| lives(pid))).then_some(())).await;
        let took = start.elapsed();
        assert!(took.as_millis() < 1000, "{took:?}");
    }
}

#[test]
fn crash_cycles_leave_no_trace() {
    let done = soak(&["cycles", "300"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
    println!("{said}");
}
