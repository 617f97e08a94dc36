//! `flights key list`.

use super::super::input;
use super::{key_file, public, public_path, read};
use crate::show::{self, Format};
use crate::{ssh_agent, state};
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_certifier::ssh;
use flightproof_core::{Exit, Refusal, escape};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Most files looked at.
const MAX_FILES: usize = 1_000;

/// A key that can sign.
struct Listed {
    key: PublicKey,
    /// What `--key` is told.
    place: String,
    protected: &'static str,
    comment: Option<String>,
}

/// Lists the keys of the state directory and of the SSH agent, if there is one.
///
/// # Errors
/// `KEY_FILE` for a file that is no key; `AGENT_UNAVAILABLE` for an agent that is named and silent.
pub(in super::super) fn list(format: Format) -> Result<Exit, Refusal> {
    let mut keys = Vec::new();
    for path in files()? {
        keys.push(file(&path)?);
    }
    if std::env::var_os("SSH_AUTH_SOCK").is_some_and(|v| !v.is_empty()) {
        keys.extend(ssh_agent::keys()?.into_iter().map(|key| Listed {
            key: key.public(),
            place: format!("agent:{}", key.public().id()),
            protected: "agent",
            comment: Some(key.comment),
        }));
    }
    match format {
        Format::Json => {
            let keys: Vec<Value> = keys.iter().map(document).collect();
            show::print(&json!({"schema": "flightproof/keys/1", "keys": keys}).to_string());
        }
        Format::Human if keys.is_empty() => show::print(&none()?),
        Format::Human => keys.iter().for_each(|key| show::print(&lines(key))),
    }
    Ok(Exit::Passed)
}

/// What is said where nothing can be listed.
fn none() -> Result<String, Refusal> {
    let place = input::shown(&state::place()?);
    Ok(match state::existing()? {
        Some(_) => "no keys".to_owned(),
        None => format!("no keys: no state at {place}"),
    })
}

fn files() -> Result<Vec<PathBuf>, Refusal> {
    let Some(state) = state::existing()? else {
        return Ok(Vec::new());
    };
    let directory = state.join("keys");
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(key_file(&directory, e)),
    };
    let mut files: Vec<PathBuf> = entries
        .take(MAX_FILES)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "pem"))
        .collect();
    files.sort();
    Ok(files)
}

fn file(path: &Path) -> Result<Listed, Refusal> {
    let pem = read(path)?;
    let locked = SecretKey::is_locked(&pem);
    let key = match locked {
        true => public(&public_path(path))?,
        false => SecretKey::from_pem(&pem)?.public(),
    };
    Ok(Listed {
        key,
        place: path.display().to_string(),
        protected: if locked { "passphrase" } else { "nothing" },
        comment: None,
    })
}

fn document(listed: &Listed) -> Value {
    json!({
        "keyid": listed.key.id(), "key": listed.place, "protectedBy": listed.protected,
        "comment": listed.comment, "ssh": ssh::public_line(&listed.key),
    })
}

fn lines(listed: &Listed) -> String {
    let comment = listed
        .comment
        .as_ref()
        .map_or_else(String::new, |comment| format!(" ({})", escape(comment, 80)));
    format!(
        "key {}{comment}\n  --key {}\n  protected by {}\n  {}",
        listed.key.id(),
        escape(&listed.place, 400),
        listed.protected,
        ssh::public_line(&listed.key)
    )
}
