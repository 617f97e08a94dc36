//! What a witness must keep beyond its shape.

use std::collections::BTreeSet;

use flightproof_core::{escape, parse_strict};
use serde_json::Value;

use super::differential::ID as GENERATED;
use super::{Case, Differential, Expect, MAX_WITNESS_BYTES, Target, Waiver, Witness, invalid};
use crate::{CertifierCode, CertifierError};

/// Most cases. Each is run twice, and again for mutants; this many run in about a minute.
pub const MAX_CASES: usize = 2_000;

/// Most waivers: a person answers for each of them.
pub const MAX_WAIVERS: usize = 200;

/// Largest driver in bytes.
pub const MAX_DRIVER_BYTES: usize = 256 * 1024;

/// Most bytes of standard input and files of one case: they travel in one message.
pub const MAX_INPUT_BYTES: usize = 1024 * 1024;

/// Most arguments, environment variables, or files of one case.
const MAX_ENTRIES: usize = 1_024;

/// Longest argument, or variable with its name, in bytes: the kernel's `MAX_ARG_STRLEN` is 128 KiB
/// with the final NUL.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// Most bytes of all arguments and variables: half of what the kernel takes with an 8 MiB stack.
const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// Longest name of a package, program, variable or mutant.
const MAX_NAME_BYTES: usize = 128;

/// Longest id of a mutant in bytes: a path of 1024, what stood there and what stands there instead.
const MAX_MUTANT_ID_BYTES: usize = 2048;
/// Longest reason of a waiver in bytes: it is printed on the certificate.
const MAX_REASON_BYTES: usize = 1_000;

/// Variables that steer the loader, the runtime or the constant surroundings of every case.
const RESERVED_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "PWD",
    "TMPDIR",
    "TMP",
    "TEMP",
    "SHELL",
    "USER",
    "LOGNAME",
    "IFS",
    "ENV",
    "BASH_ENV",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "GETCONF_DIR",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "RES_OPTIONS",
];
const RESERVED_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "RUST",
    "CARGO",
    "MALLOC_",
    "GLIBC_",
    "FLIGHTPROOF",
];

pub(super) fn check(witness: &Witness) -> Result<(), CertifierError> {
    check_target(&witness.target)?;
    let differential = witness.differential.as_ref();
    differential.map_or(Ok(()), Differential::check)?;
    let open = differential.is_some() || witness.suite().is_some();
    let none = witness.cases.is_empty() && !open;
    if none || witness.cases.len() > MAX_CASES {
        return Err(invalid(format_args!(
            "{} cases, 2 to {MAX_CASES} are allowed",
            witness.cases.len()
        )));
    }
    let mut ids = BTreeSet::new();
    for case in &witness.cases {
        check_case(case)
            .map_err(|reason| invalid(format_args!("case {}: {reason}", escape(&case.id, 64))))?;
        if differential.is_some() && case.id.starts_with(GENERATED) {
            return Err(invalid(format_args!(
                "case {}: such are generated",
                case.id
            )));
        }
        if !ids.insert(&case.id) {
            return Err(invalid(format_args!("case {} stands twice", case.id)));
        }
    }
    check_waivers(&witness.waivers)?;
    // What the baseline answers is not known yet.
    if open || has_teeth(&witness.cases) {
        Ok(())
    } else {
        Err(CertifierCode::WitnessToothless.refuse(format_args!(
            "one answer would satisfy all of its cases (there are {})",
            witness.cases.len()
        )))
    }
}

pub(super) fn check_driver(source: &[u8]) -> Result<(), CertifierError> {
    if source.is_empty() || source.len() > MAX_DRIVER_BYTES {
        return Err(invalid(format_args!(
            "a driver of {} bytes, 1 to {MAX_DRIVER_BYTES} are allowed",
            source.len()
        )));
    }
    match std::str::from_utf8(source) {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid(format_args!(
            "the driver is not UTF-8 at byte {}",
            error.valid_up_to()
        ))),
    }
}

fn check_target(target: &Target) -> Result<(), CertifierError> {
    let (names, file) = match target {
        Target::Suite { package, suite } => {
            suite.check()?;
            (package.as_ref(), None)
        }
        Target::Bin(name) => (Some(name), None),
        Target::Driver { package, file, .. } => (package.as_ref(), Some(file)),
    };
    if let Some(name) = names.filter(|name| !is_cargo_name(name)) {
        return Err(invalid(format_args!(
            "\"{}\" is no name of a program or package",
            escape(name, 80)
        )));
    }
    match file.filter(|file| !file.as_str().ends_with(".rs")) {
        None => Ok(()),
        Some(file) => Err(invalid(format_args!(
            "driver {} is no .rs file",
            escape(file.as_str(), 200)
        ))),
    }
}

/// No leading `-`: the name becomes an argument of cargo.
pub(super) fn is_cargo_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.len() <= MAX_NAME_BYTES
        && !name.starts_with('-')
        && !name.is_empty()
        && name.chars().all(inner)
}

