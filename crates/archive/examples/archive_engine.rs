//! `archive pack DIR -o FILE [--rules]`, `archive verify FILE`, `archive extract FILE DIR`: the engine alone,
//! for measurements without the rest of the program.

use flightproof_archive::{Everything, Extraction, Names, Workspace, paws};
use std::error::Error;
use std::fs::File;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let name = match args.as_slice() {
        ["archive", "pack", dir, "-o", file] => {
            let (dir, file) = (Path::new(dir), Path::new(file));
            paws::pack_file(dir, "bench", &mut Everything, file, &())?.snapshot_id()
        }
        ["archive", "pack", dir, "-o", file, "--rules"] => {
            let (dir, file) = (Path::new(dir), Path::new(file));
            let mut rules = Workspace::new(&[], &[])?;
            paws::pack_file(dir, "bench", &mut rules, file, &())?.snapshot_id()
        }
        ["archive", "verify", file] => match paws::verify_file(&File::open(file)?, &())? {
            paws::Manifest::Snapshot(snapshot) => snapshot.snapshot_id(),
            paws::Manifest::Changeset(changeset) => changeset.changeset_id(),
        },
        ["archive", "extract", file, dir] => {
            let how = Extraction {
                into: Path::new(dir),
                names: Names::Strict,
                expected: None,
                progress: &(),
            };
            paws::extract_file(&File::open(file)?, &how)?.snapshot_id()
        }
        _ => return Err("archive pack DIR -o FILE | verify FILE | extract FILE DIR".into()),
    };
    println!("{name}");
    Ok(())
}
