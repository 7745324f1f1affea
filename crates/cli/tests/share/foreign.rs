//! Folders, sockets and locks that others could have put there, and other users at the keeper's door.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use crate::kit::House;
use crate::works;

/// Somebody else.
const NOBODY: u32 = 65534;

/// The agent is served all the same, by a server of its own, and `status` says why.
fn runs_alone(house: &House, why: &str) {
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    assert_eq!((house.keepers().len(), house.servers().len()), (0, 1), "{why}");
    let status = house.said(&["status"]);
    assert!(status.contains("is not shared: ") && status.contains(why), "{why}: {status}");
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("not tried: another user, which only root can be");
    }
    root
}

#[test]
fn a_folder_that_others_can_write_has_no_keeper() {
    let house = House::new();
    fs::create_dir_all(house.runtime()).unwrap();
    fs::set_permissions(house.runtime(), Permissions::from_mode(0o777)).unwrap();
    // The status socket is somewhere else then.
    runs_alone(&house, "can be written by every user");
    if is_root() {
        fs::set_permissions(house.runtime(), Permissions::from_mode(0o700)).unwrap();
        chown(house.runtime(), Some(NOBODY), None).unwrap();
        runs_alone(&house, "belongs to user 65534");
    }
}

#[test]
fn locks_and_sockets_that_are_links_are_not_followed() {
    for name in ["keeper.start", "keeper.lock"] {
        let house = House::new();
        house.make_runtime();
        let elsewhere = house.path().join("elsewhere");
        symlink(&elsewhere, house.runtime().join(name)).unwrap();
        if name == "keeper.start" {
            runs_alone(&house, "symbolic link");
        }
        assert!(!elsewhere.exists(), "{name} was followed");
    }
    let house = House::new();
    house.make_runtime();
    fs::write(house.runtime().join("keeper.sock"), "no socket").unwrap();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    assert_eq!(house.keepers().len(), 1, "what was left there is replaced by whoever has the lock");
}

#[test]
fn a_socket_of_another_user_is_not_believed() {
    if !is_root() {
        return;
    }
    let house = House::new();
    house.make_runtime();
    let path = house.runtime().join("keeper.sock");
    let listener = UnixListener::bind(&path).unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    runs_alone(&house, "belongs to user 65534");
    drop(listener);
}

#[test]
fn another_user_is_not_served_even_if_it_can_reach_the_socket() {
    if !is_root() {
        return;
    }
    let house = House::new();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    let asks = |who: &[&str]| {
        let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(b'\"alive\"\\n')\n\
                      print(s.recv(100).decode())";
        let (program, rest) = who.split_first().unwrap();
        let socket = house.runtime().join("keeper.sock");
        let output = Command::new(program).args(rest).args(["-c", script]).arg(socket).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3"];
    assert!(asks(&["/usr/bin/python3"]).contains("taken"), "this user is answered");
    assert!(asks(&nobody).contains("PermissionError"), "{}", asks(&nobody));
    // Whoever opened everything up: the kernel still says who is there.
    for path in [
        house.path().to_owned(),
        house.path().join("run"),
        house.runtime(),
        house.runtime().join("keeper.sock"),
    ] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let heard = asks(&nobody);
    assert!(
        heard.trim().is_empty() || ["ConnectionReset", "BrokenPipe"].iter().any(|end| heard.contains(end)),
        "it hears nothing: {heard}"
    );
}
