//! The parameters of the levels, the translation and the loops of cores that measurements decide.

use super::slot::Slot;
use crate::soc::{At, Core, CoreRead, Level, Loops, Soc, Tlb};
use crate::units::{Bytes, BytesPerSecond, Cycles, Ratio};

/// A number of a part of a core.
struct Field<T> {
    key: &'static str,
    unit: &'static str,
    /// The range of a fit around the value, between the least and the most that make sense.
    around: Around,
    read: fn(&T) -> Option<f64>,
    write: fn(&mut T, f64),
}

/// How far a fit may move a number. A fit finds its way only where the range is not much larger than the number.
#[derive(Clone, Copy)]
enum Around {
    /// By this factor up and down.
    Factor(f64),
    /// From nothing to four times what it is, and to this at least.
    Nothing(f64),
    /// Within fixed bounds.
    Fixed(f64, f64),
}

impl Around {
    fn bounds(self, value: f64) -> (f64, f64) {
        match self {
            Around::Factor(factor) => (value / factor, value * factor),
            Around::Nothing(most) => (0.0, most.max(4.0 * value)),
            Around::Fixed(least, most) => (least.min(value), most.max(value)),
        }
    }
}

/// Sets what is there.
fn put<T>(place: &mut Option<At<T>>, value: T) {
    if let Some(place) = place {
        *place.value_mut() = value;
    }
}

fn rate(rate: &Option<At<BytesPerSecond>>) -> Option<f64> {
    rate.as_ref().map(|rate| rate.megabytes())
}

/// From megabytes a second.
fn to_rate(megabytes: f64) -> BytesPerSecond {
    BytesPerSecond::new(megabytes * 1e6)
}

fn count(cycles: &mut At<Cycles>, value: f64) {
    cycles.value_mut().count = value;
}

/// Times that may be nothing: cycles.
const TIME: Around = Around::Nothing(8.0);
/// Rates and sizes.
const LARGE: Around = Around::Factor(4.0);
/// Unevenness.
const UNEVEN: Around = Around::Fixed(0.0, 0.8);

static LEVEL: [Field<Level>; 11] = [
    Field {
        key: "size",
        unit: "KiB",
        around: LARGE,
        read: |level| level.size.as_ref().map(|size| size.value() / 1024.0),
        write: |level, size| put(&mut level.size, Bytes::new(size * 1024.0)),
    },
    Field {
        key: "unevenness",
        unit: "x",
        around: UNEVEN,
        read: |level| level.unevenness.as_ref().map(|uneven| uneven.value()),
        write: |level, uneven| put(&mut level.unevenness, Ratio::new(uneven)),
    },
    Field {
        key: "conflict",
        unit: "B",
        around: Around::Fixed(64.0, 4096.0),
        read: |level| level.conflict.as_ref().map(|conflict| conflict.value()),
        write: |level, conflict| put(&mut level.conflict, Bytes::new(conflict)),
    },
    Field {
        key: "read",
        unit: "MB/s",
        around: LARGE,
        read: |level| Some(level.read.megabytes()),
        write: |level, megabytes| *level.read.value_mut() = to_rate(megabytes),
    },
    Field {
        key: "fill",
        unit: "MB/s",
        around: LARGE,
        read: |level| Some(level.fill.megabytes()),
        write: |level, megabytes| *level.fill.value_mut() = to_rate(megabytes),
    },
    Field {
        key: "copy",
        unit: "MB/s",
        around: LARGE,
        read: |level| Some(level.copy.megabytes()),
        write: |level, megabytes| *level.copy.value_mut() = to_rate(megabytes),
    },
    Field {
        key: "read_all",
        unit: "MB/s",
        around: LARGE,
        read: |level| rate(&level.read_all),
        write: |level, megabytes| put(&mut level.read_all, to_rate(megabytes)),
    },
    Field {
        key: "fill_all",
        unit: "MB/s",
        around: LARGE,
        read: |level| rate(&level.fill_all),
        write: |level, megabytes| put(&mut level.fill_all, to_rate(megabytes)),
    },
    Field {
        key: "copy_all",
        unit: "MB/s",
        around: LARGE,
        read: |level| rate(&level.copy_all),
        write: |level, megabytes| put(&mut level.copy_all, to_rate(megabytes)),
    },
    Field {
        key: "per_line",
        unit: "cycles",
        around: TIME,
        read: |level| Some(level.per_line.count),
        write: |level, value| count(&mut level.per_line, value),
    },
    Field {
        key: "per_conflict",
        unit: "cycles",
        around: TIME,
        read: |level| Some(level.per_conflict.count),
        write: |level, value| count(&mut level.per_conflict, value),
    },
];

