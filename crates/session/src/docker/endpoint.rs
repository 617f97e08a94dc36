//! Where an engine listens.

use crate::{SessionCode, SessionError};
use flightproof_core::escape;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// An engine's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket of this machine.
    Unix(PathBuf),
    /// Plain TCP to this machine itself.
    Loopback {
        /// Address and port.
        authority: String,
    },
    /// TCP under TLS in which both sides show a certificate.
    Tls {
        /// Host name or address, and port.
        authority: String,
        /// Directory with `ca.pem`, `cert.pem` and `key.pem`.
        certificates: PathBuf,
    },
}

/// The port engines use for TLS.
const TLS_PORT: &str = "2376";
/// The port engines use without.
const PLAIN_PORT: &str = "2375";
/// Longest address that is shown.
const MAX_SHOWN: usize = 200;

impl Endpoint {
    /// The engine that `DOCKER_HOST` names (with `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH`), or the
    /// first of the usual sockets that is there.
    ///
    /// # Errors
    /// `ENGINE_MISSING` with the sockets that were tried, `ENGINE_ADDRESS`.
    pub fn discover() -> Result<Self, SessionError> {
        Self::chosen(&|name| std::env::var(name).ok(), &|path| path.exists())
    }

    fn chosen(
        variable: &dyn Fn(&str) -> Option<String>,
        exists: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, SessionError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(address) = set("DOCKER_HOST") {
            let certificates = set("DOCKER_TLS_VERIFY").map(|_asked| {
                set("DOCKER_CERT_PATH")
                    .map(PathBuf::from)
                    .or_else(|| Some(Path::new(&set("HOME")?).join(".docker")))
                    .unwrap_or_default()
            });
            return Self::parse(&address, certificates.as_deref());
        }
        let usual = usual_sockets(&set);
        match usual.iter().find(|socket| exists(socket)) {
            Some(socket) => Ok(Self::Unix(socket.clone())),
            None => {
                let tried: Vec<_> = usual.iter().map(|s| s.display().to_string()).collect();
                Err(SessionCode::EngineMissing.refuse(format_args!(
                    "DOCKER_HOST is not set; tried {}",
                    tried.join(", ")
                )))
            }
        }
    }

    /// An address as `DOCKER_HOST` has it. `certificates`: TLS is asked for, with these.
    ///
    /// # Errors
    /// `ENGINE_ADDRESS`: it is none, or plain TCP to another machine.
    pub fn parse(address: &str, certificates: Option<&Path>) -> Result<Self, SessionError> {
        let refuse = |why: &str| {
            let shown = escape(address, MAX_SHOWN);
            Err(SessionCode::EngineAddress.refuse(format_args!("{shown}: {why}")))
        };
        let Some((scheme, rest)) = address.split_once("://") else {
            return refuse("no scheme; unix://, tcp://, http:// and https:// are known");
        };
        let rest = rest.trim_end_matches('/');
        match (scheme, certificates) {
            ("unix", _) if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            ("unix", _) => refuse("the path of a socket is absolute"),
            ("tcp" | "http" | "https", _) if rest.is_empty() || rest.contains(['/', '@', '?']) => {
                refuse("it must be a host and a port, nothing else")
            }
            ("tcp" | "https", Some(certificates)) => Ok(Self::Tls {
                authority: with_port(rest, TLS_PORT),
                certificates: certificates.to_owned(),
            }),
            ("https", None) => refuse("https needs certificates: set DOCKER_TLS_VERIFY=1"),
            ("tcp" | "http", None) if is_loopback(rest) => Ok(Self::Loopback {
                authority: with_port(rest, PLAIN_PORT),
            }),
            ("tcp" | "http", None) => {
                refuse("whoever is on the way would be root there: only TLS leaves this machine")
            }
            ("http", Some(_)) => refuse("http with certificates is neither"),
            _ => refuse("unix://, tcp://, http:// and https:// are known"),
        }
    }

