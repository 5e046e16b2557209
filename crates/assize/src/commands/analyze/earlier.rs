//! The lines that a run's `analysis.jsonl` holds already. It may be large, so only their positions are held.

use anyhow::{Context, Result};
use assize_contracts::SessionAnalysisBundle;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A trial: scenario, mode, model and repetition.
type Key = (String, String, String, Option<i64>);

/// The start of a line, and its length.
type Place = (u64, usize);

#[derive(Default)]
pub(super) struct Earlier {
    file: Option<File>,
    places: HashMap<Key, Place>,
}

impl Earlier {
    /// Lines that are no findings, as a run that was killed leaves them, are left behind.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        };
        let mut places = HashMap::new();
        let mut reader = BufReader::new(&file);
        let (mut begin, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            if let Ok(bundle) = serde_json::from_slice(&line) {
                places.insert(key(&bundle), (begin, length));
            }
            begin += length as u64;
        }
        Ok(Self {
            file: Some(file),
            places,
        })
    }

    /// The new findings of a trial, and what other analyzers found in it before.
    pub(super) fn completed<'a>(
        &mut self,
        new: &'a SessionAnalysisBundle,
    ) -> Result<Cow<'a, SessionAnalysisBundle>> {
        let Some(place) = self.places.remove(&key(new)) else {
            return Ok(Cow::Borrowed(new));
        };
        let mut old: SessionAnalysisBundle = serde_json::from_slice(&self.line(place)?)?;
        old.results.extend(new.results.clone());
        Ok(Cow::Owned(SessionAnalysisBundle {
            results: old.results,
            ..new.clone()
        }))
    }

    /// The findings in trials that were not looked at again.
    pub(super) fn copy_rest(mut self, file: &mut impl Write) -> Result<()> {
        let mut places: Vec<Place> = std::mem::take(&mut self.places).into_values().collect();
        places.sort_unstable();
        for place in places {
            file.write_all(&self.line(place)?)?;
        }
        Ok(())
    }

    fn line(&self, (begin, length): Place) -> Result<Vec<u8>> {
        let mut line = vec![0; length];
        if let Some(mut file) = self.file.as_ref() {
            file.seek(SeekFrom::Start(begin))?;
            file.read_exact(&mut line)?;
        }
        Ok(line)
    }
}

fn key(bundle: &SessionAnalysisBundle) -> Key {
    let SessionAnalysisBundle {
        scenario_id,
        mode,
        model,
        iteration,
        ..
    } = bundle;
    (scenario_id.clone(), mode.clone(), model.clone(), *iteration)
}
