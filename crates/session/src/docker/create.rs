//! What an engine is asked for: a pure function from a specification to the container.

use super::engine::Facts;
use super::owner::Labels;
use super::spec::DockerSpec;
use crate::SessionError;
use crate::local::RunnerProgram;
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, ResourcesUlimits,
    RestartPolicy, RestartPolicyNameEnum,
};
use std::collections::HashMap;
use std::path::PathBuf;

/// The system calls a session may make at all, in the engine's own form. What our program lets the
/// candidate do is less, and decided by itself.
pub(super) const SECCOMP: &str = include_str!("seccomp.json");
/// All that is left of root: our program maps the session's user ids with them, once.
pub(super) const CAPABILITIES: [&str; 2] = ["SETGID", "SETUID"];
/// The only place of a container that can be written. Our program arrives there.
pub(super) const PROGRAM_PLACE: &str = "/runner";
/// Instead of a program that the engine would start beside ours, as an image may ask.
pub(super) const NO_PROGRAM: &str = "NONE";
/// Host name inside.
const HOSTNAME: &str = "flight";
/// Open descriptors: what the runner gives to a build.
pub(super) const MAX_FILES: i64 = 4_096;
/// One byte, not none: with a limit of zero the kernel still pipes a core to a handler of the host.
pub(super) const CORE_BYTES: i64 = 1;
/// Billionths of a cpu in a thousandth of one.
const NANO_PER_MILLI: u64 = 1_000_000;
/// Room beside our program, bytes: two directories.
const PROGRAM_ROOM: usize = 64 << 10;

/// How much longer than the host the keeper inside waits, milliseconds: it is there for hosts that
/// are no longer.
const BACKSTOP_MS: u64 = 5_000;

/// Receives our program on standard input, compares its digest, and becomes it. The image's own
/// shell does this, and nothing else afterwards.
const ENTRY: &str = r#"umask 022
head -c "$1" >/runner/flights || exit 96
[ "$(sha256sum </runner/flights)" = "$2  -" ] || { echo "the program arrived as another one" >&2; exit 97; }
chmod 0555 /runner/flights && exec /runner/flights __runner container "$3" "$4" "$5""#;

