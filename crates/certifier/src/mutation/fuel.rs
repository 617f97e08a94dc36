use super::guard::{FUEL_SHIFT, REACH_SELECTOR};

/// How often a run may call the guard before it counts as endless, as a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fuel(u32);

/// How often what the unchanged program spends a mutant may spend. Mutants that only take longer
/// take a few times as long; what takes ten times as long does not end.
const FACTOR: u64 = 10;

impl Fuel {
    /// Least fuel of a mutant: 131,072 calls, some milliseconds.
    pub const LEAST: Self = Self(17);
    /// Most fuel of a mutant: two thousand million calls.
    pub const MOST: Self = Self(31);

    /// For a mutant, if the unchanged program spends so much.
    pub fn after(spent: u64) -> Self {
        let fuel = spent.saturating_mul(FACTOR).max(1).ilog2() + 1;
        Self(fuel.clamp(Self::LEAST.0, Self::MOST.0))
    }

    /// For a mutant, if nobody knows what the unchanged program spends.
    pub const UNKNOWN: Self = Self(LAST);

    /// What the guard is handed to select a mutant with this fuel; 0 selects none.
    pub const fn selecting(self, selector: u64) -> u64 {
        (self.0 as u64) << FUEL_SHIFT | selector
    }
}

/// The mutant that the guard is handed, without the fuel: 0 for none.
pub const fn selected(word: u64) -> u64 {
    word & REACH_SELECTOR
}

/// The fuel of one case in the gate. Nothing a candidate says is believed, so what it spends is found
/// by letting it run with little, and with more only if it runs dry. A program that waits for a thread by
/// spinning needs more in one run than in another: whenever it runs dry without a mutant, it is given more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance(u32);

/// The first try without a mutant.
const FIRST: u32 = Fuel::LEAST.0 - SLACK;
/// The last one: 33 million calls, below a second.
const LAST: u32 = 25;
/// From one try to the next.
const STEP: u32 = 4;
/// What a mutant has beyond what its case was seen to need: eight times as much, or more.
const SLACK: u32 = 3;

impl Default for Allowance {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Allowance {
    /// For the program without a mutant, while its need is being found.
    pub fn trying(self) -> Fuel {
        Fuel(self.0)
    }

    /// For every run after that, with a mutant or without.
    pub fn granted(self) -> Fuel {
        Fuel(self.0 + SLACK)
    }

    /// What to try next; `None` after the last.
    pub fn more(self) -> Option<Self> {
        (self.0 < LAST).then(|| Self((self.0 + STEP).min(LAST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_is_ten_times_what_was_spent_within_its_bounds() {
        let of = |spent| Fuel::after(spent).0;
        assert_eq!((of(0), of(10_000)), (17, 17));
        assert_eq!(of(1 << 20), 24);
        assert_eq!(of(u64::MAX), 31);
    }

    #[test]
    fn a_word_holds_fuel_and_mutant_and_fits_every_reader() {
        let word = Fuel::MOST.selecting(77);
        assert_eq!(selected(word), 77);
        assert_eq!(word >> FUEL_SHIFT, 31);
        assert!(Fuel::MOST.selecting(REACH_SELECTOR) < 1 << 53);
        assert_eq!(selected(Fuel::LEAST.selecting(0)), 0);
    }

    #[test]
    fn an_allowance_grows_to_its_end_and_leaves_mutants_at_least_as_much() {
        let mut all = vec![Allowance::default()];
        while let Some(more) = all.last().and_then(|last| last.more()) {
            all.push(more);
        }
        let tried: Vec<u32> = all.iter().map(|a| a.trying().0).collect();
        assert_eq!(tried, [14, 18, 22, 25]);
        let granted: Vec<u32> = all.iter().map(|a| a.granted().0).collect();
        assert_eq!(granted, [17, 21, 25, 28]);
    }
}
