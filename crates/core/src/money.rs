use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An amount in micro-US-dollars: an exact integer, never a float. Always an estimate of what a
/// provider will bill, unless it comes from an invoice.
///
/// At most 2^53 - 1 micro-dollars, which every JSON reader keeps exactly.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub struct MicroUsd(u64);

/// Why a text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoneyError {
    /// Not a plain decimal number: a sign, an exponent, a currency, white space, a leading zero, or
    /// more than six decimals.
    Grammar,
    /// Zero where an amount is needed.
    NotPositive,
    /// Beyond the largest amount accepted.
    TooLarge,
}

impl fmt::Display for MoneyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grammar => "not a plain decimal amount of US dollars such as 12.5",
            Self::NotPositive => "the amount is zero",
            Self::TooLarge => "the amount is too large",
        })
    }
}

impl std::error::Error for MoneyError {}

impl MicroUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount of the type, in micro-dollars: 2^53 - 1.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// An amount of so many micro-dollars; `None` beyond [`MicroUsd::MAX`].
    pub const fn from_micros(micros: u64) -> Option<Self> {
        if micros <= Self::MAX.0 {
            Some(Self(micros))
        } else {
            None
        }
    }

    /// The micro-dollars.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The sum; `None` beyond [`MicroUsd::MAX`].
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Self::from_micros(sum),
            None => None,
        }
    }

    /// The product; `None` beyond [`MicroUsd::MAX`].
    pub const fn checked_mul(self, times: u64) -> Option<Self> {
        match self.0.checked_mul(times) {
            Some(product) => Self::from_micros(product),
            None => None,
        }
    }

    /// What is left after taking `other` away, or nothing.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Reads an amount that may be zero, in the grammar of [`MicroUsd::from_str`].
    ///
    /// # Errors
    /// [`MoneyError::Grammar`].
    pub fn parse_or_zero(text: &str) -> Result<Self, MoneyError> {
        plain_decimal(text).map(Self)
    }

    /// Reads a number of JSON, as a program reports what it spent, and rounds **up** to the next
    /// micro-dollar: what was spent is never understated. Zero is accepted; a sign never is.
    ///
    /// # Errors
    /// [`MoneyError::Grammar`] for what is not a JSON number or is negative (`-0.0` too),
    /// [`MoneyError::TooLarge`] beyond [`MicroUsd::MAX`].
    pub fn ceil_of_json(text: &str) -> Result<Self, MoneyError> {
        if text.len() > LONGEST_NUMBER {
            return Err(MoneyError::TooLarge);
        }
        let number = JsonNumber::read(text).ok_or(MoneyError::Grammar)?;
        number.ceil_micros().map(Self).ok_or(MoneyError::TooLarge)
    }

    /// So many euros at the operator's rate, rounded **down**: a cap in euros never lets more
    /// through than was meant.
    ///
    /// # Errors
    /// [`MoneyError::NotPositive`] if nothing is left, [`MoneyError::TooLarge`].
    pub fn floor_of_eur(eur: MicroEur, rate: UsdPerEur) -> Result<Self, MoneyError> {
        let micros = u128::from(eur.0) * u128::from(rate.0) / u128::from(ONE);
        match u64::try_from(micros).ok().and_then(Self::from_micros) {
            Some(Self(0)) => Err(MoneyError::NotPositive),
            Some(usd) => Ok(usd),
            None => Err(MoneyError::TooLarge),
        }
    }
}

/// Reads a positive amount: `(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?`, so at most 999,999.999999.
impl FromStr for MicroUsd {
    type Err = MoneyError;
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        positive(text).map(Self)
    }
}

/// Writes the shortest text that reads back as the same amount.
impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0)
    }
}

impl TryFrom<u64> for MicroUsd {
    type Error = MoneyError;
    fn try_from(micros: u64) -> Result<Self, MoneyError> {
        Self::from_micros(micros).ok_or(MoneyError::TooLarge)
    }
}

impl From<MicroUsd> for u64 {
    fn from(value: MicroUsd) -> u64 {
        value.0
    }
}

/// An amount in micro-euros, as an operator may state a cap. Read and written like [`MicroUsd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MicroEur(u64);

/// US dollars for one euro, in millionths: the operator's own, conservative (low) rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsdPerEur(u64);

macro_rules! stated_by_an_operator {
    ($type:ident) => {
        impl $type {
            /// So many millionths; `None` for zero and beyond what can be stated.
            pub const fn from_micros(micros: u64) -> Option<Self> {
                match micros {
                    1..=LARGEST_STATED => Some(Self(micros)),
                    _ => None,
                }
            }

            /// The millionths.
            pub const fn micros(self) -> u64 {
                self.0
            }
        }
        impl FromStr for $type {
            type Err = MoneyError;
            fn from_str(text: &str) -> Result<Self, MoneyError> {
                positive(text).map(Self)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_decimal(f, self.0)
            }
        }
    };
}

