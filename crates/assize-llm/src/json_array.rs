//! A JSON array read element by element as its bytes arrive: Gemini streams that way when it is not asked for
//! server-sent events. The reader of an element checks that it is valid JSON.

/// Splits a JSON array into the texts of its elements. One that is larger than the limit is skipped and counted.
#[derive(Debug)]
pub(crate) struct JsonArrayReader {
    limit: usize,
    element: Vec<u8>,
    is_oversized: bool,
    /// Brackets open inside the array.
    depth: u64,
    in_string: bool,
    escaped: bool,
    oversized: u64,
}

impl JsonArrayReader {
    /// A reader for what follows the opening bracket.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            element: Vec::new(),
            is_oversized: false,
            depth: 0,
            in_string: false,
            escaped: false,
            oversized: 0,
        }
    }

    /// Takes the next bytes and hands out every element that ends in them.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut on_element: impl FnMut(&[u8])) {
        for &byte in bytes {
            if !self.in_string && self.depth == 0 && matches!(byte, b',' | b']') {
                self.end_element(&mut on_element);
            } else {
                self.keep(byte);
                self.follow(byte);
            }
        }
    }

    /// The number of elements skipped because of their size.
    pub(crate) fn oversized(&self) -> u64 {
        self.oversized
    }

    fn keep(&mut self, byte: u8) {
        if self.element.len() < self.limit {
            self.element.push(byte);
        } else if !std::mem::replace(&mut self.is_oversized, true) {
            self.oversized += 1;
        }
    }

    fn follow(&mut self, byte: u8) {
        match byte {
            _ if std::mem::take(&mut self.escaped) => {}
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn end_element(&mut self, on_element: &mut impl FnMut(&[u8])) {
        let is_oversized = std::mem::take(&mut self.is_oversized);
        if !is_oversized && !self.element.trim_ascii().is_empty() {
            on_element(&self.element);
        }
        self.element.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_out_as_they_end() {
        let text = br#"{"a":"]},\"{"} , [1,[2]],
{"b":{}}]"#;
        for size in [1, 3, 1000] {
            let mut reader = JsonArrayReader::new(100);
            let mut elements = Vec::new();
            for chunk in text.chunks(size) {
                reader.feed(chunk, |element| {
                    elements.push(String::from_utf8_lossy(element.trim_ascii()).into_owned());
                });
            }
            assert_eq!(elements, [r#"{"a":"]},\"{"}"#, "[1,[2]]", r#"{"b":{}}"#]);
        }
    }

    #[test]
    fn a_huge_element_is_skipped() {
        let mut reader = JsonArrayReader::new(10);
        let mut elements = 0;
        reader.feed(br#""0123456789abcdef",{"b":1}]"#, |_| elements += 1);
        assert_eq!((elements, reader.oversized()), (1, 1));
    }
}
