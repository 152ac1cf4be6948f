//! Frames of a capture, pcap or pcapng, one after the other: no more of a file is in memory than a block.

use super::error::ExplainError;
use pcap_parser::nom::error::ErrorKind;
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Block, LegacyPcapReader, OptionCode, PcapBlockOwned, PcapError, PcapHeader, PcapNGReader};
use std::io::{self, Read};

/// Bytes of the buffer at first: a few hundred packets.
const BUFFER: usize = 1 << 18;
/// Most bytes of a block. Packets have 64 KiB, or 512 KiB where jumbograms of the host are captured; blocks of names and keys may be
/// larger.
const MAX_BLOCK: usize = 1 << 24;
/// Most interfaces of a section: a file that describes more is not one of an existing machine, and each takes memory.
const MAX_INTERFACES: usize = 1 << 16;
/// Nanoseconds in a second.
const SECOND_NS: u128 = 1_000_000_000;
/// What a file of the pcap format begins with: times in microseconds or nanoseconds, in either byte order.
const PCAP: [[u8; 4]; 4] =
    [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0xc3, 0xd4], [0x4d, 0x3c, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d]];
/// What a file of the pcapng format begins with.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Where frames were captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name, or its number in the file.
    pub name: String,
    /// Number of the link type, as the registry of tcpdump.org has them.
    pub link: u32,
    /// Parts of a second that times are counted in.
    pub per_second: u64,
    /// Seconds to add to times.
    pub offset_s: i64,
}

/// A frame as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Number of its interface, counted over the whole file.
    pub interface: usize,
    /// Number of its link type.
    pub link: u32,
    /// When it passed, in nanoseconds since the epoch of the file.
    pub at_ns: u64,
    /// Bytes that it had.
    pub len: u32,
    /// Bytes of it that were kept.
    pub data: &'a [u8],
    /// Whether the host that captured sent it, where the file says so.
    pub outgoing: Option<bool>,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The interfaces, in the order of [`Frame::interface`].
    pub interfaces: Vec<Interface>,
    /// Where the file ends within a block, if it does: whoever wrote it was stopped.
    pub ends_within: Option<u64>,
}

/// Hands every frame to `take`.
///
/// # Errors
///
/// The file cannot be read, is no capture, or has a block that is not what the format demands. A last block that is not whole is no
/// error: [`Contents::ends_within`] tells.
pub fn frames(mut file: impl Read, take: &mut dyn FnMut(&Frame<'_>)) -> Result<Contents, ExplainError> {
    let mut magic = [0; 4];
    let mut len = 0;
    while len < magic.len() {
        match file.read(&mut magic[len..]) {
            Ok(0) => return Err(ExplainError::Unrecognised { found: magic[..len].to_vec() }),
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(ExplainError::Read { offset: len as u64, why }),
        }
    }
    let mut failure = None;
    let whole = Whole { file: io::Cursor::new(magic).chain(file), failure: &mut failure };
    let pcap = PCAP.iter().position(|known| *known == magic).map(|index| index % 2 == 1);
    let mut state = State { contents: Contents::default(), first: 0, pcap, big_endian: false, take };
    let result = if magic == PCAPNG {
        match PcapNGReader::new(BUFFER, whole) {
            Ok(mut reader) => state.all(&mut reader),
            Err(error) => state.refused(0, &error),
        }
    } else if PCAP.contains(&magic) {
        match LegacyPcapReader::new(BUFFER, whole) {
            Ok(mut reader) => state.all(&mut reader),
            Err(error) => state.refused(0, &error),
        }
    } else {
        Err(ExplainError::Unrecognised { found: magic.to_vec() })
    };
    let contents = state.contents;
    match (result, failure) {
        (Err(_), Some((offset, why))) => Err(ExplainError::Read { offset, why }),
        (Err(error), None) => Err(error),
        (Ok(()), _) => Ok(contents),
    }
}

/// Fills the buffer as far as the file goes, so that a short read is no end, and keeps the error that the parser forgets.
struct Whole<'a, R> {
    file: R,
    failure: &'a mut Option<(u64, io::Error)>,
}

impl<R: Read> Read for Whole<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
            match self.file.read(rest) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.failure = Some((len as u64, error));
                    return Err(kind.into());
                }
            }
        }
        Ok(len)
    }
}

struct State<'a> {
    contents: Contents,
    /// Number of the first interface of this section.
    first: usize,
    /// The byte order of a pcap file: whether it is that of the network.
    pcap: Option<bool>,
    /// The same of this section of a pcapng file.
    big_endian: bool,
    take: &'a mut dyn FnMut(&Frame<'_>),
}

