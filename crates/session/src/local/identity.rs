//! Which user ids a session gets, and how they are mapped into it.

use crate::{SessionCode, SessionError};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First host user id that sessions of root may use. Above what systems hand out to people
/// (60,000), to containers of systemd (below 2^31) and in `/etc/subuid` by default (from 100,000
/// up, in steps of 65,536): 2,000,000,000 and more is reached by none of them.
const BASE: u32 = 2_000_000_000;
/// User ids of one session: one per case run, and none is used twice.
const WIDTH: u32 = 1_000_000;
/// Ranges to choose from. Two sessions that choose the same one share ids, but no process, file
/// or namespace through which that could matter.
const SLOTS: u32 = 2_000;
/// Subordinate ids an ordinary user needs: with their own one it makes the same number.
const RANGE: u32 = WIDTH - 1;
/// The programs that map a user's range.
const MAPPERS: [&str; 2] = ["/usr/bin/newuidmap", "/usr/bin/newgidmap"];

/// The ids of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// Started as root: a range nobody else uses.
    Unprivileged {
        /// First id; the runner has it.
        base: u32,
    },
    /// Started by a user: the runner has the user's id, cases have the user's subordinate ids.
    User {
        /// User id and group id.
        own: [u32; 2],
        /// First subordinate id, of users and of groups.
        first: [u32; 2],
    },
}

impl Identity {
    /// The identity for a session of this process.
    pub(super) fn choose(entropy: &[u8; 16]) -> Result<Self, SessionError> {
        let uid = rustix::process::geteuid().as_raw();
        if uid == 0 {
            let slot = u32::from(u16::from_be_bytes([entropy[14], entropy[15]])) % SLOTS;
            return Ok(Self::Unprivileged {
                base: BASE + slot * WIDTH,
            });
        }
        if let Some(missing) = MAPPERS.iter().find(|p| !Path::new(p).exists()) {
            return Err(SessionCode::NoUidRange.refuse(format_args!("{missing} is missing")));
        }
        let name = user_name(&read("/etc/passwd"), uid);
        let first = |file: &str| subordinate(&read(file), name.as_deref(), uid, file);
        Ok(Self::User {
            own: [uid, rustix::process::getegid().as_raw()],
            first: [first("/etc/subuid")?, first("/etc/subgid")?],
        })
    }

    /// The id the stage program becomes.
    pub(super) fn drop_to(&self) -> Option<u32> {
        match self {
            Self::Unprivileged { base } => Some(*base),
            Self::User { .. } => None,
        }
    }

    /// The kernel's map files as they must read, of users and of groups: `(inside, outside,
    /// count)` per line.
    pub(super) fn maps(&self) -> [Vec<(u32, u32, u32)>; 2] {
        match self {
            Self::Unprivileged { base } => [vec![(0, *base, WIDTH)], vec![(0, *base, WIDTH)]],
            Self::User { own, first } => {
                let map = |own, first| vec![(0, own, 1), (1, first, RANGE)];
                [map(own[0], first[0]), map(own[1], first[1])]
            }
        }
    }

    /// Maps the ids into the user namespace of `pid`.
    pub(super) fn map(&self, pid: u32) -> Result<(), SessionError> {
        let [users, groups] = self.maps();
        for ((file, mapper), lines) in [("uid_map", MAPPERS[0]), ("gid_map", MAPPERS[1])]
            .into_iter()
            .zip([users, groups])
        {
            match self {
                Self::Unprivileged { .. } => write_map(pid, file, &lines)?,
                Self::User { .. } => run_mapper(pid, mapper, &lines)?,
            }
        }
        Ok(())
    }
}

/// A kernel map file, read.
pub(crate) fn parse_map(text: &str) -> Option<Vec<(u32, u32, u32)>> {
    text.lines()
        .map(|line| {
            let mut numbers = line.split_whitespace().map(|n| n.parse().ok());
            let row = (numbers.next()??, numbers.next()??, numbers.next()??);
            numbers.next().is_none().then_some(row)
        })
        .collect()
}

fn write_map(pid: u32, file: &str, lines: &[(u32, u32, u32)]) -> Result<(), SessionError> {
    let path = PathBuf::from(format!("/proc/{pid}/{file}"));
    let text: String = lines
        .iter()
        .map(|(inside, outside, count)| format!("{inside} {outside} {count}\n"))
        .collect();
    fs::write(&path, text)
        .map_err(|e| SessionCode::StartFailed.refuse(format_args!("cannot map ids, {file}: {e}")))
}

fn run_mapper(pid: u32, mapper: &str, lines: &[(u32, u32, u32)]) -> Result<(), SessionError> {
    let numbers = lines.iter().flat_map(|(a, b, c)| [a, b, c]);
    let output = Command::new(mapper)
        .arg(pid.to_string())
        .args(numbers.map(u32::to_string))
        .env_clear()
        .output();
    let said = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => flightproof_core::escape(&output.stderr, 200),
        Err(e) => e.to_string(),
    };
    Err(SessionCode::NoUidRange.refuse(format_args!("{mapper}: {said}")))
}

fn user_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Where the first range of a user in `/etc/subuid` that is wide enough begins.
fn subordinate(text: &str, name: Option<&str>, uid: u32, file: &str) -> Result<u32, SessionError> {
    let number = uid.to_string();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let who = fields.next()?;
            let range: (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            (Some(who) == name || who == number).then_some(range)
        })
        .find_map(|(first, width)| (width >= RANGE).then_some(first))
        .ok_or_else(|| {
            SessionCode::NoUidRange.refuse(format_args!(
                "{file} has no range of {RANGE} ids for user {uid}"
            ))
        })
}

/// A file that is absent names nobody.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_root_is_far_from_real_users_and_fits_the_kernel() {
        let last = u64::from(BASE) + u64::from(SLOTS) * u64::from(WIDTH);
        assert!(last < u64::from(u32::MAX));
        let maps = Identity::Unprivileged { base: BASE }.maps();
        assert_eq!(maps[0], [(0, 2_000_000_000, 1_000_000)]);
    }

    #[test]
    fn a_users_range_is_found_by_name_or_number_and_must_be_wide() {
        let text = "eve:1:1000000\nann:100000:65536\nann:2000000:999999\n1001:3000000:1000000\n";
        let find = |name, uid| subordinate(text, name, uid, "/etc/subuid");
        assert_eq!(find(Some("ann"), 1000), Ok(2_000_000));
        assert_eq!(find(None, 1001), Ok(3_000_000));
        let refused = find(Some("bob"), 1002).unwrap_err();
        assert_eq!(refused.code, SessionCode::NoUidRange);
    }

    #[test]
    fn a_user_is_the_runner_and_its_range_are_the_cases() {
        let identity = Identity::User {
            own: [1000, 100],
            first: [2_000_000, 3_000_000],
        };
        assert_eq!(
            identity.maps(),
            [
                vec![(0, 1000, 1), (1, 2_000_000, 999_999)],
                vec![(0, 100, 1), (1, 3_000_000, 999_999)]
            ]
        );
        assert_eq!(identity.drop_to(), None);
    }

    #[test]
    fn a_map_file_is_read_exactly_or_not_at_all() {
        let line = "         0 2000000000    1000000\n";
        assert_eq!(parse_map(line), Some(vec![(0, 2_000_000_000, 1_000_000)]));
        for bad in ["0 1", "0 1 2 3", "0 x 1", "0 -1 1"] {
            assert_eq!(parse_map(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_user_is_found_in_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(user_name(passwd, 7), None);
    }
}
