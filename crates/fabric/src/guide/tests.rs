//! Tests of the guide: what it reads, and what it says where it cannot.

use proptest::prelude::*;

use super::*;

/// The transcription of the KeyStone II guide.
const KEYSTONE2: &str = include_str!("../../../../boards/guides/keystone2.toml");

/// Table, rows, columns after the first, numbers, withheld cells: counted in the printed text, not in the transcription.
const PRINTED: &[(&str, usize, usize, usize, usize)] = &[
    ("1", 7, 2, 7, 0),
    ("2", 6, 2, 6, 0),
    ("3", 7, 4, 26, 0),
    ("4", 5, 2, 8, 2),
    ("5", 28, 14, 0, 0),
    ("6", 4, 2, 6, 0),
    ("7", 4, 3, 9, 0),
    ("8", 4, 4, 12, 0),
    ("9", 4, 3, 9, 0),
    ("10", 4, 3, 3, 6),
    ("11", 4, 3, 9, 0),
    ("12", 4, 3, 3, 6),
    ("13", 4, 3, 3, 6),
    ("14", 4, 3, 9, 0),
    ("15", 4, 3, 3, 6),
    ("16", 11, 6, 66, 0),
    ("17", 11, 6, 66, 0),
    ("18", 11, 6, 0, 66),
    ("19", 11, 6, 0, 66),
    ("20", 9, 6, 54, 0),
    ("21", 9, 6, 0, 54),
    ("22", 3, 1, 0, 0),
    ("23", 3, 2, 6, 0),
    ("24", 3, 2, 6, 0),
    ("25", 3, 2, 6, 0),
    ("26", 3, 2, 2, 4),
    ("10gbe", 15, 3, 38, 7),
];

fn guide() -> Guide {
    load(KEYSTONE2).unwrap()
}

#[test]
fn the_transcription_has_as_many_cells_as_the_print() {
    let guide = guide();
    assert_eq!(guide.tables.len(), PRINTED.len());
    let mut withheld_in_all = 0;
    for &(id, rows, columns, numbers, withheld) in PRINTED {
        let table = guide.table(id).unwrap();
        let count = |what: fn(&Cell) -> bool| table.cells().filter(|(_, _, cell)| what(cell)).count();
        assert_eq!((table.rows.len(), table.columns.len()), (rows, columns), "table {id}");
        assert_eq!(count(|cell| cell.number().is_some()), numbers, "numbers in table {id}");
        assert_eq!(count(|cell| *cell == Cell::Withheld), withheld, "withheld in table {id}");
        withheld_in_all += withheld;
    }
    assert_eq!(withheld_in_all, 223);
    let parts = (guide.contents.len(), guide.table_list.len(), guide.figure_list.len(), guide.figures.len());
    assert_eq!(parts, (10, 26, 25, 25));
}

#[test]
fn columns_of_numbers_add_up_as_in_the_print() {
    // Sums taken from the printed text: a digit mistyped anywhere in these tables changes them.
    let guide = guide();
    for (id, column, sum) in SUMS {
        let cells = guide.table(id).unwrap().rows.iter().filter_map(|row| row.cells.get(column - 1)?.value());
        let found: f64 = cells.sum();
        assert!((found - sum).abs() < 1e-6, "table {id} column {column}: {found} and not {sum}");
    }
}

/// Table, column from 1, sum of its numbers.
const SUMS: &[(&str, usize, f64)] = &[
    ("1", 1, 96000.0),
    ("2", 1, 156800.0),
    ("3", 1, 159.0),
    ("3", 2, 56.5),
    ("3", 3, 318.0),
    ("3", 4, 96.5),
    ("4", 1, 218.0),
    ("4", 2, 35.2),
    ("6", 1, 12698.0),
    ("6", 2, 12428.0),
    ("7", 1, 24736.0),
    ("7", 2, 24736.0),
    ("7", 3, 49967.0),
    ("8", 1, 36619.0),
    ("8", 2, 24731.0),
    ("8", 3, 36621.0),
    ("8", 4, 35470.0),
    ("9", 1, 23521.0),
    ("9", 2, 22803.0),
    ("9", 3, 25032.0),
    ("10", 1, 12800.0),
    ("10", 2, 12800.0),
    ("10", 3, 12800.0),
    ("11", 1, 10825.0),
    ("11", 2, 10588.0),
    ("11", 3, 10449.0),
    ("12", 1, 6400.0),
    ("12", 2, 6400.0),
    ("12", 3, 6400.0),
    ("13", 1, 12800.0),
    ("13", 2, 12800.0),
    ("13", 3, 12800.0),
    ("14", 1, 23410.0),
    ("14", 2, 23014.0),
    ("14", 3, 22726.0),
    ("15", 1, 12800.0),
    ("15", 2, 12800.0),
    ("15", 3, 12800.0),
    ("16", 1, 55115.31),
    ("16", 2, 55115.31),
    ("16", 3, 34093.66),
    ("16", 4, 34093.66),
    ("16", 5, 19066.6),
    ("16", 6, 19066.6),
    ("17", 1, 25210.54),
    ("17", 2, 24927.32),
    ("17", 3, 17425.48),
    ("17", 4, 17260.65),
    ("17", 5, 10862.85),
    ("17", 6, 10790.9),
    ("20", 1, 37280.33),
    ("20", 2, 33347.24),
    ("20", 3, 24390.54),
    ("20", 4, 22095.51),
    ("20", 5, 14380.62),
    ("20", 6, 13279.29),
    ("23", 1, 63.15),
    ("23", 2, 56.13),
    ("24", 1, 60.33),
    ("24", 2, 54.43),
    ("25", 1, 47.56),
    ("25", 2, 47.56),
    ("26", 1, 15.08),
    ("26", 2, 10.02),
    ("10gbe", 1, 300.0),
    ("10gbe", 2, 77864960.0),
    ("10gbe", 3, 63014.0),
];

