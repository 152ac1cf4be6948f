//! `linerate fabric table`.

use super::args::Table;
use super::error::FabricError;
use super::{builtin, compare, known};
use linerate_fabric::guide::Guide;

/// What the command prints.
pub fn run(args: &Table) -> Result<String, FabricError> {
    let soc = builtin::soc(&args.soc)?;
    let guide = builtin::guide(&args.guide)?;
    let Some(table) = guide.tables.iter().find(|table| table.id.eq_ignore_ascii_case(&args.table)) else {
        return Err(FabricError::value("N", &args.table, format!("one of {}", names(&guide))));
    };
    let report = known::report(&soc, &guide)?;
    Ok(compare::grid(table, &compare::pairs(table, &report.ensemble))
        .render(args.format, crate::output::width()))
}

/// The names of all tables of a guide: runs of numbers as `1 to 26`.
fn names(guide: &Guide) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut run: Option<(u32, u32)> = None;
    let flush = |names: &mut Vec<String>, run: &mut Option<(u32, u32)>| match run.take() {
        Some((first, last)) if first == last => names.push(first.to_string()),
        Some((first, last)) => names.push(format!("{first} to {last}")),
        None => {}
    };
    for table in &guide.tables {
        match (table.id.parse::<u32>(), run) {
            (Ok(number), Some((first, last))) if last.checked_add(1) == Some(number) => {
                run = Some((first, number))
            }
            (Ok(number), _) => {
                flush(&mut names, &mut run);
                run = Some((number, number));
            }
            (Err(_), _) => {
                flush(&mut names, &mut run);
                names.push(table.id.clone());
            }
        }
    }
    flush(&mut names, &mut run);
    names.join(", ")
}
