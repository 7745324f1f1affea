//! The network: a bridge where agents, balancer and web servers are, and a namespace for each gateway and each NATS server.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use super::needs::run;

/// How many there are of each.
pub(super) const NODES: usize = 3;

/// Where gateways listen for agents.
const GATEWAY_PORT: u16 = 7331;

/// Where NATS listens for gateways, for its own and for whoever looks.
pub(super) const NATS_PORT: u16 = 4222;
pub(super) const ROUTES_PORT: u16 = 6222;
pub(super) const LOOKS_PORT: u16 = 8222;

/// A place in the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Agents, the balancer, and servers at an address.
    Hub,
    /// A gateway.
    Gateway(usize),
    /// A server of NATS.
    Nats(usize),
}

/// What a cut stops, seen from the place whose network it is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    Both,
    In,
    Out,
}

impl Place {
    /// Its namespace.
    pub(super) fn name(self) -> String {
        match self {
            Self::Hub => "hub".to_owned(),
            Self::Gateway(node) => format!("gateway-{}", node_name(node)),
            Self::Nats(node) => format!("nats-{node}"),
        }
    }

    pub(super) fn ip(self) -> Ipv4Addr {
        let last = |from: u8, node: usize| Ipv4Addr::new(10, 77, 0, from + u8::try_from(node).unwrap_or(0));
        match self {
            Self::Hub => Ipv4Addr::new(10, 77, 0, 1),
            Self::Nats(node) => last(11, node),
            Self::Gateway(node) => last(21, node),
        }
    }

    /// A command that runs there.
    pub(super) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = if self == Self::Hub {
            Command::new(program)
        } else {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &self.name()]).arg(program);
            command
        };
        command.stdin(Stdio::null());
        command
    }
}

/// Where agents reach a gateway without the balancer.
pub(super) fn gateway_address(node: usize) -> SocketAddr {
    (Place::Gateway(node).ip(), GATEWAY_PORT).into()
}

/// What a node of the fleet is called.
pub(super) fn node_name(node: usize) -> char {
    char::from(b'a' + u8::try_from(node).unwrap_or(0))
}

/// Makes all of it. It goes with the namespace that this process is in.
///
/// # Errors
/// If something of it cannot be made.
pub(super) fn build() -> Result<(), String> {
    std::fs::create_dir_all("/run/netns").map_err(|error| format!("/run/netns: {error}"))?;
    run(&["mount", "-t", "tmpfs", "none", "/run/netns"])?;
    // What libfaketime keeps there is named by process, and our processes have numbers of their own.
    run(&["mount", "-t", "tmpfs", "none", "/dev/shm"])?;
    run(&["ip", "link", "set", "lo", "up"])?;
    run(&["ip", "link", "add", "hub", "type", "bridge"])?;
    run(&["ip", "addr", "add", &format!("{}/24", Place::Hub.ip()), "dev", "hub"])?;
    run(&["ip", "link", "set", "hub", "up"])?;
    for place in (0..NODES).flat_map(|node| [Place::Gateway(node), Place::Nats(node)]) {
        let name = place.name();
        run(&["ip", "netns", "add", &name])?;
        run(&["ip", "link", "add", &name, "type", "veth", "peer", "name", "eth0", "netns", &name])?;
        run(&["ip", "link", "set", &name, "master", "hub", "up"])?;
        run(&["ip", "-n", &name, "addr", "add", &format!("{}/24", place.ip()), "dev", "eth0"])?;
        run(&["ip", "-n", &name, "link", "set", "lo", "up"])?;
        run(&["ip", "-n", &name, "link", "set", "eth0", "up"])?;
    }
    Ok(())
}

/// Drops all packets between a place and these others from now on: nothing is refused, nothing is closed.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn cut(at: Place, from: &[Place], way: Way) -> Result<(), String> {
    let ips: Vec<_> = from.iter().map(|place| place.ip().to_string()).collect();
    let ips = ips.join(", ");
    let mut rules = "add table ip drill\n".to_owned();
    for (hook, field, ways) in
        [("input", "saddr", [Way::Both, Way::In]), ("output", "daddr", [Way::Both, Way::Out])]
    {
        if ways.contains(&way) {
            let _ = writeln!(rules, "add chain ip drill {hook} {{ type filter hook {hook} priority 0; }}");
            let _ = writeln!(rules, "add rule ip drill {hook} ip {field} {{ {ips} }} drop");
        }
    }
    nft(at, &rules)
}

/// Everything that was cut there is whole again.
pub(super) fn mend(at: Place) {
    let _ = nft(at, "delete table ip drill\n");
}

/// All rules at once, or none.
fn nft(at: Place, rules: &str) -> Result<(), String> {
    use std::io::Write as _;
    let mut nft = at.command("nft");
    nft.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut nft = nft.spawn().map_err(|error| format!("nft: {error}"))?;
    if let Some(mut stdin) = nft.stdin.take() {
        stdin.write_all(rules.as_bytes()).map_err(|error| format!("nft: {error}"))?;
    }
    let done = nft.wait().map_err(|error| format!("nft: {error}"))?;
    if done.success() { Ok(()) } else { Err(format!("nft refused: {rules}")) }
}
