//! The files of a cgroup as texts, wherever they were read: by the host, or by the runner of a
//! session in a container. Names begin with the version they are of.

use super::counter;
use super::group::{Applied, Limits};
use crate::{LimitEvents, SessionCode, SessionError};
use flightproof_evidence::Reading;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Texts by name.
pub(crate) type Texts = BTreeMap<String, String>;

/// The files that limits are read back from: name, controller's place among memory, pids and cpu,
/// file.
const V1: [(&str, usize, &str); 7] = [
    ("v1-memory", 0, "memory.limit_in_bytes"),
    ("v1-memsw", 0, "memory.memsw.limit_in_bytes"),
    ("v1-oom", 0, "memory.oom_control"),
    ("v1-pids", 1, "pids.max"),
    ("v1-pids-events", 1, "pids.events"),
    ("v1-quota", 2, "cpu.cfs_quota_us"),
    ("v1-period", 2, "cpu.cfs_period_us"),
];
const V2: [(&str, &str); 6] = [
    ("v2-memory", "memory.max"),
    ("v2-swap", "memory.swap.max"),
    ("v2-memory-events", "memory.events"),
    ("v2-pids", "pids.max"),
    ("v2-pids-events", "pids.events"),
    ("v2-cpu", "cpu.max"),
];
/// The files that are read after each run.
pub(crate) const EVENTS: [&str; 4] = [
    "v1-oom",
    "v1-pids-events",
    "v2-memory-events",
    "v2-pids-events",
];
/// The list of swap devices.
pub(crate) const SWAPS: &str = "swaps";

/// Every name there is.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let one = V1.iter().map(|(name, ..)| *name);
    one.chain(V2.iter().map(|(name, _)| *name)).chain([SWAPS])
}

/// Where the files are, of the groups of version 1 or the one of version 2.
pub(super) fn files(dirs: &[PathBuf]) -> Vec<(&'static str, PathBuf)> {
    if let [dir] = dirs {
        return V2
            .iter()
            .map(|(name, file)| (*name, dir.join(file)))
            .collect();
    }
    V1.iter()
        .filter_map(|(name, place, file)| Some((*name, dirs.get(*place)?.join(file))))
        .collect()
}

/// One reading per limit, none weaker than asked.
///
/// # Errors
/// `SHORTFALL` for the first that is weaker, missing or unreadable.
pub(crate) fn limits(texts: &Texts, asked: &Limits) -> Result<Vec<Reading>, SessionError> {
    let applied = applied(texts);
    match applied.weaker_than(asked) {
        Some(what) => Err(SessionCode::Shortfall.refuse(what)),
        None => Ok(applied.readings(asked)),
    }
}

/// What limits were hit since the groups were made.
///
/// # Errors
/// `SHORTFALL`: a counter is missing, so limits would be hit unseen.
pub(crate) fn events(texts: &Texts) -> Result<LimitEvents, SessionError> {
    let counted = |names: [&str; 2], key: &str| {
        let text = names.iter().find_map(|name| texts.get(*name));
        text.and_then(|text| counter(text, key))
            .ok_or_else(|| SessionCode::Shortfall.refuse(format_args!("no {key} count")))
    };
    Ok(LimitEvents {
        pids: counted(["v1-pids-events", "v2-pids-events"], "max")?,
        memory: counted(["v1-oom", "v2-memory-events"], "oom_kill")?,
    })
}

fn applied(texts: &Texts) -> Applied {
    let text = |name: &str| texts.get(name).map(|text| text.trim_end());
    let found = |name: &str| text(name).unwrap_or("unreadable").to_owned();
    if texts.contains_key("v1-memory") {
        return Applied {
            memory: found("v1-memory"),
            swap: swap_beyond(text("v1-memsw"), text("v1-memory"))
                .unwrap_or_else(|| unlimited_swap(texts)),
            pids: found("v1-pids"),
            cpu_quota: found("v1-quota"),
            cpu_period: found("v1-period"),
        };
    }
    let cpu = found("v2-cpu");
    let (quota, period) = cpu.split_once(' ').unwrap_or((&cpu, ""));
    Applied {
        memory: found("v2-memory"),
        swap: text("v2-swap").map_or_else(|| unlimited_swap(texts), str::to_owned),
        pids: found("v2-pids"),
        cpu_quota: quota.to_owned(),
        cpu_period: period.to_owned(),
    }
}

