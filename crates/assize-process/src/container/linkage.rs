//! Checks that a program can be run inside any Linux container: a dynamically linked one needs libraries that images lack.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The way a program finds its libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    /// It has them all: it runs in every image of its architecture.
    Static,
    /// It needs an interpreter and libraries of its system.
    Dynamic,
    /// It is no program for Linux.
    Foreign,
}

/// The program header of an interpreter.
const INTERPRETER: u32 = 3;

/// Reads the linkage of a program from its ELF headers.
pub fn linkage_of(program: &Path) -> io::Result<Linkage> {
    let mut file = File::open(program)?;
    let mut head = [0; 64];
    if file.read_exact(&mut head).is_err() || &head[..4] != b"\x7fELF" {
        return Ok(Linkage::Foreign);
    }
    // 64 bits, little endian: all systems that are shipped for.
    if head[4] != 2 || head[5] != 1 {
        return Ok(Linkage::Foreign);
    }
    let headers = u64_at(&head, 32);
    let (size, count) = (u16_at(&head, 54), u16_at(&head, 56));
    for number in 0..u64::from(count) {
        let place = headers.saturating_add(number * u64::from(size));
        file.seek(SeekFrom::Start(place))?;
        let mut kind = [0; 4];
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Ok(Linkage::Dynamic);
        }
    }
    Ok(Linkage::Static)
}

fn u64_at(bytes: &[u8; 64], place: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[place..place + 8]);
    u64::from_le_bytes(number)
}

fn u16_at(bytes: &[u8; 64], place: usize) -> u16 {
    u16::from_le_bytes([bytes[place], bytes[place + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_foreign() {
        assert_eq!(
            linkage_of(Path::new("/etc/passwd")).unwrap(),
            Linkage::Foreign
        );
    }

    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        not(target_feature = "crt-static")
    ))]
    #[test]
    fn a_program_with_an_interpreter_is_dynamic() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(linkage_of(&own).unwrap(), Linkage::Dynamic);
    }

    #[test]
    fn a_header_that_lies_is_no_panic() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        let mut bytes = vec![0xff; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        std::fs::write(&file, &bytes).unwrap();
        assert!(linkage_of(&file).is_err());
    }
}
