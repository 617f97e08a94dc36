//! What an engine says a container is, held against what it was asked for. An engine ignores what
//! it does not know and says nothing, so every field is compared, and what was not asked for must
//! not be there.

use super::create::{NO_PROGRAM, PROGRAM_PLACE, SECCOMP};
use crate::{SessionCode, SessionError};
use bollard::models::{
    ContainerConfig, ContainerCreateBody, ContainerInspectResponse, HostConfig, ImageInspect,
    ResourcesUlimits,
};
use flightproof_core::{Digest, escape};
use flightproof_evidence::{EvidenceClass, Reading};
use serde_json::Value;
use std::collections::BTreeMap;

/// One reading per limit and privilege, none weaker than asked.
///
/// # Errors
/// `SHORTFALL` naming the first that is weaker, missing, or was never asked for.
pub(super) fn claims(
    asked: &ContainerCreateBody,
    found: &ContainerInspectResponse,
) -> Result<Vec<Reading>, SessionError> {
    let none = HostConfig::default();
    let wanted = asked.host_config.as_ref().unwrap_or(&none);
    let host = found
        .host_config
        .as_ref()
        .ok_or_else(|| shortfall("host configuration", "one", "none"))?;
    let mut readings = identity(asked, found)?;
    readings.extend(limits(wanted, host)?);
    readings.extend(privileges(wanted, host)?);
    nothing_else(host)?;
    nothing_attached(found)?;
    Ok(readings)
}

/// The image as the engine has it: the one that was pinned, and without volumes of its own.
///
/// # Errors
/// `IMAGE_UNFIT`.
pub(super) fn image(
    pinned: &super::PinnedImage,
    found: &ImageInspect,
    platform: &str,
) -> Result<Vec<Reading>, SessionError> {
    let unfit = |what: String| SessionCode::ImageUnfit.refuse(what);
    let id = digest(found.id.as_deref().unwrap_or_default());
    if id != Some(pinned.id) {
        let shown = escape(found.id.as_deref().unwrap_or("none"), 100);
        return Err(unfit(format!(
            "pinned is {}, the engine has {shown}",
            pinned.id
        )));
    }
    let layers = found.root_fs.as_ref().and_then(|fs| fs.layers.as_ref());
    let layers: Option<Vec<Digest>> = layers
        .map(|list| list.iter().map(|l| digest(l)).collect())
        .unwrap_or_default();
    let layers = layers.ok_or_else(|| unfit("its layers are not named by digest".to_owned()))?;
    if !pinned.layers.is_empty() && layers != pinned.layers {
        return Err(unfit(format!(
            "other layers than pinned: {}",
            joined(&layers)
        )));
    }
    let volumes = found
        .config
        .as_ref()
        .and_then(|config| config.volumes.as_ref());
    if volumes.is_some_and(|volumes| !volumes.is_empty()) {
        return Err(unfit(
            "it asks for volumes, which would be writable".to_owned(),
        ));
    }
    let is = format!(
        "{}/{}",
        found.os.as_deref().unwrap_or("unknown"),
        found.architecture.as_deref().unwrap_or("unknown")
    );
    if is != platform {
        return Err(unfit(format!(
            "it is for {}, the engine is {platform}",
            escape(is, 60)
        )));
    }
    Ok(vec![
        claim("image", &pinned.id.to_string(), &pinned.id.to_string()),
        claim("image-layers", &joined(&layers), &joined(&layers)),
    ])
}

