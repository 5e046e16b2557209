//! The protocol of host and keeper: one order down, then frames up. Lengths first, little endian.
//! Both ends are the same binary, so there is no version to negotiate.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::command::{Bound, Elsewhere};
use crate::exit::Exit;
use crate::guard::{Guard, Surroundings};
use crate::running::Stream;

/// Everything the keeper needs to know. It travels by pipe, so that no secret is seen in an argument list.
#[derive(Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) timeout: Option<Duration>,
    pub(crate) polite_signal: i32,
    pub(crate) grace: Duration,
    pub(crate) stdout: Bound,
    pub(crate) stderr: Bound,
    /// The terminal that the program gets.
    pub(crate) terminal: Option<PathBuf>,
    /// The directory in which a cgroup may be made.
    pub(crate) cgroup_parent: Option<PathBuf>,
    /// The soft limit of open files to give the program, where the host raised its own.
    pub(crate) open_files: Option<u64>,
    /// The permissions of the program, where they are limited. Without its lists where the keeper is handed the rules themselves.
    pub(crate) guard: Option<Guard>,
    /// The way to end something that the program only stands for.
    pub(crate) elsewhere: Option<Elsewhere>,
}

fn encode_guard(guard: &Guard, fields: &mut Fields) {
    let around = &guard.surroundings;
    let lists = [
        &around.readable,
        &around.devices,
        &around.writable,
        &guard.shown,
        &guard.writable,
    ];
    for paths in lists {
        fields.put_list(paths.iter().map(|path| path.as_os_str().as_bytes()));
    }
    fields.put_optional(guard.ports.as_ref().map(|ports| ports.len() as u64));
    for port in guard.ports.iter().flatten() {
        fields.put(u64::from(*port));
    }
}

fn decode_guard(parser: &mut Parser<'_>) -> Option<Guard> {
    let mut paths = || {
        let paths = parser.list()?.into_iter();
        Some(paths.map(|path| OsString::from_vec(path).into()).collect())
    };
    let surroundings = Surroundings {
        readable: paths()?,
        devices: paths()?,
        writable: paths()?,
    };
    let (shown, writable) = (paths()?, paths()?);
    let count = parser.optional()?;
    let port = |_| u16::try_from(parser.number()?).ok();
    Some(Guard {
        surroundings: Arc::new(surroundings),
        shown,
        writable,
        ports: match count {
            Some(count) => Some((0..count).map(port).collect::<Option<_>>()?),
            None => None,
        },
    })
}

/// A message of the keeper.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    Started {
        pid: u32,
        monotonic: Duration,
    },
    Refused {
        errno: i32,
    },
    Output {
        stream: Stream,
        at: Duration,
        offset: u64,
        bytes: Vec<u8>,
    },
    Ended(Exit),
}

/// A length larger than this is a broken stream, not a long message: the kernel refuses longer argument lists.
const LONGEST_ORDER: usize = 256 << 20;
/// The longest thing the keeper sends at once is the end of a stream, which is shorter than this.
const LONGEST_FRAME: usize = 32 << 20;

/// Bytes sent down the control pipe after the order.
pub(crate) const CANCEL: u8 = b'c';
pub(crate) const KILL: u8 = b'k';

