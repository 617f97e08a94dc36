//! Dollars as a program prints them, read exactly.

use crate::AgentCode;
use crate::document::Json;
use flightproof_core::MicroUsd;

/// Units of [`Exact`] in a micro-dollar: 24 decimals of a dollar. A double of at least one
/// micro-dollar prints 17 significant digits, so 23 decimals at most.
const PER_MICRO: u128 = 1_000_000_000_000_000_000;
/// Decimals an amount may have.
const MAX_DECIMALS: usize = 24;
/// Digits before the point: below a million dollars.
const MAX_WHOLE: usize = 6;
/// Most micro-dollars of one amount.
const MOST_MICROS: u128 = 999_999_999_999;

/// An amount of dollars in units of 10^-24, so that floats as printed add up without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Exact(u128);

impl Exact {
    /// Reads a cost: digits, and a point with digits if there is a fraction.
    pub(crate) fn read(value: &Json<'_>) -> Result<Self, AgentCode> {
        let Json::Number(text) = value else {
            return Err(AgentCode::CostNotNumber);
        };
        if text.starts_with('-') {
            return Err(AgentCode::CostNegative);
        }
        if text.contains(['e', 'E']) {
            return Err(AgentCode::CostExponent);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.len() > MAX_WHOLE || fraction.len() > MAX_DECIMALS {
            return Err(AgentCode::CostOutOfRange);
        }
        let amount = format!("{whole}{fraction:0<MAX_DECIMALS$}")
            .parse()
            .map(Self)
            .map_err(|_| AgentCode::CostOutOfRange)?;
        if amount.micros() > MOST_MICROS {
            return Err(AgentCode::CostOutOfRange);
        }
        Ok(amount)
    }

    /// Whole micro-dollars, rounded up: a cost is never made smaller.
    fn micros(self) -> u128 {
        self.0.div_ceil(PER_MICRO)
    }

    /// The amount rounded up to a micro-dollar.
    pub(crate) fn ceil(self) -> MicroUsd {
        let micros = u64::try_from(self.micros()).ok();
        micros
            .and_then(MicroUsd::from_micros)
            .unwrap_or(MicroUsd::MAX)
    }

    /// Whether two amounts are at most one micro-dollar apart: what adding doubles may lose.
    pub(crate) fn close_to(self, other: Self) -> bool {
        self.0.abs_diff(other.0) <= PER_MICRO
    }

    /// The sum. At most 65,536 amounts below a million are ever added, so it cannot overflow.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::first;

    fn read(text: &str) -> Result<u64, AgentCode> {
        Exact::read(&first(text).unwrap().0).map(|exact| exact.ceil().micros())
    }

    #[test]
    fn a_cost_is_rounded_up_to_the_micro_dollar_and_never_down() {
        for (text, micros) in [
            ("0", 0),
            ("0.0", 0),
            ("0.6571631500000001", 657_164),
            ("0.15095600000000003", 150_957),
            ("0.150956", 150_956),
            ("0.000000000000000000000001", 1),
            ("999999.999999", 999_999_999_999),
        ] {
            assert_eq!(read(text), Ok(micros), "{text}");
        }
    }

    #[test]
    fn a_cost_that_is_no_plain_decimal_is_refused_with_its_reason() {
        use AgentCode::{CostExponent, CostNegative, CostNotNumber, CostOutOfRange};
        for (text, code) in [
            ("-0.0", CostNegative),
            ("-1", CostNegative),
            ("5e-324", CostExponent),
            ("1e309", CostExponent),
            ("1E3", CostExponent),
            ("\"0.5\"", CostNotNumber),
            ("null", CostNotNumber),
            ("true", CostNotNumber),
            ("1000000", CostOutOfRange),
            ("999999.9999991", CostOutOfRange),
            ("0.0000000000000000000000001", CostOutOfRange),
            ("18446744073709551616", CostOutOfRange),
        ] {
            assert_eq!(read(text), Err(code), "{text}");
        }
    }

    #[test]
    fn ten_times_a_tenth_is_one() {
        let tenth = Exact::read(&Json::Number("0.1")).unwrap();
        let sum = (0..10).fold(Exact::default(), |sum, _| sum.plus(tenth));
        assert_eq!(sum.ceil().micros(), 1_000_000);
        let drifted: f64 = (0..10).map(|_| 0.1f64).sum();
        assert!(drifted < 1.0, "the float that this type replaces");
    }
}