stated_by_an_operator!(MicroEur);
stated_by_an_operator!(UsdPerEur);

/// Millionths in one.
const ONE: u64 = 1_000_000;
/// Decimals of a millionth.
const DECIMALS: usize = 6;
/// Most digits before the point in what people state: budgets of a million dollars are typing errors.
const WHOLE_DIGITS: usize = 6;
/// The same bound in millionths.
const LARGEST_STATED: u64 = 999_999_999_999;
/// Longest number of JSON looked at, bytes: a double written out in full has about 330.
const LONGEST_NUMBER: usize = 400;
/// More digits than any accepted amount has.
const MOST_DIGITS: usize = 17;

fn positive(text: &str) -> Result<u64, MoneyError> {
    match plain_decimal(text)? {
        0 => Err(MoneyError::NotPositive),
        micros => Ok(micros),
    }
}

fn plain_decimal(text: &str) -> Result<u64, MoneyError> {
    let (whole, part) = match text.split_once('.') {
        Some((whole, part)) if !part.is_empty() => (whole, part),
        Some(_) => return Err(MoneyError::Grammar),
        None => (text, ""),
    };
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || leading_zero || !digits(whole) || !digits(part) {
        return Err(MoneyError::Grammar);
    }
    if part.len() > DECIMALS {
        return Err(MoneyError::Grammar);
    }
    if whole.len() > WHOLE_DIGITS {
        return Err(MoneyError::TooLarge);
    }
    format!("{whole}{part:0<DECIMALS$}")
        .parse()
        .map_err(|_| MoneyError::Grammar)
}

fn write_decimal(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let (whole, part) = (micros / ONE, micros % ONE);
    if part == 0 {
        return write!(f, "{whole}");
    }
    let part = format!("{part:0>DECIMALS$}");
    write!(f, "{whole}.{}", part.trim_end_matches('0'))
}

/// A number of JSON without its sign: digits, and the power of ten they are multiplied with.
struct JsonNumber<'a> {
    whole: &'a str,
    part: &'a str,
    exponent: i64,
}

impl<'a> JsonNumber<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, part) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(both) => both,
            None => (mantissa, ""),
        };
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        let good = !whole.is_empty() && !leading_zero && digits(whole) && digits(part);
        good.then_some(Self {
            whole,
            part,
            exponent,
        })
    }

    fn ceil_micros(&self) -> Option<u64> {
        let all = format!("{}{}", self.whole, self.part);
        let significant = all.trim_start_matches('0');
        if significant.is_empty() {
            return Some(0);
        }
        // Micro-dollars are the digits times 10^shift.
        let decimals = i64::try_from(self.part.len()).ok()?;
        let shift = self.exponent.checked_sub(decimals)?.checked_add(6)?;
        let length = i64::try_from(significant.len()).ok()?.checked_add(shift)?;
        if length > i64::try_from(MOST_DIGITS).ok()? {
            return None;
        }
        let kept = usize::try_from(length.max(0)).ok()?;
        let (integer, rest) = significant.split_at(kept.min(significant.len()));
        let integer = format!("{integer:0<kept$}");
        let floor: u64 = if kept == 0 { 0 } else { integer.parse().ok()? };
        let more = rest.bytes().any(|b| b != b'0');
        MicroUsd::from_micros(floor + u64::from(more)).map(MicroUsd::micros)
    }
}

