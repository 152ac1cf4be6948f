//! What a board's offloads save, in the form of seed 004's tables: what `cargo xtask board NAME offloads` measured.
//!
//! Rates are the emulator's. The load of a core is given in instructions for a byte of payload: idle time is the emulator's
//! host's.

use super::plan::{Direction, Protocol, Setting, Workload};
use super::tables::{SEED, SeedTable};
use crate::report::grid::{Cell, Grid};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;

/// What a use case took with one setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Taken {
    /// The use case.
    pub workload: Workload,
    /// The setting.
    pub setting: Setting,
    /// Payload that arrived in Mbit/s, by the emulator's clock.
    pub mbps: f64,
    /// Datagrams that were lost, in percent.
    pub lost_percent: Option<f64>,
    /// Instructions for a byte of payload, of all cores.
    pub instructions: f64,
    /// The same of each core.
    pub by_core: Vec<f64>,
}

/// A board's table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoardTable {
    /// The board.
    pub name: String,
    /// When it was measured.
    pub date: String,
    /// What was measured.
    pub rows: Vec<Taken>,
    /// What its interface has not.
    pub missing: Vec<Setting>,
}

fn setting(name: &str) -> Result<Setting> {
    Ok(match name {
        "off" => Setting::Off,
        "checksum" => Setting::Checksum,
        "queues" => Setting::Queues,
        "segmentation" => Setting::Segmentation,
        "coalescing" => Setting::Coalescing,
        other => bail!("no setting {other:?}"),
    })
}

