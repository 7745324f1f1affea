//! How a server is reached, for whoever describes it.

use super::{Server, Target};

/// How a server is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Transport<'a> {
    /// A program, over its standard input and output.
    Pipe,
    /// HTTP over a Unix socket, or at an address that cannot be read.
    Local,
    /// HTTP.
    Tcp {
        /// The host in its address.
        host: &'a str,
        /// The port, named or not.
        port: u16,
    },
}

impl Server {
    pub(crate) fn transport(&self) -> Transport<'_> {
        match &self.target {
            Target::Stdio { .. } => Transport::Pipe,
            Target::Http(address) => {
                match address.endpoint().filter(|endpoint| endpoint.socket().is_none()) {
                    Some(endpoint) => Transport::Tcp { host: endpoint.host(), port: endpoint.port() },
                    None => Transport::Local,
                }
            }
        }
    }
}