impl State<'_> {
    fn all(&mut self, reader: &mut dyn PcapReaderIterator) -> Result<(), ExplainError> {
        let mut capacity = BUFFER;
        loop {
            let offset = reader.consumed() as u64;
            let told = told_len(reader.data(), self.pcap);
            let refill = match reader.next() {
                Ok((len, block)) => {
                    self.block(offset, &block)?;
                    // A block of no bytes would be read for ever.
                    if len == 0 {
                        return Err(malformed(offset, "a block of no bytes"));
                    }
                    reader.consume(len);
                    continue;
                }
                Err(PcapError::Eof) => return Ok(()),
                // A length that cannot be right is no end of the file.
                Err(_) if told.is_some_and(|len| len > MAX_BLOCK) => {
                    return Err(too_long(offset));
                }
                Err(PcapError::Incomplete(_)) => false,
                Err(PcapError::BufferTooSmall) => true,
                Err(error) => return self.refused(offset, &error.to_owned_vec()),
            };
            if refill {
                capacity *= 2;
                if capacity > MAX_BLOCK || !reader.grow(capacity) {
                    return Err(too_long(offset));
                }
            }
            let before = reader.data().len();
            if let Err(error) = reader.refill() {
                let error = error.to_owned_vec();
                return self.refused(offset, &error);
            }
            // The parser asks for more, and there is no more.
            if reader.data().len() == before && reader.reader_exhausted() {
                self.contents.ends_within = (before > 0).then_some(offset);
                return Ok(());
            }
        }
    }

    fn refused(&mut self, offset: u64, error: &PcapError<&[u8]>) -> Result<(), ExplainError> {
        let what = match error {
            PcapError::UnexpectedEof | PcapError::Incomplete(_) if offset > 0 => {
                self.contents.ends_within = Some(offset);
                return Ok(());
            }
            PcapError::UnexpectedEof | PcapError::Incomplete(_) => {
                "the file ends within its first header".to_owned()
            }
            PcapError::ReadError => "the file cannot be read on".to_owned(),
            PcapError::NomError(_, kind) | PcapError::OwnedNomError(_, kind) => why(*kind).to_owned(),
            _ => "a block that is not what the format demands".to_owned(),
        };
        Err(ExplainError::Malformed { offset, what })
    }

    fn block(&mut self, offset: u64, block: &PcapBlockOwned<'_>) -> Result<(), ExplainError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.contents.interfaces.push(legacy_interface(header)),
            PcapBlockOwned::Legacy(packet) => {
                let per_second = u128::from(self.contents.interfaces.first().map_or(1, |it| it.per_second));
                let part = u128::from(packet.ts_usec) * SECOND_NS / per_second;
                let at_ns = u128::from(packet.ts_sec) * SECOND_NS + part;
                let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                self.frame(0, at_ns as u64, packet.origlen, data, None);
            }
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                self.first = self.contents.interfaces.len();
                self.big_endian = section.big_endian();
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                let number = self.contents.interfaces.len();
                if number >= MAX_INTERFACES {
                    return Err(malformed(offset, "more than 65,536 interfaces"));
                }
                let Some(per_second) = resolution(described.if_tsresol) else {
                    return Err(malformed(offset, "an interface whose times have a resolution that is none"));
                };
                let name = match described.if_name() {
                    Some(Ok(name)) => name.trim_end_matches('\0').to_owned(),
                    _ => format!("interface {number}"),
                };
                // The parser takes the offset for little-endian in any section.
                let (link, offset) = (described.linktype.0 as u32, described.if_tsoffset);
                self.contents.interfaces.push(Interface {
                    name,
                    link,
                    per_second,
                    offset_s: if self.big_endian { offset.swap_bytes() } else { offset },
                });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let number = self.first.saturating_add(packet.if_id as usize);
                let Some(interface) = self.contents.interfaces.get(number) else {
                    let what = format!(
                        "a packet of interface {}, which the section does not describe",
                        packet.if_id
                    );
                    return Err(ExplainError::Malformed { offset, what });
                };
                let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                let at_ns = (ticks * SECOND_NS / u128::from(interface.per_second)) as i128
                    + i128::from(interface.offset_s) * SECOND_NS as i128;
                let flags = packet.options.iter().find(|option| option.code == OptionCode(2));
                // Of its 32 bits the lowest two are the direction.
                let place = if self.big_endian { 3 } else { 0 };
                let outgoing = flags.and_then(|flags| match flags.value().get(place)? & 3 {
                    1 => Some(false),
                    2 => Some(true),
                    _ => None,
                });
                let at_ns = at_ns.clamp(0, i128::from(u64::MAX)) as u64;
                self.frame(number, at_ns, packet.origlen, packet.packet_data(), outgoing);
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                // It has no time: nothing can be said of it, but that it was there.
                let number = self.first;
                if self.contents.interfaces.len() > number {
                    self.frame(number, 0, packet.origlen, packet.packet_data(), None);
                }
            }
            PcapBlockOwned::NG(_) => {}
        }
        Ok(())
    }

    fn frame(&mut self, interface: usize, at_ns: u64, len: u32, data: &[u8], outgoing: Option<bool>) {
        let link = self.contents.interfaces.get(interface).map_or(0, |interface| interface.link);
        (self.take)(&Frame { interface, link, at_ns, len: len.max(data.len() as u32), data, outgoing });
    }
}