impl Order {
    /// With its length in front.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.put_list(self.argv.iter().map(|argument| argument.as_bytes()));
        fields.put_list(
            self.env
                .iter()
                .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]),
        );
        fields.put_bytes(self.cwd.as_os_str().as_bytes());
        fields.put_optional(self.timeout.map(nanos));
        fields.put(self.polite_signal as u64);
        fields.put(nanos(self.grace));
        for bound in [self.stdout, self.stderr] {
            fields.put(bound.head);
            fields.put(bound.tail);
        }
        fields.put_list(self.terminal.iter().map(|path| path.as_os_str().as_bytes()));
        fields.put_list(
            self.cgroup_parent
                .iter()
                .map(|path| path.as_os_str().as_bytes()),
        );
        fields.put_optional(self.open_files);
        fields.put(u64::from(self.guard.is_some()));
        if let Some(guard) = &self.guard {
            encode_guard(guard, &mut fields);
        }
        fields.put_optional(self.elsewhere.as_ref().map(|end| u64::from(end.always)));
        if let Some(Elsewhere { ask, end, .. }) = &self.elsewhere {
            for argv in [ask, end] {
                fields.put_list(argv.iter().map(|argument| argument.as_bytes()));
            }
        }
        let mut message = (fields.0.len() as u64).to_le_bytes().to_vec();
        message.extend(fields.0);
        message
    }

    /// The length of an order, from the eight bytes in front of it.
    pub(crate) fn length(prefix: [u8; 8]) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(prefix))
            .ok()
            .filter(|&length| length <= LONGEST_ORDER)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parser = Parser(bytes);
        let argv = parser.list()?.into_iter().map(OsString::from_vec).collect();
        let env = pairs(parser.list()?);
        let cwd = OsString::from_vec(parser.bytes()?.to_vec()).into();
        let timeout = parser.optional()?.map(Duration::from_nanos);
        let polite_signal = i32::try_from(parser.number()?).ok()?;
        let grace = Duration::from_nanos(parser.number()?);
        let stdout = Bound {
            head: parser.number()?,
            tail: parser.number()?,
        };
        let stderr = Bound {
            head: parser.number()?,
            tail: parser.number()?,
        };
        let terminal = parser
            .list()?
            .pop()
            .map(|path| OsString::from_vec(path).into());
        let cgroup_parent = parser
            .list()?
            .pop()
            .map(|path| OsString::from_vec(path).into());
        let open_files = parser.optional()?;
        let guard = match parser.number()? {
            0 => None,
            _ => Some(decode_guard(&mut parser)?),
        };
        let elsewhere = match parser.optional()? {
            None => None,
            Some(always) => Some(Elsewhere {
                ask: parser.list()?.into_iter().map(OsString::from_vec).collect(),
                end: parser.list()?.into_iter().map(OsString::from_vec).collect(),
                always: always == 1,
            }),
        };
        Some(Self {
            argv,
            env,
            cwd,
            timeout,
            polite_signal,
            grace,
            stdout,
            stderr,
            terminal,
            cgroup_parent,
            open_files,
            guard,
            elsewhere,
        })
    }
}

impl Frame {
    /// Appends the frame with its length in front.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut fields = Fields::default();
        let kind = match self {
            Self::Started { pid, monotonic } => {
                fields.put(u64::from(*pid));
                fields.put(nanos(*monotonic));
                0
            }
            Self::Refused { errno } => {
                fields.put(*errno as u64);
                1
            }
            Self::Output {
                stream,
                at,
                offset,
                bytes,
            } => {
                fields.put(u64::from(*stream == Stream::Stderr));
                fields.put(nanos(*at));
                fields.put(*offset);
                fields.put_bytes(bytes);
                2
            }
            Self::Ended(exit) => {
                exit.encode(&mut fields);
                3
            }
        };
        out.push(kind);
        out.extend((fields.0.len() as u32).to_le_bytes());
        out.extend(fields.0);
    }

    /// Takes the first whole frame off the front of `buffer`. `Ok(None)`: not all of it is there yet.
    pub(crate) fn take(buffer: &mut Vec<u8>) -> Result<Option<Self>, Unreadable> {
        let Some((&[kind, a, b, c, d], rest)) = buffer.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > LONGEST_FRAME {
            return Err(Unreadable);
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Self::decode(kind, payload).ok_or(Unreadable)?;
        buffer.drain(..5 + length);
        Ok(Some(frame))
    }

    fn decode(kind: u8, payload: &[u8]) -> Option<Self> {
        let mut parser = Parser(payload);
        Some(match kind {
            0 => Self::Started {
                pid: u32::try_from(parser.number()?).ok()?,
                monotonic: Duration::from_nanos(parser.number()?),
            },
            1 => Self::Refused {
                errno: parser.number()? as i32,
            },
            2 => Self::Output {
                stream: if parser.number()? == 0 {
                    Stream::Stdout
                } else {
                    Stream::Stderr
                },
                at: Duration::from_nanos(parser.number()?),
                offset: parser.number()?,
                bytes: parser.bytes()?.to_vec(),
            },
            3 => Self::Ended(Exit::decode(&mut parser)?),
            _ => return None,
        })
    }
}

