//! X04: other users of this machine, over TCP and at the Unix socket.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use linetender_gateway::Gateway;
use linetender_gateway::front::{self, Doors};
use rustix::process::{Uid, geteuid};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;

use crate::kit::{House, config, in_time};

/// A uid that is nobody's here.
const STRANGER: u32 = 64_999;

const ONE: &str = "[servers.secret]\n{bad}\n";

/// A modern call of a tool, as bytes.
fn call() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "echo", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let length = body.len();
    format!(
        "POST /mcp/secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: echo\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

/// What the gateway answers to each of these; asked on a thread of its own, as this user if there is one.
async fn answers(to: SocketAddr, user: Option<u32>, requests: Vec<String>) -> Vec<String> {
    let asks = move || {
        if let Some(user) = user {
            let user = Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        }
        let ask = |request: &String| {
            let mut stream = TcpStream::connect(to).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        requests.iter().map(ask).collect()
    };
    let (done, is_done) = oneshot::channel();
    // The thread has another user for good, so it is nobody else's afterwards.
    std::thread::spawn(move || done.send(asks()));
    in_time(is_done).await.unwrap()
}

fn is_root() -> bool {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
    }
    geteuid().is_root()
}

/// Where the gateway listens, and how it is called there.
fn ways() -> [(&'static str, IpAddr); 3] {
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    [
        ("127.0.0.1:0", Ipv4Addr::LOCALHOST.into()),
        ("[::1]:0", Ipv6Addr::LOCALHOST.into()),
        ("127.0.0.1:0", mapped.into()),
    ]
}

#[tokio::test]
async fn x04_another_user_cannot_call_and_is_told_which_setting_would_let_it() {
    if !is_root() {
        return;
    }
    for (at, by) in ways() {
        let house = House::up_at(at, ONE).await;
        let to = SocketAddr::new(by, house.address.port());
        let requests = || vec![call(), get("/readyz"), get("/healthz"), get("/mcp")];
        let theirs = answers(to, Some(STRANGER), requests()).await;
        assert!(theirs[0].starts_with("HTTP/1.1 403"), "{by}: {}", theirs[0]);
        assert!(theirs[0].contains("uid 64999") && theirs[0].contains("local_users"), "{}", theirs[0]);
        assert!(theirs[1].starts_with("HTTP/1.1 200") && theirs[2].starts_with("HTTP/1.1 200"), "{theirs:?}");
        assert!(!theirs[1].contains("secret"), "it is told no names: {}", theirs[1]);
        assert!(theirs[3].starts_with("HTTP/1.1 403"), "{}", theirs[3]);
        let ours = answers(to, None, requests()).await;
        assert!(ours[0].starts_with("HTTP/1.1 200") && ours[1].contains("secret"), "{by}: {ours:?}");
    }
}

#[tokio::test]
async fn x04_users_who_are_named_are_admitted_and_nobody_else() {
    let us = geteuid().as_raw();
    let named = |user: u32| format!("[gateway]\nlocal_users = [{user}]\n{ONE}");
    let house = House::open(&named(us + 1)).await;
    let refused = answers(house.address, None, vec![call()]).await.remove(0);
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains(&format!("uid {us}")), "{refused}");
    if is_root() {
        let house = House::up_but_unseen(&named(STRANGER)).await;
        let served = answers(house.address, Some(STRANGER), vec![call()]).await.remove(0);
        assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    }
}

#[tokio::test]
async fn x04_insecure_admits_everybody() {
    if !is_root() {
        return;
    }
    let house = House::up(&format!("[gateway]\ninsecure = true\n{ONE}")).await;
    let served = answers(house.address, Some(STRANGER), vec![call()]).await.remove(0);
    assert!(served.starts_with("HTTP/1.1 200"), "{served}");
}

/// A folder of the test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-near-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn at_socket(path: &Path, request: String) -> String {
    let path = path.to_owned();
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    in_time(asked).await.unwrap()
}

#[tokio::test]
async fn x04_the_socket_serves_its_user_and_no_page() {
    let folder = Folder::new("socket");
    let path = folder.0.join("gateway.sock");
    let us = geteuid().as_raw();
    for (users, admitted) in [(String::new(), true), (format!("local_users = [{}]", us + 1), false)] {
        let text = format!("[gateway]\nlisten = 'off'\nsocket = '{}'\n{users}\n{ONE}", path.display());
        let config = config(&text);
        let doors = Doors::open(&config.gateway, None).unwrap();
        assert_eq!((doors.address(), doors.socket()), (None, Some(&*path)));
        assert_eq!(std::fs::symlink_metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let gateway = Gateway::start(config);
        let (stop, stopped) = oneshot::channel::<()>();
        let of = gateway.clone();
        let served = tokio::spawn(async move {
            front::serve(&of, doors, async {
                let _ = stopped.await;
            })
            .await
        });
        let answer = at_socket(&path, call()).await;
        let status = if admitted { "HTTP/1.1 200" } else { "HTTP/1.1 403" };
        assert!(answer.starts_with(status), "{answer}");
        // No name led here, so none is asked for; and no browser can come this way.
        let strange = at_socket(&path, get("/mcp").replace("localhost", "evil.example")).await;
        assert_eq!(strange.starts_with("HTTP/1.1 403"), !admitted, "{strange}");
        let page = call().replace("Connection:", "Origin: http://localhost\r\nConnection:");
        assert!(at_socket(&path, page).await.starts_with("HTTP/1.1 403"));
        drop(stop);
        in_time(served).await.unwrap().unwrap();
        assert!(!path.exists(), "it goes with the gateway");
    }
}

#[tokio::test]
async fn g08_an_address_that_others_can_reach_is_refused_before_anything_is_started() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let mut settings = config(ONE).gateway;
        settings.listen = listen.parse().unwrap();
        let refused = Doors::open(&settings, None).unwrap_err().to_string();
        for choice in ["127.0.0.1", "listen = \"off\"", "insecure = true"] {
            assert!(refused.contains(choice), "{refused}");
        }
    }
}

#[tokio::test]
async fn o08_idle_connections_lock_nobody_out() {
    let house = House::up(&format!("[gateway]\nconnections = 64\n{ONE}")).await;
    let mut idle = Vec::new();
    for turn in 0..300 {
        let mut stream = tokio::net::TcpStream::connect(house.address).await.unwrap();
        // Nothing, half a header, half a body.
        let begin = match turn % 3 {
            0 => String::new(),
            1 => "POST /mcp HTTP/1.1\r\nHost: loc".to_owned(),
            _ => call().split_at(call().len() - 5).0.to_owned(),
        };
        stream.write_all(begin.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    for _ in 0..10 {
        let served = answers(house.address, None, vec![call()]).await.remove(0);
        assert!(served.starts_with("HTTP/1.1 200"), "{served}");
    }
}
