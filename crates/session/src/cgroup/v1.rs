use super::group::{Applied, Limits, PERIOD_US, read, write};
use crate::SessionError;
use std::path::{Path, PathBuf};

/// Sets and reads back the limits of version 1. `dirs`: memory, pids, cpu.
pub(super) fn apply(
    dirs: &[PathBuf; 3],
    limits: &Limits,
    swap_exists: bool,
) -> Result<Applied, SessionError> {
    let [memory, pids, cpu] = dirs;
    let bytes = limits.memory_bytes.to_string();
    write(&memory.join("memory.limit_in_bytes"), &bytes)?;
    let swap = swap(memory, &bytes, swap_exists)?;
    write(&pids.join("pids.max"), &limits.pids.to_string())?;
    write(&cpu.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
    write(
        &cpu.join("cpu.cfs_quota_us"),
        &limits.quota_us().to_string(),
    )?;
    Ok(Applied {
        memory: read(&memory.join("memory.limit_in_bytes"))?,
        swap,
        pids: read(&pids.join("pids.max"))?,
        cpu_quota: read(&cpu.join("cpu.cfs_quota_us"))?,
        cpu_period: read(&cpu.join("cpu.cfs_period_us"))?,
    })
}

/// Swap in bytes beyond memory, as found. Version 1 counts memory and swap together, and a kernel
/// without swap accounting has no such file: then there must be no swap at all.
fn swap(memory: &Path, bytes: &str, swap_exists: bool) -> Result<String, SessionError> {
    let file = memory.join("memory.memsw.limit_in_bytes");
    if !file.exists() {
        return Ok(if swap_exists { "unlimited" } else { "0" }.to_owned());
    }
    write(&file, bytes)?;
    let both = read(&file)?;
    let limit = read(&memory.join("memory.limit_in_bytes"))?;
    let beyond = both
        .parse::<u64>()
        .ok()
        .zip(limit.parse::<u64>().ok())
        .map(|(both, memory)| both.saturating_sub(memory).to_string());
    Ok(beyond.unwrap_or(both))
}
