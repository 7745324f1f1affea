//! A browser with a person who agrees to everything: follows redirects and keeps cookies.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// An answer: status, headers in lower case, body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// One request to an `http://` address.
pub(crate) fn ask(method: &str, url: &str, headers: &str, body: &str) -> Answer {
    let rest = url.strip_prefix("http://").expect("an http address");
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Answer { status, headers, body: body.to_owned() }
}

/// Visits an address, and returns the first redirect that leads back.
pub(crate) fn visit(url: &str, back: &str) -> String {
    let mut url = url.to_owned();
    let mut cookies = BTreeMap::new();
    for _ in 0..10 {
        if url.starts_with(back) {
            return url;
        }
        let jar: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = ask("GET", &url, &format!("Cookie: {}\r\n", jar.join("; ")), "");
        let named = |wanted: &'static str| {
            answer.headers.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| value.clone())
        };
        for cookie in named("set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let location = named("location").next();
        let location = location.unwrap_or_else(|| panic!("{url}: {} {}", answer.status, answer.body));
        let origin: Vec<_> = url.splitn(4, '/').take(3).collect();
        url = if location.starts_with('/') { format!("{}{location}", origin.join("/")) } else { location };
    }
    panic!("too many redirects at {url}");
}
