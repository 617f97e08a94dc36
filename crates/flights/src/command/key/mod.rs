//! `flights key`, and the key that a command signs with.

mod list;
mod passphrase;
mod revoke;

use super::input;
use crate::show::{self, Format};
use crate::{FlightsCode, regular, ssh_agent, state};
use clap::{Args, Subcommand};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::key::{LockEntropy, PublicKey, SecretKey, Signer};
use flightproof_core::{Exit, Refusal};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Largest key file in bytes. A PEM of an Ed25519 key has about 120, under a passphrase 400.
const MAX_KEY_FILE: u64 = 16 * 1024;

/// What `--key` begins with for a key in an SSH agent.
const AGENT: &str = "agent:";

/// The key that a command signs with.
#[derive(Clone, Args)]
pub(super) struct SignerArgs {
    /// Signing key: a PKCS#8 PEM file, or agent:NAME for a key in the SSH agent (key id or comment;
    /// agent: alone for the only one); default: the one in the state directory.
    #[arg(long, value_name = "FILE|agent:NAME")]
    key: Option<PathBuf>,
    /// File whose first line is the key's passphrase; /dev/fd/N for a descriptor. Default:
    /// FLIGHTPROOF_PASSPHRASE_FILE, else the terminal.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// `flights key`.
#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Make an Ed25519 key pair: FILE (mode 0600, under a passphrase) and FILE.pub.
    New(NewArgs),
    /// List the keys that can sign: those in the state directory, and those of the SSH agent.
    List,
    /// Write the next version of a signed revocation list.
    Revoke(revoke::RevokeArgs),
}

/// `flights key new`.
#[derive(Args)]
pub(super) struct NewArgs {
    /// Where to; default: the state directory.
    #[arg(short = 'o', long, alias = "output", value_name = "FILE")]
    out: Option<PathBuf>,
    /// File whose first line is the passphrase; /dev/fd/N for a descriptor. Default:
    /// FLIGHTPROOF_PASSPHRASE_FILE, else the terminal.
    #[arg(long, value_name = "FILE", conflicts_with = "no_passphrase")]
    passphrase_file: Option<PathBuf>,
    /// Write the key as it is: whoever reads the file can sign.
    #[arg(long)]
    no_passphrase: bool,
}

/// Does what is asked.
///
/// # Errors
/// As the commands.
pub(super) fn run(command: &KeyCommand, format: Format) -> Result<Exit, Refusal> {
    match command {
        KeyCommand::New(args) => new(args, format),
        KeyCommand::List => list::list(format),
        KeyCommand::Revoke(args) => revoke::revoke(args, format),
    }
}

/// Makes a key pair. An existing file is never replaced.
fn new(args: &NewArgs, format: Format) -> Result<Exit, Refusal> {
    let path = match &args.out {
        Some(path) => path.clone(),
        None => {
            let keys = state::directory()?.join(KEYS);
            state::private_directory(&keys)?;
            keys.join(OWN)
        }
    };
    let public = public_path(&path);
    if path.symlink_metadata().is_ok() {
        return Err(key_file(&path, "exists already and is never replaced"));
    }
    if public.symlink_metadata().is_ok() {
        let what = "exists already and is never replaced; without its secret half it is worth \
                    nothing and may be removed";
        return Err(key_file(&public, what));
    }
    let key = SecretKey::from_seed(state::entropy()?);
    let secret = if args.no_passphrase {
        key.to_pem()?
    } else {
        let passphrase = passphrase::of_new(args.passphrase_file.as_deref())?;
        zeroize::Zeroizing::new(key.lock(&passphrase, lock_entropy()?)?)
    };
    // The public half first: whoever placed it makes the pair, and a secret is never without it.
    write(&public, key.public().to_pem()?.as_bytes(), 0o644)?;
    write(&path, secret.as_bytes(), 0o600).inspect_err(|_| {
        let _ = fs::remove_file(&public);
    })?;
    let (id, protected) = (key.public().id(), !args.no_passphrase);
    match format {
        Format::Human => show::print(&format!(
            "key {id}\n  secret {}{}\n  public {}",
            input::shown(&path),
            if protected {
                " (under a passphrase)"
            } else {
                ""
            },
            input::shown(&public)
        )),
        Format::Json => show::print(
            &serde_json::json!({
                "schema": "flightproof/key/1", "keyid": id, "secret": input::shown(&path),
                "public": input::shown(&public),
                "protected": protected,
            })
            .to_string(),
        ),
    }
    Ok(Exit::Passed)
}

