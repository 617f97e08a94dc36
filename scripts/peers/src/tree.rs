//! The trees everybody works on, the same on every machine.

use crate::Outcome;
use std::fs;
use std::path::Path;

/// Files in one directory.
const WIDTH: u64 = 100;
/// Middle of the sizes of small files in bytes: half are smaller.
const MEDIAN: f64 = 1500.0;
/// Spread of their logarithms: gives a mean of about 2.4 KB and a few of 60 KB.
const SIGMA: f64 = 0.98;
/// Any fixed number will do.
const SEED: u64 = 0x6675_6c6c_7961_636b;

/// So many files, a hundred per directory, three levels deep, sizes log-normal.
pub fn many(dir: &Path, files: u64) -> Outcome {
    let mut random = Random(SEED);
    let mut bytes = Vec::new();
    for index in 0..files {
        let leaf = index / WIDTH;
        let parent = dir.join(format!("d{:02}/e{:02}", leaf / 100, leaf % 100));
        if index % WIDTH == 0 {
            fs::create_dir_all(&parent)?;
        }
        let size = MEDIAN * (SIGMA * random.normal()).exp();
        random.fill(&mut bytes, size as usize);
        fs::write(
            parent.join(format!("file-{:02}.txt", index % WIDTH)),
            &bytes,
        )?;
    }
    Ok(())
}

/// So many files of one size that add up to so many MiB.
pub fn few(dir: &Path, mib: u64, files: u64) -> Outcome {
    let mut random = Random(SEED);
    let mut bytes = Vec::new();
    fs::create_dir_all(dir)?;
    for index in 0..files {
        random.fill(&mut bytes, ((mib << 20) / files) as usize);
        fs::write(dir.join(format!("blob-{index:05}")), &bytes)?;
    }
    Ok(())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Box and Muller's way to a normal deviate.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, length: usize) {
        bytes.clear();
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(length);
    }
}
