use super::buffer::Buffer;
use super::{HEADER_BYTES, panics, state};
use crate::code::{FrameCode, FrameError};
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The payload of a frame: a secret. It cannot be printed or cloned, compares in constant time, and
/// is erased when it goes away.
pub struct SecretPayload {
    buffer: Buffer,
    /// 1..=[`MAX_PAYLOAD_BYTES`](super::MAX_PAYLOAD_BYTES).
    length: usize,
}

impl SecretPayload {
    /// A secret that is in memory already. The vector it came in is erased, also where this fails.
    ///
    /// # Errors
    /// [`FrameCode::Empty`] or [`FrameCode::Oversize`].
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self, FrameError> {
        let bytes = Zeroizing::new(bytes);
        let length = state::check(bytes.len() as u64)?;
        let mut buffer = Buffer::new();
        for (to, from) in buffer
            .bytes_mut()
            .iter_mut()
            .skip(HEADER_BYTES)
            .zip(bytes.iter())
        {
            *to = *from;
        }
        Ok(Self { buffer, length })
    }

    pub(super) fn new(buffer: Buffer, length: usize) -> Self {
        Self { buffer, length }
    }

    /// Hands the secret to `consumer`, once. Whatever that does, the secret is erased before this
    /// returns. A secret is best given on as it is, as every copy is the consumer's to erase.
    ///
    /// # Errors
    /// [`FrameCode::CallbackFailed`] where it returned an error or panicked. The error itself is
    /// dropped: it may quote the secret.
    pub fn consume<T, E>(
        self,
        consumer: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<T, FrameError> {
        let result = panics::caught(|| consumer(self.buffer.payload(self.length)));
        drop(self);
        match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) => Err(FrameCode::CallbackFailed.refuse("it returned an error")),
            None => Err(FrameCode::CallbackFailed.refuse("it panicked")),
        }
    }

    /// Its length in bytes, which is no secret. Never 0.
    #[expect(
        clippy::len_without_is_empty,
        reason = "an empty payload does not exist"
    )]
    pub fn len(&self) -> usize {
        self.length
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.payload(self.length)
    }
}

impl ConstantTimeEq for SecretPayload {
    fn ct_eq(&self, other: &Self) -> subtle::Choice {
        self.bytes().ct_eq(other.bytes())
    }
}

/// In constant time for secrets of one length.
impl PartialEq for SecretPayload {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for SecretPayload {}

impl fmt::Debug for SecretPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretPayload({} bytes)", self.length)
    }
}
