//! One oracle for each surface: unit test, property test, seed replay and fuzz target call the
//! same body.

use crate::proxy::Head;
use crate::{
    Accounting, AgentError, Ending, HoldEffect, Limits, Metering, Output, Profile, RunKey,
    check_result, check_run,
};
use std::sync::LazyLock;

/// Any bytes as the terminal result of every profile, under one dollar and ten turns. What is
/// accepted keeps its promises by the word of another reader; what is refused settles only what
/// that reader sees as well; white space at the end changes nothing; and nothing that is cut short
/// is accepted.
///
/// # Panics
/// One of these does not hold.
pub fn agent_result_raw(bytes: &[u8]) {
    let claude = claude();
    match check_result(bytes, claude, &limits()) {
        Ok(accounting) => {
            keeps_its_promises(bytes, &accounting);
            let longer = [bytes, b" \n"].concat();
            assert_eq!(check_result(&longer, claude, &limits()), Ok(accounting));
            let end = bytes.trim_ascii_end().len();
            let cut = check_result(&bytes[..end - 1], claude, &limits());
            assert!(cut.is_err(), "half a result was accepted");
        }
        Err(error) => settles_what_was_said(bytes, &error),
    }
    // Signs that disagree are never a success, whatever the result says.
    for ending in [
        Ending::Exited(1),
        Ending::Signalled(9),
        Ending::Overdue,
        Ending::Lost,
    ] {
        let output = Output {
            ending,
            stdout: bytes.to_vec(),
            stderr_bytes: 0,
            overflow: false,
        };
        let run = RunKey::from_entropy([7; 16]);
        assert!(check_run(&output, &run, None, claude, &limits()).is_err());
    }
    for profile in &PROFILES[1..] {
        if let Ok(accounting) = check_result(bytes, profile, &limits()) {
            assert_eq!(accounting.spend.amount(), limits().hold_under(profile));
        }
    }
}

/// A result that is known to be good or bad.
///
/// # Panics
/// It was judged otherwise.
pub fn agent_result_plan(bytes: &[u8], good: bool) {
    let judged = check_result(bytes, claude(), &limits());
    assert_eq!(judged.is_ok(), good, "{judged:?}");
    agent_result_raw(bytes);
}

/// Any bytes as the head of a request. What is read is written in one spelling, which reads as the
/// same again; and pieces are waited for, not guessed at.
///
/// # Panics
/// One of these does not hold.
pub fn agent_head_raw(bytes: &[u8]) {
    let Ok(Some((head, length))) = Head::read(bytes) else {
        return;
    };
    assert_eq!(Head::read(&bytes[..length - 1]), Ok(None));
    let forwarded = head.forwarded(&head.host, &[]);
    let again = Head::read(forwarded.as_bytes());
    let Ok(Some((again, whole))) = again else {
        panic!("not readable again: {again:?}")
    };
    assert_eq!(whole, forwarded.len());
    assert_eq!(again, head);
    assert!(!forwarded.to_ascii_lowercase().contains("x-api-key"));
}

/// The built-in profiles, read once: reading them takes longer than judging a result.
static PROFILES: LazyLock<[Profile; 3]> = LazyLock::new(|| {
    ["claude", "codex", "gemini"]
        .map(|name| Profile::built_in(name).unwrap_or_else(|e| panic!("{e}")))
});

fn claude() -> &'static Profile {
    &PROFILES[0]
}

fn limits() -> Limits {
    Limits::parse("1", "10", Metering::Unmetered).unwrap_or_else(|e| panic!("{e}"))
}

/// Another reader's view: the numbers as doubles, which is enough to catch an understatement.
fn keeps_its_promises(bytes: &[u8], accounting: &Accounting) {
    // It cannot read numbers beyond a double, which may stand in fields nobody looks at.
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return;
    };
    assert_eq!(value["type"], "result");
    assert_eq!(value["subtype"], "success");
    assert_eq!(value["is_error"], false);
    assert_eq!(value["terminal_reason"], "completed");
    assert_eq!(value["stop_reason"], "end_turn");
    let turns = value["num_turns"].as_u64();
    assert_eq!(turns, accounting.turns.map(u64::from));
    assert!(turns.is_some_and(|turns| (1..=10).contains(&turns)));
    let micros = accounting.spend.amount().micros();
    assert!((1..=1_000_000).contains(&micros), "{micros}");
    assert!(!understates(&value, micros), "{micros}");
    let text = value["result"].as_str().unwrap_or_default().trim();
    assert!(!text.is_empty());
    let models: Vec<&str> = accounting.models.iter().map(|m| m.model.as_str()).collect();
    assert!(models.iter().all(|name| claude().knows_model(name)));
    assert!(accounting.tokens.output > 0);
}

fn settles_what_was_said(bytes: &[u8], error: &AgentError) {
    assert!(error.refused.detail.chars().count() <= 700);
    let HoldEffect::Settle(amount) = error.hold else {
        assert_eq!(
            error.hold,
            HoldEffect::Keep,
            "a run that happened is never released"
        );
        return;
    };
    assert!(amount.micros() > 0);
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) {
        assert!(!understates(&value, amount.micros()), "{amount}");
    }
}

/// Whether an amount is below the total that the document states.
fn understates(value: &serde_json::Value, micros: u64) -> bool {
    let total = value["total_cost_usd"].as_f64().unwrap_or(f64::INFINITY);
    #[expect(
        clippy::cast_precision_loss,
        reason = "below 2^53, and compared with slack"
    )]
    let amount = micros as f64 / 1e6;
    // Doubles near a million dollars are a ten-thousandth of a micro-dollar apart.
    amount + 1e-9 < total
}
