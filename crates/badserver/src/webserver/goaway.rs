//! An HTTP/2 server that disowns a stream it was sent. Written by hand, because a real one would never do it.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;
const LARGEST_FRAME: u32 = 16_384;
const HEADERS: u8 = 1;
/// Empty SETTINGS, as a server's first frame has to be.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// GOAWAY: the last stream we may have looked at is 0, and there was no error.
const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Reads up to the first request's headers, disowns it, and closes once the peer has.
pub(super) async fn disown(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = converse(&mut stream).await;
}

async fn converse(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> std::io::Result<()> {
    stream.read_exact(&mut [0; PREFACE]).await?;
    stream.write_all(&SETTINGS).await?;
    let mut payload = Vec::new();
    loop {
        let mut head = [0; FRAME_HEAD];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]).min(LARGEST_FRAME);
        payload.resize(length as usize, 0);
        stream.read_exact(&mut payload).await?;
        if head[3] == HEADERS {
            break;
        }
    }
    stream.write_all(&GOAWAY).await?;
    // What is still sent is read away, or the kernel would reset and the frame could be lost.
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(())
}
