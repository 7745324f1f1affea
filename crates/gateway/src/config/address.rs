//! The forms of a resource's address that a filter compares.
//!
//! Servers hand an address to a URL parser before they look for the resource, and the parser makes one address of many
//! spellings: it drops tabs, line breaks and the port of the scheme, decodes the host, and resolves `..`. A filter that compared
//! the spelling alone could be passed by every other one. So both have to pass: the address as written, and what a parser makes
//! of it. The parser here is the one of the WHATWG, as in browsers, Node and Python's pydantic.

use std::borrow::Cow;

use url::{ParseError, Url};

use super::filter::{matches, name_as_read};

/// A resource's address, or a pattern for addresses, in all forms.
pub(super) struct Address<'a> {
    written: &'a str,
    /// What a URL parser makes of it.
    parsed: Option<String>,
    /// That without what is no part of the place: the user, the fragment, the dot behind a host, and the query of a file.
    bare: Option<String>,
}

impl<'a> Address<'a> {
    /// Reads an address that an agent asks for or a server lists. Returns `None` for one that no filter can judge.
    pub(super) fn of(written: &'a str) -> Option<Self> {
        // A parser drops these before it reads anything else.
        let is_cut = written.trim() != written || written.chars().any(char::is_control);
        if is_cut || goes_up(written) || goes_up(&uri_as_read(written)) {
            return None;
        }
        match Url::parse(written) {
            Ok(url) => Some(Self::parsed(written, url)),
            // A name without a scheme is an address to no parser, but may be one to a server.
            Err(ParseError::RelativeUrlWithoutBase) => Some(Self { written, parsed: None, bare: None }),
            Err(_) => None,
        }
    }

    /// Reads patterns: `*` is an ordinary character to a URL parser.
    pub(super) fn of_patterns(all: &'a [String]) -> Vec<Self> {
        let read = |written: &'a String| match Url::parse(written) {
            Ok(url) => Self::parsed(written, url),
            Err(_) => Self { written, parsed: None, bare: None },
        };
        all.iter().map(read).collect()
    }

    fn parsed(written: &'a str, url: Url) -> Self {
        let parsed = String::from(url.as_str());
        let bare = bare(url);
        Self {
            written,
            bare: (bare != parsed).then_some(bare),
            parsed: (parsed != written).then_some(parsed),
        }
    }

    /// The form as written, and what a URL parser makes of it if that differs.
    fn whole(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.written).chain(self.parsed.as_deref())
    }

    fn forms(&self) -> impl Iterator<Item = &str> {
        self.whole().chain(self.bare.as_deref())
    }

    /// True if each form is within one of these patterns.
    pub(super) fn is_within(&self, patterns: &[Self]) -> bool {
        let whole = |form: &str| patterns.iter().any(|pattern| pattern.whole().any(|own| matches(own, form)));
        let bare = |form: &str| patterns.iter().any(|pattern| pattern.forms().any(|own| matches(own, form)));
        self.whole().all(whole) && self.bare.as_deref().is_none_or(bare)
    }

    /// True if one of these patterns is of any form, as it is spelt or as a lenient server might read it.
    pub(super) fn is_among(&self, patterns: &[Self]) -> bool {
        if patterns.is_empty() {
            return false;
        }
        let forms = self.forms().flat_map(|form| {
            let path = form.split('#').next().unwrap_or(form);
            let bare = path.split('?').next().unwrap_or(path);
            [form, path, bare, bare.trim_end_matches('/')]
        });
        let mut forms: Vec<_> = forms.flat_map(|form| [form.into(), Cow::Owned(uri_as_read(form))]).collect();
        forms.sort_unstable();
        forms.dedup();
        let hides = |pattern: &str| forms.iter().any(|form| matches(pattern, form));
        patterns.iter().flat_map(Self::whole).any(|own| hides(own) || hides(&uri_as_read(own)))
    }
}

fn bare(mut url: Url) -> String {
    // An address without a host has no user either, and refuses to be given none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.scheme() == "file" {
        url.set_query(None);
    }
    let host = url.host_str().and_then(|host| host.strip_suffix('.')).map(str::to_owned);
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        let _ = url.set_host(Some(&host));
    }
    url.into()
}

