//! Honest engines, and every way in which one may fall short.

use super::super::PinnedImage;
use super::super::create::tests::{asked, asked_of, podman_facts};
use super::*;

/// What an honest engine answers.
fn honest() -> (ContainerCreateBody, Value) {
    let asked = asked(&[]);
    let mut config = serde_json::to_value(&asked).unwrap();
    let host = config["HostConfig"].take();
    let found = serde_json::json!({
        "Id": "c", "Image": config["Image"], "Config": config, "HostConfig": host,
        "Mounts": [], "NetworkSettings": {"Networks": {"none": {}}},
    });
    (asked, found)
}

fn judged(asked: &ContainerCreateBody, found: &Value) -> Result<Vec<Reading>, SessionError> {
    claims(asked, &serde_json::from_value(found.clone()).unwrap())
}

#[test]
fn what_was_asked_for_and_stricter_limits_pass() {
    let (asked, mut found) = honest();
    let readings = judged(&asked, &found).unwrap();
    assert!(
        readings
            .iter()
            .all(|r| r.class == EvidenceClass::EngineClaim)
    );
    assert!(readings.len() >= 19, "{}", readings.len());
    found["HostConfig"]["PidsLimit"] = 32.into();
    found["HostConfig"]["CapAdd"] = serde_json::json!(["CAP_SETUID", "CAP_SETGID"]);
    found["HostConfig"]["CapDrop"] = serde_json::json!(USUAL);
    found["HostConfig"]["SecurityOpt"][0] = "no-new-privileges:true".into();
    found["Config"]["WorkingDir"] = "".into();
    found["Config"]["Healthcheck"] = Value::Null;
    judged(&asked, &found).unwrap();
}

/// Every way in which an engine can give less, or more, than it was asked for.
#[test]
fn every_field_that_is_weaker_missing_or_was_not_asked_for_is_a_shortfall() {
    let lies = [
        ("Memory", "0"),
        ("Memory", "1073741825"),
        ("MemorySwap", "2147483648"),
        ("MemorySwap", "-1"),
        ("PidsLimit", "null"),
        ("PidsLimit", "-1"),
        ("NanoCpus", "0"),
        ("Ulimits", "[]"),
        ("NetworkMode", "\"host\""),
        ("NetworkMode", "\"default\""),
        ("ReadonlyRootfs", "false"),
        ("Privileged", "true"),
        ("AutoRemove", "false"),
        ("LogConfig", "{\"Type\":\"json-file\"}"),
        ("LogConfig", "null"),
        ("RestartPolicy", "{\"Name\":\"always\"}"),
        ("RestartPolicy", "null"),
        ("CapAdd", "[\"SETUID\",\"SETGID\",\"SYS_ADMIN\"]"),
        ("CapDrop", "[]"),
        ("CapDrop", "null"),
        ("SecurityOpt", "null"),
        (
            "SecurityOpt",
            "[\"no-new-privileges\",\"seccomp=unconfined\"]",
        ),
        ("SecurityOpt", "[\"no-new-privileges:false\"]"),
        ("Tmpfs", "null"),
        ("Tmpfs", "{\"/runner\":\"rw,exec\"}"),
        ("Tmpfs", "{\"/runner\":\"rw\",\"/tmp\":\"\"}"),
        ("Binds", "[\"/:/host\"]"),
        ("Devices", "[{\"PathOnHost\":\"/dev/kvm\"}]"),
        ("PidMode", "\"host\""),
        ("IpcMode", "\"host\""),
        ("UTSMode", "\"host\""),
        ("UsernsMode", "\"host\""),
        ("OomKillDisable", "true"),
        ("PublishAllPorts", "true"),
        ("Sysctls", "{\"net.ipv4.ip_forward\":\"1\"}"),
        ("VolumesFrom", "[\"other\"]"),
        ("CgroupParent", "\"/\""),
        ("GroupAdd", "[\"docker\"]"),
    ];
    for (field, lie) in lies {
        let (asked, mut found) = honest();
        found["HostConfig"][field] = serde_json::from_str(lie).unwrap();
        let refused = judged(&asked, &found).unwrap_err();
        assert_eq!(refused.code, SessionCode::Shortfall, "{field} {lie}");
    }
}

#[test]
fn another_image_user_command_label_mount_or_network_is_a_shortfall() {
    let lies = [
        ("/Image", "\"sha256:00\""),
        ("/Config/User", "\"\""),
        ("/Config/Tty", "true"),
        ("/Config/Cmd", "[\"true\"]"),
        ("/Config/WorkingDir", "\"/proc/self/fd/8\""),
        ("/Config/Healthcheck/Test", "[\"CMD\",\"/check\"]"),
        ("/Config/Healthcheck/Test", "[]"),
        ("/Config/Healthcheck/Test", "null"),
        ("/Config/Labels/flightproof.fence", "\"9\""),
        ("/Config/Labels", "{}"),
        ("/Mounts", "[{\"Destination\":\"/host\",\"RW\":true}]"),
        ("/NetworkSettings/Networks", "{\"bridge\":{}}"),
        ("/HostConfig", "null"),
    ];
    for (path, lie) in lies {
        let (asked, mut found) = honest();
        *found.pointer_mut(path).unwrap() = serde_json::from_str(lie).unwrap();
        let refused = judged(&asked, &found).unwrap_err();
        assert_eq!(refused.code, SessionCode::Shortfall, "{path}");
    }
}

