//! The walls around agents, in words.

use assize_contracts::{Caution, CautionCode, WallRecord};

/// One line for the header of a report. Absent where no wall is known.
pub(crate) fn headline(walls: &[WallRecord]) -> Option<String> {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for wall in walls {
        let place = match &wall.scenario {
            Some(scenario) => format!("{} on {scenario}", wall.mode),
            None => wall.mode.clone(),
        };
        match kinds.iter_mut().find(|(words, _)| *words == wall.words) {
            Some((_, places)) => places.push(place),
            None => kinds.push((&wall.words, vec![place])),
        }
    }
    let words = match kinds.as_slice() {
        [] => return None,
        [(words, _)] => (*words).to_owned(),
        several => {
            let each = several.iter();
            let each = each.map(|(words, places)| format!("{words} ({})", listed(places)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    Some(format!("Sandbox: {words}."))
}

/// Names of places beyond this are counted.
const MOST_PLACES: usize = 6;

fn listed(places: &[String]) -> String {
    match places.len().checked_sub(MOST_PLACES) {
        Some(more) if more > 1 => {
            format!("{} and {more} more", places[..MOST_PLACES].join(", "))
        }
        _ => places.join(", "),
    }
}

/// Cautions about everything that sandboxes could not keep agents from, each once with the modes concerned.
pub(crate) fn cautions(walls: &[WallRecord]) -> Vec<Caution> {
    let mut cautions: Vec<Caution> = Vec::new();
    for wall in walls {
        let Some(text) = &wall.caution else {
            continue;
        };
        let known = cautions.iter_mut().find(|caution| caution.text == *text);
        match known {
            Some(caution) if caution.places.contains(&wall.mode) => {}
            Some(caution) => caution.places.push(wall.mode.clone()),
            None => cautions.push(Caution::about(
                CautionCode::WeakSandbox,
                text,
                wall.mode.clone(),
            )),
        }
    }
    cautions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(mode: &str, words: &str, caution: Option<&str>) -> WallRecord {
        WallRecord {
            mode: mode.to_owned(),
            words: words.to_owned(),
            caution: caution.map(str::to_owned),
            ..WallRecord::default()
        }
    }

    #[test]
    fn walls_are_told_in_one_line() {
        assert_eq!(headline(&[]), None);
        let (a, b) = (wall("a", "guard", None), wall("b", "none", Some("Open.")));
        assert_eq!(
            headline(&[a.clone(), a.clone()]).unwrap(),
            "Sandbox: guard."
        );
        assert_eq!(
            headline(&[a.clone(), b.clone()]).unwrap(),
            "Sandbox: guard (a); none (b)."
        );
        let found = cautions(&[a, b.clone(), wall("c", "none", Some("Open.")), b]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].places, ["b", "c"]);
    }

    #[test]
    fn many_places_are_counted() {
        let mut walls: Vec<WallRecord> = (0..20)
            .map(|number| WallRecord {
                scenario: Some(format!("t{number}")),
                ..wall("a", "container", None)
            })
            .collect();
        walls.push(wall("b", "none", None));
        let line = headline(&walls).unwrap();
        assert!(line.contains("a on t5 and 14 more); none (b)."), "{line}");
    }
}
