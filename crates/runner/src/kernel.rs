//! What the kernel says of the session itself: files that are opened while they can still be
//! reached, and read again whenever the host asks. No child of the runner inherits them.

use crate::code::{RunnerCode, RunnerError, inside};
use rustix::fs::{Mode, OFlags, openat};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Open files of the kernel, by the name they are asked for.
#[derive(Default)]
pub(crate) struct KernelFiles(BTreeMap<&'static str, File>);

impl KernelFiles {
    /// Opens `path` under `name`. What does not exist on this kernel is left out, so that the host
    /// misses it there.
    pub(crate) fn open(&mut self, name: &'static str, path: &str) {
        if let Ok(file) = File::open(path) {
            self.0.insert(name, file);
        }
    }

    /// Opens `name` in a directory that is held open, which may be out of reach by its path.
    pub(crate) fn open_at(&mut self, directory: &File, name: &'static str) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        if let Ok(file) = openat(directory, name, flags, Mode::empty()) {
            self.0.insert(name, File::from(file));
        }
    }

    /// The text of those that were asked for and are there, as of now.
    ///
    /// # Errors
    /// More is asked for than there can be, or a file cannot be read.
    pub(crate) fn read(&self, asked: &[String]) -> Result<BTreeMap<String, String>, RunnerError> {
        if asked.len() > MAX_ASKED {
            let detail = format!("{} files asked for, at most {MAX_ASKED}", asked.len());
            return Err(RunnerCode::BadRequest.refuse(detail));
        }
        asked
            .iter()
            .filter_map(|name| Some((name, self.0.get(name.as_str())?)))
            .map(|(name, file)| Ok((name.clone(), text(file).map_err(inside(name))?)))
            .collect()
    }
}

/// Most files of one question.
const MAX_ASKED: usize = 64;
/// Most bytes of one file, 128 KiB: a mount table of a thousand lines.
const MAX_BYTES: usize = 128 << 10;

/// From its first byte, whatever was read of it before.
fn text(file: &File) -> std::io::Result<String> {
    let mut text = vec![0; MAX_BYTES];
    let mut end = 0;
    loop {
        let room = text.get_mut(end..).unwrap_or_default();
        let count = file.read_at(room, end as u64)?;
        end += count;
        if count == 0 || end == MAX_BYTES {
            text.truncate(end);
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> KernelFiles {
        let mut files = KernelFiles::default();
        files.open("status", "/proc/self/status");
        files.open("absent", "/proc/self/no-such-file");
        files
    }

    #[test]
    fn a_file_is_read_anew_each_time_and_one_that_is_not_there_is_left_out() {
        let files = files();
        let asked = ["status", "absent", "other"].map(str::to_owned);
        for _ in 0..2 {
            let read = files.read(&asked).unwrap();
            assert_eq!(read.len(), 1);
            assert!(read["status"].starts_with("Name:"));
        }
    }

    #[test]
    fn a_question_without_end_is_refused() {
        let many = vec!["status".to_owned(); MAX_ASKED + 1];
        let refused = files().read(&many).unwrap_err();
        assert_eq!(refused.code, RunnerCode::BadRequest);
    }
}
