//! The way to a provider over a network: its certificate must be vouched for.

#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use flightproof_agent::proxy::{Dial, Network};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// An authority, and a certificate of `localhost` that it vouches for.
struct Authority {
    folder: PathBuf,
}

impl Authority {
    fn new(folder: &Path) -> Self {
        std::fs::create_dir(folder).unwrap();
        let authority = Self {
            folder: folder.to_owned(),
        };
        authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test \
             -keyout ca-key.pem -out ca.pem",
        );
        authority.openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \
             -keyout key.pem -out request.pem",
        );
        std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
        authority.openssl(
            "x509 -req -days 2 -in request.pem -CA ca.pem -CAkey ca-key.pem -set_serial 2 \
             -extfile names -out cert.pem",
        );
        authority
    }

    fn openssl(&self, words: &str) {
        let done = Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(&self.folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "openssl {words}: {said}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Answers one connection after the first bytes of it; the port it listens on.
    fn serve(&self) -> u16 {
        let certificates = CertificateDer::pem_file_iter(self.file("cert.pem")).unwrap();
        let certificates = certificates.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(self.file("key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            // An answer that waits for an acknowledgement is lost when it closes with bytes unread.
            stream.set_nodelay(true).unwrap();
            let connection = ServerConnection::new(Arc::new(config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut asked = [0; 4];
            // A client that does not believe us says nothing.
            if stream.read_exact(&mut asked).is_ok() {
                let _ = stream.write_all(b"fine");
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        port
    }
}

fn ask(network: &Network, port: u16) -> std::io::Result<String> {
    let mut stream = network.dial(&format!("localhost:{port}"))?;
    stream.write_all(b"well")?;
    stream.flush()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn only_a_provider_that_a_known_authority_vouches_for_is_spoken_to() {
    let temp = tempfile::tempdir().unwrap();
    let ours = Authority::new(&temp.path().join("ours"));
    let theirs = Authority::new(&temp.path().join("theirs"));
    let network = Network::trusting(&ours.file("ca.pem")).unwrap();
    assert_eq!(ask(&network, ours.serve()).unwrap(), "fine");
    let refused = ask(&network, theirs.serve()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData);
}

/// It closes with most of the request unread.
#[test]
fn the_answer_of_a_provider_that_closed_is_read_after_a_write_has_failed() {
    let temp = tempfile::tempdir().unwrap();
    let ours = Authority::new(&temp.path().join("ours"));
    let network = Network::trusting(&ours.file("ca.pem")).unwrap();
    let host = format!("localhost:{}", ours.serve());
    let mut stream = network.dial(&host).unwrap();
    for _ in 0..512 {
        if stream.write_all(&[b'x'; 16 << 10]).is_err() {
            break;
        }
    }
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"fine");
}
