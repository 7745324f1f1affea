//! A tunnel through an HTTP proxy.

use http::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::OverTcp;
use crate::http::broken::{Broken, Phase};
use crate::http::endpoint::Endpoint;

/// The longest answer of a proxy to CONNECT.
const HEAD_LIMIT: usize = 16 * 1024;

/// Asks for a tunnel to the server.
pub(super) async fn tunnel(
    stream: &mut OverTcp,
    to: &Endpoint,
    auth: Option<&HeaderValue>,
) -> Result<(), Broken> {
    let failed = |words: String| Broken::unsent(Phase::Proxy { config: false }, words);
    let host = if to.host().contains(':') { format!("[{}]", to.host()) } else { to.host().to_owned() };
    let target = format!("{host}:{}", to.port());
    let mut ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(auth) = auth {
        ask.extend_from_slice(b"Proxy-Authorization: ");
        ask.extend_from_slice(auth.as_bytes());
        ask.extend_from_slice(b"\r\n");
    }
    ask.extend_from_slice(b"\r\n");
    stream.write_all(&ask).await.map_err(|error| failed(error.to_string()))?;
    let head = head(stream).await.map_err(failed)?;
    match status(&head) {
        Some(200..=299) => Ok(()),
        Some(407) => {
            Err(Broken::unsent(Phase::Proxy { config: true }, "the proxy requires authentication (HTTP 407)"))
        }
        Some(status) => Err(failed(format!("the proxy returned HTTP {status} to CONNECT"))),
        None => Err(failed("the proxy sent no HTTP response".to_owned())),
    }
}

/// Byte by byte: what comes behind the head belongs to the tunnel.
async fn head(stream: &mut OverTcp) -> Result<Vec<u8>, String> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_LIMIT {
            return Err(format!("the proxy's response header is longer than {HEAD_LIMIT} bytes"));
        }
        let byte = stream.read_u8().await.map_err(|error| format!("no response to CONNECT: {error}"))?;
        head.push(byte);
    }
    Ok(head)
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(line.get(2..5)?).ok()?.parse().ok()
}
