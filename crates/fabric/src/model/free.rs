//! The parameters of memories, EDMA and cores that measurements decide.

use super::levels;
use super::slot::Slot;
use super::tables::set_count;
use crate::predict::{Calibrate, FreeParameter, Setter};
use crate::soc::{At, Dram, Soc};
use crate::units::{Cycles, Ratio};

/// A number of cycles that every bridge, memory or controller of a chip may have.
struct Field {
    /// The table of the file.
    table: &'static str,
    /// The key below a name of the table.
    key: &'static str,
    /// The most that makes sense.
    max: f64,
    names: fn(&Soc) -> Vec<String>,
    get: for<'a> fn(&'a mut Soc, &str) -> Option<&'a mut At<Cycles>>,
}

fn bridges(soc: &Soc) -> Vec<String> {
    soc.bridges.keys().cloned().collect()
}

fn endpoints(soc: &Soc) -> Vec<String> {
    soc.endpoints.keys().cloned().collect()
}

fn controllers(soc: &Soc) -> Vec<String> {
    soc.edma.keys().cloned().collect()
}

fn dram<'a>(soc: &'a mut Soc, name: &str) -> Option<&'a mut Dram> {
    Some(soc.endpoints.get_mut(name)?.value_mut().dram.as_mut()?.value_mut())
}

static FIELDS: [Field; 9] = [
    Field {
        table: "bridges",
        key: "crossing",
        max: 20.0,
        names: bridges,
        get: |soc, name| Some(&mut soc.bridges.get_mut(name)?.value_mut().crossing),
    },
    Field {
        table: "bridges",
        key: "gap",
        max: 4.0,
        names: bridges,
        get: |soc, name| soc.bridges.get_mut(name)?.value_mut().gap.as_mut(),
    },
    Field {
        table: "endpoints",
        key: "port.beat_overhead",
        max: 0.5,
        names: endpoints,
        get: |soc, name| Some(&mut soc.endpoints.get_mut(name)?.value_mut().port.as_mut()?.beat_overhead),
    },
    Field {
        table: "endpoints",
        key: "access_overhead",
        max: 4.0,
        names: endpoints,
        get: |soc, name| soc.endpoints.get_mut(name)?.value_mut().access_overhead.as_mut(),
    },
    Field {
        table: "endpoints",
        key: "dram.queues",
        max: 40.0,
        names: endpoints,
        get: |soc, name| Some(&mut dram(soc, name)?.queues),
    },
    Field {
        table: "endpoints",
        key: "dram.dma_wait",
        max: 100.0,
        names: endpoints,
        get: |soc, name| Some(&mut dram(soc, name)?.dma_wait),
    },
    Field {
        table: "endpoints",
        key: "dram.turnaround",
        max: 60.0,
        names: endpoints,
        get: |soc, name| Some(&mut dram(soc, name)?.turnaround),
    },
    Field {
        table: "endpoints",
        key: "read_latency",
        max: 200.0,
        names: endpoints,
        get: |soc, name| soc.endpoints.get_mut(name)?.value_mut().read_latency.as_mut(),
    },
    Field {
        table: "edma",
        key: "setup",
        max: 1000.0,
        names: controllers,
        get: |soc, name| Some(&mut soc.edma.get_mut(name)?.value_mut().setup),
    },
];

impl Field {
    /// One slot where all places have the same number, else one for each.
    fn slots(&'static self, soc: &Soc, copy: &mut Soc, slots: &mut Vec<Slot>) {
        let places: Vec<(String, Cycles)> = (self.names)(soc)
            .into_iter()
            .filter_map(|name| {
                let cycles = (**(self.get)(copy, &name)?).clone();
                Some((name, cycles))
            })
            .collect();
        let Some((_, first)) = places.first() else { return };
        let same = places.iter().all(|(_, cycles)| cycles.count == first.count);
        let groups: Vec<Vec<(String, Cycles)>> =
            if same { vec![places] } else { places.into_iter().map(|place| vec![place]).collect() };
        for group in groups {
            let Some((name, cycles)) = group.first().cloned() else { continue };
            let shown = if same { "*" } else { &name };
            let mut clocks: Vec<&str> = group.iter().map(|(_, cycles)| cycles.clock.0.as_str()).collect();
            clocks.sort_unstable();
            clocks.dedup();
            let names: Vec<String> = group.iter().map(|(name, _)| name.clone()).collect();
            let count = cycles.count;
            slots.push(Slot {
                name: format!("{}.{shown}.{}", self.table, self.key),
                unit: format!("cycles @ {}", clocks.join(" / ")),
                min: 0.0,
                max: self.max.max(4.0 * count),
                read: Box::new(move |_| Some(count)),
                write: Box::new(move |soc, count| {
                    for name in &names {
                        if let Some(cycles) = (self.get)(soc, name) {
                            set_count(cycles, count);
                        }
                    }
                }),
            });
        }
    }
}