fn joined(layers: &[Digest]) -> String {
    layers
        .iter()
        .map(Digest::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// `sha256:…`; Podman leaves the first part out.
fn digest(text: &str) -> Option<Digest> {
    text.strip_prefix("sha256:").unwrap_or(text).parse().ok()
}

fn identity(
    asked: &ContainerCreateBody,
    found: &ContainerInspectResponse,
) -> Result<Vec<Reading>, SessionError> {
    let none = ContainerConfig::default();
    let config = found.config.as_ref().unwrap_or(&none);
    let image = |id: &Option<String>| id.as_deref().and_then(digest).map(|d| d.to_string());
    let labels = asked.labels.as_ref().into_iter().flatten();
    for (name, value) in labels {
        let kept = config.labels.as_ref().and_then(|labels| labels.get(name));
        if kept != Some(value) {
            return Err(shortfall(name, value, kept.map_or("none", String::as_str)));
        }
    }
    let command = |entry: &Option<Vec<String>>, rest: &Option<Vec<String>>| {
        let words = entry.iter().chain(rest).flatten();
        Digest::of(words.cloned().collect::<Vec<_>>().join("\0").as_bytes()).to_string()
    };
    Ok(vec![
        same("engine-image", image(&asked.image), image(&found.image))?,
        same("engine-user", asked.user.clone(), config.user.clone())?,
        same("engine-tty", flag(asked.tty), flag(config.tty))?,
        same(
            "engine-command",
            Some(command(&asked.entrypoint, &asked.cmd)),
            Some(command(&config.entrypoint, &config.cmd)),
        )?,
        same(
            "engine-directory",
            asked.working_dir.clone(),
            directory(config),
        )?,
        same(
            "engine-healthcheck",
            Some(NO_PROGRAM.to_owned()),
            checked(config),
        )?,
    ])
}

/// Where the first process starts. Engines leave out the root of the tree.
fn directory(config: &ContainerConfig) -> Option<String> {
    let named = config.working_dir.clone().filter(|dir| !dir.is_empty());
    named.or_else(|| Some("/".to_owned()))
}

/// What the engine would start in the container again and again: an image may name a program.
fn checked(config: &ContainerConfig) -> Option<String> {
    let check = config.healthcheck.as_ref();
    check.map_or(Some(NO_PROGRAM.to_owned()), |check| {
        Some(check.test.as_ref()?.join(" "))
    })
}

fn limits(asked: &HostConfig, found: &HostConfig) -> Result<Vec<Reading>, SessionError> {
    let mut readings = vec![
        at_most("engine-memory-bytes", asked.memory, found.memory)?,
        at_most(
            "engine-memory-and-swap-bytes",
            asked.memory_swap,
            found.memory_swap,
        )?,
        at_most("engine-pids", asked.pids_limit, found.pids_limit)?,
        cpu(asked, found)?,
    ];
    for limit in asked.ulimits.iter().flatten() {
        let name = limit.name.as_deref().unwrap_or_default();
        let kept = found.ulimits.iter().flatten().find(|l| is_named(l, name));
        let reading = format!("engine-ulimit-{name}");
        readings.push(at_most(&reading, limit.hard, kept.and_then(|l| l.hard))?);
        at_most(&reading, limit.soft, kept.and_then(|l| l.soft))?;
    }
    Ok(readings)
}

/// Podman writes `RLIMIT_CORE` for `core`.
fn is_named(limit: &ResourcesUlimits, name: &str) -> bool {
    let found = limit.name.as_deref().unwrap_or_default();
    found
        .trim_start_matches("RLIMIT_")
        .eq_ignore_ascii_case(name)
}

/// In billionths of a cpu, or as a quota of a period.
fn cpu(asked: &HostConfig, found: &HostConfig) -> Result<Reading, SessionError> {
    let quota = || {
        let (quota, period) = (found.cpu_quota?, found.cpu_period?);
        (quota > 0 && period > 0).then(|| quota.saturating_mul(1_000_000_000) / period)
    };
    let nano = found.nano_cpus.filter(|n| *n > 0).or_else(quota);
    at_most("engine-nano-cpus", asked.nano_cpus, nano)
}

fn privileges(asked: &HostConfig, found: &HostConfig) -> Result<Vec<Reading>, SessionError> {
    let network = same(
        "engine-network",
        asked.network_mode.clone(),
        found.network_mode.clone(),
    )?;
    let options = found.security_opt.clone().unwrap_or_default();
    for option in asked.security_opt.iter().flatten() {
        if !options.iter().any(|found| is_option(found, option)) {
            let name = option.split('=').next().unwrap_or_default();
            return Err(shortfall(
                "engine-security-option",
                name,
                &options.len().to_string(),
            ));
        }
    }
    let profile = Digest::of(SECCOMP.as_bytes()).to_string();
    Ok(vec![
        network,
        same(
            "engine-read-only-root",
            flag(asked.readonly_rootfs),
            flag(found.readonly_rootfs),
        )?,
        same(
            "engine-privileged",
            flag(asked.privileged),
            flag(found.privileged),
        )?,
        same("engine-log", logged(asked), logged(found))?,
        same("engine-restart", restarted(asked), restarted(found))?,
        same(
            "engine-auto-remove",
            flag(asked.auto_remove),
            flag(found.auto_remove),
        )?,
        added(asked, found)?,
        dropped(found)?,
        claim("engine-no-new-privileges", "true", "true"),
        // Compared word for word above.
        claim("engine-seccomp", &profile, &profile),
        writable(asked, found)?,
    ])
}

/// Where the engine writes what the container says: what a candidate prints would fill its disk.
fn logged(host: &HostConfig) -> Option<String> {
    host.log_config.as_ref()?.typ.clone()
}

/// When the engine would start a container that has ended.
fn restarted(host: &HostConfig) -> Option<String> {
    Some(host.restart_policy.as_ref()?.name?.to_string())
}

/// As asked; `no-new-privileges` is also written with `:true` or `=true`.
fn is_option(found: &str, asked: &str) -> bool {
    let rest = found.strip_prefix(asked);
    found == asked || asked == "no-new-privileges" && matches!(rest, Some(":true" | "=true"))
}

/// None that was not asked for. Podman does not name those that are in its usual set.
fn added(asked: &HostConfig, found: &HostConfig) -> Result<Reading, SessionError> {
    let [asked, found] = [asked, found].map(|host| names(&host.cap_add).unwrap_or_default());
    let foreign = |name: &str| !asked.split(' ').any(|asked| asked == name);
    if !found.is_empty() && found.split(' ').any(foreign) {
        return Err(shortfall("engine-cap-add", &asked, &found));
    }
    Ok(claim("engine-cap-add", &asked, &found))
}

/// `ALL`, or every one by its name that the usual set has and that was not asked for.
fn dropped(found: &HostConfig) -> Result<Reading, SessionError> {
    let names = names(&found.cap_drop).unwrap_or_default();
    let kept = |usual: &&str| !names.split(' ').any(|dropped| dropped == *usual);
    let all = names == "ALL" || !USUAL.iter().any(kept);
    if all {
        return Ok(claim("engine-cap-drop", "ALL", &names));
    }
    Err(shortfall("engine-cap-drop", "ALL", &names))
}

/// What engines give to a container that asks for nothing, without the two that are asked for.
const USUAL: [&str; 9] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETPCAP",
    "SYS_CHROOT",
];

/// One place can be written, of a limited size; others only where they were asked for, which is to have
/// them closed.
fn writable(asked: &HostConfig, found: &HostConfig) -> Result<Reading, SessionError> {
    let options = |config: &HostConfig| {
        let mut tmpfs: BTreeMap<&String, &String> = config.tmpfs.as_ref()?.iter().collect();
        let mut all = in_order(tmpfs.remove(&PROGRAM_PLACE.to_owned())?);
        for (place, options) in tmpfs {
            all.push_str(&format!("; {place} {}", in_order(options)));
        }
        Some(all)
    };
    same("engine-tmpfs", options(asked), options(found))
}

/// Options of a mount, without those that Podman adds to each: they change neither what may be written
/// nor how much.
fn in_order(options: &str) -> String {
    let added = |option: &&str| !["rprivate", "tmpcopyup"].contains(option);
    let mut options: Vec<&str> = options.split(',').filter(added).collect();
    options.sort_unstable();
    options.join(",")
}

/// What nobody asked for and would be a way out.
fn nothing_else(host: &HostConfig) -> Result<(), SessionError> {
    let host = serde_json::to_value(host).map_err(|e| SessionCode::Shortfall.refuse(e))?;
    let strange = |name: &&&str| !is_nothing(&host[**name]);
    if let Some(name) = NEVER.iter().find(strange) {
        return Err(shortfall(name, "nothing", &host[*name].to_string()));
    }
    for (name, harmless) in SHARED {
        let value = host[name].as_str().unwrap_or_default();
        if !value.is_empty() && !harmless.contains(&value) {
            return Err(shortfall(name, "private", value));
        }
    }
    Ok(())
}

/// Fields of a host configuration that must be empty.
const NEVER: [&str; 19] = [
    "Binds",
    "Mounts",
    "VolumesFrom",
    "Devices",
    "DeviceRequests",
    "DeviceCgroupRules",
    "PortBindings",
    "PublishAllPorts",
    "Links",
    "ExtraHosts",
    "Dns",
    "DnsOptions",
    "DnsSearch",
    "GroupAdd",
    "Sysctls",
    "CgroupParent",
    "OomKillDisable",
    "ContainerIDFile",
    "Cgroup",
];
/// Namespaces: what they may be called when they are the container's own, or are made anew by our
/// program.
const SHARED: [(&str, &[&str]); 5] = [
    ("PidMode", &["private"]),
    ("IpcMode", &["private", "none", "shareable"]),
    ("UTSMode", &["private"]),
    ("UsernsMode", &["private"]),
    ("CgroupnsMode", &["private", "host"]),
];

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}

