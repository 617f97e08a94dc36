//! TLS to a provider: what carries the operator's key across a network.

use super::serve::{ANSWER, CONNECT, Dial, Stream, TcpLoopback};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A way to providers: in the clear on this machine's own loopback, by TLS everywhere else.
#[derive(Debug, Clone)]
pub struct Network {
    config: Arc<ClientConfig>,
}

/// The port of a host that names none.
const HTTPS: u16 = 443;

impl Network {
    /// Whether a host is spoken to without TLS.
    pub fn is_in_the_clear(host: &str) -> bool {
        is_loopback(split(host).0)
    }

    /// Believes the authorities in this file of certificates, such as the system's.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate.
    pub fn trusting(authorities: &Path) -> io::Result<Self> {
        let shown = authorities.display();
        let named = |e: &dyn std::fmt::Display| io::Error::other(format!("{shown}: {e}"));
        let certificates = CertificateDer::pem_file_iter(authorities)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| named(&e))?;
        let mut roots = RootCertStore::empty();
        // A system's file may hold one that is too old to be read; the others count.
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(named(&"no certificate"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| named(&e))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

impl Dial for Network {
    fn dial(&self, host: &str) -> io::Result<Box<dyn Stream>> {
        if Self::is_in_the_clear(host) {
            return TcpLoopback.dial(host);
        }
        let (name, port) = split(host);
        let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connection =
            ClientConnection::new(Arc::clone(&self.config), server).map_err(io::Error::other)?;
        let stream = connect(name, port)?;
        Ok(Box::new(StreamOwned::new(connection, Socket::new(stream))))
    }
}

/// A socket that is read after it cannot be written any more. The TLS library writes what it has
/// left before it reads, so the answer of a provider that closed early would never be seen: after a
/// write that failed, bytes are dropped.
struct Socket {
    stream: TcpStream,
    broken: bool,
}

impl Socket {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            broken: false,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.broken {
            return Ok(bytes.len());
        }
        let written = self.stream.write(bytes);
        let again = |e: &io::Error| e.kind() == io::ErrorKind::Interrupted;
        self.broken = written.as_ref().is_err_and(|e| !again(e));
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The first address that answers.
fn connect(name: &str, port: u16) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for address in (name, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(ANSWER))?;
                stream.set_write_timeout(Some(ANSWER))?;
                return Ok(stream);
            }
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

/// A plan's host was read before: it has at most one colon.
fn split(host: &str) -> (&str, u16) {
    match host.split_once(':') {
        Some((name, port)) => (name, port.parse().unwrap_or(HTTPS)),
        None => (host, HTTPS),
    }
}

/// Only an address: a name leads where somebody's resolver says.
fn is_loopback(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>()
        .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_the_loopback_is_spoken_to_in_the_clear() {
        for (host, name, port) in [
            ("api.example.com", "api.example.com", 443),
            ("api.example.com:8443", "api.example.com", 8443),
            ("127.0.0.1:80", "127.0.0.1", 80),
        ] {
            assert_eq!(split(host), (name, port));
        }
        assert!(is_loopback("127.0.0.1"));
        for other in ["localhost", "127.0.0.1.example.com", "10.0.0.1", "127.1"] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn without_an_authority_there_is_no_way() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authorities.pem");
        assert!(Network::trusting(&file).is_err());
        std::fs::write(&file, "no certificate\n").unwrap();
        assert!(Network::trusting(&file).is_err());
    }
}
