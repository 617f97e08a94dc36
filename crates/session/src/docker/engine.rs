//! One engine, asked synchronously: every question has its deadline and every answer a most size, and an
//! answer that is none is a fault of the engine, never of a candidate.

use super::dial::{Dialer, Upgraded};
use super::endpoint::Endpoint;
use crate::{SessionCode, SessionError};
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerSummary, ImageInspect, SystemInfo,
    SystemVersion,
};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptions, ListImagesOptions,
    ListNetworksOptions, ListVolumesOptions, RemoveContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use flightproof_core::escape;
use std::collections::HashMap;
use std::error::Error as _;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How long an engine may take to say its version: Podman starts each of its parts to ask for theirs.
const GREETING: Duration = Duration::from_secs(10);
/// How long an engine may take to answer a question.
const ANSWER: Duration = Duration::from_secs(30);
/// How long it may take to make or start a container: a busy disk.
pub(super) const MAKE: Duration = Duration::from_secs(60);
/// How long a container may take to be gone.
const REMOVAL: Duration = Duration::from_secs(20);
/// Pause between two looks at a container that is being removed.
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);
/// Oldest version of the interface that is spoken: that of Docker Engine 20.10.
const OLDEST_API: (usize, usize) = (1, 41);
/// Longest text of an engine that is shown.
pub(super) const MAX_SHOWN: usize = 300;

/// A container engine that was reached and asked what it is.
pub struct Engine {
    runtime: Runtime,
    docker: Docker,
    dialer: Dialer,
    endpoint: Endpoint,
    facts: Facts,
}

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Version of the engine.
    pub engine: String,
    /// Version of the interface that is spoken with it.
    pub api: String,
    /// Versions of its parts, such as containerd and runc, in its order.
    pub parts: Vec<(String, String)>,
    /// Name of its default runtime.
    pub runtime: String,
    /// Its kernel.
    pub kernel: String,
    /// Its operating system and architecture, such as `linux/amd64`.
    pub platform: String,
    /// Version of its cgroups.
    pub cgroups: String,
    /// Its security options, such as `name=seccomp,profile=default`.
    pub security: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The engine answered with this status.
    Status(u16, String),
    /// It cannot be reached.
    Unreachable(String),
    /// It did not answer in time, or not in its language.
    Other(String),
}

impl Facts {
    /// Podman's version, if it is Podman that answers in Docker's language.
    pub(super) fn podman(&self) -> Option<&str> {
        let mut parts = self.parts.iter();
        let podman = parts.find(|(name, _)| name.contains("Podman"));
        podman.map(|(_, version)| version.as_str())
    }
}

impl Fault {
    /// As a refusal. `doing`: what was asked for.
    pub(super) fn refuse(self, doing: &str) -> SessionError {
        match self {
            Self::Status(status, said) => {
                let said = escape(&said, MAX_SHOWN);
                SessionCode::EngineFault.refuse(format_args!("{doing}: status {status}, {said}"))
            }
            Self::Unreachable(why) | Self::Other(why) => {
                let why = escape(&why, MAX_SHOWN);
                SessionCode::EngineFault.refuse(format_args!("{doing}: {why}"))
            }
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError {
                status_code,
                message,
            } => Self::Status(status_code, message),
            Error::IOError { err } => Self::Unreachable(err.to_string()),
            // It says what was being done, and its source why that ended.
            Error::HyperResponseError { err } => Self::Other(match err.source() {
                Some(why) => format!("{err}: {why}"),
                None => err.to_string(),
            }),
            other => Self::Other(other.to_string()),
        }
    }
}

impl Engine {
    /// Reaches an engine and agrees on a version of the interface.
    ///
    /// # Errors
    /// `ENGINE_MISSING` if nobody answers there, `ENGINE_TOO_OLD`, `ENGINE_FAULT`.
    pub fn connect(endpoint: &Endpoint) -> Result<Self, SessionError> {
        let missing = |why: &dyn std::fmt::Display| {
            let why = escape(why.to_string(), MAX_SHOWN);
            SessionCode::EngineMissing.refuse(format_args!("{endpoint}: {why}"))
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| SessionCode::HostIo.refuse(format_args!("asynchronous input: {e}")))?;
        let dialer = Dialer::new(endpoint).map_err(|e| missing(&e))?;
        let transport = dialer.clone();
        let docker = Docker::connect_with_custom_transport(
            move |request| transport.clone().request(request),
            Some("http://engine"),
            MAKE.as_secs(),
            API_DEFAULT_VERSION,
        )
        .map_err(|e| Fault::from(e).refuse("client"))?;
        let docker =
            wait(&runtime, GREETING, docker.negotiate_version()).map_err(|fault| match fault {
                Fault::Unreachable(why) => missing(&why),
                other => other.refuse("agree on a version"),
            })?;
        let version = wait(&runtime, ANSWER, docker.version()).map_err(|f| f.refuse("version"))?;
        let info = wait(&runtime, ANSWER, docker.info()).map_err(|f| f.refuse("info"))?;
        let api = docker.client_version();
        if (api.major_version, api.minor_version) < OLDEST_API {
            let (major, minor) = OLDEST_API;
            return Err(SessionCode::EngineTooOld.refuse(format_args!(
                "{endpoint} speaks {api}, the oldest is {major}.{minor}"
            )));
        }
        let facts = facts(&api.to_string(), version, &info);
        Ok(Self {
            runtime,
            docker,
            dialer,
            endpoint: endpoint.clone(),
            facts,
        })
    }

