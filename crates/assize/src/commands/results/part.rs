//! Parts as objects: their names, and the archive that each is.

use anyhow::{Context, Result};
use assize_engine::Shard;
use assize_engine::store::{PartMarks, write_part};
use std::fs::File;
use std::path::Path;

/// More than any part has; an archive that claims to is damaged or hostile.
const LARGEST_FILE: u64 = 1 << 40;

/// The content of a part's name: enough to know how far a shard is without opening any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartName {
    pub(super) shard: Shard,
    pub(super) run_id: String,
    pub(super) number: u32,
    pub(super) rows: u64,
    pub(super) planned: u64,
}

impl PartName {
    /// The folder of a shard's parts.
    pub(super) fn folder(shard: Shard) -> String {
        format!("shard-{}-of-{}", shard.index, shard.count)
    }

    pub(super) fn path(&self) -> String {
        let Self {
            run_id,
            number,
            rows,
            planned,
            ..
        } = self;
        format!(
            "{}/{run_id}/part-{number:05}-rows-{rows}-of-{planned}.tar.zst",
            Self::folder(self.shard)
        )
    }

    /// The part of this path below the prefix. Absent for other objects.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.rsplit('/');
        let (file, run_id, folder) = (parts.next()?, parts.next()?, parts.next()?);
        let (index, count) = folder.strip_prefix("shard-")?.split_once("-of-")?;
        let file = file.strip_prefix("part-")?.strip_suffix(".tar.zst")?;
        let (number, rest) = file.split_once("-rows-")?;
        let (rows, planned) = rest.split_once("-of-")?;
        Some(Self {
            shard: format!("{index}/{count}").parse().ok()?,
            run_id: run_id.to_owned(),
            number: number.parse().ok()?,
            rows: rows.parse().ok()?,
            planned: planned.parse().ok()?,
        })
    }
}

/// An archive of what came between two marks, and the number of its rows.
pub(super) fn pack(run: &Path, from: &PartMarks, to: &PartMarks, archive: &Path) -> Result<u64> {
    let beside = assize_secrets::private_directory_in(run, ".part-")?;
    let part = beside.path().join("part");
    let rows = write_part(run, from, to, &part)?;
    let file =
        File::create(archive).with_context(|| format!("cannot create `{}`", archive.display()))?;
    let compressed = zstd::Encoder::new(file, 1)?;
    let mut builder = tar::Builder::new(compressed);
    builder.mode(tar::HeaderMode::Deterministic);
    builder.append_dir_all(".", &part)?;
    builder.into_inner()?.finish()?.sync_data()?;
    Ok(rows)
}

/// Unpacks an archive into a new directory. Nothing in it can leave the directory.
pub(super) fn unpack(archive: &[u8], directory: &Path) -> Result<()> {
    crate::private::directory(directory)?;
    let mut archive = tar::Archive::new(zstd::Decoder::new(archive)?);
    archive.set_preserve_permissions(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let is_plain = kind.is_file() || kind.is_dir();
        if is_plain && entry.size() < LARGEST_FILE {
            entry.unpack_in(directory)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_tell_how_far_a_shard_is() {
        let name = PartName {
            shard: Shard {
                index: 3,
                count: 40,
            },
            run_id: "20261118-010203-00ff-3of40".to_owned(),
            number: 7,
            rows: 12,
            planned: 120,
        };
        assert_eq!(
            PartName::parse(&format!("a/prefix/{}", name.path())),
            Some(name)
        );
        for other in [
            "",
            "x/y",
            "shard-1-of-2/r/part-1.tar",
            "shard-0-of-2/r/part-00001-rows-1-of-2.tar.zst",
        ] {
            assert_eq!(PartName::parse(other), None, "{other}");
        }
    }
}
