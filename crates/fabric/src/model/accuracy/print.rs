//! The accuracy as text.

use super::{Errors, Report};
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        self.lines(f)?;
        self.intervals(f)?;
        self.structures(f)?;
        for (section, text, instead) in &self.contradicted {
            writeln!(f, "section {section} says otherwise: {text} ({instead})")?;
        }
        let (fitted, given) = (self.parameters.len(), self.given);
        writeln!(f, "\n{fitted} fitted parameters, {given} printed latencies taken over as given:")?;
        for parameter in &self.parameters {
            writeln!(f, "  {:<52}{:>10.4} {}", parameter.name, parameter.value, parameter.unit)?;
        }
        Ok(())
    }
}

fn columns(f: &mut fmt::Formatter<'_>, errors: Errors) -> fmt::Result {
    if errors.cells == 0 {
        return write!(f, "{:^23}", "not tested");
    }
    write!(f, "{:>7}{:>7.2}%{:>7.2}%", errors.cells, errors.mean * 100.0, errors.max * 100.0)
}

impl Report {
    /// Predictive error by leave-one-table-out: the mean of each table's own mean, so that no table speaks for all.
    fn headline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.without_table;
        let tested: Vec<f64> = self
            .tables
            .iter()
            .filter(|line| line.without_table.cells > 0)
            .map(|line| line.without_table.mean)
            .collect();
        let mean = tested.iter().sum::<f64>() / tested.len().max(1) as f64;
        writeln!(
            f,
            "Error on tables that the fit has not seen: {:.2} % by cell, {:.2} % by table ({} cells of {}, {} tables of {})\n",
            all.mean * 100.0,
            mean * 100.0,
            all.cells,
            self.all.fitted.cells,
            tested.len(),
            self.tables.len()
        )
    }

    fn lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<12}{:^23}{:^23}{:^23}", "", "its table left out", "alternate rows", "fitted")?;
        write!(f, "{:<12}", "table")?;
        for _ in 0..3 {
            write!(f, "{:>7}{:>8}{:>8}", "cells", "mean", "max")?;
        }
        writeln!(f)?;
        for (at, line) in self.tables.iter().chain(&self.groups).enumerate() {
            if at == self.tables.len() {
                writeln!(f)?;
            }
            write!(f, "{:<12}", line.name)?;
            for errors in [line.without_table, line.alternate, line.fitted] {
                columns(f, errors)?;
            }
            if let Some(goal) = line.goal {
                let met = if line.fitted.mean <= goal { "met" } else { "missed" };
                write!(f, "   goal of the fit {:.0} %: {met}", goal * 100.0)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "\nA cell that hangs on a parameter which only cells left out can decide is not tested.")
    }

    fn intervals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nIntervals of 90 % on cells left out (width from other folds than the cell's):")?;
        let heads = ["cells", "by table", "inside", "share", "p", "mean width"];
        write!(f, "{:<28}", "kind of transfer")?;
        heads.iter().try_for_each(|head| write!(f, "{head:>11}"))?;
        writeln!(f)?;
        for line in &self.calibration {
            let share = line.inside as f64 / line.cells.max(1) as f64;
            writeln!(
                f,
                "{:<28}{:>11}{:>11}{:>11}{:>10.1}%{:>11.3}{:>10.2}%{}",
                line.kind,
                line.cells,
                line.by_table,
                line.inside,
                share * 100.0,
                line.plausible,
                line.width * 100.0,
                if line.holds() { "" } else { "   not compatible with 90 %" }
            )?;
        }
        Ok(())
    }

    fn structures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ensemble.soc.alternatives.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nWhat is open, how much each answer counts, and which measurement would decide:")?;
        for (name, open) in &self.ensemble.soc.alternatives {
            let Some(part) = self.ensemble.parts.iter().find(|part| part.part == open.part()) else {
                continue;
            };
            writeln!(f, "  {name}: {}", open.question)?;
            let told = part.told_apart(name, &open.decides);
            for (answer, weight) in part.answers(name) {
                let says = told.iter().find(|(known, ..)| *known == answer);
                let says = says.map_or_else(String::new, |(_, low, high)| {
                    if high - low < 0.005 * high {
                        format!("{low:.4}")
                    } else {
                        format!("{low:.4} to {high:.4}")
                    }
                });
                writeln!(f, "    {:>5.1} %  {answer:<44} {says}", weight * 100.0)?;
            }
            let left = part.answers(name).iter().filter(|(_, weight)| *weight > 0.02).count();
            let by = if left > 1 { "would decide" } else { "decided; to check" };
            writeln!(f, "    {by}: {}", *open.decides)?;
        }
        Ok(())
    }
}
