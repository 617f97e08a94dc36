//! One connection: the greeting, and frames whose order and origin are certain.

use crate::relay::grant::{Credentials, code, random, same};
use crate::relay::wire::{Deframer, Frame};
use crate::{Ledger, LedgerCode, LedgerError, Name};
use std::io::{Read, Write};

/// A stream on which both ends have proven to know the link's key. Each frame carries a code over
/// its number and its bytes: one that is changed, doubled, dropped or moved ends the connection.
pub(super) struct Channel<'a, S> {
    stream: &'a mut S,
    deframer: Deframer,
    send_key: [u8; 32],
    receive_key: [u8; 32],
    sent: u64,
    received: u64,
}

impl<'a, S: Read + Write> Channel<'a, S> {
    /// The sender's side of the greeting. Returns how many messages the receiver has applied.
    pub(super) fn greet(
        stream: &'a mut S,
        link: &Name,
        credentials: &Credentials,
    ) -> Result<(Self, u64), LedgerError> {
        let mut deframer = Deframer::default();
        let ours = random()?;
        let hello = Frame::Hello {
            grant: credentials.grant.clone(),
            link: link.clone(),
            nonce: credentials.nonce,
            fresh: ours,
        };
        put(stream, &hello.encode())?;
        let theirs = match take(stream, &mut deframer)? {
            Frame::Challenge { fresh } => fresh,
            other => return Err(unexpected(&other)),
        };
        let session = session_key(&credentials.key, &ours, &theirs);
        let proof = code(&session, "sender", &[]);
        put(stream, &Frame::Proof { proof }.encode())?;
        let applied = match take(stream, &mut deframer)? {
            Frame::Welcome { proof, applied } if same(&proof, &welcome(&session, applied)) => {
                applied
            }
            Frame::Welcome { .. } => {
                return Err(LedgerCode::RelayUnproven.refuse("the receiver does not know the key"));
            }
            other => return Err(unexpected(&other)),
        };
        let channel = Self::new(stream, deframer, &session, Side::Sender);
        Ok((channel, applied))
    }

    /// The receiver's side of the greeting. Returns the link that is proven; the grant is redeemed
    /// on disk before the sender is welcomed.
    pub(super) fn welcome(
        ledger: &mut Ledger,
        stream: &'a mut S,
    ) -> Result<(Self, Name), LedgerError> {
        let mut deframer = Deframer::default();
        let (grant, link, nonce, theirs) = match take(stream, &mut deframer)? {
            Frame::Hello {
                grant,
                link,
                nonce,
                fresh,
            } => (grant, link, nonce, fresh),
            other => return Err(unexpected(&other)),
        };
        let key = match ledger.read(|r| r.receiver_key(&grant, &link, &nonce)) {
            Ok((key, _)) => key,
            Err(refused) => return Err(say_no(stream, refused)),
        };
        let ours = random()?;
        put(stream, &Frame::Challenge { fresh: ours }.encode())?;
        let session = session_key(&key, &theirs, &ours);
        match take(stream, &mut deframer)? {
            Frame::Proof { proof } if same(&proof, &code(&session, "sender", &[])) => {}
            Frame::Proof { .. } => {
                let refused = LedgerCode::RelayUnproven.refuse("the sender does not know the key");
                return Err(say_no(stream, refused));
            }
            other => return Err(unexpected(&other)),
        }
        // Of two that prove themselves at once, the second finds the grant spent.
        if let Err(refused) = ledger.write(|w| w.redeem(&grant, &link, &nonce)) {
            return Err(say_no(stream, refused));
        }
        let applied = ledger.read(|r| r.link(&link))?.applied;
        let proof = welcome(&session, applied);
        put(stream, &Frame::Welcome { proof, applied }.encode())?;
        let channel = Self::new(stream, deframer, &session, Side::Receiver);
        Ok((channel, link))
    }

    fn new(stream: &'a mut S, deframer: Deframer, session: &[u8; 32], side: Side) -> Self {
        let forth = code(session, "forth", &[]);
        let back = code(session, "back", &[]);
        let (send_key, receive_key) = match side {
            Side::Sender => (forth, back),
            Side::Receiver => (back, forth),
        };
        Self {
            stream,
            deframer,
            send_key,
            receive_key,
            sent: 0,
            received: 0,
        }
    }

    pub(super) fn send(&mut self, frame: &Frame) -> Result<(), LedgerError> {
        let mut bytes = frame.encode();
        let code = code(&self.send_key, "frame", &[&self.sent.to_be_bytes(), &bytes]);
        self.sent += 1;
        bytes.extend_from_slice(&code);
        put(self.stream, &bytes)
    }

    pub(super) fn receive(&mut self) -> Result<Frame, LedgerError> {
        let raw = take_raw(self.stream, &mut self.deframer)?;
        let number = self.received.to_be_bytes();
        let expected = code(&self.receive_key, "frame", &[&number, &raw.signed]);
        match raw.code {
            Some(code) if same(&code, &expected) => {}
            _ => {
                return Err(LedgerCode::RelayUnproven.refuse(format!(
                    "frame {} is not the one that was sent",
                    self.received
                )));
            }
        }
        self.received += 1;
        Frame::decode(&raw.signed)
    }
}

enum Side {
    Sender,
    Receiver,
}

fn session_key(key: &[u8; 32], sender: &[u8; 32], receiver: &[u8; 32]) -> [u8; 32] {
    code(key, "session", &[sender, receiver])
}

fn welcome(session: &[u8; 32], applied: u64) -> [u8; 32] {
    code(session, "receiver", &[&applied.to_be_bytes()])
}

/// Tells the other end, and gives the reason back. That the telling may fail changes nothing.
fn say_no<S: Write>(stream: &mut S, refused: LedgerError) -> LedgerError {
    let spent = refused.code == LedgerCode::GrantSpent;
    let _ = put(stream, &Frame::No { spent }.encode());
    refused
}

fn unexpected(frame: &Frame) -> LedgerError {
    match frame {
        Frame::No { spent: true } => LedgerCode::GrantSpent.refuse("so the receiver says"),
        Frame::No { spent: false } => LedgerCode::GrantRefused.refuse("so the receiver says"),
        _ => LedgerCode::RelayFrame.refuse("a frame out of order"),
    }
}

fn put<S: Write>(stream: &mut S, bytes: &[u8]) -> Result<(), LedgerError> {
    stream
        .write_all(bytes)
        .and_then(|()| stream.flush())
        .map_err(cut)
}

fn take<S: Read>(stream: &mut S, deframer: &mut Deframer) -> Result<Frame, LedgerError> {
    let raw = take_raw(stream, deframer)?;
    match raw.code {
        None => Frame::decode(&raw.signed),
        Some(_) => Err(LedgerCode::RelayFrame.refuse("a message before the greeting")),
    }
}

fn take_raw<S: Read>(
    stream: &mut S,
    deframer: &mut Deframer,
) -> Result<super::wire::Raw, LedgerError> {
    let mut piece = [0; 64 * 1024];
    loop {
        if let Some(raw) = deframer.take()? {
            return Ok(raw);
        }
        match stream.read(&mut piece) {
            Ok(0) => {
                return Err(LedgerCode::RelayCut.refuse(format!(
                    "closed, {} bytes of a frame left",
                    deframer.waiting()
                )));
            }
            Ok(got) => deframer.push(&piece[..got]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(cut(e)),
        }
    }
}

fn cut(error: std::io::Error) -> LedgerError {
    LedgerCode::RelayCut.refuse(error.kind())
}
