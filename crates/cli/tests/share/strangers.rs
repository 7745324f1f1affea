//! Other programs of this user at the keeper's socket and at its locks.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::kit::{House, eventually};
use crate::works;

/// Another program of this user, which runs until this is dropped.
struct Stranger(Child);

impl Stranger {
    /// Runs a script. `p` is a path in the keeper's folder, and `ready()` says that the script is ready. `words` are those of the process
    /// after `python3`; the first is the script's file.
    fn run(house: &House, name: &str, words: [&str; 2], script: &str) -> Self {
        house.make_runtime();
        let path = house.runtime().join(name);
        let ready = house.path().join("ready");
        let begin = format!(
            "import socket,time,fcntl\np='{}'\nready=lambda: open('{}','w').close()\n",
            path.display(),
            ready.display()
        );
        fs::write(house.path().join(words[0]), begin + script).unwrap();
        let mut python = Command::new("python3");
        let stranger =
            Self(python.args(words).current_dir(house.path()).stdin(Stdio::null()).spawn().unwrap());
        eventually(|| ready.exists().then_some(()));
        stranger
    }

    /// Listens at the keeper's socket, and does this with what comes.
    fn listens(house: &House, backlog: u32, does: &str) -> Self {
        let script = format!("x=socket.socket(socket.AF_UNIX)\nx.bind(p)\nx.listen({backlog})\n{does}");
        Self::run(house, "keeper.sock", ["stranger.py", ""], &script)
    }

    /// Holds a lock of the keeper.
    fn locks(house: &House, name: &str, words: [&str; 2]) -> Self {
        Self::run(
            house,
            name,
            words,
            "f=open(p,'a+')\nfcntl.flock(f,fcntl.LOCK_EX)\nready()\ntime.sleep(300)",
        )
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The window runs the server itself, soon, and `status` says why.
fn runs_alone(house: &House, stranger: &mut Stranger, why: &str, within: Duration) {
    let begun = Instant::now();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    let took = begun.elapsed();
    assert_eq!(stranger.0.try_wait().unwrap(), None, "{why}: the other program was ended");
    assert!(took < within, "{why}: {took:?}");
    assert_eq!(house.servers().len(), 1, "{why}");
    let status = house.said(&["status"]);
    assert!(status.contains("is not shared: ") && status.contains(why), "{why}: {status}");
}

/// A keeper that hangs is killed; a program that never was a keeper is not.
#[test]
fn another_program_at_the_keepers_socket_is_left_alone_and_the_window_runs_the_server() {
    let silent = "ready()\ntime.sleep(300)";
    let garbage = "ready()\nwhile 1:\n c,_=x.accept()\n c.recv(10)\n c.sendall(b'HTTP/1.1 400 x\\r\\n\\r\\n')\n time.sleep(.01)";
    let closes = "ready()\nwhile 1:\n c,_=x.accept()\n c.close()";
    // Nobody can connect any more, so nobody can see who listens.
    let full = "w=[]\ntry:\n while 1:\n  c=socket.socket(socket.AF_UNIX)\n  c.setblocking(False)\n  c.connect(p)\n  w.append(c)\nexcept OSError: ready()\ntime.sleep(300)";
    for (backlog, does) in [(50, silent), (50, garbage), (50, closes), (1, full)] {
        let house = House::new();
        let mut stranger = Stranger::listens(&house, backlog, does);
        runs_alone(&house, &mut stranger, "is not linetender's keeper", Duration::from_secs(8));
        assert_eq!(house.keepers().len(), 0, "{does}");
    }
}

#[test]
fn a_lock_that_another_program_holds_is_not_waited_for() {
    let house = House::new();
    let mut stranger = Stranger::locks(&house, "keeper.lock", ["stranger.py", ""]);
    runs_alone(
        &house,
        &mut stranger,
        "a process that shares no servers holds the lock",
        Duration::from_secs(15),
    );
}

/// That lock only keeps thirty windows from starting thirty keepers.
#[test]
fn a_keeper_is_started_although_another_program_holds_the_lock_for_that() {
    let house = House::new();
    let _stranger = Stranger::locks(&house, "keeper.start", ["stranger.py", ""]);
    let begun = Instant::now();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!((house.keepers().len(), house.servers().len()), (1, 1));
    assert!(!house.said(&["status"]).contains("is not shared"));
}

/// The reaper of a server holds the lock of its keeper, as long as anything of the server is left. A server that does not end is played
/// here by a process with the words of a reaper.
#[test]
fn the_lock_of_a_keeper_is_waited_for_while_a_server_of_it_ends() {
    let house = House::new();
    let mut one = house.agent(&[]).greeted();
    works(&mut one);
    let keeper = house.keeper();
    one.to = None;
    one.shim.wait().unwrap();
    house.signal(keeper, Signal::KILL);
    let reaper = Stranger::locks(&house, "keeper.lock", ["__linetender-reap", &keeper.to_string()]);
    std::thread::scope(|scope| {
        let two = scope.spawn(|| {
            let mut two = house.agent(&[]).greeted();
            works(&mut two);
            two
        });
        // The window starts a keeper each second, and the keepers wait for the lock. With five of them, it has looked twice.
        eventually(|| (house.keepers().len() >= 5 || two.is_finished()).then_some(()));
        assert!(!two.is_finished(), "the window did not wait");
        drop(reaper);
        let _two = two.join().unwrap();
        assert!(!house.said(&["status"]).contains("is not shared"));
        eventually(|| (house.keepers().len() == 1).then_some(()));
        assert_eq!(house.servers().len(), 1);
    });
}