fn check_case(case: &Case) -> Result<(), String> {
    let id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if case.id.is_empty() || case.id.len() > 64 || !case.id.chars().all(id) {
        return Err("an id has 1 to 64 characters of a-z, 0-9, '.', '_' and '-'".to_owned());
    }
    if case.expect.stdout.is_some() && case.expect.stdout_json.is_some() {
        return Err("at most one of \"stdout\" and \"stdout_json\"".to_owned());
    }
    if case
        .expect
        .stderr_contains
        .as_ref()
        .is_some_and(|needle| needle.is_empty())
    {
        return Err("an empty \"stderr_contains\" is always there".to_owned());
    }
    check_arguments(case)?;
    check_environment(case)?;
    check_files(case)
}

fn check_arguments(case: &Case) -> Result<(), String> {
    if case.args.len() > MAX_ENTRIES {
        return Err(format!(
            "{} arguments, at most {MAX_ENTRIES}",
            case.args.len()
        ));
    }
    let variables = case
        .env
        .iter()
        .map(|(name, value)| name.len() + 1 + value.len());
    let sizes: Vec<usize> = case.args.iter().map(String::len).chain(variables).collect();
    if sizes.iter().any(|size| *size > MAX_ARGUMENT_BYTES) {
        return Err(format!(
            "an argument or variable of more than {MAX_ARGUMENT_BYTES} bytes"
        ));
    }
    if sizes.iter().sum::<usize>() > MAX_ARGUMENTS_BYTES {
        return Err(format!(
            "more than {MAX_ARGUMENTS_BYTES} bytes of arguments and variables"
        ));
    }
    if case
        .args
        .iter()
        .chain(case.env.values())
        .any(|text| text.contains('\0'))
    {
        return Err("NUL in an argument or variable".to_owned());
    }
    Ok(())
}

fn check_environment(case: &Case) -> Result<(), String> {
    if case.env.len() > MAX_ENTRIES {
        return Err(format!(
            "{} variables, at most {MAX_ENTRIES}",
            case.env.len()
        ));
    }
    match case.env.keys().find(|name| !is_free_variable(name)) {
        None => Ok(()),
        Some(name) => Err(format!("variable \"{}\" may not be set", escape(name, 60))),
    }
}

fn is_free_variable(name: &str) -> bool {
    let shape = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let upper = name.to_ascii_uppercase();
    let reserved = RESERVED_VARIABLES.contains(&upper.as_str())
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix));
    shape && !reserved
}

fn check_files(case: &Case) -> Result<(), String> {
    if case.files.len() > MAX_ENTRIES {
        return Err(format!("{} files, at most {MAX_ENTRIES}", case.files.len()));
    }
    let bytes: usize = case.files.values().map(|content| content.len()).sum();
    if bytes + case.stdin.len() > MAX_INPUT_BYTES {
        return Err(format!(
            "more than {MAX_INPUT_BYTES} bytes of standard input and files"
        ));
    }
    let inside = |path: &str| {
        path.match_indices('/')
            .any(|(at, _)| case.files.keys().any(|other| other.as_str() == &path[..at]))
    };
    match case.files.keys().find(|path| inside(path.as_str())) {
        None => Ok(()),
        Some(path) => Err(format!(
            "a file of {} is also its directory",
            escape(path.as_str(), 200)
        )),
    }
}

fn check_waivers(waivers: &[Waiver]) -> Result<(), CertifierError> {
    if waivers.len() > MAX_WAIVERS {
        return Err(invalid(format_args!(
            "{} waivers, at most {MAX_WAIVERS}",
            waivers.len()
        )));
    }
    let mut seen = BTreeSet::new();
    for waiver in waivers {
        let id = &waiver.mutant;
        if id.trim().is_empty() || id.len() > MAX_MUTANT_ID_BYTES || id.contains(char::is_control) {
            return Err(invalid(format_args!(
                "waiver of \"{}\": no id of a mutant",
                escape(id, 60)
            )));
        }
        if waiver.reason.trim().is_empty() || waiver.reason.len() > MAX_REASON_BYTES {
            return Err(invalid(format_args!(
                "waiver of {id}: a reason of 1 to {MAX_REASON_BYTES} bytes is needed"
            )));
        }
        if !seen.insert((id, waiver.source)) {
            return Err(invalid(format_args!("waiver of {id} stands twice")));
        }
    }
    Ok(())
}

/// Whether some two cases exclude each other's answer, so that no constant program passes both.
pub(super) fn has_teeth(cases: &[Case]) -> bool {
    let mut answers = cases.iter().map(|case| &case.expect);
    let Some(first) = answers.next() else {
        return false;
    };
    let exits = cases.iter().any(|case| case.expect.exit != first.exit);
    let outputs: Vec<&Expect> = cases.iter().map(|case| &case.expect).collect();
    let text = outputs.iter().find_map(|expect| expect.stdout.as_ref());
    let json = outputs
        .iter()
        .find_map(|expect| expect.stdout_json.as_ref());
    // Equality with one representative of each kind is enough: it is transitive.
    let same_text = outputs
        .iter()
        .all(|e| e.stdout.is_none() || e.stdout.as_ref() == text);
    let same_json = outputs
        .iter()
        .all(|e| e.stdout_json.is_none() || e.stdout_json.as_ref() == json);
    let same_both = match (text, json) {
        (Some(text), Some(json)) => {
            parse_strict::<Value>(text, MAX_WITNESS_BYTES).is_ok_and(|found| found == *json)
        }
        _ => true,
    };
    exits || !(same_text && same_json && same_both)
}
