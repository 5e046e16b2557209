//! Evented profiles for speedscope: one per lane.

use crate::chrome::title;
use crate::lanes::{Lane, lanes};
use crate::session::Session;
use crate::timeline::{Micros, NoTimes, Timeline};
use serde_json::{Value, json};
use std::collections::HashMap;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// All sessions in one document. Each begins at 0.
pub fn write(sessions: &[Session]) -> Result<Value, NoTimes> {
    let mut frames = Frames::default();
    let mut profiles = Vec::new();
    for session in sessions {
        let timeline = Timeline::of(session)?;
        for lane in lanes(&timeline)
            .iter()
            .filter(|lane| !lane.slices.is_empty())
        {
            let name = format!("{}: {}", title(session), lane.name);
            profiles.push(profile(&name, lane, &timeline, &mut frames));
        }
    }
    let frames: Vec<Value> = frames
        .names
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    Ok(json!({
        "$schema": SCHEMA, "exporter": concat!("assize ", env!("CARGO_PKG_VERSION")), "activeProfileIndex": 0,
        "shared": { "frames": frames }, "profiles": profiles,
    }))
}

#[derive(Default)]
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
