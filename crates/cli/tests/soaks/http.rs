//! H02a and the herd: what needs a process, or a network, of its own.

use std::process::Command;

use crate::{LINETENDER, soak};

/// And H41: where no packet comes at all for a while, calls wait for their answers.
#[test]
fn h02a_dropped_packets_end_the_calls_on_them_within_twenty_seconds() {
    let name = format!("linetender-{}", std::process::id());
    let ip = |words: &[&str]| Command::new("ip").args(words).status().is_ok_and(|status| status.success());
    if !ip(&["netns", "add", &name]) || Command::new("iptables").arg("--version").output().is_err() {
        ip(&["netns", "del", &name]);
        eprintln!("skipped: needs root, iproute2 and iptables");
        return;
    }
    let up = ip(&["netns", "exec", &name, "ip", "link", "set", "lo", "up"]);
    let done =
        Command::new("ip").args(["netns", "exec", &name, LINETENDER, "drill", "soak", "blackhole"]).output();
    ip(&["netns", "del", &name]);
    assert!(up);
    let done = done.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn five_hundred_lines_do_not_come_back_in_one_moment() {
    let done = soak(&["herd", "500"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
