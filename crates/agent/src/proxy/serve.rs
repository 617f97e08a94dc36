//! The socket, and the bytes on it. One connection carries one request.

use super::{Counts, Gate, Head, MAX_HEAD};
use crate::{AgentCode, AgentRefusal};
use flightproof_core::Code;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A way to a provider.
pub trait Dial: Send + Sync {
    /// Connects to a host of the plan.
    ///
    /// # Errors
    /// It cannot be reached.
    fn dial(&self, host: &str) -> io::Result<Box<dyn Stream>>;
}

/// A connection: what TLS and TCP have in common here.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// Plain TCP to this machine's loopback, for stand-in providers. A key never crosses a network in
/// the clear, so every other address is refused.
#[derive(Debug, Clone, Copy)]
pub struct TcpLoopback;

impl Dial for TcpLoopback {
    fn dial(&self, host: &str) -> io::Result<Box<dyn Stream>> {
        let mut addresses = host.to_socket_addrs()?;
        let address = addresses.find(|a| a.ip().is_loopback());
        let address = address.ok_or(io::ErrorKind::PermissionDenied)?;
        let stream = TcpStream::connect_timeout(&address, CONNECT)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        Ok(Box::new(stream))
    }
}

/// A header with a secret, added on this side of the wall so that it is never on the other. Never
/// shown.
#[derive(Clone)]
pub struct Credential {
    name: String,
    value: String,
}

impl Credential {
    /// A header in lower case and its value.
    ///
    /// # Errors
    /// `HEAD_MALFORMED` if either could end the header.
    pub fn new(name: &str, value: &str) -> Result<Self, AgentRefusal> {
        let token = |b: u8| b.is_ascii_lowercase() || b == b'-';
        let plain = value.bytes().all(|b| matches!(b, b' '..=b'~'));
        if name.is_empty() || !name.bytes().all(token) || value.is_empty() || !plain {
            return Err(AgentCode::HeadMalformed.refuse("the credential's header"));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({})", self.name)
    }
}

/// A proxy that listens.
pub struct Proxy {
    socket: Arc<TcpListener>,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    gate: Mutex<Gate>,
    dial: Box<dyn Dial>,
    credential: Option<Credential>,
    open: Mutex<usize>,
}

/// Most requests at once. An agent makes one or two.
const MAX_OPEN: usize = 8;
/// For a connection to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// For a request's head, and between two bytes of its body: it comes from the same machine.
const REQUEST: Duration = Duration::from_secs(30);
/// Between two bytes of an answer: a model thinks for minutes.
pub(super) const ANSWER: Duration = Duration::from_secs(600);
/// After a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(50);
/// Most bytes of an answer.
const MAX_ANSWER: u64 = 64 << 20;

impl Proxy {
    /// Serves whoever connects to this socket: it lies in the network of a session, where nobody
    /// else is.
    pub fn listen(
        socket: TcpListener,
        gate: Gate,
        dial: Box<dyn Dial>,
        credential: Option<Credential>,
    ) -> Self {
        let socket = Arc::new(socket);
        let shared = Arc::new(Shared {
            gate: Mutex::new(gate),
            dial,
            credential,
            open: Mutex::new(0),
        });
        let for_listener = (Arc::clone(&socket), Arc::clone(&shared));
        let listener = thread::spawn(move || accept(&for_listener.0, &for_listener.1));
        Self {
            socket,
            shared,
            listener: Some(listener),
        }
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.gate).counts()
    }

