//! Keys that stay in an SSH agent: it lists them, and signs what it is given.

use crate::FlightsCode;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_certifier::ssh;
use flightproof_core::{Refusal, escape};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest message in either direction, bytes; OpenSSH's agent has the same limit.
const MAX_MESSAGE: usize = 256 * 1024;
/// How long an agent may take. One that asks a person to confirm takes as long as a person.
const PATIENCE: Duration = Duration::from_secs(120);

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// A key of an agent.
#[derive(Debug, Clone)]
pub struct AgentKey {
    key: PublicKey,
    /// What its owner calls it.
    pub comment: String,
    socket: std::ffi::OsString,
}

impl AgentKey {
    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.key
    }
}

impl Signer for AgentKey {
    fn public_key(&self) -> PublicKey {
        self.key
    }

    /// The answer is checked: an agent is another program.
    fn signature(&self, message: &[u8]) -> Result<[u8; 64], Refusal> {
        let mut request = vec![SIGN_REQUEST];
        ssh::put(&mut request, &ssh::public_blob(&self.key));
        ssh::put(&mut request, message);
        request.extend_from_slice(&0u32.to_be_bytes());
        let answer = ask(&self.socket, &request, SIGN_RESPONSE)?;
        let mut body = answer.as_slice();
        let signature = ssh::take(&mut body).and_then(ssh::read_signature);
        match signature {
            Some(signature) if self.key.verifies(message, &signature) => Ok(signature),
            _ => Err(refused("its answer is no signature by the key")),
        }
    }
}

/// The Ed25519 keys of the agent that `SSH_AUTH_SOCK` names.
///
/// # Errors
/// `AGENT_UNAVAILABLE`, `AGENT_REFUSED`.
pub fn keys() -> Result<Vec<AgentKey>, Refusal> {
    let socket = std::env::var_os("SSH_AUTH_SOCK").filter(|v| !v.is_empty());
    let socket = socket.ok_or_else(|| unavailable("SSH_AUTH_SOCK is not set"))?;
    let answer = ask(&socket, &[REQUEST_IDENTITIES], IDENTITIES_ANSWER)?;
    let mut body = answer
        .get(4..)
        .ok_or_else(|| refused("a list without its length"))?;
    let mut keys = Vec::new();
    // The number in front is the agent's word; what is there counts.
    while !body.is_empty() {
        let entry = ssh::take(&mut body).zip(ssh::take(&mut body));
        let (blob, comment) = entry.ok_or_else(|| refused("a list that is cut off"))?;
        if let Some(key) = ssh::read_public_blob(blob) {
            keys.push(AgentKey {
                key,
                comment: String::from_utf8_lossy(comment).into_owned(),
                socket: socket.clone(),
            });
        }
    }
    Ok(keys)
}

/// The one key of the agent with this name: a key id or the first eight digits of one, or its
/// comment. Without a name, the only key.
///
/// # Errors
/// `KEY_UNKNOWN` if no key or more than one has the name; as [`keys`].
pub fn find(name: &str) -> Result<AgentKey, Refusal> {
    let all = keys()?;
    let is_id = |key: &AgentKey| name.len() >= 8 && key.key.id().to_string().starts_with(name);
    let found: Vec<&AgentKey> = all
        .iter()
        .filter(|key| name.is_empty() || key.comment == name || is_id(key))
        .collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        many => Err(FlightsCode::KeyUnknown
            .refuse(format!(
                "the agent has {} Ed25519 keys named \"{}\"",
                many.len(),
                escape(name, 80)
            ))
            .into()),
    }
}

fn ask(socket: &std::ffi::OsStr, request: &[u8], expected: u8) -> Result<Vec<u8>, Refusal> {
    if request.len() > MAX_MESSAGE {
        return Err(refused(&format!(
            "{} bytes to sign, an agent takes {MAX_MESSAGE}",
            request.len()
        )));
    }
    let talk = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut message = Vec::new();
        ssh::put(&mut message, request);
        stream.write_all(&message)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_MESSAGE {
            return Err(std::io::Error::other(format!(
                "an answer of {length} bytes"
            )));
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    let answer = talk().map_err(|e| unavailable(&e.to_string()))?;
    match answer.split_first() {
        Some((kind, body)) if *kind == expected => Ok(body.to_vec()),
        _ => Err(refused("it answered that it will not")),
    }
}

fn unavailable(why: &str) -> Refusal {
    FlightsCode::AgentUnavailable.refuse(why).into()
}

fn refused(why: &str) -> Refusal {
    FlightsCode::AgentRefused.refuse(why).into()
}
