//! `flights key new`.

use crate::show::{self, Format};
use crate::{FlightsCode, state};
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_core::{Exit, Refusal};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Largest key file in bytes. A PEM of an Ed25519 key has about 120.
const MAX_KEY_FILE: u64 = 16 * 1024;

/// Makes a key pair. An existing file is never replaced.
///
/// # Errors
/// `KEY_FILE` if a file exists or cannot be written.
pub(super) fn new(out: Option<PathBuf>, format: Format) -> Result<Exit, Refusal> {
    let path = match out {
        Some(path) => path,
        None => default_path()?,
    };
    let public = public_path(&path);
    for taken in [&path, &public] {
        if taken.symlink_metadata().is_ok() {
            return Err(key_file(taken, "exists already and is never replaced"));
        }
    }
    let key = SecretKey::from_seed(state::entropy()?);
    write(&path, key.to_pem()?.as_bytes(), 0o600)?;
    write(&public, key.public().to_pem()?.as_bytes(), 0o644)?;
    let id = key.public().id();
    match format {
        Format::Human => show::print(&format!("key {id}\n  secret {}\n  public {}", path.display(), public.display())),
        Format::Json => show::print(
            &serde_json::json!({"schema": "flightproof/key/1", "keyid": id, "secret": path, "public": public}).to_string(),
        ),
    }
    Ok(Exit::Passed)
}

/// Reads the signing key: the one named, else the one in the state directory.
///
/// # Errors
/// `KEY_MISSING`; `KEY_FILE` for a file that others may read; what the key parser refuses.
pub(super) fn secret(named: Option<&Path>) -> Result<SecretKey, Refusal> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => default_path()?,
    };
    let meta = fs::metadata(&path).map_err(|e| {
        Refusal::from(FlightsCode::KeyMissing.refuse(format!("{}: {e}", path.display())))
    })?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(key_file(
            &path,
            format!("mode {mode:o}: others may read it"),
        ));
    }
    Ok(SecretKey::from_pem(&read(&path)?)?)
}

/// Reads a public key.
///
/// # Errors
/// `KEY_FILE`; what the key parser refuses.
pub(super) fn public(path: &Path) -> Result<PublicKey, Refusal> {
    Ok(PublicKey::from_pem(&read(path)?)?)
}

fn write(path: &Path, pem: &[u8], mode: u32) -> Result<(), Refusal> {
    state::write_new_file(path, pem, mode)
        .map_err(|refusal| FlightsCode::KeyFile.refuse(refusal.detail).into())
}

fn read(path: &Path) -> Result<String, Refusal> {
    let size = fs::metadata(path).map_err(|e| key_file(path, e))?.len();
    if size > MAX_KEY_FILE {
        return Err(key_file(
            path,
            format!("{size} bytes, at most {MAX_KEY_FILE} allowed"),
        ));
    }
    fs::read_to_string(path).map_err(|e| key_file(path, e))
}

fn default_path() -> Result<PathBuf, Refusal> {
    let keys = state::directory()?.join("keys");
    state::private_directory(&keys)?;
    Ok(keys.join("flightproof.pem"))
}

fn public_path(secret: &Path) -> PathBuf {
    let mut name = secret.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
}

fn key_file(path: &Path, reason: impl std::fmt::Display) -> Refusal {
    FlightsCode::KeyFile
        .refuse(format!("{}: {reason}", path.display()))
        .into()
}
