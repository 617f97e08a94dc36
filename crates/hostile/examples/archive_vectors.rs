//! Writes `paws1-more.json` and `paar1-more.json` into the directory that is named.
//!
//! `cargo run -p flightproof-hostile --example archive_vectors fixtures/vectors`

use flightproof_hostile::archive::{paar_vectors, paws_vectors, vector_file};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(std::io::Error::other("name the directory"));
    };
    let files = [
        ("paws1-more.json", vector_file("PAWS1", &paws_vectors())),
        ("paar1-more.json", vector_file("PAAR1", &paar_vectors())),
    ];
    for (name, text) in files {
        std::fs::write(dir.join(name), text)?;
    }
    Ok(())
}