fn cell<'g>(guide: &'g Guide, table: &str, row: &str, column: usize) -> &'g Cell {
    guide.cell(&CellAt { table: table.into(), row: row.into(), column }).unwrap()
}

#[test]
fn cells_keep_what_was_printed() {
    let guide = guide();
    let number = cell(&guide, "24", "Write to MSMC", 1).number().unwrap();
    assert_eq!((number.value, number.printed.as_str(), number.decimals), (20.0, "20.00", 2));
    assert_eq!((number.share_percent, number.percent), (Some(95.0), false));
    let efficiency = cell(&guide, "11", "Total Transfer Efficiency", 3).number().unwrap();
    assert!(efficiency.percent && efficiency.value == 95.0 && efficiency.printed == "95%");
    assert_eq!(*cell(&guide, "3", "DDR 3B RAM (SL3)", 1), Cell::NotAvailable);
    assert_eq!(*cell(&guide, "5", "EDMA_0_TC0_R", 2), Cell::Dash);
    assert_eq!(*cell(&guide, "21", "512", 4), Cell::Withheld);
    assert_eq!(*cell(&guide, "9", "Wait for completion of", 3), Cell::Text("ALL".into()));
    assert_eq!(cell(&guide, "26", "Write to MSMC", 2).to_string(), "10.02 (62%)");
}

#[test]
fn roles_and_units_come_from_the_row_before_the_column() {
    let guide = guide();
    let table = guide.table("9").unwrap();
    assert_eq!((table.role(1, 0), table.unit(1, 0)), (Some(Role::Theoretical), Some("MBPS")));
    assert_eq!((table.role(3, 0), table.unit(3, 0)), (Some(Role::Derived), Some("%")));
    let table = guide.table("16").unwrap();
    assert_eq!((table.role(0, 0), table.unit(0, 0)), (Some(Role::Measured), Some("Mbps")));
    assert_eq!(table.columns[3].tags["lanes"], "2");
    assert_eq!(table.columns[3].tags["memory"], "DDR3");
    let group = guide.table("5").unwrap().row("EDMA_3_TC1_W").unwrap().group.clone();
    assert_eq!(group.as_deref(), Some("EDMA TCs on TeraNet 3A"));
}

/// A transcription with one mistake: where it is, and what the message has to speak of.
fn check(text: &str, line: usize, column: usize, speaks_of: &str) {
    let error = load(text).unwrap_err();
    assert_eq!((error.line, error.column), (line, column), "{error}");
    assert!(error.to_string().contains(speaks_of), "{error} does not speak of {speaks_of}");
}

const HEAD: &str = "title = \"T\"\nnoise-percent = 0.5\n";
const TABLE: &str =
    "[[table]]\nid = \"1\"\nsection = \"1\"\ncorner = \"Size\"\ncolumns = [{ heading = [\"A\"] }]\n";

#[test]
fn a_mistake_has_its_place_and_what_was_expected() {
    let file = |rest: &str| format!("{HEAD}{TABLE}{rest}");
    check("title = ", 1, 9, "value");
    check("title = 3\nnoise-percent = 0.5\n", 1, 9, "expected a string");
    check("titel = \"T\"\n", 1, 1, "unknown field `titel`");
    check("title = \"T\"\nnoise-percent = 101.0\n", 2, 17, "between 0 and 100");
    check("title = \"T\"\nnoise-percent = nan\n", 2, 17, "between 0 and 100");
    check(&file("rows = [\n  [\"8\", \"1\"],\n  [\"16\"],\n]\n"), 10, 3, "expected 1");
    check(&file("rows = [[]]\n"), 8, 9, "empty row");
    check(&file("rows = [[\"8\", \"1\"], [\"8\", \"2\"]]\n"), 8, 21, "second row `8`");
    check(&file("rows = []\nrow-role = { \"9\" = \"measured\" }\n"), 9, 20, "no row `9`");
    check(&file("rows = []\nrow-role = { \"9\" = \"guessed\" }\n"), 9, 20, "unknown variant `guessed`");
    check(&file("rows = []\nwidth = 3\n"), 9, 1, "unknown field `width`");
    check(&file(&format!("rows = []\n{TABLE}rows = []\n")), 9, 1, "second table `1`");
    let no_heading = TABLE.replace("[\"A\"]", "[]");
    check(&format!("{HEAD}{no_heading}rows = []\n"), 7, 12, "without heading");
}

