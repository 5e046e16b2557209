//! Rows out of a reader: one JSON object per line, or one array of objects, whichever it holds.

use crate::ReportError;
use std::io::BufRead;

/// One row in the form of its file.
#[derive(Debug, Clone, Copy)]
pub struct RowBytes<'a> {
    /// The JSON object.
    pub json: &'a [u8],
    /// The number of the row in the file, from 1.
    pub number: u64,
    /// Nothing follows it, and no line break either: writing it may have been interrupted.
    pub may_be_torn: bool,
}

/// Gives every row to `visit`, one at a time.
pub fn read_rows(
    mut reader: impl BufRead,
    mut visit: impl FnMut(RowBytes<'_>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    match first_byte(&mut reader)? {
        Some(b'[') => read_array(reader, &mut visit),
        Some(_) => read_lines(reader, &mut visit),
        None => Ok(()),
    }
}

/// The first byte that is no white space; the reader is at it afterwards.
fn first_byte(reader: &mut impl BufRead) -> Result<Option<u8>, ReportError> {
    loop {
        let buffer = reader.fill_buf().map_err(ReportError::Read)?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let place = buffer.iter().position(|byte| !byte.is_ascii_whitespace());
        let (blank, found) = match place {
            Some(place) => (place, Some(buffer[place])),
            None => (buffer.len(), None),
        };
        reader.consume(blank);
        if found.is_some() {
            return Ok(found);
        }
    }
}

fn read_lines(
    mut reader: impl BufRead,
    visit: &mut impl FnMut(RowBytes<'_>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    // The beginning of a line whose end is not read yet.
    let mut begun = Vec::new();
    let mut number = 0;
    let mut take = |line: &[u8], may_be_torn: bool| {
        let json = line.trim_ascii();
        if json.is_empty() {
            return Ok(());
        }
        number += 1;
        visit(RowBytes {
            json,
            number,
            may_be_torn,
        })
    };
    loop {
        let buffer = reader.fill_buf().map_err(ReportError::Read)?;
        if buffer.is_empty() {
            return take(&begun, true);
        }
        let length = buffer.len();
        let mut rest = buffer;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end);
            match begun.is_empty() {
                true => take(line, false)?,
                false => {
                    begun.extend_from_slice(line);
                    take(&begun, false)?;
                    begun.clear();
                }
            }
            rest = &behind[1..];
        }
        begun.extend_from_slice(rest);
        reader.consume(length);
    }
}

fn read_array(
    mut reader: impl BufRead,
    visit: &mut impl FnMut(RowBytes<'_>) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let mut element = Vec::new();
    let mut scan = Scan::default();
    let mut number = 0;
    loop {
        let buffer = reader.fill_buf().map_err(ReportError::Read)?;
        if buffer.is_empty() {
            // An array without its end: the element under way was cut off.
            let json = element.trim_ascii();
            return match json.is_empty() {
                true => Ok(()),
                false => visit(RowBytes {
                    json,
                    number: number + 1,
                    may_be_torn: true,
                }),
            };
        }
        let length = buffer.len();
        for &byte in buffer {
            if scan.ends_element(byte) {
                let json = element.trim_ascii();
                if !json.is_empty() {
                    number += 1;
                    visit(RowBytes {
                        json,
                        number,
                        may_be_torn: false,
                    })?;
                }
                element.clear();
            } else if scan.depth > 1 || byte != b'[' || scan.in_string {
                element.push(byte);
            }
        }
        reader.consume(length);
    }
}

/// The position of a byte within an array of JSON values.
#[derive(Default)]
struct Scan {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Takes the next byte; true when it is the comma or bracket after an element.
    fn ends_element(&mut self, byte: u8) -> bool {
        if self.in_string {
            let closes = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !closes;
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            b',' => return self.depth == 1,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn check(text: &str, expected: &[&str]) {
        // A tiny buffer puts every boundary everywhere.
        for capacity in [1, 3, 4096] {
            let mut found = Vec::new();
            read_rows(BufReader::with_capacity(capacity, text.as_bytes()), |row| {
                found.push(String::from_utf8(row.json.to_vec()).unwrap());
                Ok(())
            })
            .unwrap();
            assert_eq!(found, expected, "buffer of {capacity}");
        }
    }

    #[test]
    fn lines_and_arrays_give_the_same_rows() {
        let rows = [r#"{"a":[1,2],"b":"x]}\",[{"}"#, r#"{"c":{}}"#];
        check(&rows.join("\n"), &rows);
        check(&format!("\n{}\r\n\n{}\n", rows[0], rows[1]), &rows);
        check(&format!(" [{} ,\n{}\n]\n", rows[0], rows[1]), &rows);
    }

    #[test]
    fn nothing_has_no_rows() {
        check("", &[]);
        check(" \n ", &[]);
        check("[]", &[]);
    }

    #[test]
    fn a_row_without_its_end_may_be_torn() {
        for text in ["{\"a\":1}\n{\"b\"", "[{\"a\":1},{\"b\""] {
            let mut torn = Vec::new();
            read_rows(text.as_bytes(), |row| {
                torn.push(row.may_be_torn);
                Ok(())
            })
            .unwrap();
            assert_eq!(torn, [false, true], "{text}");
        }
    }
}