/// Version 1 counts memory and swap together. `None` without that count.
fn swap_beyond(both: Option<&str>, memory: Option<&str>) -> Option<String> {
    let both = both?;
    let beyond = both.parse::<u64>().ok().zip(memory?.parse::<u64>().ok());
    let beyond = beyond.map(|(both, memory)| both.saturating_sub(memory).to_string());
    Some(beyond.unwrap_or_else(|| both.to_owned()))
}

/// A kernel that does not account for swap: then there must be none at all.
fn unlimited_swap(texts: &Texts) -> String {
    let none = texts
        .get(SWAPS)
        .is_some_and(|text| text.lines().count() == 1);
    if none { "0" } else { "unlimited" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Limits = Limits {
        memory_bytes: 4096,
        pids: 8,
        cpu_millis: 2000,
    };

    fn texts(pairs: &[(&str, &str)]) -> Texts {
        let pairs = pairs.iter();
        pairs
            .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()))
            .collect()
    }

    fn v1() -> Texts {
        texts(&[
            ("v1-memory", "4096\n"),
            ("v1-memsw", "4096\n"),
            ("v1-oom", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ("v1-pids", "8\n"),
            ("v1-pids-events", "max 3\n"),
            ("v1-quota", "200000\n"),
            ("v1-period", "100000\n"),
            (SWAPS, "Filename Type\n"),
        ])
    }

    fn v2() -> Texts {
        texts(&[
            ("v2-memory", "4096\n"),
            ("v2-swap", "0\n"),
            ("v2-memory-events", "low 0\noom_kill 2\n"),
            ("v2-pids", "8\n"),
            ("v2-pids-events", "max 3\n"),
            ("v2-cpu", "200000 100000\n"),
            (SWAPS, "Filename Type\n"),
        ])
    }

    #[test]
    fn both_versions_say_the_same() {
        assert_eq!(limits(&v1(), &ASKED), limits(&v2(), &ASKED));
        assert_eq!(limits(&v1(), &ASKED).unwrap().len(), 4);
        let hit = LimitEvents { pids: 3, memory: 2 };
        assert_eq!((events(&v1()), events(&v2())), (Ok(hit), Ok(hit)));
    }

    #[test]
    fn a_limit_or_counter_that_is_missing_or_weaker_is_a_shortfall() {
        let table = [
            (v1(), "v1-memory", "4097"),
            (v1(), "v1-memsw", "8192"),
            (v1(), "v1-pids", "max"),
            (v1(), "v1-quota", "-1"),
            (v2(), "v2-memory", "max"),
            (v2(), "v2-swap", "max"),
            (v2(), "v2-pids", "9"),
            (v2(), "v2-cpu", "max 100000"),
        ];
        for (good, name, weaker) in table {
            for spoiled in [Some(weaker), None] {
                let mut texts = good.clone();
                texts.remove(name);
                texts.remove(SWAPS);
                texts.extend(spoiled.map(|text| (name.to_owned(), text.to_owned())));
                let refused = limits(&texts, &ASKED).unwrap_err();
                assert_eq!(refused.code, SessionCode::Shortfall, "{name}");
            }
        }
        for name in EVENTS {
            let mut texts = if name.starts_with("v1") { v1() } else { v2() };
            texts.remove(name);
            assert!(events(&texts).is_err(), "{name}");
        }
        assert!(limits(&Texts::new(), &ASKED).is_err());
    }

    #[test]
    fn without_swap_accounting_there_must_be_no_swap() {
        for (mut texts, name) in [(v1(), "v1-memsw"), (v2(), "v2-swap")] {
            texts.remove(name);
            assert!(limits(&texts, &ASKED).is_ok());
            texts.insert(SWAPS.to_owned(), "Filename\n/dev/vdb\n".to_owned());
            assert!(limits(&texts, &ASKED).is_err());
        }
    }
}
