//! A part of a chip that is fitted on its own: its memories, controllers and cores, or one of its links.

use super::tables::{TRANSFER, is_memory_table};
use crate::links::Links;
use crate::predict::{Calibrate, FreeParameter, Prediction, Setter, TableModel};
use crate::soc::Soc;

/// Memories, controllers and cores.
pub const CHIP: &str = "chip";

/// The part that a cell of a guide, or a transfer, is about.
pub fn part_of(table: &str, row: &str) -> String {
    let kind = match table {
        _ if is_memory_table(table) => return CHIP.to_owned(),
        "16" | "17" | "18" | "19" | "20" | "21" => "srio",
        "22" | "23" | "24" | "25" | "26" => "hyperlink",
        "10gbe" => "ethernet",
        TRANSFER => row.split(':').next().unwrap_or("").trim(),
        other => other,
    };
    match kind.to_ascii_lowercase().as_str() {
        "edma" | "core" | "load" | "store" | "memory" => CHIP.to_owned(),
        link => format!("links.{link}"),
    }
}

/// A chip of which only the parameters of one part move.
#[derive(Debug, Clone)]
pub struct Part {
    /// The chip.
    pub soc: Soc,
    /// The part: [`CHIP`] or "links.srio" and the like.
    pub name: String,
}

impl Part {
    /// A part of a chip, without what its answers do not depend on: fits copy it often.
    pub fn new(soc: &Soc, name: &str) -> Self {
        let mut soc = soc.clone();
        soc.alternatives.clear();
        if name == CHIP {
            soc.links = Links::default();
        } else {
            soc.cores.clear();
            soc.endpoints.clear();
            soc.bridges.clear();
            if name != "links.tcp" {
                soc.links.tcp.clear();
            }
            let links = &mut soc.links;
            links.pcie = links.pcie.take().filter(|_| name == "links.pcie");
            links.srio = links.srio.take().filter(|_| name == "links.srio");
            links.hyperlink = links.hyperlink.take().filter(|_| name == "links.hyperlink");
            if !matches!(name, "links.ethernet" | "links.tcp") {
                links.ethernet.clear();
            }
        }
        Self { soc, name: name.to_owned() }
    }

    /// The whole chip with the parameters of this part.
    pub fn into_chip(&self, whole: &Soc) -> Soc {
        let values: Vec<f64> = self.free().iter().map(|one| one.value).collect();
        Self { soc: whole.clone(), name: self.name.clone() }.with_free(&values).soc
    }

    fn has(&self, parameter: &str) -> bool {
        if self.name == CHIP {
            return !parameter.starts_with("links.");
        }
        parameter.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl TableModel for Part {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        self.soc.cell(table, row, column)
    }

    fn figure(&self, table: &str, row: &str, column: usize) -> Option<f64> {
        self.soc.figure(table, row, column)
    }
}

impl Calibrate for Part {
    fn free(&self) -> Vec<FreeParameter> {
        let all = if self.name == CHIP { self.soc.free() } else { self.soc.links.free() };
        all.into_iter().filter(|one| self.has(&one.name)).collect()
    }

    fn with_free(&self, values: &[f64]) -> Self {
        let of_chip = self.name == CHIP;
        let all = if of_chip { self.soc.free() } else { self.soc.links.free() };
        let mut given = values.iter();
        let whole: Vec<f64> = all
            .iter()
            .map(
                |one| {
                    if self.has(&one.name) { given.next().copied().unwrap_or(one.value) } else { one.value }
                },
            )
            .collect();
        let soc = if of_chip {
            self.soc.with_free(&whole)
        } else {
            Soc { links: self.soc.links.with_free(&whole), ..self.soc.clone() }
        };
        Self { soc, name: self.name.clone() }
    }
}

/// A chip of which the parameters of all parts move.
#[derive(Debug, Clone)]
pub struct Whole(pub Soc);

impl TableModel for Whole {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        self.0.cell(table, row, column)
    }

    fn figure(&self, table: &str, row: &str, column: usize) -> Option<f64> {
        self.0.figure(table, row, column)
    }
}

impl Calibrate for Whole {
    fn free(&self) -> Vec<FreeParameter> {
        let mut all = self.0.free();
        all.extend(self.0.links.free());
        all
    }

    fn with_free(&self, values: &[f64]) -> Self {
        self.setter()(values)
    }

    fn setter(&self) -> Setter<'_, Self> {
        let (own, chip, links) = (self.0.free().len(), self.0.setter(), self.0.links.setter());
        Box::new(move |values| {
            let (of_chip, of_links) = values.split_at(own.min(values.len()));
            Self(Soc { links: links(of_links), ..chip(of_chip) })
        })
    }
}
