//! One planted mistake gives the finding of its rule, and no other.

use std::collections::BTreeMap;

use super::{CLEAN, clean, shown};
use crate::audit::{Expected, run};
use crate::guide::{Cell, CellAt, Guide, load};

/// Replaces texts in the clean guide, each there exactly once, and expects these findings.
pub fn check(edits: &[(&str, &str)], expected: &[&str]) {
    let mut text = CLEAN.to_owned();
    for (from, to) in edits {
        assert_eq!(text.matches(from).count(), 1, "`{from}` has to be there once");
        text = text.replace(from, to);
    }
    check_guide(&load(&text).unwrap(), expected);
}

pub fn check_guide(guide: &Guide, expected: &[&str]) {
    let findings = run(guide, None);
    let ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids, expected, "\n{}", shown(&findings));
    for finding in &findings {
        assert!(!finding.arithmetic.is_empty() && !finding.resolve.is_empty());
    }
}

#[test]
fn formulas() {
    check(
        &[("printed = \"12800\"", "printed = \"12700\"")],
        &["formula:1/(64 bits) x 1600 MT/s = 12800 MB/s"],
    );
    check(
        &[("[\"Engine\", \"6400\", \"(128", "[\"Engine\", \"6500\", \"(128")],
        &["formula-cell:1/Engine/1"],
    );
    let text = "2.2/25Gbps x (8/9) x 32/(32+8) = 17.78Gbps";
    check(&[("printed = \"17.78\"", "printed = \"17.77\"")], &[&format!("rounding:{text}")]);
    check(&[("printed = \"17.78\"", "printed = \"17.79\"")], &[&format!("formula:{text}")]);
    for broken in ["64 bits * 1600 parsec", "64 bits * 1600", "64 bits *"] {
        check(
            &[("\"64 bits * 1600 MT/s\"", &format!("\"{broken}\""))],
            &["formula-unreadable:1/(64 bits) x 1600 MT/s = 12800 MB/s"],
        );
    }
}

#[test]
fn quotients() {
    check(&[("\"97%\"", "\"95%\"")], &["quotient:3/Efficiency/1"]);
    check(&[("16.41 (92%)", "16.41 (82%)")], &["quotient:9/Read from SRAM/2"]);
    check(&[("\"753664\"", "\"753646\"")], &["quotient:packets/164/2"]);
    check(&[("\"753664\"", "\"753660\"")], &["rounding:packets/164/2"]);
    check(&[("\"753664\"", "\"753670\"")], &["quotient:packets/164/2"]);
    check(
        &[("\"100 * aggregate / theoretical\"", "\"100 * aggregate / bandwidth\"")],
        &["formula-unreadable:3/Efficiency"],
    );
}

#[test]
fn ceilings() {
    check(&[("\"2204.14\"", "\"3204.14\"")], &["above-maximum:6/2048/3"]);
    check(
        &[("\"6201\"", "\"6901\""), ("\"97%\"", "\"108%\"")],
        &["above-maximum:3/Aggregate throughput (MB/s)/1", "above-maximum:3/Efficiency/1"],
    );
    let at = CellAt { table: "2".into(), row: "SRAM".into(), column: 1 };
    let expect =
        |value| BTreeMap::from([(at.clone(), Expected { value, derivation: "256 bits * 1200 MHz".into() })]);
    assert!(run(&clean(), Some(&expect(38_400.0))).is_empty());
    let findings = run(&clean(), Some(&expect(19_200.0)));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].id, "theoretical:2/SRAM/1");
    assert!(findings[0].arithmetic.contains("256 bits * 1200 MHz = 19200"));
    let findings = run(&clean(), Some(&expect(38_400.9)));
    assert_eq!(findings.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(), ["rounding:2/SRAM/1"]);
}

#[test]
fn orders() {
    check(&[("\"5490.52\"", "\"3824.40\"")], &["falls-with-size:6/512/1"]);
    check(&[("\"195.31\"", "\"215.31\"")], &["fewer-lanes-faster:6/8/3"]);
    check(&[("\"103\", \"30\"", "\"30\", \"103\"")], &["burst-slower:4/DRAM/2"]);
}

