//! What the processor of this machine can do, as its kernel says. Libraries choose by it which
//! instructions they use, and a number's last digits may depend on that.

use flightproof_core::escape;
use std::collections::BTreeSet;
use std::fs;

/// Most bytes of all names together: those of a processor of today have some 1,500.
const MAX_BYTES: usize = 8 << 10;

/// The features that any processor of this machine has; none where the kernel does not say.
pub(crate) fn features() -> Option<String> {
    named(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

fn named(cpuinfo: &str) -> Option<String> {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    // Of x86, and of Arm.
    let lists = lines.filter(|(name, _)| ["flags", "Features"].contains(&name.trim()));
    let names: BTreeSet<&str> = lists
        .flat_map(|(_, names)| names.split_whitespace())
        .collect();
    let text = Vec::from_iter(names).join(" ");
    (1..=MAX_BYTES)
        .contains(&text.len())
        .then(|| escape(&text, MAX_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_named_once_in_order_for_all_processors_together() {
        let x86 = "processor\t: 0\nmodel name\t: A\nflags\t\t: sse2 fma avx2\nvmx flags\t: ept\n\n\
            processor\t: 1\nflags\t\t: sse2 avx2 avx512f\n";
        assert_eq!(named(x86).unwrap(), "avx2 avx512f fma sse2");
        let arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n";
        assert_eq!(named(arm).unwrap(), "asimd fp");
        for silent in ["", "processor\t: 0\n", "flags\t\t:\n"] {
            assert_eq!(named(silent), None, "{silent:?}");
        }
        assert_eq!(
            named(&format!("flags: {}", "x".repeat(MAX_BYTES + 1))),
            None
        );
    }

    #[test]
    fn this_machine_says_what_its_processor_can_do() {
        assert!(features().is_some());
    }
}
