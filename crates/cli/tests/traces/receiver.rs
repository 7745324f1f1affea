//! A receiver of OTLP over HTTP, of our own: it reads what `opentelemetry-proto` says that a collector is sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::agent::PATIENCE;

pub(crate) struct Receiver {
    pub(crate) address: String,
    spans: Arc<(Mutex<Vec<Span>>, Condvar)>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let spans = Arc::<(Mutex<Vec<Span>>, Condvar)>::default();
        let kept = Arc::clone(&spans);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let more = receive(&stream);
                kept.0.lock().unwrap().extend(more);
                kept.1.notify_all();
            }
        });
        Self { address, spans }
    }

    /// All spans, once there is one that this is true of.
    pub(crate) fn until(&self, wanted: impl Fn(&Span) -> bool) -> Vec<Span> {
        let (spans, changed) = &*self.spans;
        let waits = |spans: &mut Vec<Span>| !spans.iter().any(&wanted);
        let (spans, timeout) = changed.wait_timeout_while(spans.lock().unwrap(), PATIENCE, waits).unwrap();
        assert!(!timeout.timed_out(), "{spans:#?}");
        spans.clone()
    }

    pub(crate) fn has_none(&self) -> bool {
        self.spans.0.lock().unwrap().is_empty()
    }
}

/// One request.
fn receive(mut stream: &TcpStream) -> Vec<Span> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push(line);
    }
    assert_eq!(head[0], "post /v1/traces http/1.1");
    assert!(head.iter().any(|line| line == "content-type: application/x-protobuf"), "{head:?}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
    for resource in &request.resource_spans {
        let named = resource.resource.iter().flat_map(|resource| &resource.attributes);
        let named: Vec<_> = named.filter(|pair| pair.key == "service.name").map(|pair| &pair.value).collect();
        assert!(format!("{named:?}").contains("\"linetender\""), "{named:?}");
    }
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// An attribute of a span, as text.
pub(crate) fn attribute(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|pair| pair.key == key)?.value.as_ref()?.value.as_ref()?;
    Some(match value {
        Value::StringValue(text) => text.clone(),
        Value::BoolValue(value) => value.to_string(),
        Value::IntValue(value) => value.to_string(),
        Value::DoubleValue(value) => value.to_string(),
        other => format!("{other:?}"),
    })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}
