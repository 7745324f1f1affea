//! Where the gateway listens, and to whom.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a file says that there is none.
const OFF: &str = "off";

/// Where agents connect over TCP.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Listen {
    /// This address and port.
    Address(SocketAddr),
    /// Nowhere: the Unix socket alone.
    Off,
}

impl Listen {
    /// The address, if there is one.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == OFF {
            return Ok(Self::Off);
        }
        let wrong = |_| "expected an IP address with a port, such as 127.0.0.1:7331, or \"off\"".to_owned();
        text.parse().map(Self::Address).map_err(wrong)
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> Self {
        listen.to_string()
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Off => f.write_str(OFF),
        }
    }
}

/// The Unix socket beside the address.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Socket {
    /// At this path.
    Path(PathBuf),
    /// There is none.
    Off,
}

impl Socket {
    /// The path, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Off => None,
        }
    }
}

impl TryFrom<String> for Socket {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match PathBuf::from(&text) {
            _ if text == OFF => Ok(Self::Off),
            path if path.is_absolute() => Ok(Self::Path(path)),
            _ => Err("expected an absolute path, or \"off\"".to_owned()),
        }
    }
}

impl From<Socket> for String {
    fn from(socket: Socket) -> Self {
        match socket {
            Socket::Path(path) => path.to_string_lossy().into_owned(),
            Socket::Off => OFF.to_owned(),
        }
    }
}

/// A user of this machine.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LocalUser {
    /// By number.
    Uid(u32),
    /// By name, as in `/etc/passwd`.
    Name(String),
}

/// Why the gateway must not listen as it is told to, if that is so.
pub(super) fn refusal(
    listen: Listen,
    insecure: bool,
    users: Option<&[LocalUser]>,
    auth: bool,
) -> Option<String> {
    let insecure_set = "`insecure = true` in [gateway] (or --insecure)";
    match listen.address() {
        _ if insecure && auth => {
            Some("`insecure = true` admits everybody, so `auth` has no effect: remove one of them".to_owned())
        }
        Some(address) if !insecure && !auth && !address.ip().to_canonical().is_loopback() => Some(format!(
            "refusing to listen on {address}: everybody who can reach this address could call the tools, and agents are not \
             authenticated. Authenticate them ([gateway.auth]), listen on 127.0.0.1 or [::1], or on the Unix socket alone \
             (`listen = \"off\"`); or admit everybody with {insecure_set}"
        )),
        _ if insecure && users.is_some() => Some(
            "`insecure = true` admits everybody, so `local_users` has no effect: remove one of them"
                .to_owned(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Listen, LocalUser, Socket, refusal};

    #[test]
    fn g08_only_loopback_is_served_without_a_word() {
        for (listen, insecure, is) in [
            ("127.0.0.1:7331", false, true),
            ("127.9.9.9:0", false, true),
            ("[::1]:7331", false, true),
            ("[::ffff:127.0.0.1]:7331", false, true),
            ("off", false, true),
            ("0.0.0.0:7331", false, false),
            ("[::]:7331", false, false),
            ("192.168.1.5:7331", false, false),
            ("0.0.0.0:7331", true, true),
        ] {
            let refused = refusal(listen.parse().unwrap(), insecure, None, false);
            assert_eq!(refused.is_none(), is, "{listen} {insecure}: {refused:?}");
        }
        let everywhere = "0.0.0.0:7331".parse().unwrap();
        assert!(refusal(everywhere, false, None, true).is_none(), "agents are authenticated");
        assert!(refusal(everywhere, true, None, true).is_some(), "they contradict");
        let named = [LocalUser::Uid(1)];
        assert!(
            refusal("127.0.0.1:1".parse().unwrap(), true, Some(&named), false).is_some(),
            "they contradict"
        );
    }

    #[test]
    fn addresses_and_sockets_are_written_as_they_are_read() {
        for text in ["127.0.0.1:7331", "off"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert!("localhost:7331".parse::<Listen>().is_err());
        for text in ["/run/x.sock", "off"] {
            assert_eq!(String::from(Socket::try_from(text.to_owned()).unwrap()), text);
        }
        assert!(Socket::try_from("x.sock".to_owned()).is_err());
    }
}
