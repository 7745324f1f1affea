//! Real handshakes over real sockets, in virtual time where a clock decides.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::files::Stamp;
use super::{LOOK, Tls};
use crate::budget::Budget;
use crate::config::Settings;
use crate::front::activity::{Activity, HEAD};
use crate::front::caller::Caller;
use crate::front::connections::{ASKS, Entrance, serve};
use crate::front::doors::Doors;
use crate::front::places::Places;

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A folder with a certificate and its key.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("linetender-tls-{}-{name}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn certificate(&self) -> PathBuf {
        self.0.join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    fn write(&self, certificate: &str, key: &str) {
        fs::write(self.certificate(), certificate).unwrap();
        fs::write(self.key(), key).unwrap();
        self.key_mode(0o600);
    }

    fn key_mode(&self, mode: u32) {
        fs::set_permissions(self.key(), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A new certificate with its key.
    fn renew(&self) -> CertificateDer<'static> {
        let made = made();
        self.write(&made.cert.pem(), &made.signing_key.serialize_pem());
        made.cert.der().clone()
    }

    fn settings(&self) -> Settings {
        let file = |path: PathBuf| Some(path.try_into().unwrap());
        Settings {
            tls_certificate: file(self.certificate()),
            tls_key: file(self.key()),
            ..Settings::default()
        }
    }

    /// Why it cannot be served with these files.
    fn refusal(&self) -> String {
        Tls::of(&self.settings()).map(|_| "none").unwrap_err()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn made() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// A house with so many places. It stands for as long as what is returned.
async fn house(folder: &Folder, places: usize) -> (JoinSet<()>, watch::Sender<bool>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (closing, closes) = watch::channel(false);
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/large", get(async || vec![b'x'; 8 * 1024 * 1024]));
    let settings = folder.settings();
    let entrance = Entrance::new(&settings, None, router, Budget::new(usize::MAX), ASKS);
    let doors = Doors::over(&settings, listener).unwrap();
    assert_eq!(doors.url().unwrap(), format!("https://{at}/mcp"));
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(doors.open, Places::new(places), entrance, closes));
    (tasks, closing, at)
}

/// Waits for sockets while the clock stands still, as in the tests of connections.
async fn in_no_time<T>(socket: impl Future<Output = T>) -> T {
    let (done, waits) = std::sync::mpsc::channel::<()>();
    let holds = tokio::task::spawn_blocking(move || waits.recv());
    let result = socket.await;
    drop(done);
    let _ = holds.await;
    result
}

/// Whoever trusts this certificate, and speaks these.
fn trusting(certificate: &CertificateDer<'static>, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

async fn connect(at: SocketAddr, config: &Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(at).await?;
    TlsConnector::from(Arc::clone(config)).connect(name(), stream).await
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

async fn asks(stream: &mut TlsStream<TcpStream>) -> bool {
    if stream.write_all(ASK).await.is_err() {
        return false;
    }
    let mut answer = Vec::new();
    while !answer.ends_with(b"here") {
        if !matches!(stream.read_buf(&mut answer).await, Ok(read) if read > 0) {
            return false;
        }
    }
    true
}

/// How a client begins.
fn hello() -> Vec<u8> {
    let config = trusting(made().cert.der(), &["http/1.1"]);
    let mut bytes = Vec::new();
    ClientConnection::new(config, name()).unwrap().write_tls(&mut bytes).unwrap();
    bytes
}

/// How long it takes until a peer is hung up on. The paused clock goes in small steps, so that it does not run ahead of sockets.
async fn hung_up_after(peer: &mut (impl tokio::io::AsyncRead + Unpin)) -> Duration {
    let begun = Instant::now();
    while begun.elapsed() < HEAD * 10 {
        let read = tokio::time::timeout(Duration::from_millis(100), peer.read(&mut [0; 4096])).await;
        if matches!(read, Ok(Ok(0) | Err(_))) {
            break;
        }
    }
    begun.elapsed()
}

#[tokio::test]
async fn agents_choose_http2_or_http1_in_their_handshake() {
    let folder = Folder::new("alpn");
    let certificate = folder.renew();
    let (_tasks, _closing, at) = house(&folder, 8).await;
    for (offered, chosen) in
        [(&["h2", "http/1.1"] as &[_], Some("h2")), (&["http/1.1"], Some("http/1.1")), (&[], None)]
    {
        let stream = connect(at, &trusting(&certificate, offered)).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen.map(str::as_bytes));
        let request = |path: &str| {
            http::Request::get(format!("https://localhost:{}{path}", at.port()))
                .header("host", format!("localhost:{}", at.port()))
                .body(Empty::<bytes::Bytes>::new())
                .unwrap()
        };
        let mut tasks = JoinSet::new();
        for (path, length) in [("/", 4), ("/large", 8 * 1024 * 1024)] {
            let stream = connect(at, &trusting(&certificate, offered)).await.unwrap();
            let answer = if chosen == Some("h2") {
                let (mut send, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                        .await
                        .unwrap();
                tasks.spawn(async move { drop(connection.await) });
                send.send_request(request(path)).await.unwrap()
            } else {
                let (mut send, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
                tasks.spawn(async move { drop(connection.await) });
                send.send_request(request(path)).await.unwrap()
            };
            assert_eq!(answer.version() == http::Version::HTTP_2, chosen == Some("h2"));
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), length, "{chosen:?}");
        }
    }
    let gopher = connect(at, &trusting(&certificate, &["gopher"])).await.unwrap_err();
    assert!(gopher.to_string().contains("NoApplicationProtocol"), "{gopher}");
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_is_for_new_connections_and_the_old_ones_go_on() {
    let folder = Folder::new("renewed");
    let old = folder.renew();
    let (_tasks, _closing, at) = house(&folder, 8).await;
    let mut before = in_no_time(connect(at, &trusting(&old, &[]))).await.unwrap();
    assert!(in_no_time(asks(&mut before)).await);
    // What is half written, or not a pair, changes nothing.
    for broken in ["certificate", "key", "pair", "mode", "gone"] {
        let other = made();
        match broken {
            "certificate" => fs::write(folder.certificate(), "-----BEGIN CERTIF").unwrap(),
            "key" => fs::write(folder.key(), "").unwrap(),
            "pair" => fs::write(folder.certificate(), other.cert.pem()).unwrap(),
            "mode" => folder.key_mode(0o644),
            _ => fs::remove_file(folder.key()).unwrap(),
        }
        tokio::time::advance(LOOK).await;
        let mut still = in_no_time(connect(at, &trusting(&old, &[]))).await.expect(broken);
        assert!(in_no_time(asks(&mut still)).await, "{broken}");
    }
    let new = folder.renew();
    tokio::time::advance(LOOK).await;
    let mut after = in_no_time(connect(at, &trusting(&new, &[]))).await.unwrap();
    assert!(in_no_time(asks(&mut after)).await);
    assert!(in_no_time(connect(at, &trusting(&old, &[]))).await.is_err(), "the old one is shown to nobody");
    assert!(in_no_time(asks(&mut before)).await, "a connection from before was dropped");
}

#[tokio::test(start_paused = true)]
async fn files_are_looked_at_once_a_second_at_most() {
    let folder = Folder::new("looks");
    folder.renew();
    let tls = Tls::of(&folder.settings()).unwrap().unwrap();
    assert!(!tls.is_due());
    tokio::time::advance(LOOK).await;
    assert!(tls.is_due() && !tls.is_due());
    // What is broken is read and told of once, until it changes again.
    fs::write(folder.key(), "broken").unwrap();
    let broken = Stamp::of(&tls.files);
    assert_ne!(*tls.read.lock().unwrap(), broken);
    tls.look();
    assert_eq!(*tls.read.lock().unwrap(), broken);
}

#[test]
fn files_that_cannot_be_used_are_refused_with_a_sentence() {
    let folder = Folder::new("refused");
    let _ = folder.renew();
    let (certificate, key) = (folder.certificate(), folder.key());
    let refused = |words: &[&str]| {
        let refusal = folder.refusal();
        assert!(words.iter().all(|word| refusal.contains(word)), "{refusal}");
    };
    let [of_certificate, of_key] = [&certificate, &key].map(|path| path.display().to_string());
    for mode in [0o604, 0o644, 0o602] {
        folder.key_mode(mode);
        refused(&["every user of this machine", &of_key, &format!("chmod o= {of_key}")]);
    }
    folder.key_mode(0o640);
    assert!(Tls::of(&folder.settings()).is_ok(), "a group may be what hands out keys");
    fs::write(&certificate, made().cert.pem()).unwrap();
    refused(&["does not belong to", &of_key, &of_certificate]);
    fs::write(&certificate, "").unwrap();
    refused(&["no certificate in", &of_certificate]);
    let _ = folder.renew();
    fs::write(&key, fs::read_to_string(&key).unwrap().replace("PRIVATE", "ENCRYPTED PRIVATE")).unwrap();
    refused(&["no private key in", &of_key, "not encrypted"]);
    fs::write(&certificate, vec![b'x'; 2 * 1024 * 1024]).unwrap();
    refused(&[&of_certificate, "1 MiB"]);
    fs::remove_file(&certificate).unwrap();
    refused(&["cannot read", &of_certificate]);
    rustix::fs::mknodat(rustix::fs::CWD, &certificate, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    refused(&[&of_certificate, "not a file"]);
    let half = Settings { tls_key: None, ..folder.settings() };
    assert_eq!(Tls::of(&half).map(|_| ()).unwrap_err(), "tls_certificate needs tls_key");
}

/// The key inside of PKCS#8, which is SEC1 for ECDSA and PKCS#1 for RSA.
fn inner(pkcs8: &[u8]) -> &[u8] {
    /// Tag, content, and what comes behind it.
    fn part(der: &[u8]) -> (u8, &[u8], &[u8]) {
        let (length, head) = match der[1] {
            short @ 0..0x80 => (usize::from(short), 2),
            long => {
                let digits = usize::from(long & 0x7f);
                (der[2..2 + digits].iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), 2 + digits)
            }
        };
        (der[0], &der[head..head + length], &der[head + length..])
    }
    let (_, mut rest, _) = part(pkcs8);
    loop {
        match part(rest) {
            (4, key, _) => return key,
            (_, _, behind) => rest = behind,
        }
    }
}

#[test]
fn keys_may_be_written_as_pkcs8_pkcs1_or_sec1() {
    let folder = Folder::new("forms");
    let rsa = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    for (key, form) in [(KeyPair::generate().unwrap(), "EC"), (rsa, "RSA")] {
        let of_host =
            rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        folder.write(&of_host.pem(), &key.serialize_pem());
        Tls::of(&folder.settings()).unwrap();
        let text = STANDARD.encode(inner(&key.serialize_der()));
        folder.write(
            &of_host.pem(),
            &format!("-----BEGIN {form} PRIVATE KEY-----\n{text}\n-----END {form} PRIVATE KEY-----\n"),
        );
        Tls::of(&folder.settings()).expect(form);
    }
}

#[tokio::test(start_paused = true)]
async fn o08_a_handshake_that_does_not_end_is_cut_in_its_time() {
    let folder = Folder::new("endless");
    folder.renew();
    let (_tasks, _closing, at) = house(&folder, 8).await;
    let hello = hello();
    for (what, sent) in [("nothing", 0), ("half", hello.len() / 2), ("all but the end", hello.len())] {
        let mut peer = TcpStream::connect(at).await.unwrap();
        peer.write_all(&hello[..sent]).await.unwrap();
        let after = hung_up_after(&mut peer).await;
        assert!(after <= HEAD + Duration::from_secs(2), "{what}: {after:?}");
    }
    let mut drips = TcpStream::connect(at).await.unwrap();
    let begun = Instant::now();
    for byte in &hello {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if drips.write_all(&[*byte]).await.is_err() {
            break;
        }
    }
    assert!(begun.elapsed() < HEAD * 2, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn after_its_handshake_a_connection_has_all_the_time_of_others() {
    let folder = Folder::new("idle");
    let certificate = folder.renew();
    let (_tasks, _closing, at) = house(&folder, 8).await;
    let mut agent = in_no_time(connect(at, &trusting(&certificate, &[]))).await.unwrap();
    tokio::time::sleep(HEAD * 5).await;
    assert!(in_no_time(asks(&mut agent)).await, "it was hung up on");
    // A header that does not end, on the other hand.
    agent.write_all(&ASK[..10]).await.unwrap();
    let after = hung_up_after(&mut agent).await;
    assert!(after <= HEAD + Duration::from_secs(2), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn o08_five_hundred_unfinished_handshakes_hold_nobody_up() {
    let hello = hello();
    for places in [64, 1000] {
        let folder = Folder::new(&format!("crowd-{places}"));
        let certificate = folder.renew();
        let (_tasks, _closing, at) = house(&folder, places).await;
        let begun = Instant::now();
        let mut crowd = Vec::new();
        for turn in 0..500 {
            let mut peer = in_no_time(TcpStream::connect(at)).await.unwrap();
            let sent = [0, 1, hello.len() / 2, hello.len()][turn % 4];
            let _ = in_no_time(peer.write_all(&hello[..sent])).await;
            crowd.push(peer);
        }
        for _ in 0..4 {
            let mut good = in_no_time(connect(at, &trusting(&certificate, &[]))).await.unwrap();
            assert!(in_no_time(asks(&mut good)).await);
        }
        assert!(begun.elapsed() < HEAD, "{places}: {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn o08_one_step_of_one_handshake_is_done_at_a_time() {
    let folder = Folder::new("turns");
    let certificate = folder.renew();
    let tls = Tls::of(&folder.settings()).unwrap().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let config = trusting(&certificate, &[]);
    let mut client = Box::pin(connect(at, &config));
    let activity = Activity::new(Caller::User(1));
    let mut server = Box::pin(async {
        let (stream, _) = listener.accept().await.unwrap();
        Arc::clone(&tls).handshake(stream, &activity).await
    });
    let turn = tls.turns.turn(7).await;
    let both = async { tokio::join!(&mut client, &mut server) };
    assert!(tokio::time::timeout(HEAD, both).await.is_err(), "it did not wait for its turn");
    drop(turn);
    let turn = tokio::select! {
        biased;
        client = &mut client => {
            client.unwrap();
            tls.turns.turn(7).await
        }
        _ = &mut server => panic!("it did not wait for the client"),
    };
    assert!(
        tokio::time::timeout(HEAD, &mut server).await.is_err(),
        "its last step did not wait for its turn"
    );
    drop(turn);
    server.await.unwrap();
}

#[tokio::test]
async fn whoever_speaks_plain_http_is_told_to_use_https() {
    let folder = Folder::new("plain");
    folder.renew();
    let (_tasks, _closing, at) = house(&folder, 8).await;
    let long =
        [b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40000\r\n\r\n" as &[_], &vec![b'x'; 40000]]
            .concat();
    for said in [ASK, &long, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut peer = TcpStream::connect(at).await.unwrap();
        peer.write_all(said).await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
        assert_eq!(body, "this port speaks TLS: use https://\n");
    }
    // One that has not said all of it when the answer comes is not reset: it may look at the answer only then.
    let mut slow = TcpStream::connect(at).await.unwrap();
    for piece in long[..2000].chunks(500) {
        slow.write_all(piece).await.expect("it was reset");
        slow.readable().await.unwrap();
        tokio::task::yield_now().await;
    }
    slow.shutdown().await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
}

#[tokio::test]
async fn at_the_end_nobody_waits_for_a_handshake() {
    let folder = Folder::new("closing");
    let certificate = folder.renew();
    let (mut tasks, closing, at) = house(&folder, 8).await;
    let mut peer = TcpStream::connect(at).await.unwrap();
    peer.write_all(&hello()[..10]).await.unwrap();
    // By now it has been accepted.
    assert!(asks(&mut connect(at, &trusting(&certificate, &[])).await.unwrap()).await);
    closing.send_replace(true);
    tokio::time::timeout(HEAD / 2, tasks.join_next()).await.expect("it waits");
}