fn slots(soc: &Soc) -> Vec<Slot> {
    let mut slots = Vec::new();
    // The places are reached for writing only; this copy is what they are read from.
    let mut copy = soc.clone();
    for field in &FIELDS {
        field.slots(soc, &mut copy, &mut slots);
    }
    efficiency(soc, &mut slots);
    for (core, of) in &soc.cores {
        for (pipeline, reads) in &of.outstanding {
            slots.push(outstanding(core.clone(), pipeline.clone(), *reads, !of.levels.is_empty()));
        }
    }
    slots.extend(levels::slots(soc));
    slots
}

/// One slot where all dynamic memories have the same efficiency, else one for each.
fn efficiency(soc: &Soc, slots: &mut Vec<Slot>) {
    let places: Vec<(String, f64)> = soc
        .endpoints
        .iter()
        .filter_map(|(name, memory)| Some((name.clone(), memory.dram.as_ref()?.efficiency.value())))
        .collect();
    let Some(&(_, first)) = places.first() else { return };
    let same = places.iter().all(|(_, share)| *share == first);
    let groups: Vec<Vec<(String, f64)>> =
        if same { vec![places] } else { places.into_iter().map(|place| vec![place]).collect() };
    for group in groups {
        let Some((name, share)) = group.first().cloned() else { continue };
        let shown = if same { "*" } else { &name };
        slots.push(Slot {
            name: format!("endpoints.{shown}.dram.efficiency"),
            unit: "x of the bus".into(),
            min: share.min(0.5),
            max: 1.0,
            read: Box::new(move |_| Some(share)),
            write: Box::new(move |soc, share| {
                for (name, _) in &group {
                    if let Some(dram) = dram(soc, name) {
                        *dram.efficiency.value_mut() = Ratio::new(share);
                    }
                }
            }),
        });
    }
}

fn outstanding(core: String, pipeline: String, reads: f64, levels: bool) -> Slot {
    let place = (core.clone(), pipeline.clone());
    Slot {
        name: format!("cores.{core}.outstanding.{pipeline}"),
        unit: "reads".into(),
        min: 1.0,
        // What loads of a large core have under way shows only where levels are measured.
        max: if levels { 4.0 * reads } else { reads.max(32.0) },
        read: Box::new(move |soc| soc.cores.get(&place.0)?.outstanding.get(&place.1).copied()),
        write: Box::new(move |soc, reads| {
            let place = soc.cores.get_mut(&core).and_then(|of| of.value_mut().outstanding.get_mut(&pipeline));
            if let Some(place) = place {
                *place = reads;
            }
        }),
    }
}

/// Those of memories, EDMA and cores; a chip's links have their own.
impl Calibrate for Soc {
    fn free(&self) -> Vec<FreeParameter> {
        slots(self)
            .into_iter()
            .filter_map(|slot| {
                let value = (slot.read)(self)?;
                Some(FreeParameter { name: slot.name, value, min: slot.min, max: slot.max, unit: slot.unit })
            })
            .collect()
    }

    fn with_free(&self, values: &[f64]) -> Self {
        self.setter()(values)
    }

    fn setter(&self) -> Setter<'_, Self> {
        let slots: Vec<Slot> = slots(self).into_iter().filter(|slot| (slot.read)(self).is_some()).collect();
        Box::new(move |values| {
            let mut soc = self.clone();
            for (slot, value) in slots.iter().zip(values) {
                (slot.write)(&mut soc, value.clamp(slot.min, slot.max));
            }
            soc
        })
    }
}