/// Parts of a second that the option `if_tsresol` tells: a power of ten, or of two if the highest bit is set; `None` beyond what 64
/// bits count.
fn resolution(told: u8) -> Option<u64> {
    let exponent = u32::from(told & 0x7f);
    if told & 0x80 == 0 { 10_u64.checked_pow(exponent) } else { 1_u64.checked_shl(exponent) }
}

fn legacy_interface(header: &PcapHeader) -> Interface {
    let per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
    // The upper bits say whether frames have a check sequence.
    let link = header.network.0 as u32 & 0xffff;
    Interface { name: "interface 0".to_owned(), link, per_second, offset_s: 0 }
}

/// How long the packet at the front says it is, in a pcap file of this byte order.
fn told_len(data: &[u8], pcap: Option<bool>) -> Option<usize> {
    let bytes: [u8; 4] = data.get(8..12)?.try_into().ok()?;
    Some(if pcap? { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) } as usize)
}

fn too_long(offset: u64) -> ExplainError {
    let what = format!("a block of more than {MAX_BLOCK} bytes: its length cannot be right");
    ExplainError::Malformed { offset, what }
}

fn malformed(offset: u64, what: &str) -> ExplainError {
    ExplainError::Malformed { offset, what: what.to_owned() }
}

/// What the parser found, in words.
fn why(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Verify => "a block whose lengths contradict each other",
        ErrorKind::Complete | ErrorKind::Eof => "a block that is shorter than its contents",
        ErrorKind::Tag => "a block that is none of the format",
        _ => "a block that is not what the format demands",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of so many bytes one behind the other.
    fn bytes(fields: &[(usize, u64)], big: bool) -> Vec<u8> {
        let field = |(size, value): &(usize, u64)| match big {
            true => value.to_be_bytes()[8 - size..].to_vec(),
            false => value.to_le_bytes()[..*size].to_vec(),
        };
        fields.iter().flat_map(field).collect()
    }

    /// A section of pcapng with a packet of four bytes, sent a second after the interface's begin of time.
    fn section(big: bool, offset_s: u64) -> Vec<u8> {
        let block = |number: u64, fields: &[(usize, u64)]| {
            let body = bytes(fields, big);
            let len = body.len() as u64 + 12;
            [bytes(&[(4, number), (4, len)], big), body, bytes(&[(4, len)], big)].concat()
        };
        [
            block(0x0a0d_0d0a, &[(4, 0x1a2b_3c4d), (2, 1), (2, 0), (8, u64::MAX)]),
            block(1, &[(2, 1), (2, 0), (4, 65_535), (2, 14), (2, 8), (8, offset_s), (2, 0), (2, 0)]),
            block(
                6,
                &[
                    (4, 0),
                    (4, 0),
                    (4, 1_000_000),
                    (4, 4),
                    (4, 4),
                    (4, 7),
                    (2, 2),
                    (2, 4),
                    (4, 2),
                    (2, 0),
                    (2, 0),
                ],
            ),
        ]
        .concat()
    }

    #[test]
    fn options_are_in_the_byte_order_of_their_section() {
        let file = [section(true, 500), section(false, 600), section(true, 700)].concat();
        let mut found = Vec::new();
        frames(&file[..], &mut |frame| found.push((frame.at_ns, frame.outgoing))).unwrap();
        let expected = [501, 601, 701].map(|second| (second * 1_000_000_000, Some(true)));
        assert_eq!(found, expected);
    }
}
