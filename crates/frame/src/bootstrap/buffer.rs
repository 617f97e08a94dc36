use super::{BUFFER_BYTES, HEADER_BYTES};
use zeroize::Zeroize;

/// The one buffer a frame is ever in. It has its full size from the start, as growing would leave
/// copies behind, and is erased when it goes away, however that happens.
pub(super) struct Buffer(Box<[u8; BUFFER_BYTES]>);

impl Buffer {
    pub(super) fn new() -> Self {
        // Made on the heap: an array literal would be built on the stack first.
        let zeros = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self(
            zeros
                .try_into()
                .unwrap_or_else(|_| Box::new([0; BUFFER_BYTES])),
        )
    }

    pub(super) fn bytes(&self) -> &[u8; BUFFER_BYTES] {
        &self.0
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8; BUFFER_BYTES] {
        &mut self.0
    }

    /// Where a payload of this length lies.
    pub(super) fn payload(&self, length: usize) -> &[u8] {
        self.0
            .get(HEADER_BYTES..)
            .and_then(|rest| rest.get(..length))
            .unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