/// The container of a session.
pub(super) fn body(
    spec: &DockerSpec,
    runner: &RunnerProgram,
    labels: &Labels,
    facts: &Facts,
) -> Result<ContainerCreateBody, SessionError> {
    let mut host_config = host_config(spec, runner, facts);
    if facts.podman().is_some() {
        for_podman(&mut host_config, spec);
    }
    Ok(ContainerCreateBody {
        hostname: Some(HOSTNAME.to_owned()),
        user: Some("0:0".to_owned()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        open_stdin: Some(true),
        stdin_once: Some(true),
        env: Some(Vec::new()),
        entrypoint: Some(vec!["/bin/sh".to_owned()]),
        cmd: Some(entry(spec, runner)),
        healthcheck: Some(HealthConfig {
            test: Some(vec![NO_PROGRAM.to_owned()]),
            ..HealthConfig::default()
        }),
        image: Some(image_id(spec)),
        working_dir: Some("/".to_owned()),
        labels: Some(labels.written()?),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    })
}

/// The image's id as engines write it.
pub(super) fn image_id(spec: &DockerSpec) -> String {
    format!("sha256:{}", spec.image.id)
}

fn entry(spec: &DockerSpec, runner: &RunnerProgram) -> Vec<String> {
    vec![
        "-c".to_owned(),
        ENTRY.to_owned(),
        "sh".to_owned(),
        runner.bytes.len().to_string(),
        runner.identity.sha256.to_string(),
        spec.scratch_bytes.to_string(),
        spec.base().to_string(),
        spec.lifetime_ms.saturating_add(BACKSTOP_MS).to_string(),
    ]
}

fn host_config(spec: &DockerSpec, runner: &RunnerProgram, facts: &Facts) -> HostConfig {
    let names = |list: &[&str]| Some(list.iter().map(|name| (*name).to_owned()).collect());
    let memory = signed(spec.memory_bytes);
    HostConfig {
        memory: Some(memory),
        // Both together: equal means no swap.
        memory_swap: Some(memory),
        pids_limit: Some(signed(spec.pids)),
        nano_cpus: Some(signed(spec.cpu_millis.saturating_mul(NANO_PER_MILLI))),
        ulimits: Some(vec![
            ulimit("core", CORE_BYTES),
            ulimit("nofile", MAX_FILES),
        ]),
        network_mode: Some("none".to_owned()),
        ipc_mode: Some("private".to_owned()),
        readonly_rootfs: Some(true),
        privileged: Some(false),
        cap_drop: names(&["ALL"]),
        cap_add: names(&CAPABILITIES),
        security_opt: Some(security_options(facts)),
        tmpfs: Some(HashMap::from([program_place(runner)])),
        // Our program is the container's first process; a helper before it would be another one.
        init: Some(false),
        // The engine removes it when it ends, whoever is still there to ask for it.
        auto_remove: Some(true),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        ..HostConfig::default()
    }
}

/// What Podman takes otherwise than Docker, or does unasked: it reads the profile of system calls from
/// a file; it asks for as many processes of one user as the machine can have, which a service without
/// that right cannot give; it makes three places writable, without a limit.
fn for_podman(host: &mut HostConfig, spec: &DockerSpec) {
    let file = format!("seccomp={}", profile_file(spec).display());
    for option in host.security_opt.iter_mut().flatten() {
        if option.starts_with("seccomp=") {
            option.clone_from(&file);
        }
    }
    let processes = ulimit("nproc", PODMAN_PROCESSES);
    host.ulimits.get_or_insert_default().push(processes);
    let closed = PODMAN_PLACES.map(|place| (place.to_owned(), PODMAN_CLOSED.to_owned()));
    host.tmpfs.get_or_insert_default().extend(closed);
}

/// Where the profile lies for an engine that reads it.
pub(super) fn profile_file(spec: &DockerSpec) -> PathBuf {
    spec.state_dir.join("seccomp.json")
}

/// Processes of one user id outside, which all sessions share: each is held by its own group. Podman's
/// service must itself be allowed as many.
const PODMAN_PROCESSES: i64 = 16_384;
/// What Podman lays over a root that cannot be written.
const PODMAN_PLACES: [&str; 3] = ["/run", "/tmp", "/var/tmp"];
/// It takes their place, and cannot be written either.
const PODMAN_CLOSED: &str = "ro,noexec,nosuid,nodev,size=65536";

/// AppArmor's usual profile for containers forbids every mount, so where there is AppArmor it is
/// asked to stand aside: the session's walls are made of mounts.
fn security_options(facts: &Facts) -> Vec<String> {
    let mut options = vec!["no-new-privileges".to_owned(), format!("seccomp={SECCOMP}")];
    if facts
        .security
        .iter()
        .any(|option| option.contains("name=apparmor"))
    {
        options.push("apparmor=unconfined".to_owned());
    }
    options
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    }
}

fn program_place(runner: &RunnerProgram) -> (String, String) {
    let size = (runner.bytes.len() + PROGRAM_ROOM).next_multiple_of(PROGRAM_ROOM);
    let options = format!("rw,exec,nosuid,nodev,size={size},mode=0755");
    (PROGRAM_PLACE.to_owned(), options)
}

