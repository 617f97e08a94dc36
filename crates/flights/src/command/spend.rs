//! `flights spend` and `flights ledger`: money that is held and spent, and the state it is kept in.

use super::day::Date;
use super::input;
use super::key::{self, SignerArgs};
use crate::flight::WorkDirectory;
use crate::show::{self, Format};
use crate::{FlightsCode, state};
use clap::{Args, Subcommand};
use flightproof_core::{
    Decision, Digest, Exit, MicroEur, MicroUsd, MoneyError, Refusal, UsdPerEur, Verdict,
};
use flightproof_ledger::{
    Cap, Hold, HoldSize, HoldState, Ledger, LedgerCode, Name, Reserve, Resolution, Scope, Signed,
    Spending, UtcDay,
};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The schema name of what `spend` prints.
const SPEND_SCHEMA: &str = "flightproof/spend/1";
/// The schema name of one hold.
const HOLD_SCHEMA: &str = "flightproof/hold/1";
/// The schema name of what `ledger check` prints.
const LEDGER_SCHEMA: &str = "flightproof/ledger/1";

/// `flights spend`.
#[derive(Subcommand)]
pub(super) enum SpendCommand {
    /// Show caps, what is spent and held, and runs that are not settled.
    Show,
    /// State a cap. The last one of a scope is in force; nothing is spent without one in total.
    Cap(CapArgs),
    /// Confirm the day after the clock jumped. What was booked to later days still counts.
    ConfirmDay {
        /// Today in UTC, as the clock has it, such as 2026-11-29.
        day: Date,
    },
    /// Hold money for a run.
    Reserve {
        /// The run.
        run: Name,
        /// What it may be told to spend, in US dollars.
        #[arg(long, value_name = "USD")]
        limit: MicroUsd,
    },
    /// Say that a run is about to start. From here on its money may be spent.
    Start {
        /// The run.
        run: Name,
    },
    /// Book what a run has spent; the rest of its hold is free again.
    Settle {
        /// The run.
        run: Name,
        /// What it spent, in US dollars.
        #[arg(long = "as", value_name = "AMOUNT", value_parser = amount)]
        amount: MicroUsd,
        /// SHA-256 of its result.
        #[arg(long, value_name = "SHA")]
        result: Digest,
    },
    /// Say that nobody knows what a run has spent. Its hold stays until it is resolved.
    Lose {
        /// The run.
        run: Name,
    },
    /// Give back the hold of a run that was never started.
    Release {
        /// The run.
        run: Name,
    },
    /// Say what a run of unknown outcome has spent. Signed, and recorded for good.
    Resolve {
        /// The run.
        run: Name,
        /// What it spent, in US dollars.
        #[arg(long = "as", value_name = "AMOUNT", value_parser = amount)]
        amount: MicroUsd,
        /// SHA-256 of the evidence: an invoice, a usage export.
        #[arg(long, value_name = "SHA")]
        evidence: Digest,
        #[command(flatten)]
        signer: SignerArgs,
    },
}

/// `flights spend cap`.
#[derive(Args)]
pub(super) struct CapArgs {
    /// What it is for.
    #[arg(value_enum)]
    scope: CapScope,
    /// The cap in US dollars.
    #[arg(long, value_name = "AMOUNT")]
    usd: Option<MicroUsd>,
    /// The cap in euros.
    #[arg(long, value_name = "AMOUNT", conflicts_with = "usd")]
    eur: Option<MicroEur>,
    /// US dollars for one euro: your own, low rate, which is recorded with the cap.
    #[arg(long, value_name = "RATE", requires = "eur")]
    rate: Option<UsdPerEur>,
}

/// What a cap is for.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum CapScope {
    /// The hold of one run.
    Run,
    /// Everything spent and held on one UTC day.
    Day,
    /// Everything spent and held, ever.
    Total,
}

impl From<CapScope> for Scope {
    fn from(scope: CapScope) -> Self {
        match scope {
            CapScope::Run => Self::Run,
            CapScope::Day => Self::UtcDay,
            CapScope::Total => Self::Total,
        }
    }
}

/// An amount that may be nothing: evidence can say so.
fn amount(text: &str) -> Result<MicroUsd, MoneyError> {
    match text {
        "0" => Ok(MicroUsd::ZERO),
        text => text.parse(),
    }
}