    /// Lets nothing more through, and closes the socket. Requests that are under way run to their
    /// end; they are counted already.
    pub fn stop(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        lock(&self.shared.gate).close();
        if let Some(listener) = self.listener.take() {
            // Wakes the listener, which then sees the closed gate.
            if rustix::net::shutdown(&*self.socket, rustix::net::Shutdown::Both).is_ok() {
                let _ = listener.join();
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// A thread that panicked holds no half-made decision: each is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(socket: &TcpListener, shared: &Arc<Shared>) {
    for stream in socket.incoming() {
        if !lock(&shared.gate).is_open() {
            return;
        }
        let Ok(stream) = stream else {
            // Such as no descriptor left: whoever asks again at once keeps a core busy.
            thread::sleep(PAUSE);
            continue;
        };
        let mut open = lock(&shared.open);
        if *open >= MAX_OPEN {
            drop(open);
            lock(&shared.gate).refused();
            answer(&stream, &AgentCode::ProxyClosed.refuse("too many at once"));
            continue;
        }
        *open += 1;
        drop(open);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            if let Err(refusal) = serve(&stream, &shared) {
                answer(&stream, &refusal);
                drain(&stream);
            }
            *lock(&shared.open) -= 1;
        });
    }
}

fn serve(client: &TcpStream, shared: &Shared) -> Result<(), AgentRefusal> {
    let lost = |e: io::Error| AgentCode::BodyRefused.refuse(e.kind());
    client.set_read_timeout(Some(REQUEST)).map_err(lost)?;
    client.set_write_timeout(Some(REQUEST)).map_err(lost)?;
    let read = read_head(client);
    let (head, start) = read.inspect_err(|_| lock(&shared.gate).refused())?;
    // More than the body is a second request that nobody counted.
    if start.len() as u64 > head.body.0 {
        lock(&shared.gate).refused();
        return Err(AgentCode::BodyRefused.refuse("more bytes than its length says"));
    }
    let host = lock(&shared.gate).admit(&head)?;
    let upstream = shared.dial.dial(&host);
    let upstream = upstream.map_err(|e| AgentCode::UpstreamFailed.refuse(e.kind()))?;
    let added: Vec<(&str, &str)> = shared
        .credential
        .iter()
        .map(|c| (c.name.as_str(), c.value.as_str()))
        .collect();
    let opening = head.forwarded(&host, &added);
    forward(client, upstream, &opening, &start, head.body.0)
}

/// Reads the head, and what came with it of the body.
fn read_head(mut client: &TcpStream) -> Result<(Head, Vec<u8>), AgentRefusal> {
    let mut bytes = Vec::with_capacity(2 << 10);
    let mut piece = [0; 2 << 10];
    let deadline = Instant::now() + REQUEST;
    loop {
        // One byte at a time is a way to keep a place for ever.
        if Instant::now() > deadline {
            return Err(AgentCode::HeadMalformed.refuse("it takes too long"));
        }
        if let Some((head, length)) = Head::read(&bytes)? {
            return Ok((head, bytes.split_off(length)));
        }
        let room = piece.len().min(MAX_HEAD - bytes.len());
        match client.read(&mut piece[..room]) {
            Ok(0) => return Err(AgentCode::HeadMalformed.refuse("it ends too early")),
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(AgentCode::HeadMalformed.refuse(e.kind())),
        }
    }
}

/// A provider that refuses a request may say so before it has read all of it, and close: what cannot
/// be sent any more is no reason not to listen. The body is read to its end all the same, since a
/// program that cannot send it may not look for an answer either.
fn forward(
    client: &TcpStream,
    mut upstream: Box<dyn Stream>,
    opening: &str,
    start: &[u8],
    body: u64,
) -> Result<(), AgentRefusal> {
    let mut sent = upstream
        .write_all(opening.as_bytes())
        .and_then(|()| upstream.write_all(start));
    let all = body.saturating_sub(start.len() as u64);
    let mut rest = client.take(all);
    let mut piece = [0; 16 << 10];
    while rest.limit() > 0 {
        match rest.read(&mut piece) {
            Ok(0) => {
                let came = all - rest.limit();
                return Err(AgentCode::BodyRefused.refuse(format!("{came} of {all} bytes came")));
            }
            Ok(read) => sent = sent.and_then(|()| upstream.write_all(&piece[..read])),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(AgentCode::BodyRefused.refuse(e.kind())),
        }
    }
    let sent = sent.and_then(|()| upstream.flush());
    match (relay_answer(&mut upstream, client), sent) {
        (Err(_), Err(e)) => Err(AgentCode::UpstreamFailed.refuse(e.kind())),
        (relayed, _) => relayed,
    }
}

/// Passes the answer on, up to its limit. Once its first bytes are passed there is no way to say
/// anything else; the connection then ends early, which no client takes for an answer.
fn relay_answer(upstream: &mut dyn Read, mut client: &TcpStream) -> Result<(), AgentRefusal> {
    let mut first = [0; 9];
    let begun = upstream.read_exact(&mut first);
    begun.map_err(|e| AgentCode::UpstreamFailed.refuse(e.kind()))?;
    if &first != b"HTTP/1.1 " {
        return Err(AgentCode::UpstreamFailed.refuse("the answer is not HTTP/1.1"));
    }
    let passed = client.write_all(&first);
    if passed.is_ok() {
        let _ = io::copy(&mut upstream.take(MAX_ANSWER), &mut client);
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
    Ok(())
}

/// Tells the program why, in the provider's own shape of an error. 403 is not tried again.
fn answer(mut client: &TcpStream, refusal: &AgentRefusal) {
    let code = refusal.code.explanation().code;
    let status = match refusal.code {
        AgentCode::UpstreamFailed => "502 Bad Gateway",
        AgentCode::HeadMalformed | AgentCode::HeadTooLarge | AgentCode::BodyRefused => {
            "400 Bad Request"
        }
        _ => "403 Forbidden",
    };
    let body =
        format!(r#"{{"type":"error","error":{{"type":"permission_error","message":"{code}"}}}}"#);
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    // Whoever does not wait for the answer does not get it.
    let _ = client.write_all(text.as_bytes());
    let _ = client.shutdown(std::net::Shutdown::Write);
}

/// Reads what a refused program still sends, for a while: bytes that nobody reads reset a connection
/// when it is closed, and the program would see that and not its answer.
fn drain(mut client: &TcpStream) {
    let deadline = Instant::now() + REQUEST;
    let mut piece = [0; 16 << 10];
    while Instant::now() < deadline && client.read(&mut piece).is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider that takes everything and says nothing.
    struct Deaf;

    impl Read for Deaf {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }

    impl Write for Deaf {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_body_that_cannot_be_read_is_not_called_the_provider_s_fault() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (client, _) = listener.accept().unwrap();
        program.write_all(b"half").unwrap();
        client
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let refused = forward(&client, Box::new(Deaf), "", b"", 8).unwrap_err();
        assert_eq!(refused.code, AgentCode::BodyRefused);
        program.write_all(b"all of it").unwrap();
        let refused = forward(&client, Box::new(Deaf), "", b"", 8).unwrap_err();
        assert_eq!(refused.code, AgentCode::UpstreamFailed, "it came whole");
    }
}
