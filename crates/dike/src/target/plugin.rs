//! Which plugin a MariaDB wants a user to be authenticated by, asked before the driver is.
//!
//! The driver cannot be trusted with one of them, *parsec* (MariaDB 11.6 and later): it ends the
//! whole program where the user has no password here, or where the server's random number ends in a
//! zero. A server says only during a login which plugin it wants, so a login is begun and left
//! before the first connection to each endpoint, and only at servers that may want this one.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::session::Endpoint;
use super::{Cause, Failure};

/// The first version of MariaDB that has the plugin.
const SINCE: (u32, u32) = (11, 6);
/// Flags of a client: it speaks the protocol of MySQL 4.1 with plugins.
const CAPABILITIES: u32 = 0x0008_8201;
/// The flag that TLS comes next.
const TLS: u32 = 0x0800;
/// The longest packet in bytes that a login has use for.
const PACKET_BYTES_MAX: usize = 4096;

/// Fails if the server wants this plugin. If it cannot be asked, the driver will find out why.
pub async fn refuse_parsec(
    user: &str,
    endpoint: &Endpoint,
    tls: Option<Arc<ClientConfig>>,
    patience: Duration,
) -> Result<(), Failure> {
    let stream = match endpoint.through {
        Some(proxy) => tokio::net::TcpStream::connect(proxy).await,
        None => tokio::net::TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await,
    };
    let (user, host) = (user.to_owned(), endpoint.host.clone());
    let asked = tokio::task::spawn_blocking(move || {
        let stream = stream?.into_std()?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        plugin(stream, &user, &host, tls)
    });
    match asked.await {
        Ok(Ok(Some(plugin))) if plugin == b"parsec" => {
            let why = "this user is authenticated by the plugin parsec, which Dike does not know: use a user \
                       IDENTIFIED VIA ed25519 or mysql_native_password";
            Err(Failure::new(Cause::Other, why))
        }
        _ => Ok(()),
    }
}

/// The plugin that the server asks for, if it is not the one that was offered.
fn plugin(
    mut stream: impl Read + Write,
    user: &str,
    host: &str,
    tls: Option<Arc<ClientConfig>>,
) -> io::Result<Option<Vec<u8>>> {
    let greeting = receive(&mut stream)?;
    let [10, version @ ..] = &greeting[..] else { return Ok(None) };
    if !may_want(&String::from_utf8_lossy(before_zero(version))) {
        return Ok(None);
    }
    let Some(tls) = tls else { return log_in(stream, CAPABILITIES, 1, user) };
    send(&mut stream, 1, &head(CAPABILITIES | TLS))?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(tls, name).map_err(io::Error::other)?;
    log_in(StreamOwned::new(connection, stream), CAPABILITIES | TLS, 2, user)
}

fn log_in(
    mut stream: impl Read + Write,
    capabilities: u32,
    number: u8,
    user: &str,
) -> io::Result<Option<Vec<u8>>> {
    let mut login = head(capabilities);
    login.extend_from_slice(user.as_bytes());
    // The end of the name, and a proof of no bytes.
    login.extend_from_slice(&[0, 0]);
    login.extend_from_slice(b"mysql_native_password\0");
    send(&mut stream, number, &login)?;
    match &receive(&mut stream)?[..] {
        [0xfe, plugin @ ..] => Ok(Some(before_zero(plugin).to_vec())),
        _ => Ok(None),
    }
}

/// What a login and a request for TLS begin with.
fn head(capabilities: u32) -> Vec<u8> {
    const UTF8MB4: u8 = 45;
    let mut head = capabilities.to_le_bytes().to_vec();
    head.extend_from_slice(&(1u32 << 24).to_le_bytes());
    head.push(UTF8MB4);
    head.extend_from_slice(&[0; 23]);
    head
}

/// Whether a server of this version may want the plugin. Behind `5.5.5-` stands what a MariaDB is;
/// that is for old replicas of MySQL.
fn may_want(version: &str) -> bool {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let numbers = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version.contains("MariaDB") && numbers >= SINCE
}

fn before_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    if length > PACKET_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet)?;
    Ok(packet)
}

fn send(stream: &mut impl Write, number: u8, packet: &[u8]) -> io::Result<()> {
    let [a, b, c, _] = (packet.len() as u32).to_le_bytes();
    stream.write_all(&[&[a, b, c, number], packet].concat())?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn only_servers_that_may_want_it_are_asked() {
        for version in ["11.6.1-MariaDB", "5.5.5-11.8.2-MariaDB-log", "12.0.2-MariaDB-ubu2404"] {
            assert!(may_want(version), "{version}");
        }
        for version in ["5.5.5-10.11.19-MariaDB", "11.4.9-MariaDB", "8.4.6", "5.7.25-TiDB-v8.5.1", "", "x"] {
            assert!(!may_want(version), "{version}");
        }
    }

    /// Asks a server that says all of this and then nothing.
    async fn asked(packets: &[&[u8]]) -> Result<(), Failure> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut says = Vec::new();
        packets.iter().for_each(|packet| send(&mut says, 0, packet).expect("memory"));
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            stream.write_all(&says).await.expect("said");
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        let endpoint = Endpoint::new("127.0.0.1".to_owned(), port, Default::default());
        let answer = refuse_parsec("me", &endpoint, None, Duration::from_secs(1)).await;
        server.await.expect("no panic");
        answer
    }

    #[tokio::test]
    async fn the_plugin_that_the_driver_does_not_survive_is_refused_with_a_sentence() {
        let new = b"\x0a12.0.2-MariaDB\0rest".as_slice();
        let refused = asked(&[new, b"\xfeparsec\0salt"]).await.expect_err("refused");
        assert!(refused.message.contains("IDENTIFIED VIA ed25519"), "{refused}");
        for packets in [
            &[new, b"\xfeed25519\0salt".as_slice()][..],
            &[new, b"\xff\x15\x04denied"],
            &[new],
            &[b"\x0a10.11.19-MariaDB\0rest", b"\xfeparsec\0"],
            &[b"\xff\x10\x04too many"],
            &[b""],
        ] {
            assert_eq!(asked(packets).await, Ok(()), "{packets:?}");
        }
    }
}