fn lock_entropy() -> Result<LockEntropy, Refusal> {
    let mut entropy = LockEntropy {
        salt: [0; 16],
        iv: [0; 16],
    };
    let fresh = state::entropy()?;
    entropy.salt.copy_from_slice(&fresh[..16]);
    entropy.iv.copy_from_slice(&fresh[16..]);
    Ok(entropy)
}

/// The key to sign with: the one named, else the one in the state directory.
///
/// # Errors
/// `KEY_MISSING`; `FILE_UNREADABLE` for one that is named and is not there; `KEY_FILE` for a file that
/// others may read; `KEY_LOCKED`; what the key parser and the agent refuse.
pub(super) fn signer(args: &SignerArgs) -> Result<Box<dyn Signer>, Refusal> {
    by_name(args.key.as_deref(), args.passphrase_file.as_deref())
}

/// The key of a name as `--key` takes it, with the file of its passphrase.
///
/// # Errors
/// As [`signer`].
pub(super) fn by_name(
    named: Option<&Path>,
    passphrase_file: Option<&Path>,
) -> Result<Box<dyn Signer>, Refusal> {
    if let Some(name) = named
        .and_then(Path::to_str)
        .and_then(|p| p.strip_prefix(AGENT))
    {
        return Ok(Box::new(ssh_agent::find(name)?));
    }
    let path = match named {
        Some(path) => path.to_owned(),
        None => default_path()?,
    };
    let meta = fs::metadata(&path).map_err(|e| match named {
        Some(_) => input::unread(&path, &e),
        None => no_own(&path, &e),
    })?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 && public(&path).is_ok() {
        let detail = "it is a public key, and nothing is signed with one";
        return Err(input::named(&path)(
            CertifierCode::KeyMalformed.refuse(detail),
        ));
    }
    if mode & 0o077 != 0 {
        return Err(key_file(
            &path,
            format!("mode {mode:o}: others may read it"),
        ));
    }
    let pem = read(&path)?;
    if !SecretKey::is_locked(&pem) {
        let key = SecretKey::from_pem(&pem).map_err(input::named(&path))?;
        return Ok(Box::new(key));
    }
    let passphrase = passphrase::of_existing(&path, passphrase_file)?;
    let key = SecretKey::unlock(&pem, &passphrase).map_err(input::named(&path))?;
    Ok(Box::new(key))
}

/// Reads a public key.
///
/// # Errors
/// `FILE_UNREADABLE` if it is not there, `KEY_FILE`; what the key parser refuses.
pub(super) fn public(path: &Path) -> Result<PublicKey, Refusal> {
    let text = read(path)?;
    let found = match PublicKey::from_file(&text) {
        Err(_) if text.contains("PRIVATE KEY-----") => {
            let detail = "it is a secret key, and a public one is asked for";
            Err(CertifierCode::KeyMalformed.refuse(detail))
        }
        found => found,
    };
    found.map_err(input::named(path))
}

/// The public half of the key in the state directory.
///
/// # Errors
/// `KEY_MISSING`, and as [`public`].
pub(super) fn own_public() -> Result<PublicKey, Refusal> {
    let path = public_path(&default_path()?);
    match fs::metadata(&path) {
        Err(e) => Err(no_own(&path, &e)),
        Ok(_) => public(&path),
    }
}

fn no_own(path: &Path, error: &std::io::Error) -> Refusal {
    let detail = format!("{}: {error}", input::shown(path));
    FlightsCode::KeyMissing.refuse(detail).into()
}

fn write(path: &Path, pem: &[u8], mode: u32) -> Result<(), Refusal> {
    state::write_new_file(path, pem, mode)
        .map_err(|refusal| FlightsCode::KeyFile.refuse(refusal.detail).into())
}

fn read(path: &Path) -> Result<String, Refusal> {
    regular::read_text(path, MAX_KEY_FILE).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => input::unread(path, &e),
        std::io::ErrorKind::InvalidData | std::io::ErrorKind::FileTooLarge => {
            input::named(path)(CertifierCode::KeyMalformed.refuse(e))
        }
        _ => key_file(path, e),
    })
}

/// Where the key of this user is, or would be.
fn default_path() -> Result<PathBuf, Refusal> {
    let state = match state::existing()? {
        Some(state) => state,
        None => state::place()?,
    };
    let keys = state.join(KEYS);
    if keys.is_dir() {
        state::private_directory(&keys)?;
    }
    Ok(keys.join(OWN))
}

/// The folder of keys in the state directory, and the key that is used unless another is named.
const KEYS: &str = "keys";
const OWN: &str = "flightproof.pem";

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
