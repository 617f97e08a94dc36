//! Writes seeds for the archive's fuzz targets into the directory that is named, one folder each.
//!
//! `cargo run -p flightproof-hostile --example archive_seeds fuzz/seeds`

use flightproof_hostile::archive::plan::{Plan, Scene, Shape, numbered_bytes};
use flightproof_hostile::archive::{Door, rows};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most bytes of a seed: what is longer slows the fuzzer and says no more.
const MAX_SEED: usize = 1500;
/// Plans that are looked through for seeds.
const PLANS: u64 = 4000;

fn main() -> std::io::Result<()> {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(std::io::Error::other("name the directory"));
    };
    raw(&dir)?;
    let artifact = |plan: &Plan| plan.shape == Shape::Artifact;
    plans(&dir.join("paws_plan"), |seed| {
        let plan = Plan::numbered(seed);
        (!artifact(&plan)).then(|| (format!("{:?}", plan.shape), plan.verdict().err()))
    })?;
    plans(&dir.join("paar_plan"), |seed| {
        let mut plan = Plan::numbered(seed);
        plan.shape = Shape::Artifact;
        Some(("artifact".to_owned(), plan.verdict().err()))
    })?;
    plans(&dir.join("extract_plan"), |seed| {
        let scene = Scene::numbered(seed);
        let kind = if scene.is_overlay { "overlay" } else { "new" };
        let prepared = if scene.prepared.is_empty() {
            ""
        } else {
            "-prepared"
        };
        let name = format!("{kind}{prepared}-{:?}", scene.plan.shape);
        Some((name, scene.plan.tree_verdict(scene.names).err()))
    })
}

/// The first plan of each name and verdict.
fn plans(
    dir: &Path,
    look: impl Fn(u64) -> Option<(String, Option<&'static str>)>,
) -> std::io::Result<()> {
    let mut found = BTreeMap::new();
    for seed in 0..PLANS {
        if let Some((name, verdict)) = look(seed) {
            let verdict = verdict.unwrap_or("accepted");
            let name = format!("{name}-{verdict}").to_lowercase().replace('_', "-");
            found.entry(name).or_insert(seed);
        }
    }
    std::fs::create_dir_all(dir)?;
    for (name, seed) in found {
        std::fs::write(dir.join(name), numbered_bytes(seed))?;
    }
    Ok(())
}

/// One small forged archive of each door and code, and its twin.
fn raw(dir: &Path) -> std::io::Result<()> {
    let mut written = BTreeMap::new();
    for row in rows()
        .into_iter()
        .filter(|row| row.attack.bytes.len() <= MAX_SEED)
    {
        let targets: &[&str] = match row.door {
            Door::Snapshot | Door::Changeset => &["paws_raw"],
            Door::Artifact => &["paar_raw"],
            Door::Strict | Door::Captured | Door::Written => &["extract_raw"],
        };
        let code = row.attack.expect.to_lowercase().replace('_', "-");
        for target in targets {
            let name = format!("{:?}-{code}", row.door).to_lowercase();
            let (refused, sound) = (
                dir.join(target).join(&name),
                dir.join(target).join(format!("{name}-twin")),
            );
            if written.insert(refused.clone(), ()).is_some() {
                continue;
            }
            std::fs::create_dir_all(dir.join(target))?;
            std::fs::write(refused, &row.attack.bytes)?;
            std::fs::write(sound, &row.attack.twin)?;
        }
    }
    Ok(())
}
