//! What a scrape costs: alone in its process, for it looks at the memory of it.

use linetender::{Rig, Server};
use linetender_admin::{Admin, Options, Secret};
use linetender_holder::Holder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const TOKEN: &str = "0123456789abcdef";

/// Of this process, in KiB: this, or the most that it ever was.
fn memory(of: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(of)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrape_of_a_thousand_lines_takes_less_than_16_mib() {
    let holder = Holder::new("serve", None, None);
    let rig = Rig::new().followed_by(holder.clone());
    let lines: Vec<_> =
        (0..1000).map(|at| rig.lazy(Server::stdio(format!("server-{at}"), ["true"]))).collect();
    let options = Options {
        listen: ([127, 0, 0, 1], 0).into(),
        token: Secret::Text(TOKEN.to_owned()),
        hosts: Vec::new(),
        certificate: None,
    };
    let admin = Admin::open(options).await.unwrap();
    let address = admin.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut tasks = JoinSet::new();
    tasks.spawn(admin.serve(holder));
    let before = memory("VmRSS:");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let ask = format!(
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    // It is read into nothing, and looked at for two words only.
    let (mut buffer, mut read, mut seen) = (vec![0; 64 * 1024], 0, false);
    loop {
        let length = stream.read(&mut buffer).await.unwrap();
        if length == 0 {
            break;
        }
        read += length;
        seen |= buffer[..length].windows(11).any(|window| window == b"server-999\"");
    }
    assert!(seen && read > 4_000_000, "{read} bytes");
    let grown = memory("VmHWM:").saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB for {read} bytes");
    println!("{grown} KiB for {read} bytes");
    drop(lines);
}
