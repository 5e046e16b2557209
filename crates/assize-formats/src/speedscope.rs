//! Evented profiles for speedscope: one per lane.

use crate::chrome::title;
use crate::lanes::{Lane, lanes};
use crate::session::Session;
use crate::timeline::{Micros, NoTimes, Timeline};
use serde_json::{Value, json};
use std::collections::HashMap;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

const EXPORTER: &str = concat!("assize ", env!("CARGO_PKG_VERSION"));

/// All sessions in one document. Each begins at 0.
pub fn write(sessions: &[Session]) -> Result<Value, NoTimes> {
    let mut document = Document::default();
    let mut profiles = Vec::new();
    for session in sessions {
        profiles.extend(document.profiles(session)?);
    }
    Ok(json!({
        "$schema": SCHEMA, "exporter": EXPORTER, "activeProfileIndex": 0,
        "shared": { "frames": document.frames() }, "profiles": profiles,
    }))
}

/// The same document as a text that is made piece by piece. Names of frames are kept until its end.
#[derive(Debug, Default)]
pub struct Document {
    frames: Frames,
    is_begun: bool,
}

impl Document {
    /// The text of a session, to be appended to what came before.
    pub fn add(&mut self, session: &Session) -> Result<String, NoTimes> {
        let mut text = String::new();
        for profile in self.profiles(session)? {
            let before = match std::mem::replace(&mut self.is_begun, true) {
                true => ",\n".to_owned(),
                false => head(),
            };
            text.push_str(&before);
            text.push_str(&profile.to_string());
        }
        Ok(text)
    }

    /// The text after the last session.
    pub fn end(&self) -> String {
        let head = if self.is_begun { String::new() } else { head() };
        let frames = Value::from(self.frames());
        format!("{head}\n],\"shared\":{{\"frames\":{frames}}}}}\n")
    }

    fn profiles(&mut self, session: &Session) -> Result<Vec<Value>, NoTimes> {
        let timeline = Timeline::of(session)?;
        let lanes = lanes(&timeline);
        let used = lanes.iter().filter(|lane| !lane.slices.is_empty());
        let profiles = used.map(|lane| {
            let name = format!("{}: {}", title(session), lane.name);
            profile(&name, lane, &timeline, &mut self.frames)
        });
        Ok(profiles.collect())
    }

    fn frames(&self) -> Vec<Value> {
        let names = self.frames.names.iter();
        names.map(|name| json!({ "name": name })).collect()
    }
}

fn head() -> String {
    format!(
        "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"{EXPORTER}\",\"activeProfileIndex\":0,\"profiles\":[\n"
    )
}

#[derive(Debug, Default)]
struct Frames {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Frames {
    fn place_of(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Slices are opened and closed like brackets.
fn profile(name: &str, lane: &Lane, timeline: &Timeline<'_>, frames: &mut Frames) -> Value {
    let milliseconds = |at: Micros| (at - timeline.start) as f64 / 1000.0;
    let mut events: Vec<Value> = Vec::new();
    let mut open: Vec<(usize, Micros)> = Vec::new();
    let close = |events: &mut Vec<Value>, (frame, end): (usize, Micros)| {
        events.push(json!({ "type": "C", "frame": frame, "at": milliseconds(end) }));
    };
    for slice in &lane.slices {
        while let Some(last) = open.pop_if(|(_, end)| *end <= slice.start) {
            close(&mut events, last);
        }
        let frame = frames.place_of(&slice.name);
        events.push(json!({ "type": "O", "frame": frame, "at": milliseconds(slice.start) }));
        open.push((frame, slice.end));
    }
    while let Some(last) = open.pop() {
        close(&mut events, last);
    }
    json!({
        "type": "evented", "name": name, "unit": "milliseconds", "startValue": 0,
        "endValue": milliseconds(timeline.end), "events": events,
    })
}