/// The other end sent something that is no frame.
#[derive(Debug)]
pub(crate) struct Unreadable;

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A message being written.
#[derive(Default)]
pub(crate) struct Fields(Vec<u8>);

impl Fields {
    pub(crate) fn put(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn put_optional(&mut self, number: Option<u64>) {
        self.put(u64::from(number.is_some()));
        self.put(number.unwrap_or_default());
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn put_list<'a>(&mut self, items: impl Iterator<Item = &'a [u8]>) {
        let items: Vec<_> = items.collect();
        self.put(items.len() as u64);
        items.into_iter().for_each(|item| self.put_bytes(item));
    }
}

/// A message being read; every method is `None` past the end.
pub(crate) struct Parser<'a>(&'a [u8]);

impl<'a> Parser<'a> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn optional(&mut self) -> Option<Option<u64>> {
        let is_some = self.number()? == 1;
        let number = self.number()?;
        Some(is_some.then_some(number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn list(&mut self) -> Option<Vec<Vec<u8>>> {
        let count = self.number()?;
        (0..count)
            .map(|_| self.bytes().map(<[u8]>::to_vec))
            .collect()
    }
}

fn pairs(flat: Vec<Vec<u8>>) -> Vec<(OsString, OsString)> {
    let mut flat = flat.into_iter().map(OsString::from_vec);
    std::iter::from_fn(|| Some((flat.next()?, flat.next()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            argv: vec!["sh".into(), OsString::from_vec(vec![0xff, b'a'])],
            env: vec![("A".into(), "".into()), ("B".into(), "x=y".into())],
            cwd: "/tmp".into(),
            timeout: Some(Duration::from_millis(1500)),
            polite_signal: 15,
            grace: Duration::from_secs(5),
            stdout: Bound { head: 1, tail: 2 },
            stderr: Bound { head: 3, tail: 4 },
            cgroup_parent: None,
            open_files: Some(1024),
            elsewhere: Some(Elsewhere {
                ask: vec!["engine".into(), "kill".into()],
                end: Vec::new(),
                always: true,
            }),
            terminal: Some("/dev/pts/3".into()),
            guard: Some(Guard {
                surroundings: Arc::new(Surroundings {
                    readable: vec!["/usr".into(), "/etc".into()],
                    devices: vec!["/dev/null".into()],
                    writable: vec!["/dev/shm".into()],
                }),
                shown: vec!["/suite/agent.sh".into()],
                writable: vec!["/tmp/x".into()],
                ports: Some(vec![80, 443]),
            }),
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let message = order().encode();
        let (prefix, body) = message.split_first_chunk().unwrap();
        assert_eq!(Order::length(*prefix), Some(body.len()));
        assert_eq!(Order::decode(body), Some(order()));
    }

    #[test]
    fn a_torn_order_is_refused() {
        let message = order().encode();
        for end in 8..message.len() {
            assert_eq!(Order::decode(&message[8..end]), None);
        }
    }

    #[test]
    fn frames_are_taken_one_by_one_and_only_when_whole() {
        let sent = [
            Frame::Started {
                pid: 7,
                monotonic: Duration::from_nanos(5),
            },
            Frame::Output {
                stream: Stream::Stderr,
                at: Duration::ZERO,
                offset: 9,
                bytes: b"hi".to_vec(),
            },
            Frame::Refused { errno: 2 },
        ];
        let mut wire = Vec::new();
        sent.iter().for_each(|frame| frame.encode(&mut wire));
        let (mut buffer, mut received) = (Vec::new(), Vec::new());
        for byte in wire {
            buffer.push(byte);
            received.extend(Frame::take(&mut buffer).unwrap());
        }
        assert_eq!(received, sent);
        assert!(buffer.is_empty());
    }

    #[test]
    fn noise_is_not_a_frame() {
        assert!(Frame::take(&mut vec![0xff; 64]).is_err());
        assert!(Frame::take(&mut vec![9, 0, 0, 0, 0]).is_err());
    }
}
