//! What a service manager hears.

use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

use crate::kit::{Home, PATIENCE, Serves};

#[test]
fn a_service_manager_hears_that_it_serves_that_it_lives_and_that_it_ends() {
    let home = Home::new("watchdog", "[servers.a]\n{bad}\n");
    let path = home.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap().trim_end().to_owned()
    };
    let mut serve = home.serve(&["--listen", "127.0.0.1:0"]);
    serve.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "60000");
    let mut serves = Serves(serve.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    assert_eq!(hear(), "READY=1");
    for _ in 0..5 {
        assert_eq!(hear(), "WATCHDOG=1");
    }
    serves.signal("-TERM");
    let mut last = hear();
    while last == "WATCHDOG=1" {
        last = hear();
    }
    assert_eq!(last, "STOPPING=1");
    assert!(serves.ended().success());
}
