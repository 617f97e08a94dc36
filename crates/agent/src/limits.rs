use crate::{AgentCode, AgentRefusal, Profile};
use flightproof_core::{MicroUsd, escape};
use flightproof_ledger::HoldSize;
use serde::{Deserialize, Serialize};

/// Most turns of a run: a thousand is a day's work.
const MAX_TURNS: u32 = 1_000;

/// Whether a run's cost is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metering {
    /// The program reports what it cost, and the report is held against the limits.
    Metered,
    /// The program reports no cost: the whole hold is settled, whatever happened.
    Unmetered,
}

/// What a run may use. Made by the operator; a plan can only narrow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    budget: MicroUsd,
    turns: u32,
    metering: Metering,
}

impl Limits {
    /// Limits as an operator writes them: dollars by the decimal grammar
    /// `(0|[1-9][0-9]{0,5})(.[0-9]{1,6})?`, more than zero; turns as a whole number, 1 to 1,000.
    ///
    /// # Errors
    /// `LIMIT_INVALID`
    pub fn parse(budget: &str, turns: &str, metering: Metering) -> Result<Self, AgentRefusal> {
        let budget = dollars(budget)?;
        let plain = turns.bytes().all(|b| b.is_ascii_digit()) && !turns.starts_with('0');
        let turns = turns.parse().ok().filter(|n| plain && *n <= MAX_TURNS);
        let turns = turns.ok_or_else(|| {
            AgentCode::LimitInvalid
                .refuse(format!("turns: expected a whole number, 1 to {MAX_TURNS}"))
        })?;
        Ok(Self {
            budget,
            turns,
            metering,
        })
    }

    /// The same limits where a plan asks for less. What it does not name stays.
    ///
    /// # Errors
    /// `LIMIT_WIDENED` if it asks for more, `LIMIT_INVALID` if for something else.
    pub fn narrowed(self, budget: Option<&str>, turns: Option<u32>) -> Result<Self, AgentRefusal> {
        let budget = budget.map_or(Ok(self.budget), dollars)?;
        let turns = turns.unwrap_or(self.turns);
        if turns == 0 {
            return Err(AgentCode::LimitInvalid.refuse("turns: 0"));
        }
        if budget > self.budget || turns > self.turns {
            return Err(AgentCode::LimitWidened.refuse(format!(
                "asked for {budget} dollars and {turns} turns, allowed are {} and {}",
                self.budget, self.turns
            )));
        }
        Ok(Self {
            budget,
            turns,
            ..self
        })
    }

    /// What the program is told to spend at most.
    pub fn budget(&self) -> MicroUsd {
        self.budget
    }

    /// What the program is told to take at most, in turns.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Whether the cost is counted.
    pub fn metering(&self) -> Metering {
        self.metering
    }

    /// What is held for a run: the budget, and a margin for the last answer, that of the profile's
    /// dearest model and a dollar at least. A program stops after the answer that passes the budget, not
    /// before (recorded: 29 times a small budget).
    pub fn hold_under(&self, profile: &Profile) -> MicroUsd {
        let size = HoldSize::for_limit(self.budget, profile.margin(), 1);
        size.map_or(MicroUsd::MAX, |size| size.held)
    }
}

fn dollars(text: &str) -> Result<MicroUsd, AgentRefusal> {
    text.parse()
        .map_err(|e| AgentCode::LimitInvalid.refuse(format!("budget {}: {e}", escape(text, 40))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_one_way() {
        let limits = |budget, turns| Limits::parse(budget, turns, Metering::Metered);
        for (budget, turns) in [("12", "1"), ("0.000001", "1000"), ("999999.999999", "60")] {
            assert!(limits(budget, turns).is_ok(), "{budget} {turns}");
        }
        for bad in [
            "",
            "0",
            "0.0",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "inf",
            "1.",
            ".5",
            "01",
            "1.0000001",
            "1000000",
            " 1",
            "1 ",
            "1,5",
            "0x10",
            "١",
        ] {
            let code = limits(bad, "1").map_err(|e| e.code);
            assert_eq!(code, Err(AgentCode::LimitInvalid), "{bad}");
        }
        for bad in [
            "",
            "0",
            "-1",
            "+1",
            "1.0",
            "01",
            "1001",
            "4294967297",
            "1e3",
        ] {
            let code = limits("1", bad).map_err(|e| e.code);
            assert_eq!(code, Err(AgentCode::LimitInvalid), "{bad}");
        }
    }

    #[test]
    fn a_plan_narrows_limits_and_never_widens_them() {
        let limits = Limits::parse("10", "50", Metering::Metered).unwrap();
        let narrow = limits.narrowed(Some("2.50"), Some(5)).unwrap();
        assert_eq!((narrow.budget().micros(), narrow.turns()), (2_500_000, 5));
        assert_eq!(limits.narrowed(None, None), Ok(limits));
        assert_eq!(limits.narrowed(Some("10"), Some(50)), Ok(limits));
        for (budget, turns, code) in [
            (Some("10.000001"), None, AgentCode::LimitWidened),
            (None, Some(51), AgentCode::LimitWidened),
            (Some("NaN"), None, AgentCode::LimitInvalid),
            (None, Some(0), AgentCode::LimitInvalid),
        ] {
            assert_eq!(
                limits.narrowed(budget, turns).map_err(|e| e.code),
                Err(code)
            );
        }
    }

    #[test]
    fn the_hold_is_more_than_the_flag() {
        let limits = Limits::parse("0.001", "1", Metering::Metered).unwrap();
        let hold = limits.hold_under(&Profile::built_in("claude").unwrap());
        assert!(hold.micros() >= limits.budget().micros() + 1_000_000);
        // Whatever the operator's profile says of its models.
        let text = include_str!("../profiles/claude.toml");
        let lines = text
            .lines()
            .map(|line| match line.starts_with("margin = ") {
                true => "margin = \"0.01\"\n".to_owned(),
                false => format!("{line}\n"),
            });
        let cheap = Profile::read(&lines.collect::<String>()).unwrap();
        assert_eq!(cheap.margin().micros(), 10_000);
        assert_eq!(limits.hold_under(&cheap).micros(), 1_001_000);
    }
}
