//! Where a process can be reached.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A host and a port: `127.0.0.1:7401`, `[::1]:7401` or `db1.example:7401`. What a name means is
/// found out when it is used, and may change.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Endpoint(Place);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Place {
    Socket(SocketAddr),
    /// The name of a host, in lower case, and a port.
    Named(String, u16),
}

/// The text of no [`Endpoint`], and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadEndpoint {
    text: String,
    why: &'static str,
}

impl Endpoint {
    /// The address, unless the host has a name.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self.0 {
            Place::Socket(socket) => Some(socket),
            Place::Named(..) => None,
        }
    }

    /// The name of the host and the port, if the host has a name.
    pub fn named(&self) -> Option<(&str, u16)> {
        match &self.0 {
            Place::Socket(_) => None,
            Place::Named(host, port) => Some((host, *port)),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        match self.0 {
            Place::Socket(socket) => socket.port(),
            Place::Named(_, port) => port,
        }
    }

    /// Whether it stands for all addresses of a machine: one can listen there, but not be reached.
    pub fn is_unspecified(&self) -> bool {
        self.ip().is_some_and(|ip| ip.is_unspecified())
    }

    /// The address of the host, unless it has a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.socket().map(|socket| socket.ip())
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(socket: SocketAddr) -> Endpoint {
        Endpoint(Place::Socket(socket))
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        let bad = |why| BadEndpoint { text: text.to_owned(), why };
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(socket.into());
        }
        if text.parse::<std::net::Ipv6Addr>().is_ok() {
            return Err(bad("an IPv6 address stands in brackets, and a port after them"));
        }
        let Some((host, port)) = text.rsplit_once(':') else { return Err(bad("the port is missing")) };
        if host.contains([':', '[', ']']) {
            return Err(bad("an IPv6 address stands in brackets"));
        }
        if host.is_empty() {
            return Err(bad("the host is missing"));
        }
        // What the standard library takes for a number may have a sign.
        let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(port) = port else { return Err(bad("a port is a number from 0 to 65535")) };
        if !is_name(host) {
            return Err(bad("that is no name of a host, and no address"));
        }
        Ok(Endpoint(Place::Named(host.to_ascii_lowercase(), port)))
    }
}

/// Whether a host may have this name. One whose last part is a number is meant to be an address.
fn is_name(host: &str) -> bool {
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    let last = labels.clone().next_back().unwrap_or_default();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    host.len() <= 253 && labels.clone().all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Socket(socket) => socket.fmt(f),
            Place::Named(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl fmt::Display for BadEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadEndpoint { text, why } = self;
        write!(f, "`{text}`: {why}; write HOST:PORT, such as 127.0.0.1:7401, [::1]:7401 or db1.example:7401")
    }
}

impl std::error::Error for BadEndpoint {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_or_names_and_are_written_as_they_were_read() {
        for text in ["127.0.0.1:7401", "[::1]:7401", "[fe80::1%2]:7401", "0.0.0.0:1", "localhost:7401"] {
            let endpoint: Endpoint = text.parse().expect(text);
            assert_eq!(endpoint.to_string(), text);
            assert_eq!(endpoint.socket().is_none(), text.starts_with("local"));
        }
        for text in ["db1.example.org:65535", "db_1.:0", "3com.example:80", "a-b:1"] {
            let endpoint: Endpoint = text.parse().expect(text);
            assert_eq!(endpoint.named().map(|(host, port)| format!("{host}:{port}")).as_deref(), Some(text));
        }
        assert_eq!("DB1.Example:1".parse::<Endpoint>(), "db1.example:1".parse());
    }

    #[test]
    fn what_is_no_host_and_port_is_refused_with_a_sentence() {
        for (text, why) in [
            ("localhost", "the port is missing"),
            ("", "the port is missing"),
            (":7401", "the host is missing"),
            ("::1", "brackets, and a port after them"),
            ("::1:7401", "in brackets"),
            ("[::1]", "in brackets"),
            ("[localhost]:7401", "in brackets"),
            ("localhost:", "a port is a number"),
            ("localhost:+1", "a port is a number"),
            ("localhost:65536", "a port is a number"),
            ("127.0.0.1.5:80", "no name of a host"),
            ("300.1.1.1:80", "no name of a host"),
            ("127.1:80", "no name of a host"),
            ("a b:80", "no name of a host"),
            ("a..b:80", "no name of a host"),
            ("-a:80", "no name of a host"),
            ("/tmp/a:80", "no name of a host"),
            ("http://a:80", "in brackets"),
        ] {
            let said = text.parse::<Endpoint>().expect_err(text).to_string();
            assert!(said.contains(why) && said.contains("write HOST:PORT"), "{text}: {said}");
        }
    }
}