    /// What it says of itself.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Where it was reached.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The engine's clock, seconds since 1970.
    ///
    /// # Errors
    /// `ENGINE_FAULT`, also for a time that cannot be read.
    pub fn clock(&self) -> Result<u64, SessionError> {
        let info = self
            .ask(ANSWER, self.docker.info())
            .map_err(|f| f.refuse("clock"))?;
        let text = info.system_time.unwrap_or_default();
        super::clock::unix_seconds(&text).ok_or_else(|| {
            let shown = escape(&text, MAX_SHOWN);
            SessionCode::EngineFault.refuse(format_args!("clock: {shown} is no time"))
        })
    }

    pub(super) fn image(&self, id: &str) -> Result<ImageInspect, Fault> {
        self.ask(ANSWER, self.docker.inspect_image(id))
    }

    /// Makes a container; what the engine warns of is handed on.
    pub(super) fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<(String, Vec<String>), Fault> {
        let options = CreateContainerOptions {
            name: Some(name.to_owned()),
            platform: String::new(),
        };
        let made = self.ask(MAKE, self.docker.create_container(Some(options), body))?;
        Ok((made.id, made.warnings))
    }

    pub(super) fn start(&self, id: &str) -> Result<(), Fault> {
        self.ask(MAKE, self.docker.start_container(id, None))
    }

    pub(super) fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, Fault> {
        let options = None::<InspectContainerOptions>;
        self.ask(ANSWER, self.docker.inspect_container(id, options))
    }

    /// All containers with a label, whatever state they are in.
    pub(super) fn labelled(&self, label: &str) -> Result<Vec<ContainerSummary>, Fault> {
        let options = ListContainersOptions {
            all: true,
            filters: filter("label", label),
            ..ListContainersOptions::default()
        };
        self.ask(ANSWER, self.docker.list_containers(Some(options)))
    }

    /// Names of all volumes.
    pub(super) fn volumes(&self) -> Result<Vec<String>, Fault> {
        let options = None::<ListVolumesOptions>;
        let listed = self.ask(ANSWER, self.docker.list_volumes(options))?;
        let volumes = listed.volumes.unwrap_or_default();
        Ok(volumes.into_iter().map(|volume| volume.name).collect())
    }

    /// Names of the networks with a label.
    pub(super) fn networks(&self, label: &str) -> Result<Vec<String>, Fault> {
        let options = ListNetworksOptions {
            filters: filter("label", label),
        };
        let listed = self.ask(ANSWER, self.docker.list_networks(Some(options)))?;
        Ok(listed
            .into_iter()
            .filter_map(|network| network.name)
            .collect())
    }

    /// Names and ids of the images of a repository.
    pub(super) fn images(&self, repository: &str) -> Result<Vec<(String, String)>, Fault> {
        let options = ListImagesOptions {
            filters: filter("reference", repository),
            ..ListImagesOptions::default()
        };
        let listed = self.ask(ANSWER, self.docker.list_images(Some(options)))?;
        let named = listed.into_iter().flat_map(|image| {
            let id = image.id;
            image
                .repo_tags
                .into_iter()
                .map(move |name| (name, id.clone()))
        });
        Ok(named
            .filter(|(name, _)| name.split(':').next() == Some(repository))
            .collect())
    }

    /// Kills and removes a container, and sees that it is gone. One that is gone already is
    /// removed.
    ///
    /// # Errors
    /// `LEAK` if it is still there at the deadline.
    pub(super) fn remove(&self, id: &str) -> Result<(), SessionError> {
        self.remove_before(id, Instant::now() + REMOVAL)
    }