/// Reads `offloads` of a board in `bench.json`; `None` where it was not measured.
pub fn parse(name: &str, board: &Value) -> Result<Option<BoardTable>> {
    let Some(all) = board.get("offloads").filter(|all| !all.is_null()) else { return Ok(None) };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let rows = all["rows"].as_array().context("expected an array `rows`")?;
    let missing = all["missing"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(Some(BoardTable {
        name: name.to_owned(),
        date: text(&all["date"]).unwrap_or_else(|| "no date".to_owned()),
        rows: rows.iter().map(taken).collect::<Result<_>>()?,
        missing: missing.map(setting).collect::<Result<_>>()?,
    }))
}

fn taken(row: &Value) -> Result<Taken> {
    let word = |key: &str| row[key].as_str().with_context(|| format!("expected a text `{key}`"));
    let number = |key: &str| row[key].as_f64().with_context(|| format!("expected a number `{key}`"));
    let protocol = match word("protocol")? {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        other => bail!("no protocol {other:?}"),
    };
    let direction = match word("direction")? {
        "rx" => Direction::Rx,
        "tx" => Direction::Tx,
        other => bail!("no direction {other:?}"),
    };
    let streams = row["streams"].as_u64().and_then(|count| u16::try_from(count).ok());
    let streams = streams.context("expected a number `streams`")?;
    let by_core = row["instructions_per_byte_by_core"].as_array().into_iter().flatten();
    Ok(Taken {
        workload: Workload { protocol, direction, streams },
        setting: setting(word("setting")?)?,
        mbps: number("mbps")?,
        lost_percent: row["lost_percent"].as_f64(),
        instructions: number("instructions_per_byte")?,
        by_core: by_core.filter_map(Value::as_f64).collect(),
    })
}

impl BoardTable {
    fn row(&self, workload: Workload, setting: Setting) -> Option<&Taken> {
        self.rows.iter().find(|row| row.workload == workload && row.setting == setting)
    }

    fn workloads(&self, case: Option<(Protocol, Direction)>) -> Vec<Workload> {
        let mut all = Vec::new();
        for row in &self.rows {
            let workload = row.workload;
            if case.is_none_or(|case| case == (workload.protocol, workload.direction))
                && !all.contains(&workload)
            {
                all.push(workload);
            }
        }
        all
    }

    /// All of it in one table that fits a terminal.
    pub fn in_short(&self) -> Grid {
        let headers = [
            "use case",
            "setting",
            "Mbit/s",
            "instructions a byte",
            "of each core",
            "Mbit/s",
            "instructions",
        ];
        let title = format!(
            "Tables 1 to 7 in short, changes against \"CSO disabled\". {}, in the emulator",
            self.name
        );
        let mut grid = Grid::new(format!("{}-short", self.name), title, &headers);
        for workload in self.workloads(None) {
            for setting in Setting::ALL {
                let Some(row) = self.row(workload, setting) else { continue };
                let mut cells = vec![Cell::text(workload.to_string()), Cell::text(setting.title())];
                cells.extend(figures(row));
                cells.extend(match setting {
                    Setting::Off => [Cell::Empty, Cell::Empty],
                    _ => self.changes(workload, Setting::Off, setting),
                });
                grid.rows.push(cells);
            }
        }
        for setting in &self.missing {
            let mut cells = vec![Cell::text("all"), Cell::text(setting.title()), Cell::Empty, Cell::Empty];
            cells.push(Cell::text(NOT_THERE));
            cells.resize(headers.len(), Cell::Empty);
            grid.rows.push(cells);
        }
        grid.notes = self.notes();
        grid
    }

    /// The document's tables, those of which both settings were measured, and what the interface has not.
    pub fn tables(&self) -> Vec<Grid> {
        let is_measured = |table: &&SeedTable| {
            table.settings.iter().all(|setting| self.rows.iter().any(|row| row.setting == *setting))
        };
        let mut grids: Vec<Grid> =
            SEED.iter().filter(is_measured).map(|table| self.seed_table(table)).collect();
        grids.push(self.in_short());
        grids
    }

    fn seed_table(&self, table: &SeedTable) -> Grid {
        let mut headers = vec!["use case".to_owned()];
        for setting in table.settings {
            let name = setting.title();
            headers.push(format!("{name}: emulator, Mbit/s"));
            headers.push(format!("{name}: instructions a byte"));
            headers.push(format!("{name}: of each core"));
        }
        headers.extend(["throughput", "instructions", "published"].map(str::to_owned));
        let mut grid = Grid {
            id: format!("{}-table-{}", self.name, table.number),
            title: format!("Table {}: {}. {}", table.number, table.title, self.name),
            headers,
            ..Grid::default()
        };
        for workload in self.workloads(table.case) {
            let mut cells = vec![Cell::text(workload.to_string())];
            for setting in table.settings {
                let row = self.row(workload, *setting);
                cells.extend(row.map_or([Cell::Empty, Cell::Empty, Cell::Empty], figures));
            }
            let (first, last) = (table.settings[0], table.settings[table.settings.len() - 1]);
            cells.extend(self.changes(workload, first, last));
            // The document's cells are pictures.
            cells.push(Cell::Empty);
            grid.rows.push(cells);
        }
        grid.notes = self.notes();
        grid
    }

    fn changes(&self, workload: Workload, from: Setting, to: Setting) -> [Cell; 2] {
        let (Some(from), Some(to)) = (self.row(workload, from), self.row(workload, to)) else {
            return [Cell::Empty, Cell::Empty];
        };
        let change = |before: f64, after: f64| match before > 0.0 {
            true => Cell::Percent(after / before - 1.0),
            false => Cell::Empty,
        };
        [change(from.mbps, to.mbps), change(from.instructions, to.instructions)]
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "{}: rates are the emulator's, and say nothing of the chip; instructions are the firmware's. UDP comes and goes at \
             the rate that the client asks for.",
            self.date
        )];
        let lost = |row: &&Taken| row.lost_percent.is_some_and(|lost| lost >= 0.05);
        notes.extend(self.rows.iter().filter(lost).map(|row| {
            let lost = row.lost_percent.unwrap_or_default();
            format!("{}, {}: {lost:.2} % of datagrams lost.", row.workload, row.setting.title())
        }));
        notes
    }
}

const NOT_THERE: &str = "not in this interface";

