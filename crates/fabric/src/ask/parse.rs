//! From the text of a transfer to what it means; what is left over or unknown is refused.

use super::{Access, AskError, Counted, Direction, Edma, FORMS, Rapidio, Sync, Transfer};
use crate::hierarchy::{Question, Work};
use std::str::FromStr;

/// Largest size that is taken: beyond it a prediction says nothing new.
const MAX_BYTES: u64 = 1 << 40;
/// The shortest frame of Ethernet (IEEE 802.3 section 4.2.3.3: minFrameSize).
const LEAST_FRAME: u64 = 64;

/// The parts of a transfer that are left to read.
struct Parts<'a> {
    form: &'static str,
    places: std::vec::IntoIter<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str, form: &'static str) -> Result<Parts<'a>, AskError> {
        let mut places = Vec::new();
        let mut options: Vec<(&str, &str)> = Vec::new();
        for part in text.split([':', ',']) {
            let part = part.trim();
            match part.split_once('=') {
                _ if part.is_empty() => return Err(AskError(format!("an empty part; expected {form}"))),
                Some((key, value)) if options.iter().all(|(known, _)| *known != key) => {
                    options.push((key, value));
                }
                Some((key, _)) => return Err(AskError(format!("'{key}' is given twice"))),
                None => places.push(part),
            }
        }
        Ok(Parts { form, places: places.into_iter(), options })
    }

    fn place(&mut self, what: &str) -> Result<&'a str, AskError> {
        let form = self.form;
        self.places.next().ok_or_else(|| AskError(format!("no {what}; expected {form}")))
    }

    /// The next place if `wanted` says it is one of its kind.
    fn place_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<&'a str> {
        self.places.as_slice().first().filter(|part| wanted(part))?;
        self.places.next()
    }

    fn option(&mut self, key: &str) -> Option<&'a str> {
        let at = self.options.iter().position(|(known, _)| *known == key)?;
        Some(self.options.remove(at).1)
    }

    fn size_option(&mut self, key: &str) -> Result<Option<u64>, AskError> {
        self.option(key).map(|text| size(key, text)).transpose()
    }

    fn count_option(&mut self, key: &str) -> Result<Option<u64>, AskError> {
        let count = |text: &str| match text.parse() {
            Ok(count) if (1..=65_535).contains(&count) => Ok(count),
            _ => Err(AskError(format!("'{text}' for '{key}'; expected a count from 1 to 65535"))),
        };
        self.option(key).map(count).transpose()
    }

    /// Refuses what nobody asked for.
    fn end(mut self) -> Result<(), AskError> {
        let form = self.form;
        if let Some((key, _)) = self.options.first() {
            return Err(AskError(format!("unknown option '{key}'; expected {form}")));
        }
        match self.places.next() {
            Some(part) => Err(AskError(format!("unexpected '{part}'; expected {form}"))),
            None => Ok(()),
        }
    }
}

impl FromStr for Transfer {
    type Err = AskError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((name, form)) = FORMS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(kind.trim()))
        else {
            let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
            return Err(AskError(format!(
                "unknown kind '{kind}'; expected a transfer that starts with one of {}",
                names.join(", ")
            )));
        };
        let mut parts = Parts::split(rest, form)?;
        let transfer = match name {
            "edma" => edma(&mut parts)?,
            "core" => core(&mut parts)?,
            "load" => load(&mut parts)?,
            "store" => store(&mut parts)?,
            "memory" => memory(&mut parts)?,
            "pcie" => pcie(&mut parts)?,
            "srio" => srio(&mut parts)?,
            "hyperlink" => hyperlink(&mut parts)?,
            "ethernet" => ethernet(&mut parts)?,
            _ => Transfer::Tcp { workload: parts.place("workload")?.to_owned() },
        };
        parts.end()?;
        Ok(transfer)
    }
}

