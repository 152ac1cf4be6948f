//! `linerate fabric mix`: traffic of several kinds at once.

use super::args::{Format, Mix};
use super::builtin;
use super::change::apply;
use super::error::FabricError;
use super::show::figure;
use linerate_fabric::mix::{self, Mixed};
use linerate_lab::report::grid::{Cell, Grid, GridFormat};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How many resources are printed; the rest has room anyway.
const SHOWN: usize = 8;

/// What the command prints.
pub fn run(args: &Mix) -> Result<String, FabricError> {
    let soc = apply(builtin::soc(&args.soc)?, &args.set)?;
    let file = args.flows.display().to_string();
    let malformed = |why: String| FabricError::Malformed { file: file.clone(), why };
    let scenario = mix::load(&builtin::read(&args.flows)?).map_err(|error| malformed(error.to_string()))?;
    let mixed = mix::run(&soc, &scenario).map_err(|error| malformed(error.to_string()))?;
    Ok(match args.format {
        Format::Text => text(&scenario.title, &mixed),
        Format::Json => json_text(&scenario.title, &mixed),
    })
}

fn text(title: &str, mixed: &Mixed) -> String {
    let headers = [
        "flow",
        "alone, MB/s",
        "fluid, MB/s",
        "engine, MB/s",
        "latency alone, ns",
        "mixed, ns",
        "99 %, ns",
        "fullest on its way",
    ];
    let mut grid = Grid::new("mix", title, &headers);
    for flow in &mixed.flows {
        grid.rows.push(vec![
            Cell::text(&flow.name),
            Cell::text(figure(flow.alone.megabytes())),
            Cell::text(figure(flow.fluid.megabytes())),
            Cell::text(figure(flow.engine.megabytes())),
            Cell::number(flow.latency_alone.value(), 0),
            Cell::number(flow.latency.value(), 0),
            Cell::number(flow.latency_99.value(), 0),
            flow.limit
                .as_ref()
                .map_or(Cell::Empty, |(name, used)| Cell::text(format!("{name}, {:.0} %", used * 100.0))),
        ]);
    }
    let mut used = Grid::new("resources", "Resources, the fullest first", &["resource", "busy %"]);
    for (name, share) in mixed.resources.iter().take(SHOWN) {
        used.rows.push(vec![Cell::text(name), Cell::number(share * 100.0, 1)]);
    }
    let mut apart = String::new();
    for flow in &mixed.flows {
        if let Some(why) = flow.apart() {
            let (engine, fluid) = (figure(flow.engine.megabytes()), figure(flow.fluid.megabytes()));
            let _ = writeln!(apart, "{}: {engine} and not {fluid} MB/s: {why}", flow.name);
        }
    }
    if apart.is_empty() {
        let _ = writeln!(apart, "fluid model and engine agree within {:.0} %", mix::AGREE * 100.0);
    }
    format!(
        "{}{apart}\n{}\nall that ends has ended after {:.1} us\n",
        grid.render(GridFormat::Terminal, crate::output::width()),
        used.render(GridFormat::Terminal, crate::output::width()),
        mixed.time.value() / 1e3
    )
}

fn json_text(title: &str, mixed: &Mixed) -> String {
    let flows: Vec<Value> = mixed
        .flows
        .iter()
        .map(|flow| {
            json!({
                "name": flow.name,
                "alone": flow.alone.megabytes(),
                "mixed": flow.fluid.megabytes(),
                "engine": flow.engine.megabytes(),
                "latency_alone_ns": flow.latency_alone.value(),
                "latency_ns": flow.latency.value(),
                "latency_99_ns": flow.latency_99.value(),
                "apart": flow.apart(),
            })
        })
        .collect();
    let resources: Vec<Value> =
        mixed.resources.iter().map(|(name, used)| json!({ "name": name, "used": used })).collect();
    let all = json!({ "title": title, "unit": "MB/s", "time_ns": mixed.time.value(), "flows": flows, "resources": resources });
    format!("{all:#}\n")
}
