//! The parameters of memories, EDMA and cores that measurements decide.

use super::tables::set_count;
use crate::predict::{Calibrate, FreeParameter};
use crate::soc::Soc;
use crate::units::{Cycles, Ratio};

/// Reads a parameter from a chip that has it.
type Read = Box<dyn Fn(&Soc) -> Option<f64>>;
/// Writes it to every place where it stands.
type Write = Box<dyn Fn(&mut Soc, f64)>;

/// One parameter that may stand at several places of the file, always with the same value.
struct Slot {
    name: String,
    unit: String,
    min: f64,
    max: f64,
    read: Read,
    write: Write,
}

fn cycles_slot(
    name: &str,
    unit: &str,
    max: f64,
    read: impl Fn(&Soc) -> Option<Cycles> + 'static,
    write: impl Fn(&mut Soc, f64) + 'static,
) -> Slot {
    Slot {
        name: name.into(),
        unit: format!("cycles @ {unit}"),
        min: 0.0,
        max,
        read: Box::new(move |soc| read(soc).map(|cycles| cycles.count)),
        write: Box::new(write),
    }
}

/// A parameter of the DRAMs of a chip, in cycles.
macro_rules! dram_slot {
    ($field:ident, $unit:literal, $max:literal) => {
        cycles_slot(
            concat!("endpoints.*.dram.", stringify!($field)),
            $unit,
            $max,
            |soc| soc.endpoints.values().find_map(|e| e.dram.as_ref().map(|dram| (*dram.$field).clone())),
            |soc, count| {
                for endpoint in soc.endpoints.values_mut() {
                    if let Some(dram) = &mut endpoint.value_mut().dram {
                        set_count(&mut dram.value_mut().$field, count);
                    }
                }
            },
        )
    };
}

/// A parameter of all bridges.
macro_rules! bridge_slot {
    ($field:ident, $max:literal) => {
        cycles_slot(
            concat!("bridges.*.", stringify!($field)),
            "dsp3",
            $max,
            |soc| soc.bridges.values().next().map(|bridge| (*bridge.$field).clone()),
            |soc, count| {
                for bridge in soc.bridges.values_mut() {
                    set_count(&mut bridge.value_mut().$field, count);
                }
            },
        )
    };
}

fn slots(soc: &Soc) -> Vec<Slot> {
    let mut slots = vec![
        bridge_slot!(crossing, 20.0),
        bridge_slot!(gap, 4.0),
        cycles_slot(
            "endpoints.*.port.beat_overhead",
            "dsp3",
            0.5,
            |soc| {
                soc.endpoints.values().find_map(|e| e.port.as_ref().map(|port| (*port.beat_overhead).clone()))
            },
            |soc, count| {
                for endpoint in soc.endpoints.values_mut() {
                    if let Some(port) = &mut endpoint.value_mut().port {
                        set_count(&mut port.beat_overhead, count);
                    }
                }
            },
        ),
        cycles_slot(
            "endpoints.*.access_overhead",
            "dsp",
            4.0,
            |soc| soc.endpoints.values().find_map(|e| e.access_overhead.as_ref().map(|at| (**at).clone())),
            |soc, count| {
                for endpoint in soc.endpoints.values_mut() {
                    if let Some(overhead) = &mut endpoint.value_mut().access_overhead {
                        set_count(overhead, count);
                    }
                }
            },
        ),
        dram_slot!(queues, "clock of the queues", 40.0),
        dram_slot!(dma_wait, "ddr", 100.0),
        dram_slot!(turnaround, "ddr", 60.0),
        Slot {
            name: "endpoints.*.dram.efficiency".into(),
            unit: "x of the bus".into(),
            min: 0.5,
            max: 1.0,
            read: Box::new(|soc| {
                soc.endpoints.values().find_map(|e| e.dram.as_ref().map(|dram| dram.efficiency.value()))
            }),
            write: Box::new(|soc, share| {
                for endpoint in soc.endpoints.values_mut() {
                    if let Some(dram) = &mut endpoint.value_mut().dram {
                        *dram.value_mut().efficiency.value_mut() = Ratio::new(share);
                    }
                }
            }),
        },
    ];
    for (core, of) in &soc.cores {
        for pipeline in of.outstanding.keys() {
            slots.push(outstanding(core.clone(), pipeline.clone()));
        }
    }
    slots
}

fn outstanding(core: String, pipeline: String) -> Slot {
    let place = (core.clone(), pipeline.clone());
    Slot {
        name: format!("cores.{core}.outstanding.{pipeline}"),
        unit: "reads".into(),
        min: 1.0,
        max: 32.0,
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
        let mut soc = self.clone();
        let present = slots(self).into_iter().filter(|slot| (slot.read)(self).is_some());
        for (slot, value) in present.zip(values) {
            (slot.write)(&mut soc, value.clamp(slot.min, slot.max));
        }
        soc
    }
}
