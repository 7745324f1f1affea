//! A small body that is a large one when unpacked.

use flate2::{Compress, Compression, Crc, FlushCompress};
use serde_json::Value;

const CHUNK: usize = 1 << 20;
/// A gzip header without name or time.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// An answer with a text of this many bytes, as gzip. One chunk is packed once and repeated, so that it costs nothing.
pub(super) fn gzip(id: &Value, bytes: u64) -> Vec<u8> {
    let mut crc = Crc::new();
    let mut packed = HEAD.to_vec();
    let first = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    packed.extend(pack(first.as_bytes(), FlushCompress::Full));
    crc.update(first.as_bytes());

    let chunk = vec![b'x'; CHUNK];
    let repeated = pack(&chunk, FlushCompress::Full);
    let mut of_chunk = Crc::new();
    of_chunk.update(&chunk);
    for _ in 0..bytes.div_ceil(CHUNK as u64) {
        packed.extend(&repeated);
        crc.combine(&of_chunk);
    }

    let last = br#""}]}}"#;
    packed.extend(pack(last, FlushCompress::Finish));
    crc.update(last);
    packed.extend(crc.sum().to_le_bytes());
    packed.extend(crc.amount().to_le_bytes());
    packed
}

/// A piece of a deflate stream that needs nothing that came before it.
fn pack(bytes: &[u8], flush: FlushCompress) -> Vec<u8> {
    let mut packed = Vec::with_capacity(bytes.len() / 100 + 256);
    let _ = Compress::new(Compression::fast(), false).compress_vec(bytes, &mut packed, flush);
    packed
}
