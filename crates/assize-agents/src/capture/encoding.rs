//! A readable copy of bytes that may be compressed. The bytes that go on to the agent stay as they came.

use brotli_decompressor::DecompressorWriter;
use flate2::write::{GzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// More than this is read of no body, however small it was compressed.
const MOST_READ: u64 = 256 << 20;

const BROTLI_BUFFER: usize = 16 << 10;

/// The largest window that servers may use (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

/// Takes readable bytes.
pub(super) trait Reader: Send {
    fn read(&mut self, bytes: &[u8]);
}

impl Reader for Vec<u8> {
    fn read(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Decodes one body and hands what it holds to a reader.
pub(super) struct Decoded<R: Reader> {
    decoder: Decoder<R>,
    error: Option<String>,
}

enum Decoder<R: Reader> {
    Plain(Bounded<R>),
    Gzip(Box<GzDecoder<Bounded<R>>>),
    Zlib(Box<ZlibDecoder<Bounded<R>>>),
    Brotli(Box<DecompressorWriter<Bounded<R>>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Bounded<R>>>),
}

impl<R: Reader> Decoded<R> {
    /// For a body with this `Content-Encoding`.
    pub(super) fn new(encoding: Option<&str>, reader: R) -> Self {
        let bounded = Bounded {
            reader: Some(reader),
            left: MOST_READ,
        };
        let word = encoding.unwrap_or_default().trim().to_ascii_lowercase();
        let mut error = None;
        let decoder = match word.as_str() {
            "gzip" | "x-gzip" => Decoder::Gzip(Box::new(GzDecoder::new(bounded))),
            "deflate" => Decoder::Zlib(Box::new(ZlibDecoder::new(bounded))),
            "br" => Decoder::Brotli(Box::new(DecompressorWriter::new(bounded, BROTLI_BUFFER))),
            "zstd" => zstd_decoder(bounded),
            "" | "identity" => Decoder::Plain(bounded),
            other => {
                let shown: String = other.chars().take(40).collect();
                error = Some(format!("the encoding `{shown}` cannot be read"));
                Decoder::Plain(bounded)
            }
        };
        Self { decoder, error }
    }

    /// Takes the next bytes of the body.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let writer = self.decoder.writer();
        // Flushed each time, so that what is there is read when it comes.
        if let Err(error) = writer.write_all(bytes).and_then(|()| writer.flush()) {
            self.error = Some(match self.decoder.bounded().left {
                0 => format!("only the first {} MB were read", MOST_READ >> 20),
                _ => format!("the body cannot be decoded: {error}"),
            });
        }
    }

    /// The reader while the body goes on.
    pub(super) fn reader(&mut self) -> Option<&mut R> {
        self.decoder.bounded().reader.as_mut()
    }

    /// The reader, and what kept it from reading everything.
    pub(super) fn finish(mut self) -> (Option<R>, Option<String>) {
        (self.decoder.bounded().reader.take(), self.error)
    }
}

fn zstd_decoder<R: Reader>(bounded: Bounded<R>) -> Decoder<R> {
    let mut decoder =
        zstd::stream::write::Decoder::new(bounded).expect("a decoder without a dictionary");
    // Cannot fail for a window of this size; a larger one in the body is refused.
    let _ = decoder.window_log_max(ZSTD_WINDOW_LOG);
    Decoder::Zstd(Box::new(decoder))
}

impl<R: Reader> Decoder<R> {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(writer) => writer,
            Self::Gzip(writer) => writer,
            Self::Zlib(writer) => writer,
            Self::Brotli(writer) => writer,
            Self::Zstd(writer) => writer,
        }
    }

    fn bounded(&mut self) -> &mut Bounded<R> {
        match self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

/// Hands on at most so many bytes. Without a reader it takes everything, because decoders flush when they are dropped.
struct Bounded<R: Reader> {
    reader: Option<R>,
    left: u64,
}

impl<R: Reader> Write for Bounded<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(reader) = &mut self.reader else {
            return Ok(bytes.len());
        };
        if bytes.len() as u64 > self.left {
            self.left = 0;
            return Err(io::Error::other("too long"));
        }
        self.left -= bytes.len() as u64;
        reader.read(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;

    const TEXT: &[u8] = b"data: {\"hello\":\"world\"}\n\ndata: [DONE]\n\n";

    fn read(encoding: &str, body: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut decoded = Decoded::new(Some(encoding), Vec::new());
        for byte in body.chunks(1) {
            decoded.take(byte);
        }
        let (reader, error) = decoded.finish();
        (reader.unwrap(), error)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_usual_encoding_is_read_byte_by_byte() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).unwrap();
        // A stored block and an empty last one: there is no encoder here.
        let brotli = [b"\x0b\x13\x80", TEXT, b"\x03"].concat();
        for (encoding, body) in [
            ("identity", TEXT.to_vec()),
            ("gzip", gzip(TEXT)),
            ("GZIP", gzip(TEXT)),
            ("deflate", zlib.finish().unwrap()),
            ("br", brotli),
            ("zstd", zstd::encode_all(TEXT, 3).unwrap()),
        ] {
            assert_eq!(read(encoding, &body), (TEXT.to_vec(), None), "{encoding}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert!(read("snappy", TEXT).1.unwrap().contains("snappy"));
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            let (_, error) = read(encoding, b"this is not compressed at all, or is it?");
            assert!(error.is_some(), "{encoding}");
        }
    }

    #[test]
    fn a_bomb_goes_off_in_no_memory() {
        #[derive(Default)]
        struct Counted(u64);
        impl Reader for Counted {
            fn read(&mut self, bytes: &[u8]) {
                self.0 += bytes.len() as u64;
            }
        }
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..300 {
            encoder.write_all(&zeros).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        let mut decoded = Decoded::new(Some("zstd"), Counted::default());
        decoded.take(&bomb);
        let (counted, error) = decoded.finish();
        assert!(counted.unwrap().0 <= MOST_READ);
        assert_eq!(error.unwrap(), "only the first 256 MB were read");
    }
}
