use super::{FORMAT, MIN_FILE_BYTES, Offsets, PROTOCOL_NAME, Stated, check_count, check_origin};
use crate::json::scan::Scan;
use crate::order;
use crate::paar::{ArtifactPath, File, MAX_FILE_BYTES, MAX_FILES, Origin, Target};

/// Reads what a canonical text states. `None` for any other text, and for one with a field of a
/// wrong form: it is never a refusal, only a reason to look again.
pub(super) fn read(text: &str) -> Option<Stated> {
    let mut scan = Scan::new(text);
    scan.literal("{\"format\":\"")?;
    scan.literal(FORMAT)?;
    scan.literal("\",\"version\":1,\"target\":")?;
    let origin = read_origin(&mut scan)?;
    scan.literal(",\"filesDigest\":")?;
    let files_digest = scan.digest()?;
    scan.literal(",\"buildId\":")?;
    let build_id = scan.digest()?;
    scan.literal(",\"files\":")?;
    let mut offsets = Offsets::default();
    let room = (text.len() / MIN_FILE_BYTES).min(MAX_FILES);
    let files = scan.list(room, MAX_FILES, |scan, index| {
        read_file(scan, index, &mut offsets)
    })?;
    scan.literal("}")?;
    scan.end()?;
    check_count(files.len()).ok()?;
    // A path that stands twice is refused among the files, so it is left to the lenient reader.
    let paths = files.iter().map(|file| file.path.as_str());
    order::unsorted(paths).is_none().then_some(Stated {
        origin,
        files_digest,
        build_id,
        files,
        offsets,
    })
}

fn read_origin(scan: &mut Scan<'_>) -> Option<Origin> {
    let target = match &*scan.text()? {
        "linux-x64" => Target::LinuxX64,
        "linux-arm64" => Target::LinuxArm64,
        _ => return None,
    };
    scan.literal(",\"sourceCommit\":")?;
    let source_commit = scan.text()?.parse().ok()?;
    scan.literal(",\"protocol\":{\"name\":\"")?;
    scan.literal(PROTOCOL_NAME)?;
    scan.literal("\",\"version\":1,\"daemonProtocolVersion\":")?;
    let daemon_protocol_version = scan.number()?;
    scan.literal(",\"daemonSchemaRevision\":")?;
    let daemon_schema_revision = scan.number()?;
    scan.literal("}")?;
    let origin = Origin {
        target,
        source_commit,
        daemon_protocol_version,
        daemon_schema_revision,
    };
    check_origin(&origin).ok().map(|()| origin)
}

fn read_file(scan: &mut Scan<'_>, index: usize, offsets: &mut Offsets) -> Option<File> {
    scan.literal("{\"path\":")?;
    let path = ArtifactPath::new(&scan.text()?).ok()?;
    scan.literal(",\"size\":")?;
    let size = scan.number().filter(|size| *size <= MAX_FILE_BYTES)?;
    scan.literal(",\"mode\":4")?;
    let executable = scan.literal("93").is_some();
    if !executable {
        scan.literal("20")?;
    }
    scan.literal(",\"sha256\":")?;
    let sha256 = scan.digest()?;
    scan.literal(",\"offset\":")?;
    offsets.take(index, scan.number()?, size);
    scan.literal("}")?;
    Some(File {
        path,
        executable,
        size,
        sha256,
    })
}