#[test]
fn what_is_named_must_be_there() {
    let file = |rest: &str| format!("{HEAD}{TABLE}rows = [[\"8\", \"1\"]]\n{rest}");
    let formula = |cell: &str| {
        file(&format!(
            "[[formula]]\nsection = \"1\"\ncell = {cell}\ntext = \"\"\nexpression = \"1\"\nprinted = \"1\"\nunit = \"\"\n"
        ))
    };
    check(&formula("{ table = \"2\", row = \"8\", column = 1 }"), 9, 1, "no table `2`");
    check(&formula("{ table = \"1\", row = \"9\", column = 1 }"), 9, 1, "no row `9`");
    check(&formula("{ table = \"1\", row = \"8\", column = 0 }"), 9, 1, "expected 1 to 1");
    check(&formula("{ table = \"1\", row = \"8\", column = 2 }"), 9, 1, "expected 1 to 1");
    let claim = "[[claim]]\nsection = \"1\"\ntext = \"\"\nrelation = { steps = { table = \"7\", from = 1.0, to = 2.0, step = 1.0 } }\n";
    check(&file(claim), 9, 1, "no table `7`");
    let claim = |relation: &str| {
        file(&format!("[[claim]]\nsection = \"1\"\ntext = \"\"\nrelation = {{ {relation} }}\n"))
    };
    let describes = "describes = { table = \"1\", also = [\"4\"], attributes = {} }";
    check(&claim(describes), 9, 1, "no table `4`");
    let factor = "factor = { cell = { table = \"1\", row = \"9\", column = 1 }, value = \"64 bits\" }";
    check(&claim(factor), 9, 1, "no row `9`");
    let overhead = "overhead = { stated = \"8 B\", line = \"1 Gbps\", packets = [{ payload = \"64 B\", cells = { table = \"1\", column = 2 } }] }";
    check(&claim(overhead), 9, 1, "expected 1 to 1");
    check(&file("share-of = \"3\"\n"), 3, 1, "no table `3`");
    let derived = "derived = [{ target = \"B\", expression = \"1\", given = {} }]\n";
    check(&file(derived), 9, 12, "`B` is no row or column");
}

#[test]
fn a_file_beyond_the_bound_is_refused_before_it_is_parsed() {
    let error = load(&" ".repeat(MAX_BYTES + 1)).unwrap_err();
    assert_eq!(error.fault, Fault::TooLong);
}

#[test]
fn numbers_are_what_a_datasheet_prints() {
    let read = |text: &str| Number::read(text).map(|number| (number.value, number.decimals, number.percent));
    assert_eq!(read("209.72"), Some((209.72, 2, false)));
    assert_eq!(read(" 0 "), Some((0.0, 0, false)));
    assert_eq!(read("97%"), Some((97.0, 0, true)));
    assert_eq!(read("20.00 (95%)"), Some((20.0, 2, false)));
    for text in
        ["", "-3", "+3", "1e9", "inf", "nan", "16B", ".5", "1.2.3", "5 (x)", "5 (9", "12345678901234567890"]
    {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(Number::read("0.80").unwrap().significant_digits(), 2);
    assert_eq!(Number::read("4596.5").unwrap().half_unit(), 0.05);
}

proptest! {
    #[test]
    fn no_input_makes_the_loader_panic(text in "\\PC{0,200}") {
        let _ = load(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_damage_to_a_good_file_makes_the_loader_panic(start in 0usize..90_000, length in 0usize..40, with in "[\\[\\]{}=\"0-9a-z\n,.]{0,3}") {
        let (mut from, mut to) = (start.min(KEYSTONE2.len()), (start + length).min(KEYSTONE2.len()));
        while !KEYSTONE2.is_char_boundary(from) { from -= 1; }
        while !KEYSTONE2.is_char_boundary(to) { to += 1; }
        let mut text = KEYSTONE2.to_owned();
        text.replace_range(from..to, &with);
        if let Err(error) = load(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1);
        }
    }

    #[test]
    fn a_cell_shows_what_it_read(whole in 0u32..100_000, fraction in "[0-9]{1,3}") {
        let printed = format!("{whole}.{fraction}");
        prop_assert_eq!(Cell::read(&printed).to_string(), printed);
    }
}