fn edma(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let controller = parts.place("transfer controller")?.to_owned();
    let path = parts.place("path FROM->TO")?;
    let (both_ways, ends) = match path.split_once("<->") {
        Some(ends) => (true, Some(ends)),
        None => (false, path.split_once("->")),
    };
    let (from, to) = match ends {
        Some((from, to)) if !from.trim().is_empty() && !to.trim().is_empty() => (from.trim(), to.trim()),
        _ => return Err(AskError(format!("'{path}' is no path; expected FROM->TO or FROM<->TO"))),
    };
    let total = match parts.places.next() {
        Some(text) => Some(size("the size", text)?),
        None => None,
    };
    let sync = match parts.option("sync") {
        None => Sync::A,
        Some(text) => one_of("sync", text, &[("a", Sync::A), ("ab", Sync::Ab)])?,
    };
    let b_count = parts.count_option("bcnt")?.unwrap_or(1);
    let c_count = parts.count_option("ccnt")?.unwrap_or(1);
    let a_bytes = match (parts.size_option("acnt")?, total) {
        (Some(a_bytes), None) => a_bytes,
        (None, Some(total)) if total.is_multiple_of(b_count * c_count) => total / (b_count * c_count),
        (None, None) => 32 << 10,
        (None, Some(total)) => {
            return Err(AskError(format!("{total} B are no {b_count} x {c_count} arrays of one length")));
        }
        (Some(a_bytes), Some(total)) if a_bytes.saturating_mul(b_count * c_count) == total => a_bytes,
        (Some(a_bytes), Some(total)) => {
            return Err(AskError(format!(
                "acnt x bcnt x ccnt is {} B and the size {total} B; expected one of the two, or the same",
                a_bytes.saturating_mul(b_count * c_count)
            )));
        }
    };
    let index_bytes = parts.size_option("index")?;
    let misaligned_bytes = parts.option("align").map_or(Ok(0), |text| whole("align", text))?;
    let (from, to) = (from.to_owned(), to.to_owned());
    Ok(Transfer::Edma(Edma {
        controller,
        from,
        to,
        both_ways,
        sync,
        a_bytes,
        b_count,
        c_count,
        index_bytes,
        misaligned_bytes,
    }))
}

fn core(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let core = parts.place("core")?.to_owned();
    let memory = parts.place("memory")?.to_owned();
    let access = match parts.places.next() {
        None => Access::Single,
        Some(text) => one_of("access", text, &[("single", Access::Single), ("burst", Access::Burst)])?,
    };
    Ok(Transfer::Core { core, memory, access })
}

/// The line of caches that nothing is said of.
const LINE: u64 = 64;

fn load(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let core = parts.place("core")?.to_owned();
    let bytes = size("the working set", parts.place("size of a working set")?)?;
    let access = match parts.places.next() {
        None => Access::Single,
        Some(text) => one_of("access", text, &[("single", Access::Single), ("burst", Access::Burst)])?,
    };
    let work = match (access, parts.size_option("stride")?) {
        (Access::Single, stride) => Work::Chase(stride.unwrap_or(LINE)),
        (Access::Burst, Some(stride)) => Work::Stride(stride),
        (Access::Burst, None) => Work::Gather,
    };
    Ok(Transfer::Set { core, question: Question { work, bytes, cores: 1 } })
}

fn store(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let core = parts.place("core")?.to_owned();
    let bytes = size("the working set", parts.place("size of a working set")?)?;
    Ok(Transfer::Set { core, question: Question { work: Work::Scatter, bytes, cores: 1 } })
}

fn memory(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let core = parts.place("core")?.to_owned();
    let known = [("read", Work::Read(None)), ("fill", Work::Fill), ("copy", Work::Copy(0, 0))];
    let mut work = one_of("what is done", parts.place("read, fill or copy")?, &known)?;
    let bytes = size("the working set", parts.place("size of a working set")?)?;
    let cores = parts.count_option("cores")?.unwrap_or(1) as u32;
    match &mut work {
        Work::Read(width) => *width = parts.size_option("element")?,
        Work::Copy(from, to) => {
            *from = parts.option("from").map_or(Ok(0), |text| whole("from", text))?;
            *to = parts.option("to").map_or(Ok(0), |text| whole("to", text))?;
        }
        _ => {}
    }
    Ok(Transfer::Set { core, question: Question { work, bytes, cores } })
}

const DIRECTIONS: [(&str, Direction); 2] = [("read", Direction::Read), ("write", Direction::Write)];