    /// Host and port of a request's `Host` line.
    pub(super) fn authority(&self) -> &str {
        match self {
            Self::Unix(_) => "localhost",
            Self::Loopback { authority } | Self::Tls { authority, .. } => authority,
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Loopback { authority } => write!(f, "tcp://{authority}"),
            Self::Tls { authority, .. } => write!(f, "tcp+tls://{authority}"),
        }
    }
}

/// Docker's sockets, then Podman's; the system's before a user's.
fn usual_sockets(set: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let runtime = set("XDG_RUNTIME_DIR").map(PathBuf::from);
    let home = set("HOME").map(PathBuf::from);
    let of = |base: &Option<PathBuf>, name: &str| base.as_ref().map(|base| base.join(name));
    [
        Some("/var/run/docker.sock".into()),
        of(&runtime, "docker.sock"),
        of(&home, ".docker/run/docker.sock"),
        Some("/run/podman/podman.sock".into()),
        of(&runtime, "podman/podman.sock"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn with_port(authority: &str, port: &str) -> String {
    if split_port(authority).1.is_some() {
        return authority.to_owned();
    }
    format!("{authority}:{port}")
}

/// Host and port. The colons of a bare address of version 6 are no ports.
pub(super) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn is_loopback(authority: &str) -> bool {
    let (host, _) = split_port(authority);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str) -> Result<Endpoint, SessionCode> {
        Endpoint::parse(address, None).map_err(|e| e.code)
    }

    #[test]
    fn sockets_loopback_and_tls_are_addresses() {
        assert_eq!(
            parsed("unix:///run/x.sock"),
            Ok(Endpoint::Unix("/run/x.sock".into()))
        );
        for address in [
            "tcp://127.0.0.1:2375",
            "tcp://localhost",
            "http://[::1]:80/",
        ] {
            assert!(
                matches!(parsed(address), Ok(Endpoint::Loopback { .. })),
                "{address}"
            );
        }
        let certificates = Path::new("/certs");
        let tls = Endpoint::parse("tcp://builder.example", Some(certificates)).unwrap();
        assert_eq!(tls.authority(), "builder.example:2376");
        assert_eq!(tls.to_string(), "tcp+tls://builder.example:2376");
    }

    /// Whoever listens on the way to a plain engine elsewhere becomes root there.
    #[test]
    fn plain_tcp_to_another_machine_and_addresses_that_are_none_are_refused() {
        for address in [
            "tcp://192.0.2.1:2375",
            "http://engine.example",
            "tcp://127.0.0.1.example:2375",
            "tcp://0.0.0.0:2375",
            "https://engine.example",
            "tcp://",
            "tcp://user@localhost",
            "tcp://localhost/x",
            "unix://relative",
            "ssh://host",
            "/run/docker.sock",
            "",
        ] {
            assert_eq!(
                parsed(address),
                Err(SessionCode::EngineAddress),
                "{address}"
            );
        }
    }

    #[test]
    fn docker_host_wins_then_the_first_socket_that_is_there() {
        let variables = |name: &str| match name {
            "XDG_RUNTIME_DIR" => Some("/run/user/7".to_owned()),
            _ => None,
        };
        let podman = Path::new("/run/user/7/podman/podman.sock");
        let found = Endpoint::chosen(&variables, &|path| path == podman).unwrap();
        assert_eq!(found, Endpoint::Unix(podman.into()));
        let named = |name: &str| match name {
            "DOCKER_HOST" => Some("tcp://engine:1".to_owned()),
            "DOCKER_TLS_VERIFY" => Some("1".to_owned()),
            "DOCKER_CERT_PATH" => Some("/certs".to_owned()),
            _ => None,
        };
        let found = Endpoint::chosen(&named, &|_| true).unwrap();
        assert!(matches!(found, Endpoint::Tls { .. }));
    }

    #[test]
    fn without_an_engine_the_sockets_that_were_tried_are_named() {
        let refused = Endpoint::chosen(&|_| None, &|_| false).unwrap_err();
        assert_eq!(refused.code, SessionCode::EngineMissing);
        for socket in ["/var/run/docker.sock", "/run/podman/podman.sock"] {
            assert!(refused.detail.contains(socket), "{refused}");
        }
    }
}