    fn remove_before(&self, id: &str, end: Instant) -> Result<(), SessionError> {
        loop {
            let options = RemoveContainerOptions {
                force: true,
                v: true,
                ..RemoveContainerOptions::default()
            };
            let asked = self.ask(ANSWER, self.docker.remove_container(id, Some(options)));
            // Whatever was answered: only a look says that it is gone.
            let looked = match asked {
                Err(Fault::Unreachable(why)) => Err(Fault::Unreachable(why)),
                _ => self.inspect(id).map(drop),
            };
            match looked {
                Err(Fault::Status(404, _)) => return Ok(()),
                _ if Instant::now() < end => std::thread::sleep(REMOVAL_PAUSE),
                Ok(()) => {
                    return Err(SessionCode::Leak.refuse(format_args!("container {id} stays")));
                }
                Err(fault) => {
                    let refused = fault.refuse("remove");
                    return Err(SessionCode::Leak
                        .refuse(format_args!("container {id}: {}", refused.detail)));
                }
            }
        }
    }

    /// What an attached stream is opened with, for a thread of its own.
    pub(super) fn attachment(&self, id: &str) -> Attachment {
        let api = &self.facts.api;
        Attachment {
            dialer: self.dialer.clone(),
            path: format!(
                "/v{api}/containers/{id}/attach?stream=1&stdin=1&stdout=1&stderr=1&logs=0"
            ),
        }
    }

    fn ask<T>(
        &self,
        deadline: Duration,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Fault> {
        wait(&self.runtime, deadline, question)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.endpoint)
    }
}

/// A container's streams, not opened yet.
pub(super) struct Attachment {
    dialer: Dialer,
    path: String,
}

impl Attachment {
    pub(super) async fn open(self) -> io::Result<Upgraded> {
        match tokio::time::timeout(ANSWER, self.dialer.attach(&self.path)).await {
            Ok(opened) => opened,
            Err(_late) => Err(io::Error::other("attach: no answer in time")),
        }
    }
}

fn filter(name: &str, value: &str) -> Option<HashMap<String, Vec<String>>> {
    Some(HashMap::from([(name.to_owned(), vec![value.to_owned()])]))
}

fn wait<T>(
    runtime: &Runtime,
    deadline: Duration,
    question: impl Future<Output = Result<T, Error>>,
) -> Result<T, Fault> {
    let answer = async { tokio::time::timeout(deadline, question).await };
    match runtime.block_on(answer) {
        Ok(answer) => answer.map_err(Fault::from),
        Err(_late) => Err(Fault::Other(format!(
            "no answer in {} s",
            deadline.as_secs()
        ))),
    }
}

fn facts(api: &str, version: SystemVersion, info: &SystemInfo) -> Facts {
    let said = |text: &Option<String>| escape(text.as_deref().unwrap_or("unknown"), 100);
    let parts = version.components.unwrap_or_default();
    Facts {
        engine: said(&version.version),
        api: api.to_owned(),
        parts: parts
            .iter()
            .filter(|part| part.name != "Engine")
            .map(|part| (escape(&part.name, 40), escape(&part.version, 60)))
            .collect(),
        runtime: said(&info.default_runtime),
        kernel: said(&version.kernel_version),
        platform: format!("{}/{}", said(&version.os), said(&version.arch)),
        cgroups: info
            .cgroup_version
            .map_or("unknown".to_owned(), |v| v.to_string()),
        security: info.security_options.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    /// An engine that says who it is, and answers one question after the other.
    fn answering(
        path: &std::path::Path,
        answer: impl Fn(&str) -> (u16, &'static str) + Send + 'static,
    ) -> Engine {
        let listener = UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let asked = lines.next().unwrap().unwrap();
                let header = |line: &String| !line.is_empty();
                lines
                    .map_while(Result::ok)
                    .take_while(header)
                    .for_each(drop);
                let (status, body) = match asked.split('?').next().unwrap_or_default() {
                    path if path.contains("/version") => (200, r#"{"ApiVersion":"1.41"}"#),
                    path if path.contains("/info") => (200, "{}"),
                    _ => answer(&asked),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Engine::connect(&Endpoint::Unix(path.to_owned())).unwrap()
    }

    /// An engine says that a container is removed, and still has it; or says neither.
    #[test]
    fn a_container_that_does_not_go_is_a_leak_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let soon = || Instant::now() + REMOVAL_PAUSE * 20;
        for (number, look) in [(200, r#"{"Id":"c0"}"#), (500, r#"{"message":"busy"}"#)]
            .into_iter()
            .enumerate()
        {
            let path = dir.path().join(number.to_string());
            let engine = answering(&path, move |asked| match asked.starts_with("DELETE ") {
                true => (204, ""),
                false => look,
            });
            let refused = engine.remove_before("c0", soon()).unwrap_err();
            assert_eq!(refused.code, SessionCode::Leak, "{refused}");
            assert!(refused.detail.contains("container c0"), "{refused}");
        }
        let gone = answering(&dir.path().join("gone"), |_asked| {
            (404, r#"{"message":"no such container"}"#)
        });
        assert_eq!(gone.remove_before("c0", soon()), Ok(()));
    }
}
