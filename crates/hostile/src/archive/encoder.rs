use sha2::{Digest, Sha256};

/// A file to be archived: path, whether it may be executed, content.
pub type File<'a> = (&'a str, bool, &'a [u8]);

/// A PAWS1 snapshot of these files in the order given, and its manifest: nothing is checked.
pub fn paws(workspace: &str, files: &[File<'_>]) -> (Vec<u8>, String) {
    let manifest = paws_manifest(workspace, files);
    (wrap_paws(manifest.as_bytes(), &payload(files)), manifest)
}

/// A PAAR1 artifact of these files in the order given, and its manifest: nothing is checked.
pub fn paar(commit: &str, target: &str, files: &[File<'_>]) -> (Vec<u8>, String) {
    let sizes: Vec<usize> = files.iter().map(|file| file.2.len()).collect();
    let manifest = paar_manifest(commit, target, files, &sizes);
    (wrap_paar(manifest.as_bytes(), &payload(files)), manifest)
}

pub(super) fn wrap_paws(manifest: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u64::try_from(manifest.len()).unwrap_or(u64::MAX);
    [b"PAWS1", &length.to_be_bytes()[..], manifest, payload].concat()
}

pub(super) fn wrap_paar(manifest: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(manifest.len()).unwrap_or(u32::MAX);
    [b"PAAR1", &length.to_be_bytes()[..], manifest, payload].concat()
}

pub(super) fn payload(files: &[File<'_>]) -> Vec<u8> {
    files.iter().flat_map(|file| file.2).copied().collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// A JSON string with the escapes that are needed, and no other.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        out += &match u32::from(c) {
            0x22 => r#"\""#.to_owned(),
            0x5c => r"\\".to_owned(),
            8 => r"\b".to_owned(),
            9 => r"\t".to_owned(),
            10 => r"\n".to_owned(),
            12 => r"\f".to_owned(),
            13 => r"\r".to_owned(),
            low @ 0..=0x1f => format!("\\u00{low:02x}"),
            _ => c.to_string(),
        };
    }
    out + "\""
}

fn paws_manifest(workspace: &str, files: &[File<'_>]) -> String {
    let sizes: Vec<usize> = files.iter().map(|file| file.2.len()).collect();
    paws_manifest_of_sizes(workspace, files, &sizes)
}

/// A manifest that may lie about the sizes.
pub(super) fn paws_manifest_of_sizes(
    workspace: &str,
    files: &[File<'_>],
    sizes: &[usize],
) -> String {
    let mut offset = 0;
    let (mut named, mut listed) = (Vec::new(), Vec::new());
    for ((path, executable, content), size) in files.iter().zip(sizes) {
        let mode = if *executable { 100_755 } else { 100_644 };
        let fields = format!(
            r#""path":{},"size":{size},"mode":{mode},"sha256":"{}""#,
            quote(path),
            hex(content)
        );
        named.push(format!("{{{fields}}}"));
        listed.push(format!("{{{fields},\"offset\":{offset}}}"));
        offset += size;
    }
    format!(
        r#"{{"format":"prime-agent-workspace","version":1,"kind":"snapshot","workspaceId":{},"snapshotId":"{}","totalBytes":{offset},"entries":[{}]}}"#,
        quote(workspace),
        hex(format!("[{}]", named.join(",")).as_bytes()),
        listed.join(",")
    )
}

/// A manifest that may lie about the sizes.
pub(super) fn paar_manifest(
    commit: &str,
    target: &str,
    files: &[File<'_>],
    sizes: &[usize],
) -> String {
    let mut offset = 0;
    let mut listed = Vec::new();
    for ((path, executable, content), size) in files.iter().zip(sizes) {
        let mode = if *executable { 493 } else { 420 };
        listed.push(format!(
            r#"{{"path":{},"size":{size},"mode":{mode},"sha256":"{}","offset":{offset}}}"#,
            quote(path),
            hex(content)
        ));
        offset += size;
    }
    let listed = format!("[{}]", listed.join(","));
    let digest = hex(listed.as_bytes());
    let protocol = r#"{"name":"prime-agent.remote-host","version":1,"daemonProtocolVersion":1,"daemonSchemaRevision":0}"#;
    let identity = format!(
        r#"{{"sourceCommit":"{commit}","target":"{target}","protocol":{protocol},"filesDigest":"{digest}"}}"#
    );
    format!(
        r#"{{"format":"prime-agent-artifact","version":1,"target":"{target}","sourceCommit":"{commit}","protocol":{protocol},"filesDigest":"{digest}","buildId":"{}","files":{listed}}}"#,
        hex(identity.as_bytes())
    )
}
