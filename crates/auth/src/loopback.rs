//! Where the browser comes back to on a person's own machine. RFC 8252, 7.3: a port of this machine that nobody else reaches.
//!
//! It serves one page and nothing else. Whatever does not belong to the login (icons, early connections, a stranger's page that
//! tries its luck) is answered and forgotten; everything is bounded.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::error::{Error, ErrorKind};
use crate::login::Pending;

/// The path of the address.
const PATH: &str = "/callback";

/// The longest head of a request, and how long it may take.
const HEAD: usize = 16 * 1024;
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// Browsers open some connections ahead. When there are more, the oldest gives way: whoever opens many and says nothing keeps
/// nobody out.
const CONNECTIONS: usize = 64;

/// A listener that waits for a browser.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    redirect_uri: String,
}

impl Loopback {
    /// On the port of this address if it is free, else on any.
    pub(crate) async fn open(registered: Option<&str>) -> Result<Self, Error> {
        let port = registered.and_then(port_of);
        let mut listener = None;
        if let Some(port) = port {
            listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.ok();
        }
        let listener = match listener {
            Some(listener) => Ok(listener),
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
        };
        let opened = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (port, listener) =
            opened.map_err(|error| Error::store("open a port on 127.0.0.1 for the browser", &error))?;
        Ok(Self { listener, redirect_uri: format!("http://127.0.0.1:{port}{PATH}") })
    }

    /// The address to which the browser is sent back.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the browser, and returns the address with which it came back. May be dropped and called again.
    ///
    /// # Errors
    /// If it does not come within this time.
    pub async fn wait(&self, pending: &Pending, within: Duration) -> Result<String, Error> {
        timeout(within, self.come(pending)).await.unwrap_or_else(|_| {
            let words = format_args!("no browser came back from {} within {within:?}", pending.issuer());
            Err(Error::new(ErrorKind::Refused, words))
        })
    }

    async fn come(&self, pending: &Pending) -> Result<String, Error> {
        let mut guests = JoinSet::new();
        let mut oldest = VecDeque::new();
        loop {
            tokio::select! {
                Some(asked) = guests.join_next(), if !guests.is_empty() => {
                    let Ok(Some((target, stream))) = asked else { continue };
                    let redirected = format!("{}{target}", self.origin());
                    let is_ours = pending.is_ours(&redirected);
                    answer(stream, is_ours).await;
                    if is_ours {
                        return Ok(redirected);
                    }
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        oldest.retain(|guest: &AbortHandle| !guest.is_finished());
                        if oldest.len() >= CONNECTIONS && let Some(first) = oldest.pop_front() {
                            first.abort();
                        }
                        oldest.push_back(guests.spawn(asked(stream)));
                    }
                    Err(error) => return Err(Error::store("wait for the browser", &error)),
                },
            }
        }
    }

    fn origin(&self) -> &str {
        self.redirect_uri.strip_suffix(PATH).unwrap_or_default()
    }
}

/// What is asked for, if it is a GET that can be read.
async fn asked(mut stream: TcpStream) -> Option<(String, TcpStream)> {
    let mut head = Vec::new();
    let reading = async {
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if head.len() >= HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        Some(())
    };
    timeout(HEAD_WITHIN, reading).await.ok()??;
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET" && target.starts_with('/')).then(|| (target.to_owned(), stream))
}

async fn answer(mut stream: TcpStream, is_ours: bool) {
    let (status, page) = if is_ours {
        (
            "200 OK",
            "<h1>linetender has received the login.</h1><p>You can close this window. The terminal shows whether it worked.</p>",
        )
    } else {
        ("404 Not Found", "<h1>Nothing is here.</h1><p>This address waits for the end of a login.</p>")
    };
    let body = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>linetender</title><style>body{{font-family:sans-serif;margin:4em}}</style>{page}</html>"
    );
    // The code stands in this page's address: it goes nowhere else.
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let writing = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    // A browser that does not read it has brought what it was to bring.
    let _ = timeout(Duration::from_secs(2), writing).await;
}

fn port_of(redirect_uri: &str) -> Option<u16> {
    let port = redirect_uri.strip_prefix("http://127.0.0.1:")?.strip_suffix(PATH)?;
    port.parse().ok().filter(|port| *port > 0)
}