#[test]
fn an_image_is_the_pinned_one_or_unfit() {
    let (id, layer) = (Digest::of(b"image"), Digest::of(b"layer"));
    let pinned = PinnedImage {
        id,
        layers: vec![layer],
    };
    let good = serde_json::json!({
        "Id": format!("sha256:{id}"), "Os": "linux", "Architecture": "amd64",
        "RootFS": {"Type": "layers", "Layers": [format!("sha256:{layer}")]},
        "Config": {},
    });
    let judged = |found: &Value| {
        image(
            &pinned,
            &serde_json::from_value(found.clone()).unwrap(),
            "linux/amd64",
        )
    };
    assert_eq!(judged(&good).unwrap().len(), 2);
    let lies = [
        ("/Id", format!("\"sha256:{layer}\"")),
        ("/RootFS/Layers", format!("[\"sha256:{id}\"]")),
        ("/RootFS/Layers", "[]".to_owned()),
        ("/RootFS/Layers", "[\"latest\"]".to_owned()),
        ("/Config", "{\"Volumes\":{\"/data\":{}}}".to_owned()),
        ("/Config", "{\"Volumes\":[\"/data\"]}".to_owned()),
        ("/Architecture", "\"riscv64\"".to_owned()),
    ];
    for (path, lie) in lies {
        let mut found = good.clone();
        *found.pointer_mut(path).unwrap() = serde_json::from_str(&lie).unwrap();
        // A form that the models do not know is refused before this.
        if serde_json::from_value::<ImageInspect>(found.clone()).is_err() {
            continue;
        }
        let refused = judged(&found).unwrap_err();
        assert_eq!(refused.code, SessionCode::ImageUnfit, "{path} {lie}");
    }
}

/// What Podman 4.3 answers about the container it was asked for.
fn podman() -> (ContainerCreateBody, Value) {
    let asked = asked_of(&podman_facts());
    let mut config = serde_json::to_value(&asked).unwrap();
    let mut host = config["HostConfig"].take();
    for limit in host["Ulimits"].as_array_mut().unwrap() {
        let name = limit["Name"].as_str().unwrap().to_uppercase();
        limit["Name"] = format!("RLIMIT_{name}").into();
    }
    for options in host["Tmpfs"].as_object_mut().unwrap().values_mut() {
        *options = format!("{},rprivate,tmpcopyup", options.as_str().unwrap()).into();
    }
    host["CapAdd"] = serde_json::json!([]);
    host["CapDrop"] = serde_json::json!([
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "NET_RAW",
        "SETFCAP",
        "SETPCAP",
        "SYS_CHROOT"
    ]);
    host["IpcMode"] = "shareable".into();
    let found = serde_json::json!({
        "Id": "c", "Image": config["Image"], "Config": config, "HostConfig": host,
        "Mounts": [], "NetworkSettings": {"Networks": {}},
    });
    (asked, found)
}

#[test]
fn what_podman_says_in_its_own_words_passes() {
    let (asked, found) = podman();
    let readings = judged(&asked, &found).unwrap();
    assert!(readings.iter().any(|r| r.name == "engine-ulimit-nproc"));
}

#[test]
fn what_podman_opens_unasked_or_forgets_is_a_shortfall() {
    let runner = "rw,exec,nosuid,nodev,size=65536,mode=0755";
    let closed = "ro,noexec,nosuid,nodev,size=65536";
    let lies = [
        (
            "/Tmpfs/~1tmp",
            "\"rw,rprivate,nosuid,nodev,tmpcopyup\"".to_owned(),
        ),
        ("/Tmpfs/~1run", format!("\"{},exec\"", closed)),
        ("/Tmpfs", format!("{{\"/runner\":\"{runner}\"}}")),
        ("/CapAdd", "[\"SYS_ADMIN\"]".to_owned()),
        ("/CapDrop", "[\"AUDIT_WRITE\"]".to_owned()),
        (
            "/SecurityOpt",
            "[\"no-new-privileges\",\"seccomp=unconfined\"]".to_owned(),
        ),
        ("/SecurityOpt", "[\"no-new-privileges\"]".to_owned()),
        ("/Ulimits/2/Hard", "32768".to_owned()),
    ];
    for (path, lie) in lies {
        let (asked, mut found) = podman();
        let place = found["HostConfig"].pointer_mut(path).unwrap();
        *place = serde_json::from_str(&lie).unwrap();
        let refused = judged(&asked, &found).unwrap_err();
        assert_eq!(refused.code, SessionCode::Shortfall, "{path} {lie}");
    }
}
