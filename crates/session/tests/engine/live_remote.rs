//! An engine elsewhere: a second daemon that is reached by TCP only, with certificates on both
//! sides, and that sees nothing of the test's directories.

use crate::conformance::{self, Backend};
use crate::ground::{Ground, docker_command, session_image};
use flightproof_evidence::EvidenceClass;
use flightproof_frame::protocol::{Reply, Request};
use flightproof_session::docker::{Endpoint, Engine};
use flightproof_session::{Session as _, SessionCode};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Row = (&'static str, fn(&dyn Backend));

/// One test, because the daemon is started once.
#[test]
fn the_suite_passes_on_an_engine_elsewhere_and_its_death_is_no_answer() {
    let daemon = Daemon::start();
    let ground = Ground::on(daemon.endpoint.clone(), session_image(&daemon.endpoint));
    let mut session = ground.open();
    let readings = session.attestation().readings.clone();
    let local_only = readings
        .iter()
        .find(|r| r.class == EvidenceClass::KernelFile);
    assert_eq!(local_only, None, "the host read what it cannot see");
    assert!(
        readings
            .iter()
            .any(|r| r.class == EvidenceClass::Probe && r.name == "memory-bytes")
    );
    assert!(session.close().unwrap().is_clean());

    let suite: [Row; 16] = [
        (
            "attested",
            conformance::a_session_is_attested_used_and_leaves_nothing,
        ),
        (
            "dropped",
            conformance::a_dropped_session_leaves_nothing_either,
        ),
        (
            "output",
            conformance::output_comes_through_byte_for_byte_and_never_without_end,
        ),
        (
            "processes",
            conformance::no_process_outlives_its_case_nor_its_time,
        ),
        (
            "limits",
            conformance::limits_are_named_whatever_the_program_made_of_them,
        ),
        (
            "launch",
            conformance::what_cannot_start_says_nothing_about_the_candidate,
        ),
        (
            "reach",
            conformance::nothing_of_the_machine_or_of_another_case_is_in_reach,
        ),
        ("upload", conformance::what_arrives_must_be_what_was_sent),
        ("forged", conformance::no_forged_archive_is_unpacked),
        (
            "products",
            conformance::what_a_build_leaves_is_taken_whole_and_at_rest,
        ),
        (
            "settings",
            conformance::no_tree_has_a_say_in_how_it_is_built,
        ),
        ("build", conformance::a_build_reaches_nothing_but_its_places),
        (
            "thread",
            conformance::a_session_outlives_the_thread_that_opened_it,
        ),
        (
            "lifetime",
            conformance::the_lifetime_ends_a_session_whatever_it_is_doing,
        ),
        (
            "death",
            conformance::a_session_that_dies_is_lost_and_never_an_answer,
        ),
        (
            "flood",
            conformance::a_flood_costs_the_host_no_more_than_its_cap,
        ),
    ];
    for (name, row) in suite {
        println!("{name}");
        row(&ground);
    }
    strangers_are_not_let_in(&daemon);
    let daemon = its_end_is_no_answer(daemon, &ground);
    its_death_is_no_answer(daemon, ground);
}

/// Row 62: who shows no certificate of ours, and who is shown none of ours, gets nothing.
fn strangers_are_not_let_in(daemon: &Daemon) {
    let Endpoint::Tls { authority, .. } = &daemon.endpoint else {
        panic!("it is reached by TLS");
    };
    let plain = Endpoint::parse(&format!("tcp://{authority}"), None).unwrap();
    let others = daemon.dir.path().join("others");
    certificates(&others);
    let stranger = Endpoint::Tls {
        authority: authority.clone(),
        certificates: others,
    };
    for endpoint in [plain, stranger] {
        let refused = Engine::connect(&endpoint).unwrap_err();
        let codes = [SessionCode::EngineMissing, SessionCode::EngineFault];
        assert!(codes.contains(&refused.code), "{refused}");
    }
}

/// Row 38: it is asked to end, and takes its containers along. Until then answers are answers.
fn its_end_is_no_answer(mut daemon: Daemon, ground: &Ground) -> Daemon {
    let mut session = ground.open();
    let id = session.attestation().session.clone();
    daemon.terminate();
    let end = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        match session.call(&Request::Probe, &[]) {
            Ok(Reply::Probe { .. }) => assert!(Instant::now() < end, "it never ends"),
            Ok(other) => panic!("{other:?}"),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code, SessionCode::SessionLost, "{refused}");
    assert_eq!(session.close().unwrap_err().code, SessionCode::Leak);
    // Back again, it has nothing of it, which can be seen now.
    daemon.start_again();
    assert!(session.close().unwrap().is_clean());
    assert_eq!(ground.traces_of_id(&id), [] as [String; 0]);
    daemon
}

/// Row 37: the stream ends between two frames, as at the end of a program.
fn its_death_is_no_answer(mut daemon: Daemon, ground: Ground) {
    let mut session = ground.open();
    daemon.kill();
    let refused = session.call(&Request::Probe, &[]).unwrap_err();
    assert_eq!(refused.code, SessionCode::SessionLost, "{refused}");
    // What is left there cannot be seen from here, and is said to be.
    assert_eq!(session.close().unwrap_err().code, SessionCode::Leak);
    // Its directories go with the daemon; there is nobody left to ask what else there is.
    std::mem::forget(session);
    std::mem::forget(ground);
}

/// A second daemon, with everything of its own below one directory.
struct Daemon {
    dir: tempfile::TempDir,
    child: Child,
    endpoint: Endpoint,
    group: String,
    port: u16,
}

/// Runs it in the directory that has its configuration and certificates.
fn run(dir: &Path, port: u16, group: &str) -> Child {
    let place = |name: &str| dir.join(name).display().to_string();
    let log = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join("log"))
        .unwrap();
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg("mount -t tmpfs none /tmp && exec dockerd \"$@\"")
        .arg("dockerd")
        .args(["--data-root", &place("data"), "--exec-root", &place("exec")])
        .args(["--config-file", &place("config.json")])
        .args([
            "--pidfile",
            &place("pid"),
            "--host",
            &format!("tcp://127.0.0.1:{port}"),
        ])
        .args(["--tlsverify", "--tlscacert", &place("certs/ca.pem")])
        .args([
            "--tlscert",
            &place("certs/server.pem"),
            "--tlskey",
            &place("certs/server-key.pem"),
        ])
        .args(["--bridge", "none", "--iptables=false", "--ip-forward=false"])
        .args(["--cgroup-parent", group])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Daemon {
    fn start() -> Self {
        // Not below `/tmp`, which it shall not see.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let certs = dir.path().join("certs");
        certificates(&certs);
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        // Of this machine's own daemon only how it stores layers: that depends on the kernel.
        let driver = docker_command(&Endpoint::discover().unwrap())
            .args(["info", "--format", "{{.Driver}}"])
            .output()
            .unwrap();
        let driver = String::from_utf8(driver.stdout).unwrap();
        let config = format!("{{\"storage-driver\": \"{}\"}}", driver.trim());
        fs::write(dir.path().join("config.json"), config).unwrap();
        let endpoint = Endpoint::Tls {
            authority: format!("127.0.0.1:{port}"),
            certificates: certs,
        };
        let group = format!("flightproof-engine-{port}");
        let child = run(dir.path(), port, &group);
        let mut daemon = Self {
            dir,
            child,
            endpoint,
            group,
            port,
        };
        daemon.wait();
        daemon
    }

    fn wait(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        while let Err(refused) = Engine::connect(&self.endpoint) {
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap();
            assert!(self.child.try_wait().unwrap().is_none(), "{}", log());
            assert!(Instant::now() < end, "{refused}: {}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Asks it to end.
    fn terminate(&self) {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM).unwrap();
    }

    /// After its end, at the same place.
    fn start_again(&mut self) {
        self.child.wait().unwrap();
        self.child = run(self.dir.path(), self.port, &self.group);
        self.wait();
    }

    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// The accident: no chance to clean up.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A daemon leaves the parent of its containers' groups behind, one in each hierarchy, and one
    /// that was killed leaves theirs too.
    fn remove_groups(&self) {
        let find = |act: &[&str]| {
            let below = format!("*/{}*", self.group);
            let words = ["/sys/fs/cgroup", "-depth", "-type", "d", "-path", &below];
            let output = Command::new("find").args(words).args(act).output();
            output.map_or(0, |output| output.stdout.len())
        };
        // A group is busy until the last of its processes is reaped.
        for _ in 0..100 {
            find(&["-exec", "rmdir", "{}", ";"]);
            if find(&["-print"]) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Everything it started has its directory among the arguments.
    fn end_the_rest(&self) {
        let own = self.dir.path().display().to_string();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let Ok(pid) = name.parse::<i32>() else {
                continue;
            };
            let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            if String::from_utf8_lossy(&arguments).contains(&own)
                && pid != rustix::process::getpid()
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The number of one that was waited for may be another's by now.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.terminate();
        }
        let end = Instant::now() + Duration::from_secs(20);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.end_the_rest();
        self.remove_groups();
    }
}

/// An authority of its own, and a server and a client it vouches for.
fn certificates(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::write(
        dir.join("server.ext"),
        "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n",
    )
    .unwrap();
    fs::write(dir.join("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    let openssl = |words: &str| {
        let output = Command::new("openssl")
            .args(words.split(' '))
            .current_dir(dir)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {words}: {said}");
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!(
        "req -x509 {key} -keyout ca-key.pem -out ca.pem -days 2 -subj /CN=authority"
    ));
    for (name, certificate, private) in [
        ("server", "server.pem", "server-key.pem"),
        ("client", "cert.pem", "key.pem"),
    ] {
        openssl(&format!(
            "req {key} -keyout {private} -out {name}.csr -subj /CN={name}"
        ));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -extfile {name}.ext -out {certificate}"
        ));
    }
}