fn pcie(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let direction = one_of("direction", parts.place("direction")?, &DIRECTIONS)?;
    let payload = parts.place_if(|part| part.starts_with(|first: char| first.is_ascii_digit()));
    let payload_bytes = payload.map_or(Ok(128), |text| size("payload", text))?;
    let (mut both_ways, mut bridged) = (false, false);
    for part in parts.places.by_ref() {
        let flags = [("bidir", true), ("bridged", false)];
        match one_of("mode", part, &flags)? {
            true => both_ways = true,
            false => bridged = true,
        }
    }
    let controller = parts.option("edma").map(str::to_owned);
    Ok(Transfer::Pcie { direction, payload_bytes, both_ways, bridged, controller })
}

fn srio(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let known = [("nread", Rapidio::Nread), ("nwrite", Rapidio::Nwrite), ("type11", Rapidio::Type11)];
    let transaction = one_of("transaction", parts.place("transaction")?, &known)?;
    let number = |part: &str, unit: char| part.to_ascii_lowercase().strip_suffix(unit).map(str::to_owned);
    let is = |part: &str, unit| number(part, unit).is_some_and(|text| text.parse::<f64>().is_ok());
    let payload = parts
        .place_if(|part| part.starts_with(|c: char| c.is_ascii_digit()) && !is(part, 'x') && !is(part, 'g'));
    let payload_bytes = payload.map_or(Ok(4096), |text| size("the size", text))?;
    let lanes = match parts.place_if(|part| is(part, 'x')) {
        None => 4,
        Some(text) => one_of("lanes", text, &[("1x", 1), ("2x", 2), ("4x", 4)])?,
    };
    let lane_mbaud = match parts.place_if(|part| is(part, 'g')) {
        None => 5000,
        Some(text) => {
            let rates = [("1.25g", 1250), ("2.5g", 2500), ("3.125g", 3125), ("5g", 5000), ("6.25g", 6250)];
            one_of("rate", text, &rates)?
        }
    };
    let memory = parts.places.next().unwrap_or("L2").to_owned();
    Ok(Transfer::Srio { transaction, payload_bytes, lanes, lane_mbaud, memory })
}

fn hyperlink(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let direction = one_of("direction", parts.place("direction")?, &DIRECTIONS)?;
    let memory = parts.place("memory")?.to_owned();
    let path = parts.option("path").unwrap_or("near").to_owned();
    Ok(Transfer::Hyperlink { direction, memory, path })
}

fn ethernet(parts: &mut Parts<'_>) -> Result<Transfer, AskError> {
    let text = parts.place("frame size")?;
    let frame_bytes = size("the frame", text)?;
    if frame_bytes < LEAST_FRAME {
        let least = format!(
            "'{text}' for 'the frame'; expected {LEAST_FRAME} B or more, to which Ethernet pads what is shorter"
        );
        return Err(AskError(least));
    }
    let port = parts.option("port").map(str::to_owned);
    let known = [("line", Counted::Line), ("frame", Counted::Frame), ("packet", Counted::Packet)];
    let counted = parts.option("count").map_or(Ok(Counted::Frame), |text| one_of("count", text, &known))?;
    Ok(Transfer::Ethernet { frame_bytes, port, counted })
}

fn one_of<T: Copy>(name: &str, text: &str, known: &[(&str, T)]) -> Result<T, AskError> {
    match known.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(AskError(format!("'{text}' for '{name}'; expected one of {}", words.join(", "))))
        }
    }
}

fn whole(name: &str, text: &str) -> Result<u64, AskError> {
    match text.parse() {
        Ok(number) if number <= 65_535 => Ok(number),
        _ => Err(AskError(format!("'{text}' for '{name}'; expected a whole number up to 65535"))),
    }
}

/// A size: a whole number of bytes with B, KiB, MiB, GiB, kB, MB or GB, or without a unit.
fn size(name: &str, text: &str) -> Result<u64, AskError> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kib" | "k" => Some(1 << 10),
        "mib" | "m" => Some(1 << 20),
        "gib" | "g" => Some(1 << 30),
        "kb" => Some(1000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    match bytes {
        Some(bytes) if (1..=MAX_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(AskError(format!(
            "'{text}' for '{name}'; expected a size such as 64, 128B, 32KiB or 1MiB, at most 1TiB"
        ))),
    }
}
