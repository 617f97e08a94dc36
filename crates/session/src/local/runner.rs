use crate::{SessionCode, SessionError};
use flightproof_archive::paar;
use flightproof_evidence::RunnerIdentity;

/// Name of the one file of the artifact.
const FILE: &str = "flights";

/// The program that becomes a session's runner, out of the artifact it is shipped as.
#[derive(Clone)]
pub struct RunnerProgram {
    /// What an attestation says about it.
    pub identity: RunnerIdentity,
    pub(crate) bytes: Vec<u8>,
}

impl std::fmt::Debug for RunnerProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunnerProgram({:?})", self.identity)
    }
}

impl RunnerProgram {
    /// Reads a PAAR1 artifact that holds exactly the one executable file `flights`.
    ///
    /// # Errors
    /// `RUNNER_INVALID` if the archive is refused or holds anything else.
    pub fn from_artifact(artifact: &[u8]) -> Result<Self, SessionError> {
        let unpacked = paar::read(artifact).map_err(|e| SessionCode::RunnerInvalid.refuse(e))?;
        let mut files = unpacked.files();
        match (files.next(), files.next()) {
            (Some((file, bytes)), None) if file.path.as_str() == FILE && file.executable => {
                Ok(Self {
                    identity: RunnerIdentity {
                        build_id: unpacked.artifact.build_id(),
                        sha256: file.sha256,
                    },
                    bytes: bytes.to_vec(),
                })
            }
            _ => Err(SessionCode::RunnerInvalid
                .refuse(format_args!("it must hold one executable file, {FILE}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::{CommitId, Digest};

    fn artifact(name: &str, executable: bool) -> Vec<u8> {
        let origin = paar::Origin {
            target: paar::Target::LinuxX64,
            source_commit: CommitId::from_bytes([1; 20]),
            daemon_protocol_version: 1,
            daemon_schema_revision: 0,
        };
        let path = paar::ArtifactPath::new(name).unwrap();
        let packed = paar::pack(origin, [(path, executable, b"program".as_slice())]);
        packed.unwrap().bytes
    }

    #[test]
    fn the_runner_is_the_one_executable_of_its_artifact() {
        let runner = RunnerProgram::from_artifact(&artifact(FILE, true)).unwrap();
        assert_eq!(runner.bytes, b"program");
        assert_eq!(runner.identity.sha256, Digest::of(b"program"));
    }

    #[test]
    fn another_name_mode_or_byte_is_refused() {
        let mut flipped = artifact(FILE, true);
        *flipped.last_mut().unwrap() ^= 1;
        for bad in [
            artifact("other", true),
            artifact(FILE, false),
            flipped,
            vec![],
        ] {
            let refused = RunnerProgram::from_artifact(&bad).unwrap_err();
            assert_eq!(refused.code, SessionCode::RunnerInvalid);
        }
    }
}
