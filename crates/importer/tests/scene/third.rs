//! A third reader of packs, which shares no line with ours nor with git's.

use gix_object::Kind;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Objects by their ids: what each is, and its content.
pub(crate) type Found = BTreeMap<[u8; 20], (String, Vec<u8>)>;

/// An object that a pack stands on, by its id.
pub(crate) type Base<'a> = dyn Fn(&[u8]) -> Option<(String, Vec<u8>)> + 'a;

struct Bases<'a>(&'a Base<'a>);

impl gix_object::Find for Bases<'_> {
    fn try_find<'b>(
        &self,
        id: &gix_hash::oid,
        buffer: &'b mut Vec<u8>,
    ) -> gix_error::Result<Option<gix_object::Data<'b>>> {
        let Some((word, body)) = (self.0)(id.as_bytes()) else {
            return Ok(None);
        };
        *buffer = body;
        Ok(Some(gix_object::Data {
            kind: Kind::from_bytes(word.as_bytes()).unwrap(),
            object_hash: gix_hash::Kind::Sha1,
            data: buffer,
        }))
    }
}

/// Everything in the pack of a bundle, or in a pack, and the objects it stands on.
pub(crate) fn read(bytes: &[u8], bases: &Base<'_>, folder: &Path) -> Result<Found, String> {
    let start = bytes.windows(4).position(|word| word == b"PACK");
    let mut pack = &bytes[start.ok_or("no pack")?..];
    let hash = gix_hash::Kind::Sha1;
    let told = |e: &dyn std::fmt::Display| e.to_string();
    let written = gix_pack::Bundle::write_to_directory(
        &mut pack,
        Some(folder),
        &mut gix_utils::progress::Discard,
        &AtomicBool::new(false),
        Some(Bases(bases)),
        hash,
        gix_pack::bundle::write::Options {
            thread_limit: Some(1),
            ..Default::default()
        },
    );
    let index = written
        .map_err(|e| told(&e))?
        .index_path
        .ok_or("no index")?;
    let bundle = gix_pack::Bundle::at(&index, hash).map_err(|e| told(&e))?;
    let mut found = Found::new();
    let (mut body, mut inflate) = (Vec::new(), gix_zlib::Inflate::default());
    for number in 0..bundle.index.num_objects() {
        let mut cache = gix_pack::cache::Never;
        let id = bundle.index.oid_at_index(number).to_owned();
        let (object, _) = bundle
            .get_object_by_index(number, &mut body, &mut inflate, &mut cache)
            .map_err(|e| told(&e))?;
        let computed = gix_object::compute_hash(hash, object.kind, object.data);
        assert_eq!(computed.map_err(|e| told(&e))?, id);
        let word = object.kind.to_string();
        found.insert(
            id.as_bytes().try_into().unwrap(),
            (word, object.data.to_vec()),
        );
    }
    Ok(found)
}
