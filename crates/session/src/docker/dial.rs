//! Connections to an engine: one for each request, so that none is ever found half dead.

use super::endpoint::{Endpoint, split_port};
use super::engine::MAX_SHOWN;
use bollard::BollardRequest;
use bollard::errors::Error;
use flightproof_core::escape;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Opens connections to one endpoint.
#[derive(Clone)]
pub(super) struct Dialer {
    endpoint: Arc<Endpoint>,
    tls: Option<TlsConnector>,
}

/// A connection of whatever kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The raw bytes of an attached container, both ways.
pub(super) type Upgraded = TokioIo<hyper::upgrade::Upgraded>;

impl Dialer {
    /// Reads the certificates, where the endpoint has some.
    pub(super) fn new(endpoint: &Endpoint) -> io::Result<Self> {
        let tls = match endpoint {
            Endpoint::Tls { certificates, .. } => Some(connector(certificates)?),
            _ => None,
        };
        let endpoint = Arc::new(endpoint.clone());
        Ok(Self { endpoint, tls })
    }

    /// Sends one request over a connection of its own.
    pub(super) async fn request(
        self,
        request: BollardRequest,
    ) -> Result<Response<Incoming>, Error> {
        let (mut parts, body) = request.into_parts();
        // The client library writes the whole address; engines expect the path.
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse().unwrap_or_default();
        parts.headers.insert(HOST, self.host());
        let request = Request::from_parts(parts, body);
        let stream = Bounded {
            stream: self.dial().await?,
            left: MAX_ANSWER,
        };
        let mut sender = open(stream).await?;
        Ok(sender.send_request(request).await?)
    }

    /// Attaches to a container's three streams, before it is started.
    pub(super) async fn attach(self, path: &str) -> io::Result<Upgraded> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, self.host())
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "tcp")
            .body(String::new())
            .map_err(io::Error::other)?;
        let mut sender = open(self.dial().await?).await?;
        let response = sender
            .send_request(request)
            .await
            .map_err(io::Error::other)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            let said = beginning(response.into_body()).await;
            return Err(io::Error::other(format!(
                "attach: the engine answered {status}, {}",
                escape(said.trim_ascii(), MAX_SHOWN)
            )));
        }
        let upgraded = hyper::upgrade::on(response)
            .await
            .map_err(io::Error::other)?;
        Ok(TokioIo::new(upgraded))
    }

    fn host(&self) -> HeaderValue {
        HeaderValue::from_str(self.endpoint.authority())
            .unwrap_or(HeaderValue::from_static("localhost"))
    }

    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        let tcp = match &*self.endpoint {
            Endpoint::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            Endpoint::Loopback { authority } | Endpoint::Tls { authority, .. } => {
                TcpStream::connect(authority.as_str()).await?
            }
        };
        tcp.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(tcp));
        };
        let (host, _port) = split_port(self.endpoint.authority());
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, tcp).await?))
    }
}

async fn open<B>(stream: impl Stream + 'static) -> io::Result<SendRequest<B>>
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    // It ends with the response, or with the streams of an attached container.
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

/// Most bytes of an answer and its head. The client library collects an answer whole, whatever its
/// size, and takes no other body than the connection's own: so it is the connection that ends. The
/// longest answer names all volumes of an engine, 400 bytes or so for each: that is 40,000 of them.
const MAX_ANSWER: usize = 16 << 20;

/// A connection for one answer. What is more is an error and no end, which would be taken for the
/// answer's.
struct Bounded {
    stream: Box<dyn Stream>,
    left: usize,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = room.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, room))?;
        let read = room.filled().len() - before;
        match self.left.checked_sub(read) {
            Some(left) => self.left = left,
            None => {
                let why = format!("the answer is longer than {MAX_ANSWER} bytes");
                return Poll::Ready(Err(io::Error::other(why)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// What an engine says with a refusal: its first bytes.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut said = Vec::new();
    while said.len() < MAX_SHOWN {
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        match next.map(|frame| frame.map(hyper::body::Frame::into_data)) {
            Some(Ok(Ok(piece))) => said.extend_from_slice(&piece),
            _ => break,
        }
    }
    said
}

/// Only the authority in `ca.pem` is believed, none of the system's.
fn connector(certificates: &Path) -> io::Result<TlsConnector> {
    let read = |name: &str| {
        let path = certificates.join(name);
        CertificateDer::pem_file_iter(&path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| io::Error::other(format!("{}: {e}", path.display())))
    };
    let mut roots = RootCertStore::empty();
    for authority in read("ca.pem")? {
        roots.add(authority).map_err(io::Error::other)?;
    }
    let key = certificates.join("key.pem");
    let key = PrivateKeyDer::from_pem_file(&key)
        .map_err(|e| io::Error::other(format!("{}: {e}", key.display())))?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(read("cert.pem")?, key)
        .map_err(io::Error::other)?;
    Ok(TlsConnector::from(Arc::new(config)))
}