static TLB: [Field<Tlb>; 3] = [
    Field {
        key: "entries",
        unit: "pages",
        around: LARGE,
        read: |tlb| Some(*tlb.entries),
        write: |tlb, entries| *tlb.entries.value_mut() = entries,
    },
    Field {
        key: "unevenness",
        unit: "x",
        around: UNEVEN,
        read: |tlb| tlb.unevenness.as_ref().map(|uneven| uneven.value()),
        write: |tlb, uneven| put(&mut tlb.unevenness, Ratio::new(uneven)),
    },
    Field {
        key: "miss",
        unit: "cycles",
        around: TIME,
        read: |tlb| Some(tlb.miss.count),
        write: |tlb, value| count(&mut tlb.miss, value),
    },
];

/// A time of the loops.
const fn of_loops(
    key: &'static str,
    read: fn(&Loops) -> Option<f64>,
    write: fn(&mut Loops, f64),
) -> Field<Loops> {
    Field { key, unit: "cycles", around: TIME, read, write }
}

static LOOPS: [Field<Loops>; 9] = [
    of_loops("read", |own| Some(own.read.count), |own, value| count(&mut own.read, value)),
    of_loops("fill", |own| Some(own.fill.count), |own, value| count(&mut own.fill, value)),
    of_loops("copy", |own| Some(own.copy.count), |own, value| count(&mut own.copy, value)),
    of_loops("element", |own| Some(own.element.count), |own, value| count(&mut own.element, value)),
    of_loops(
        "wide_element",
        |own| Some(own.wide_element.count),
        |own, value| count(&mut own.wide_element, value),
    ),
    of_loops("gather", |own| Some(own.gather.count), |own, value| count(&mut own.gather, value)),
    of_loops("scatter", |own| Some(own.scatter.count), |own, value| count(&mut own.scatter, value)),
    of_loops(
        "source_split",
        |own| Some(own.source_split.count),
        |own, value| count(&mut own.source_split, value),
    ),
    of_loops(
        "destination_split",
        |own| Some(own.destination_split.count),
        |own, value| count(&mut own.destination_split, value),
    ),
];

static READ: [Field<CoreRead>; 1] = [Field {
    key: "latency",
    unit: "cycles",
    around: LARGE,
    read: |read| read.latency.as_ref().map(|latency| latency.count),
    write: |read, value| {
        if let Some(latency) = &mut read.latency {
            count(latency, value);
        }
    },
}];

/// Finds a part of a core, by its place among its kind.
type Part<T> = for<'a> fn(&'a mut Core, usize) -> Option<&'a mut T>;

/// A slot for each field of one part, which `part` finds in a core.
fn of<T: 'static>(
    fields: &'static [Field<T>],
    core: &str,
    path: &str,
    (part, at): (Part<T>, usize),
    found: &T,
    slots: &mut Vec<Slot>,
) {
    for field in fields {
        let Some(value) = (field.read)(found) else { continue };
        let (min, max) = field.around.bounds(value);
        let name = core.to_owned();
        slots.push(Slot {
            name: format!("cores.{core}.{path}.{}", field.key),
            unit: field.unit.to_owned(),
            min,
            max,
            read: Box::new(move |_| Some(value)),
            write: Box::new(move |soc, value| {
                let core = soc.cores.get_mut(&name).map(At::value_mut);
                if let Some(part) = core.and_then(|core| part(core, at)) {
                    (field.write)(part, value);
                }
            }),
        });
    }
}

/// The parameters of cores whose levels the chip describes; none of others.
pub(super) fn slots(soc: &Soc) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (name, core) in soc.cores.iter().filter(|(_, core)| !core.levels.is_empty()) {
        for (at, (level, found)) in core.levels.iter().enumerate() {
            let part: Part<_> = |core, at| core.levels.values_mut().nth(at).map(At::value_mut);
            of(&LEVEL, name, &format!("levels.{level}"), (part, at), found, &mut slots);
        }
        for (at, (source, found)) in core.reads.iter().enumerate() {
            if core.levels.contains_key(source) {
                let part: Part<_> = |core, at| core.reads.values_mut().nth(at).map(At::value_mut);
                of(&READ, name, &format!("reads.{source}"), (part, at), found, &mut slots);
            }
        }
        for (at, (tlb, found)) in core.tlbs.iter().enumerate() {
            let part: Part<_> = |core, at| core.tlbs.values_mut().nth(at).map(At::value_mut);
            of(&TLB, name, &format!("tlbs.{tlb}"), (part, at), found, &mut slots);
        }
        if let Some(found) = &core.loops {
            let part: Part<_> = |core, _| core.loops.as_mut().map(At::value_mut);
            of(&LOOPS, name, "loops", (part, 0), found, &mut slots);
        }
    }
    slots
}