#[test]
fn copies() {
    let link = |guide: &mut Guide, cell: fn(usize, &[Cell]) -> Option<Cell>| {
        let table = guide.tables.iter_mut().find(|table| table.id == "6").unwrap();
        for (index, row) in table.rows.iter_mut().enumerate() {
            if let Some(cell) = cell(index, &row.cells) {
                row.cells[1] = cell;
            }
        }
    };
    let mut guide = clean();
    link(&mut guide, |_, cells| Some(cells[0].clone()));
    check_guide(&guide, &["copy:6"]);

    // Eight of nine do not make a copy of nine, nor do two equal cells.
    for same in [2, 8] {
        let mut guide = clean();
        let column = |index, cells: &[Cell]| (index < 2).then(|| cells[0].clone());
        let most = |index, cells: &[Cell]| (index < 8).then(|| cells[0].clone());
        link(&mut guide, if same == 2 { column } else { most });
        check_guide(&guide, &[]);
    }

    let mut guide = clean();
    link(&mut guide, |index, _| {
        (index < 5).then(|| Cell::read(&format!("{:.2}", 198.58 * f64::from(1u32 << index))))
    });
    check_guide(&guide, &["constant-time:6/small sizes"]);

    let mut guide = clean();
    let source = guide.table("6").unwrap().rows.clone();
    let target = guide.tables.iter_mut().find(|table| table.id == "7").unwrap();
    for (row, from) in target.rows.iter_mut().zip(source) {
        row.cells = from.cells;
    }
    check_guide(&guide, &["copy:6/table 7"]);
}

/// The link tables as a program prints them that counts whole cycles, with a factor left in the rates.
fn counted(factor: f64) -> Guide {
    let mut guide = clean();
    for table in guide.tables.iter_mut().filter(|table| table.id == "6" || table.id == "7") {
        table.conditions.insert("core".into(), "1000 MHz".into());
        table.conditions.insert("transactions".into(), "16".into());
        for row in &mut table.rows {
            let bits = 16.0 * 8.0 * row.name.parse::<f64>().unwrap();
            for cell in &mut row.cells {
                let cycles = (bits * 1e3 / cell.value().unwrap()).round();
                *cell = Cell::read(&format!("{:.2}", bits * 1e3 / cycles * factor));
            }
        }
    }
    guide
}

#[test]
fn prefixes() {
    check_guide(&counted(1.0), &[]);
    check_guide(&counted(1.024), &["prefix:2.1/tables 6, 7"]);
    check_guide(&counted(1.048_576), &["prefix:2.1/tables 6, 7"]);
    check_guide(&counted(1.013), &[]);
}

#[test]
fn claims() {
    let id = "claim:3/Theoretical maximum (MB/s)/\"One channel reaches 6400 MB/s at most\"";
    check(&[("expression = \"6400 MB/s\"", "expression = \"6500 MB/s\"")], &[id]);
    check(&[("step = 50.0", "step = 60.0")], &["claim:packets/\"Packet sizes step by 50 bytes\""]);
    let id = "claim:9/\"The choice of the engine does not matter for reads\"";
    check(&[("margin_percent = 5.0", "margin_percent = 0.1")], &[id]);
    let id = "claim:9/\"Measured reads stay below the maximum\"";
    check(&[("order = \"<\"", "order = \">\"")], &[id]);
    check(
        &[("expression = \"6400 MB/s\"", "expression = \"6400 ns\"")],
        &["formula-unreadable:1/\"One channel reaches 6400 MB/s at most\""],
    );
}