/// `flights ledger`.
#[derive(Subcommand)]
pub(super) enum LedgerCommand {
    /// Look at every page, row and index, and hold the head against its anchor.
    Check,
    /// Write every row as a line of JSON, without secrets and bodies.
    Export {
        /// Where to; default: standard output.
        #[arg(short, long, alias = "out", value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Does what is asked and prints what came of it. Every amount is an estimate of what will be
/// billed.
///
/// # Errors
/// The ledger's refusals.
pub(super) fn run(command: &SpendCommand, format: Format) -> Result<Exit, Refusal> {
    let now = state::unix_seconds();
    if let SpendCommand::Show = command {
        let spending = reading(|ledger| Ok(ledger.spending(now)?))?;
        print_spending(&spending, format);
        return Ok(Exit::Passed);
    }
    let mut ledger = open()?;
    match command {
        SpendCommand::Show => {}
        SpendCommand::Cap(args) => {
            ledger.state_cap(args.scope.into(), cap(args)?, now)?;
            print_spending(&ledger.spending(now)?, format);
        }
        SpendCommand::ConfirmDay { day } => {
            let today = Date(UtcDay::of(now));
            if *day != today {
                return Err(FlightsCode::DayDiffers
                    .refuse(format!("got {day}, the clock says {today}"))
                    .into());
            }
            ledger.confirm_day(day.0, now)?;
            print_spending(&ledger.spending(now)?, format);
        }
        SpendCommand::Reserve { run, limit } => {
            let hold = ledger.reserve(&reserve(run, *limit)?, now)?;
            if hold.state == HoldState::Released {
                let detail = format!("{run} was given back; a new run needs a new name");
                return Err(LedgerCode::HoldRefused.refuse(detail).into());
            }
            print_hold(&hold, format);
        }
        SpendCommand::Start { run } => print_hold(&ledger.start_run(run, now)?, format),
        SpendCommand::Settle {
            run,
            amount,
            result,
        } => print_hold(&ledger.settle_run(run, *amount, *result, now)?, format),
        SpendCommand::Lose { run } => print_hold(&ledger.lose_run(run, now)?, format),
        SpendCommand::Release { run } => print_hold(&ledger.release_run(run, now)?, format),
        SpendCommand::Resolve {
            run,
            amount,
            evidence,
            signer,
        } => {
            let resolution = Resolution {
                run: run.clone(),
                amount: *amount,
                evidence: *evidence,
            };
            let signed = sign(&resolution.statement(&ledger.identity()), signer)?;
            print_hold(&ledger.resolve_run(&resolution, &signed, now)?, format);
        }
    }
    Ok(Exit::Passed)
}

/// Looks at the ledger as a whole.
///
/// # Errors
/// The ledger's refusals, and those of the file that is written.
pub(super) fn ledger(command: &LedgerCommand, format: Format) -> Result<Exit, Refusal> {
    reading(|ledger| look(ledger, command, format))
}

fn look(ledger: &Ledger, command: &LedgerCommand, format: Format) -> Result<Exit, Refusal> {
    match command {
        LedgerCommand::Check => {
            let (rows, head) = (ledger.check()?, ledger.head()?);
            let identity = ledger.identity();
            match format {
                Format::Human => show::print(&format!(
                    "ledger {identity}: {}, {}, every row as it was written\n  head {}",
                    show::count(rows, "row"),
                    show::count(head.seq, "commit"),
                    head.chain
                )),
                Format::Json => show::print(
                    &json!({"schema": LEDGER_SCHEMA, "ledger": identity, "rows": rows,
                        "commits": head.seq, "head": head.chain})
                    .to_string(),
                ),
            }
        }
        LedgerCommand::Export { output } => {
            let mut bytes = Vec::new();
            ledger.export(&mut bytes)?;
            match output {
                Some(output) => {
                    input::apart(output, &[&state::directory()?])?;
                    input::write(output, &bytes, 0o600)?;
                    let detail =
                        format!("{} bytes written to {}", bytes.len(), input::shown(output));
                    match format {
                        Format::Human => show::print(&detail),
                        Format::Json => {
                            show::verdict(
                                &Verdict::passed(Decision::Accepted, "ledger", detail),
                                format,
                            );
                        }
                    }
                }
                None => show::print(String::from_utf8_lossy(&bytes).trim_end()),
            }
        }
    }
    Ok(Exit::Passed)
}

fn open() -> Result<Ledger, Refusal> {
    Ok(Ledger::open(&state::directory()?.join("ledger"))?)
}

/// Reads the ledger that is there; one whose folder cannot be written to is read from a copy.
fn reading<T>(read: impl FnOnce(&Ledger) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let folder = state::part("ledger")?;
    if !state::is_read_only(&folder) {
        return read(&open()?);
    }
    let work = WorkDirectory::to_read()?;
    read(&Ledger::open_copy(&folder, work.path())?)
}

fn cap(args: &CapArgs) -> Result<Cap, Refusal> {
    match (args.usd, args.eur, args.rate) {
        (Some(usd), None, None) => Ok(Cap::usd(usd)),
        (None, Some(eur), Some(rate)) => {
            Cap::eur(eur, rate).map_err(|e| FlightsCode::AmountInvalid.refuse(e).into())
        }
        _ => Err(FlightsCode::AmountInvalid
            .refuse("either --usd, or --eur with --rate")
            .into()),
    }
}

/// A hold that a person asks for: what one run may be told to spend, and the least margin.
fn reserve(run: &Name, limit: MicroUsd) -> Result<Reserve, Refusal> {
    let size = HoldSize::for_limit(limit, MicroUsd::ZERO, 1)
        .ok_or_else(|| FlightsCode::AmountInvalid.refuse("beyond all amounts"))?;
    Ok(Reserve {
        run: run.clone(),
        request: Digest::of(format!("reserved by hand: {run} {}", limit.micros()).as_bytes()),
        size,
        parent: None,
    })
}

fn sign(statement: &[u8], named: &SignerArgs) -> Result<Signed, Refusal> {
    let key = key::signer(named)?;
    Ok(Signed {
        key: *key.public_key().as_bytes(),
        signature: key.signature(statement)?,
    })
}

fn print_hold(hold: &Hold, format: Format) {
    match format {
        Format::Json => {
            let mut document = hold_json(hold);
            document["schema"] = HOLD_SCHEMA.into();
            show::print(&document.to_string());
        }
        Format::Human => show::print(&hold_line(hold)),
    }
}

fn print_spending(spending: &Spending, format: Format) {
    let books = &spending.estimated;
    if format == Format::Json {
        let caps = [
            ("run", &spending.caps.run),
            ("utcDay", &spending.caps.utc_day),
            ("total", &spending.caps.total),
        ];
        let caps: serde_json::Map<String, Value> = caps
            .into_iter()
            .filter_map(|(name, cap)| Some((name.to_owned(), cap_json(cap.as_ref()?))))
            .collect();
        let document = json!({
            "schema": SPEND_SCHEMA, "caps": caps, "utcDay": Date(spending.day).to_string(),
            "spentOnDay": books.spent_on_day, "spent": books.spent, "held": books.held,
            "live": spending.live.iter().map(hold_json).collect::<Vec<_>>(),
            "incidents": spending.incidents.iter().map(|incident| json!({
                "run": incident.run.as_str(), "kind": incident.kind,
                "claimed": incident.claimed, "added": incident.added,
            })).collect::<Vec<_>>(),
        });
        return show::print(&document.to_string());
    }
    show::print("amounts in US dollars, estimated");
    let caps = [
        ("run", &spending.caps.run),
        ("UTC day", &spending.caps.utc_day),
        ("total", &spending.caps.total),
    ];
    for (name, cap) in caps {
        show::print(&format!(
            "  cap     {name:<8} {}",
            cap.as_ref().map_or_else(|| "none".to_owned(), cap_words)
        ));
    }
    let (day, on_day) = (Date(spending.day), books.spent_on_day);
    show::print(&format!("  spent   UTC day  {on_day} on {day}"));
    show::print(&format!("  spent   total    {}", books.spent));
    show::print(&format!("  held             {}", books.held));
    spending
        .live
        .iter()
        .for_each(|hold| show::print(&hold_line(hold)));
    for incident in &spending.incidents {
        show::print(&format!(
            "  incident {} {}: claimed {}, counted {}",
            incident.run, incident.kind, incident.claimed, incident.added
        ));
    }
}

fn cap_words(cap: &Cap) -> String {
    match cap.stated_in_euros() {
        None => cap.limit().to_string(),
        Some((eur, rate)) => format!("{} ({eur} EUR at {rate})", cap.limit()),
    }
}

fn cap_json(cap: &Cap) -> Value {
    match cap.stated_in_euros() {
        None => json!({"microUsd": cap.limit()}),
        Some((eur, rate)) => {
            json!({"microUsd": cap.limit(), "eur": eur.to_string(), "usdPerEur": rate.to_string()})
        }
    }
}

/// One hold as a line: run, state, amounts.
fn hold_line(hold: &Hold) -> String {
    let (run, held, limit) = (&hold.run, hold.size.held, hold.size.limit);
    let told = match (hold.state, hold.state.actual()) {
        (_, Some(actual)) => format!("{actual} spent of {held}, limit {limit}"),
        (HoldState::Released, _) => format!("{held} given back"),
        (HoldState::Unknown, _) => {
            format!("{held} held until `flights spend resolve {run}`, limit {limit}")
        }
        _ => format!("{held} held: the limit of {limit}, and what one answer more may cost"),
    };
    format!("  {:<9} {run}: {told}", hold.state.word())
}

fn hold_json(hold: &Hold) -> Value {
    json!({
        "run": hold.run.as_str(), "state": hold.state.word(), "request": hold.request,
        "held": hold.size.held, "limit": hold.size.limit, "utcDay": Date(hold.day).to_string(),
        "actual": hold.state.actual(),
    })
}
