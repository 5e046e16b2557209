//! Bodies that property tests and fuzz targets share: no bytes cause a panic, and what is read is written back the same.

use crate::{ProfileRow, RunRecord, ScoreRecord, SessionAnalysisBundle, SessionTrace, Task};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads bytes as every kind of record there is.
pub fn records(bytes: &[u8]) {
    comes_back::<ProfileRow>(bytes);
    comes_back::<SessionTrace>(bytes);
    comes_back::<SessionAnalysisBundle>(bytes);
    comes_back::<Task>(bytes);
    comes_back::<RunRecord>(bytes);
    comes_back::<ScoreRecord>(bytes);
}

/// Bytes that can be read can be written, and read the same again.
fn comes_back<T: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<T>(bytes) else {
        return;
    };
    let text = serde_json::to_vec(&record).expect("what was read can be written");
    let again: T = serde_json::from_slice(&text).expect("what was written can be read");
    assert!(record == again, "a record changed on its way");
}