/// The specification's check keeps every number in range.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::spec::tests::spec;
    use super::*;
    use crate::record::Owner;
    use flightproof_core::Digest;
    use flightproof_evidence::RunnerIdentity;
    use serde_json::Value;

    pub(in super::super) fn facts(security: &[&str]) -> Facts {
        Facts {
            engine: "20.10".to_owned(),
            api: "1.41".to_owned(),
            parts: vec![("runc".to_owned(), "1.1.5".to_owned())],
            runtime: "runc".to_owned(),
            kernel: "6.18".to_owned(),
            platform: "linux/amd64".to_owned(),
            cgroups: "1".to_owned(),
            security: security.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    pub(in super::super) fn podman_facts() -> Facts {
        let podman = ("Podman Engine".to_owned(), "4.3.1".to_owned());
        Facts {
            parts: vec![podman],
            ..facts(&[])
        }
    }

    pub(in super::super) fn asked(security: &[&str]) -> ContainerCreateBody {
        asked_of(&facts(security))
    }

    pub(in super::super) fn asked_of(facts: &Facts) -> ContainerCreateBody {
        let spec = spec();
        let runner = RunnerProgram {
            identity: RunnerIdentity {
                build_id: Digest::of(b"build"),
                sha256: Digest::of(b"program"),
            },
            bytes: b"program".to_vec(),
        };
        let labels = Labels {
            session: spec.id(),
            ledger: spec.ledger.clone(),
            owner: Owner::this_process().unwrap(),
            fence: spec.fence,
            deadline: 1,
        };
        body(&spec, &runner, &labels, facts).unwrap()
    }

    #[test]
    fn nothing_of_the_host_and_nothing_without_a_limit_is_asked_for() {
        let body = serde_json::to_value(asked(&[])).unwrap();
        let host = &body["HostConfig"];
        for absent in [
            "Binds",
            "Mounts",
            "Devices",
            "VolumesFrom",
            "PidMode",
            "UsernsMode",
            "PortBindings",
            "ExtraHosts",
            "Links",
            "Sysctls",
            "CgroupParent",
            "GroupAdd",
            "MaskedPaths",
        ] {
            assert!(host[absent].is_null(), "{absent}: {}", host[absent]);
        }
        for limit in ["Memory", "MemorySwap", "PidsLimit", "NanoCpus"] {
            assert!(host[limit].as_i64().is_some_and(|n| n > 0), "{limit}");
        }
        assert_eq!(host["Memory"], host["MemorySwap"]);
        assert_eq!(host["NetworkMode"], "none");
        assert_eq!(
            (&host["Privileged"], &host["ReadonlyRootfs"]),
            (&Value::Bool(false), &Value::Bool(true))
        );
        assert!(body["Image"].as_str().unwrap().starts_with("sha256:"));
    }

    #[test]
    fn apparmor_is_asked_to_stand_aside_only_where_it_is() {
        let options =
            |security: &[&str]| asked(security).host_config.unwrap().security_opt.unwrap();
        assert_eq!(options(&["name=seccomp,profile=default"]).len(), 2);
        let with = options(&["name=apparmor"]);
        assert_eq!(with.last().unwrap(), "apparmor=unconfined");
    }

    #[test]
    fn podman_is_told_of_the_profile_by_a_file_and_of_every_place_that_it_would_open() {
        let [docker, podman] = [facts(&[]), podman_facts()].map(|facts| {
            let host = asked_of(&facts).host_config.unwrap();
            (host.security_opt.unwrap(), host.tmpfs.unwrap().len())
        });
        assert_eq!((docker.1, podman.1), (1, 4));
        let file = format!("seccomp={}", profile_file(&spec()).display());
        assert_eq!(podman.0, ["no-new-privileges", file.as_str()]);
        assert_eq!(docker.0[1], format!("seccomp={SECCOMP}"));
    }

    /// What engines leave open, and what leads out of a session.
    #[test]
    fn the_profile_allows_by_name_and_leaves_out_what_attackers_like() {
        let profile: Value = serde_json::from_str(SECCOMP).unwrap();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        let rules = profile["syscalls"].as_array().unwrap();
        let allowed: Vec<&str> = rules
            .iter()
            .filter(|rule| rule["action"] == "SCMP_ACT_ALLOW")
            .flat_map(|rule| rule["names"].as_array().unwrap())
            .map(|name| name.as_str().unwrap())
            .collect();
        for name in [
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "keyctl",
            "add_key",
            "request_key",
            "userfaultfd",
            "bpf",
            "perf_event_open",
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "kexec_load",
            "open_by_handle_at",
            "unshare",
            "setns",
            "chroot",
            "clone3",
            "syslog",
            "init_module",
            "clock_settime",
            "swapon",
            "reboot",
            "socketcall",
        ] {
            assert!(!allowed.contains(&name), "{name}");
        }
        for call in ["socket", "socketpair"] {
            let rules: Vec<_> = rules
                .iter()
                .filter(|rule| rule["names"].as_array().unwrap().contains(&call.into()))
                .collect();
            assert_eq!(rules.len(), 1);
            assert_eq!(rules[0]["args"][0]["value"], 1, "AF_UNIX only");
        }
    }
}