/// Returns an address as a lenient reader might read it: decoded, with one kind of slash and one of each.
fn uri_as_read(uri: &str) -> String {
    let mut read = String::with_capacity(uri.len());
    for character in name_as_read(&decoded(uri)).chars() {
        let character = if character == '\\' { '/' } else { character };
        if !(character == '/' && read.ends_with('/')) {
            read.push(character);
        }
    }
    match read.strip_prefix("file:/localhost/") {
        Some(path) => format!("file:/{path}"),
        None => read,
    }
}

fn decoded(uri: &str) -> Cow<'_, str> {
    if !uri.contains('%') {
        return uri.into();
    }
    let (bytes, mut read, mut at) = (uri.as_bytes(), Vec::with_capacity(uri.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = uri.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let hidden = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        read.push(hidden.unwrap_or(*byte));
        at += if hidden.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&read).into_owned().into()
}

/// True if the address has a segment that leads elsewhere than it is spelt.
fn goes_up(uri: &str) -> bool {
    let is_dots = |segment: &str| {
        let dots = segment.to_ascii_lowercase().replace("%2e", ".");
        matches!(&*dots, "." | "..")
    };
    let path = uri
        .split(['?', '#'])
        .next()
        .unwrap_or(uri)
        .to_ascii_lowercase()
        .replace("%2f", "/")
        .replace("%5c", "/");
    path.split(['/', '\\']).any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::Address;
    use crate::config::filter::Filter;
    use serde_json::Value;
    use url::Url;

    const SPELLINGS: &str = include_str!("../../tests/data/addresses.json");

    #[test]
    fn an_address_is_read_as_servers_read_it() {
        let all: Value = serde_json::from_str(SPELLINGS).unwrap();
        let all = ["hidden", "outside", "fine"].map(|of| all[of].as_array().unwrap().clone());
        for one in all.iter().flatten() {
            let uri = one["uri"].as_str().unwrap();
            let read = Url::parse(uri).ok().map(String::from);
            // The crate drops one slash more than the standard says; filters take doubled slashes for one.
            let read = read.map(|read| read.replace("file:////", "file:///"));
            let reads = one["reads"].as_str().map(|reads| reads.replace("file:////", "file:///"));
            assert_eq!(read, reads, "{uri:?}");
        }
        assert!(all.iter().flatten().count() > 150);
    }

    #[test]
    fn what_no_parser_reads_is_not_judged_but_a_plain_name_is() {
        for refused in [
            "https://intra.example:99999/x",
            "note://channel:general",
            "https://a b/x",
            "note://a\u{0}",
            "note://a\u{7f}",
            "\u{a0}note://a",
        ] {
            assert!(Address::of(refused).is_none(), "{refused:?}");
        }
        let filter = Filter { include: vec!["notes*".into()], exclude: vec!["notes/secret".into()] };
        assert!(filter.lets_uri("notes") && filter.lets_uri("notes/a"));
        assert!(!filter.lets_uri("notes/secret") && !filter.lets_uri("Notes"));
        let open = Filter::default();
        assert!(
            open.lets_uri("note://channel:general") && open.lets_uri("file:///a/../b"),
            "nothing is hidden"
        );
    }

    #[test]
    fn a_pattern_is_read_as_an_address_is() {
        for (pattern, uri, is_shown, is_hidden) in [
            ("HTTPS://Intra.example:443/a/*", "https://intra.example/a/x", true, true),
            ("https://b\u{fc}cher.example/*", "https://xn--bcher-kva.example/x", true, true),
            // Only what is spelt like a pattern, or as a parser writes it, is shown.
            ("https://xn--bcher-kva.example/*", "https://b\u{fc}cher.example/x", false, true),
            ("file:/a/*", "file:///a/x", true, true),
            ("file:///a/{id}", "file:///a/{id}", true, true),
            ("file:///a/*", "file:///a/{+path}", true, true),
            ("https://alice@host/*", "https://alice@host/x", true, true),
            ("https://alice@host/*", "https://bob@host/x", false, false),
            ("https://alice@host/*", "https://host/x", false, false),
            ("https://*.example/q?a=*", "https://x.example/q?a=b", true, true),
            ("*://a/*", "note://a/b", true, true),
            ("*", "note://a", true, true),
        ] {
            let shows = Filter { include: vec![pattern.into()], exclude: Vec::new() };
            assert_eq!(shows.lets_uri(uri), is_shown, "{pattern} {uri}");
            let hides = Filter { include: Vec::new(), exclude: vec![pattern.into()] };
            assert_eq!(!hides.lets_uri(uri), is_hidden, "{pattern} {uri}");
        }
    }
}