fn figures(row: &Taken) -> [Cell; 3] {
    let cores: Vec<String> = row.by_core.iter().map(|each| format!("{each:.2}")).collect();
    let cores = if cores.is_empty() { Cell::Empty } else { Cell::text(cores.join(" / ")) };
    [Cell::number(row.mbps, 0), Cell::number(row.instructions, 2), cores]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::grid::GridFormat;

    fn board() -> Value {
        let row = |protocol: &str, streams: u16, setting: &str, mbps: f64, cores: &[f64]| {
            serde_json::json!({"protocol": protocol, "direction": "rx", "streams": streams, "setting": setting, "mbps": mbps,
                "lost_percent": (protocol == "udp").then_some(0.5), "instructions_per_byte": cores.iter().sum::<f64>(),
                "instructions_per_byte_by_core": cores})
        };
        serde_json::json!({"offloads": {"date": "2026-11-24", "missing": ["segmentation", "coalescing"], "rows": [
            row("tcp", 1, "off", 1000.0, &[2.0]), row("tcp", 1, "checksum", 1100.0, &[1.5]),
            row("tcp", 4, "off", 900.0, &[2.0]), row("tcp", 4, "checksum", 1000.0, &[1.5]),
            row("tcp", 4, "queues", 3000.0, &[0.5, 0.5, 0.25, 0.25]), row("udp", 1, "off", 100.0, &[4.0])]}})
    }

    #[test]
    fn tables_of_a_board() {
        let table = parse("zcu", &board()).unwrap().unwrap();
        let short = table.in_short();
        assert_eq!(short.rows.len(), 6 + 2);
        assert_eq!(
            short.rows[4][3..],
            [
                Cell::number(1.5, 2),
                Cell::text("0.50 / 0.50 / 0.25 / 0.25"),
                Cell::Percent(3_000.0 / 900.0 - 1.0),
                Cell::Percent(-0.25)
            ]
        );
        assert_eq!(
            (&short.rows[7][1], &short.rows[7][4]),
            (&Cell::text("CSO, TSO, GRO"), &Cell::text("not in this interface"))
        );
        let text = short.render(GridFormat::Terminal, None);
        assert!(text.contains("UDP RX, 1 stream, CSO disabled: 0.50 % of datagrams lost."), "{text}");
        let width = text.lines().skip(1).take(4).map(|line| line.chars().count()).max();
        assert!(width.is_some_and(|width| width <= 120), "{width:?}\n{text}");
        let all = table.tables();
        assert_eq!(all.len(), 8, "seven tables, and all in short");
        let third = &all[2];
        assert!(third.title.starts_with("Table 3: Performance Comparison of CSO"), "{}", third.title);
        assert_eq!(third.rows.len(), 2);
        assert_eq!(third.rows[0].len(), third.headers.len());
        assert_eq!(third.rows[0][7], Cell::Percent(1_100.0 / 1_000.0 - 1.0));
        assert_eq!(third.rows[0].last(), Some(&Cell::Empty));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert_eq!(parse("a", &serde_json::json!({})).unwrap(), None);
        assert_eq!(parse("a", &serde_json::json!({"offloads": null})).unwrap(), None);
        let check = |change: &dyn Fn(&mut Value), expected: &str| {
            let mut wrong = board();
            change(&mut wrong["offloads"]);
            assert!(parse("a", &wrong).unwrap_err().to_string().contains(expected), "{expected}");
        };
        check(&|all| all["rows"] = 7.into(), "expected an array `rows`");
        check(&|all| all["rows"][0]["setting"] = "fast".into(), "no setting \"fast\"");
        check(&|all| all["rows"][0]["protocol"] = "sctp".into(), "no protocol \"sctp\"");
        check(&|all| all["rows"][0]["direction"] = "up".into(), "no direction \"up\"");
        check(&|all| all["rows"][0]["streams"] = 70_000.into(), "expected a number `streams`");
        check(&|all| all["rows"][0]["mbps"] = Value::Null, "expected a number `mbps`");
    }
}