/// An exponent beyond what matters is as good as the last one that does.
fn read_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(100_000);
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_plain_positive_decimals() {
        for (text, micros) in [
            ("1", 1_000_000),
            ("0.5", 500_000),
            ("0.000001", 1),
            ("12.340000", 12_340_000),
            ("999999.999999", 999_999_999_999),
        ] {
            assert_eq!(text.parse::<MicroUsd>().map(MicroUsd::micros), Ok(micros));
        }
        for bad in [
            "",
            ".5",
            "1.",
            "+1",
            "-1",
            "-0.0",
            "01",
            "1e3",
            "1E3",
            "NaN",
            "inf",
            "Infinity",
            " 1",
            "1 ",
            "1,5",
            "$1",
            "1 EUR",
            "€1",
            "0x1",
            "1.0000001",
            "1_000",
            "١",
            "1.5.2",
            "null",
            "\"0.5\"",
        ] {
            assert_eq!(bad.parse::<MicroUsd>(), Err(MoneyError::Grammar), "{bad}");
        }
        for zero in ["0", "0.0", "0.000000"] {
            assert_eq!(zero.parse::<MicroUsd>(), Err(MoneyError::NotPositive));
            assert_eq!(MicroUsd::parse_or_zero(zero), Ok(MicroUsd::ZERO));
        }
        for large in ["1000000", "1000000.0", "99999999999999999999999"] {
            assert_eq!(large.parse::<MicroUsd>(), Err(MoneyError::TooLarge));
        }
    }

    #[test]
    fn what_was_spent_is_rounded_up() {
        for (text, micros) in [
            ("0", 0),
            ("0.0", 0),
            ("0e99999999999999999999", 0),
            ("1", 1_000_000),
            ("0.1", 100_000),
            ("0.6571631500000001", 657_164),
            ("0.15095600000000003", 150_957),
            ("25.000000000000004", 25_000_001),
            ("5e-324", 1),
            ("1e-6", 1),
            ("1.5e1", 15_000_000),
            ("9007199254.740991", (1 << 53) - 1),
        ] {
            assert_eq!(
                MicroUsd::ceil_of_json(text).map(MicroUsd::micros),
                Ok(micros),
                "{text}"
            );
        }
        for bad in [
            "", "-0.0", "-1", "NaN", "Infinity", "null", "\"0.5\"", "01", "1.", ".5", "+1", "1e",
            "1e+", "0.1.2",
        ] {
            assert_eq!(
                MicroUsd::ceil_of_json(bad),
                Err(MoneyError::Grammar),
                "{bad}"
            );
        }
        for large in [
            "1e308",
            "1e309",
            "9007199254.740992",
            "1e99999999999999999999",
        ] {
            assert_eq!(MicroUsd::ceil_of_json(large), Err(MoneyError::TooLarge));
        }
        assert_eq!(
            MicroUsd::ceil_of_json(&"1".repeat(401)),
            Err(MoneyError::TooLarge)
        );
    }

    #[test]
    fn ten_tenths_are_one() {
        let tenth: MicroUsd = "0.1".parse().unwrap();
        let sum = (0..10).fold(MicroUsd::ZERO, |sum, _| sum.checked_add(tenth).unwrap());
        assert_eq!(sum, "1".parse().unwrap());
    }

    #[test]
    fn arithmetic_ends_in_nothing_rather_than_in_a_wrapped_number() {
        let one = MicroUsd::from_micros(1).unwrap();
        assert_eq!(MicroUsd::MAX.checked_add(one), None);
        assert_eq!(MicroUsd::MAX.checked_mul(2), None);
        assert_eq!(one.checked_mul(u64::MAX), None);
        assert_eq!(MicroUsd::from_micros(1 << 53), None);
        assert_eq!(one.saturating_sub(MicroUsd::MAX), MicroUsd::ZERO);
    }

    #[test]
    fn euros_become_dollars_rounded_down() {
        let usd = |eur: &str, rate: &str| {
            MicroUsd::floor_of_eur(eur.parse().unwrap(), rate.parse().unwrap())
        };
        assert_eq!(usd("10", "1.05"), Ok("10.5".parse().unwrap()));
        assert_eq!(usd("0.000003", "1.5"), Ok(MicroUsd(4)));
        assert_eq!(usd("0.000001", "0.9"), Err(MoneyError::NotPositive));
        assert_eq!(usd("999999", "999999"), Err(MoneyError::TooLarge));
        assert_eq!(
            MicroEur::from_micros(1_500_000),
            Some("1.5".parse().unwrap())
        );
        assert_eq!(UsdPerEur::from_micros(0), None);
        assert_eq!(UsdPerEur::from_micros(1_000_000_000_000), None);
    }

    proptest! {
        #[test]
        fn text_and_amount_are_one_thing(micros in 1u64..=999_999_999_999) {
            let usd = MicroUsd::from_micros(micros).unwrap();
            prop_assert_eq!(usd.to_string().parse::<MicroUsd>(), Ok(usd));
            prop_assert_eq!(MicroUsd::ceil_of_json(&usd.to_string()), Ok(usd));
        }

        #[test]
        fn a_double_is_never_understated(cost in 0.0f64..1e6) {
            let usd = MicroUsd::ceil_of_json(&format!("{cost:?}")).unwrap();
            #[expect(clippy::cast_precision_loss, reason = "the test compares with slack")]
            let back = usd.micros() as f64 / 1e6;
            prop_assert!(back >= cost - 1e-9 && back - cost < 1.1e-6);
        }
    }
}
