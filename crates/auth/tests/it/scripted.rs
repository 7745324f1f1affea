//! An HTTP server that answers by a list: for metadata that no real server would publish.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What is answered at a path: status, headers and body.
pub(crate) type Answers = HashMap<String, (u16, String, String)>;

pub(crate) struct Scripted {
    pub(crate) origin: String,
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (answers, asked) = (Arc::<Mutex<Answers>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (known, seen) = (Arc::clone(&answers), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&head).into_owned();
                let mut words = text.split(' ');
                let what =
                    format!("{} {}", words.next().unwrap_or_default(), words.next().unwrap_or_default());
                seen.lock().unwrap().push(what.clone());
                let answer = known.lock().unwrap().get(&what).cloned();
                let (status, headers, body) = answer.unwrap_or((404, String::new(), "{}".to_owned()));
                let length = body.len();
                let reply = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
                );
                let _ = stream.write_all(reply.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { origin, answers, asked, task }
    }

    /// Answers so, from now on.
    pub(crate) fn put(&self, what: &str, status: u16, headers: &str, body: &Value) {
        let body = if let Value::String(text) = body { text.clone() } else { body.to_string() };
        self.answers.lock().unwrap().insert(what.to_owned(), (status, headers.to_owned(), body));
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}