#[test]
fn captions() {
    let id = "caption-text:6/\"Table 6 shows writes at 3.125 Gbps\"";
    check(
        &[("direction = \"write\", rate = \"3.125 Gbps\"", "direction = \"read\", rate = \"3.125 Gbps\"")],
        &[id],
    );
    check(
        &[("direction = \"write\", rate = \"3.125 Gbps\"", "direction = \"write\", rate = \"5 Gbps\"")],
        &[id],
    );
    check(&[("\"Bridges of the Engine\"", "\"Bridges of the Loader\"")], &["caption-list:5"]);
    check(&[("number = \"5\", text", "number = \"55\", text")], &["caption-list:5", "caption-list:55"]);
    check(
        &[
            ("text = \"Stalls of the Core in cycles\"", "text = \"Engine Throughput Between SRAM and DRAM\""),
            (
                "caption = \"Stalls of the Core in cycles\"",
                "caption = \"Engine Throughput Between SRAM and DRAM\"",
            ),
        ],
        &["caption-twice:4"],
    );
    check(&[("[\"Read from SRAM\", \"17.78\"", "[\"Write to SRAM\", \"17.78\"")], &["caption-rows:8"]);
    check(
        &[(
            "corner = \"Memory\"\ncolumns = [{ heading = [\"Bandwidth",
            "corner = \"Master\"\ncolumns = [{ heading = [\"Bandwidth",
        )],
        &["caption-corner:2"],
    );
    check(
        &[("[\"Engine\", \"6400\"", "[\"Motor\", \"6400\""), ("row = \"Engine\"", "row = \"Motor\"")],
        &["caption-parts:1/Engine"],
    );
    check(&[("{ mark = \"1\", text = \"Legend.\" }", "{ mark = \"2\", text = \"Legend.\" }")], &["mark:5"]);
    check(&[("The loader runs", "The engine runs")], &["footnote-row:1/footnote 1"]);
    check(
        &[
            ("text = \"Link Throughput With 3.125 Gbps", "text = \"Link Throughput With 3 Gbps"),
            ("caption = \"Link Throughput With 3.125 Gbps", "caption = \"Link Throughput With 3 Gbps"),
        ],
        &["figure-rate:2/figure 1"],
    );
}

#[test]
fn units() {
    check(&[("corner = \"Source\"\nunit = \"cycles\"", "corner = \"Source\"")], &["unit-missing:4"]);
    let column = "corner = \"Memory\"\ncolumns = [{ heading = [\"Bandwidth MB/s\"], unit = \"MB/s\"";
    check(
        &[(column, &column.replace("[\"Bandwidth MB/s\"]", "[\"Bandwidth\"]"))],
        &["unit-heading:2/Bandwidth"],
    );
    check(
        &[(column, &column.replace("MB/s", "MBPS"))],
        &["unit-case:MBPS and Mbps", "unit-spelling:MB/s and MBPS"],
    );
    check(
        &[("[\"Throughput (Mbps)\"], unit = \"Mbps\"", "[\"Throughput (Mb/s)\"], unit = \"Mb/s\"")],
        &["unit-spelling:Mb/s and Mbps"],
    );
}

#[test]
fn references() {
    let mention = "kind = \"table\", target = \"1\"";
    check(&[(mention, "kind = \"table\", target = \"12\"")], &["reference-dangling:1/table 12"]);
    check(&[(mention, "kind = \"missing\", target = \"shows the\"")], &["reference-missing:1/\"shows the\""]);
    let cited = "section = \"2\", title = \"Clean Link Specification\", number = \"DOC2\"";
    check(
        &[(cited, "section = \"2\", title = \"Boot Loader Handbook\", number = \"DOC1\"")],
        &["document-number:2/DOC1"],
    );
    check(
        &[(cited, "section = \"2\", title = \"Handbook of Ports\", number = \"DOC5\"")],
        &["citation-unlisted:2/DOC5"],
    );
    let listed = "  { section = \"3\", title = \"Clean Link Specification\", number = \"DOC2\" },\n";
    let again = format!("{listed}{}", listed.replace("DOC2", "DOC9"));
    check(&[(listed, &again)], &["document-title:3/DOC2 and DOC9"]);
}

#[test]
fn structure() {
    check(&[("text = \"Link\", page", "text = \"Links\", page")], &["contents:2/contents"]);
    check(&[("[\"Writes\", \"Reads\"]", "[\"Writes\", \"Writes\"]")], &["announced:2/announced subsections"]);
    check(
        &[("\"Use large blocks\"", "\"Use linear transfers\"")],
        &["item-twice:1/\"Use linear transfers\""],
    );
    check(&[("00000000000000b2", "00000000000000a1")], &["paragraph-twice:2/\"The link has four ...\""]);
    check(&[("\"Not connected.\"", "\"Connected.\"")], &["legend:5"]);
    check(
        &[("text = \"References\", page = 9", "text = \"References\", page = 3")],
        &["page-order:contents, entry 3"],
    );
}