/// No mount beside the one that was asked for, and no network but none.
fn nothing_attached(found: &ContainerInspectResponse) -> Result<(), SessionError> {
    for mount in found.mounts.iter().flatten() {
        let place = mount.destination.as_deref().unwrap_or_default();
        if place != PROGRAM_PLACE {
            return Err(shortfall("engine-mounts", "none", place));
        }
    }
    let networks = found
        .network_settings
        .as_ref()
        .and_then(|n| n.networks.as_ref());
    match networks
        .into_iter()
        .flatten()
        .find(|(name, _)| *name != "none")
    {
        Some((name, _)) => Err(shortfall("engine-networks", "none", name)),
        None => Ok(()),
    }
}

/// Sorted, without the `CAP_` that Podman writes.
fn names(list: &Option<Vec<String>>) -> Option<String> {
    let mut names: Vec<&str> = list
        .iter()
        .flatten()
        .map(|n| n.trim_start_matches("CAP_"))
        .collect();
    names.sort_unstable();
    Some(names.join(" "))
}

fn flag(flag: Option<bool>) -> Option<String> {
    Some(flag.unwrap_or(false).to_string())
}

fn same(name: &str, asked: Option<String>, found: Option<String>) -> Result<Reading, SessionError> {
    let asked = asked.unwrap_or_default();
    match found {
        Some(found) if found == asked => Ok(claim(name, &asked, &found)),
        other => Err(shortfall(
            name,
            &asked,
            other.as_deref().unwrap_or("nothing"),
        )),
    }
}

/// A limit: 0 and less mean that there is none.
fn at_most(name: &str, asked: Option<i64>, found: Option<i64>) -> Result<Reading, SessionError> {
    let asked = asked.unwrap_or_default();
    match found {
        Some(found) if found > 0 && found <= asked => {
            Ok(claim(name, &asked.to_string(), &found.to_string()))
        }
        other => {
            let found = other.map_or("nothing".to_owned(), |n| n.to_string());
            Err(shortfall(name, &asked.to_string(), &found))
        }
    }
}

fn claim(name: &str, asked: &str, found: &str) -> Reading {
    Reading {
        name: name.to_owned(),
        asked: asked.to_owned(),
        found: escape(found, 1_000),
        class: EvidenceClass::EngineClaim,
    }
}

fn shortfall(name: &str, asked: &str, found: &str) -> SessionError {
    SessionCode::Shortfall.refuse(format_args!(
        "{name}: asked {}, found {}",
        escape(asked, 100),
        escape(found, 200)
    ))
}

#[cfg(test)]
mod tests;
