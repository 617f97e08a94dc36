//! What `scripts/bench-peers` needs beside installed programs: the crates we compare with, the trees
//! everybody works on, and a small parent that measures a command without adding to it.

mod measure;
mod tree;

use sha2::{Digest, Sha256};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "\
peers tree DIR FILES            a tree of many small files
peers blob DIR MIB FILES        a few large files of MIB altogether
peers tar-pack DIR FILE         the tar crate
peers tar-extract FILE DIR
peers nar-pack DIR FILE         the nix-nar crate
peers nar-extract FILE DIR
peers sha256 MIB                hashes so much in memory, on one thread
peers measure COMMAND…          runs it and prints what it used, as JSON";

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tree", dir, files] => tree::many(Path::new(dir), files.parse()?),
        ["blob", dir, mib, files] => tree::few(Path::new(dir), mib.parse()?, files.parse()?),
        ["tar-pack", dir, file] => tar_pack(dir, file),
        ["tar-extract", file, dir] => tar_extract(file, dir),
        ["nar-pack", dir, file] => nar_pack(dir, file),
        ["nar-extract", file, dir] => {
            Ok(nix_nar::Decoder::new(BufReader::new(File::open(file)?))?.unpack(dir)?)
        }
        ["sha256", mib] => sha256(mib.parse()?),
        ["measure", command @ ..] if !command.is_empty() => measure::measure(command),
        _ => Err(USAGE.into()),
    }
}

fn tar_pack(dir: &str, file: &str) -> Outcome {
    let mut builder = tar::Builder::new(BufWriter::new(File::create(file)?));
    builder.mode(tar::HeaderMode::Deterministic);
    builder.append_dir_all(".", dir)?;
    Ok(builder.into_inner()?.flush()?)
}

fn tar_extract(file: &str, dir: &str) -> Outcome {
    Ok(tar::Archive::new(BufReader::new(File::open(file)?)).unpack(dir)?)
}

fn nar_pack(dir: &str, file: &str) -> Outcome {
    let mut encoder = nix_nar::Encoder::new(dir)?;
    let mut out = BufWriter::new(File::create(file)?);
    std::io::copy(&mut encoder, &mut out)?;
    Ok(out.flush()?)
}

/// The ceiling: bytes that lie in the cache already, through the hash and nothing else.
fn sha256(mib: u64) -> Outcome {
    let piece = vec![0x5a; 256 << 10];
    let mut hasher = Sha256::new();
    (0..mib * 4).for_each(|_| hasher.update(&piece));
    std::hint::black_box(hasher.finalize());
    Ok(())
}
