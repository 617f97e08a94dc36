/// Is told how long work gets on. Called from more than one thread, a few times per megabyte.
pub trait Progress: Sync {
    /// So many more files are done, and so many more bytes.
    fn advance(&self, files: u64, bytes: u64);
}

/// Tells nobody.
impl Progress for () {
    fn advance(&self, _: u64, _: u64) {}
}
