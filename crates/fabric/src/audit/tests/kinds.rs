//! Planted mistakes of the kinds that take two places to see: each is found by its rule, and the same text without it is not.

use super::planted::{check, check_guide};
use super::{CLEAN, clean};
use crate::guide::{Cell, Guide, load};

/// The clean guide with more at its end.
fn with(more: &str, expected: &[&str]) {
    let guide = load(&format!("{CLEAN}\n{more}")).unwrap_or_else(|error| panic!("{error}\n{more}"));
    check_guide(&guide, expected);
}

#[test]
fn more_bytes_never_take_less_time() {
    check(&[("\"1439.28\"", "\"1650.00\"")], &["time-falls:6/64/1"]);
    // 1.5 % longer for twice the size is little, and possible.
    check(&[("\"1439.28\"", "\"1530.00\"")], &[]);
}

#[test]
fn values_that_stand_twice() {
    let (rates, shares) = ("\"6201\", \"withheld\"", "\"12%\"");
    check(
        &[(rates, "\"6201\", \"12137\""), (shares, "\"95%\"")],
        &["value-twice:3/Aggregate throughput (MB/s)/3"],
    );
    check(&[(rates, "\"6201\", \"12138\""), (shares, "\"95%\"")], &[]);
    // At the maximum two measurements may well be the same.
    check(
        &[
            ("\"6201\", \"withheld\", \"12137\"", "\"6201\", \"12800\", \"12800\""),
            ("\"12%\"", "\"100%\""),
            ("\"95%\"", "\"100%\""),
        ],
        &[],
    );
    let row = "\"6874.93\", \"6797.55\", \"2122.21\", \"2112.31\"";
    check(&[(row, "\"5490.52\", \"5381.75\", \"1967.28\", \"2112.31\"")], &["value-twice:6/1024"]);
    check(&[(row, "\"5490.52\", \"5381.75\", \"2122.21\", \"2112.31\"")], &[]);
}

#[test]
fn what_a_formula_counts_with_is_what_the_text_says() {
    let claim = |value: &str| {
        format!(
            "[[claim]]\nsection = \"2\"\ntext = \"The port of the core\"\n\
             relation = {{ factor = {{ cell = {{ table = \"1\", row = \"Core\", column = 1 }}, value = \"{value}\" }} }}\n"
        )
    };
    with(&claim("128 bits"), &[]);
    with(&claim("16 bytes"), &[]);
    with(&claim("1200 MHz"), &[]);
    with(&claim("256 bits"), &["factor:1/Core/1/\"The port of the core\""]);
    with(&claim("1000 MHz"), &["factor:1/Core/1/\"The port of the core\""]);
    // The formula has no time in it: nothing to hold against.
    with(&claim("5 ns"), &[]);
    with(&claim("5 parsec"), &["formula-unreadable:2/\"The port of the core\""]);
}

/// Rates of a line of 1 Gbps that is always busy with packets of 256 B and so much overhead.
fn busy(overheads: [f64; 4]) -> String {
    let rows: Vec<String> = [512, 1024, 2048, 4096]
        .iter()
        .zip(overheads)
        .map(|(size, overhead)| format!("[\"{size}\", \"{:.2}\"]", 256e3 / (256.0 + overhead)))
        .collect();
    format!(
        "[[table]]\nid = \"busy\"\nsection = \"2\"\ncorner = \"Message size (bytes)\"\n\
         columns = [{{ heading = [\"Rate (Mbps)\"], unit = \"Mbps\" }}]\nrows = [{}]\n",
        rows.join(", ")
    )
}

#[test]
fn overheads_follow_from_the_cells() {
    let computed = |stated: &str| {
        format!(
            "[[claim]]\nsection = \"2\"\ntext = \"Each packet costs more\"\n[claim.relation.overhead]\n\
             stated = \"{stated}\"\nline = \"25 Gbps * (8/9)\"\npackets = [\n\
             {{ payload = \"32 bytes\", cells = {{ table = \"8\", row = \"Read from SRAM\" }} }},\n\
             {{ payload = \"64 bytes\", cells = {{ table = \"8\", row = \"Read from DRAM\" }} }},\n]\n"
        )
    };
    with(&computed("8 bytes"), &[]);
    with(&computed("12 bytes"), &["overhead:8/\"Each packet costs more\""]);
    with(&computed("12 ns"), &["formula-unreadable:2/\"Each packet costs more\""]);
    let measured = |overheads: [f64; 4], stated: &str| {
        format!(
            "{}[[claim]]\nsection = \"2\"\ntext = \"Each packet costs more\"\n[claim.relation.overhead]\n\
             stated = \"{stated}\"\nline = \"1 Gbps\"\n\
             packets = [{{ payload = \"256 bytes\", cells = {{ table = \"busy\", column = 1 }} }}]\n",
            busy(overheads)
        )
    };
    with(&measured([20.0; 4], "20 bytes"), &[]);
    with(&measured([20.0; 4], "16 bytes"), &["overhead:busy/\"Each packet costs more\""]);
    // A line that is not busy is slower for other reasons: no single overhead, and no contradiction.
    with(&measured([60.0, 40.0, 30.0, 25.0], "16 bytes"), &[]);
}

#[test]
fn a_name_fits_its_kind() {
    let names = |texts: &[&str]| {
        texts.iter().map(|text| format!("[[name]]\nsection = \"1\"\ntext = \"{text}\"\n")).collect::<String>()
    };
    with(&names(&["DDR3 SDRAM", "LPDDR4X DRAM", "DDR3A RAM", "On-chip SRAM", "boot flash, SRAM"]), &[]);
    with(&names(&["OSPI flash DDR mode", "DDR SRAM", "QSPI DDR flash"]), &[]);
    with(&names(&["DDR3B SDRAM", "DDR3B SRAM"]), &["name-kind:1/\"DDR3B SRAM\""]);
    with(&names(&["LPDDR4 SRAM."]), &["name-kind:1/\"LPDDR4 SRAM\""]);
    with(&names(&["NAND ROM", "the SRAM", "the DRAM"]), &[]);
    with(&names(&["Boot ROM", "Boot ROM", "Boot SRAM"]), &["name-kind:1/\"Boot SRAM\""]);
}

/// Two tables of efficiencies, the second with a row of its own choice.
fn efficiencies(second: [&str; 3]) -> String {
    let table = |id: &str, rates: [&str; 3], row: [&str; 3]| {
        format!(
            "[[table]]\nid = \"{id}\"\nsection = \"1\"\ncorner = \"Channels\"\n\
             columns = [{{ heading = [\"One\"] }}, {{ heading = [\"Two\"] }}, {{ heading = [\"Three\"] }}]\n\
             rows = [[\"Most\", \"1000\", \"1000\", \"1000\"], [\"Rate\", \"{}\"], [\"Efficiency\", \"{}\"]]\n\
             row-role = {{ \"Most\" = \"theoretical\", \"Rate\" = \"measured\", \"Efficiency\" = \"derived\" }}\n\
             row-unit = {{ \"Most\" = \"MB/s\", \"Rate\" = \"MB/s\", \"Efficiency\" = \"%\" }}\n\
             derived = [{{ target = \"Efficiency\", expression = \"100 * rate / most\", given = {{ rate = \"Rate\", most = \"Most\" }} }}]\n",
            rates.join("\", \""),
            row.join("\", \"")
        )
    };
    table("a", ["612", "724", "831"], ["61%", "72%", "83%"]) + &table("b", ["411", "522", "633"], second)
}

#[test]
fn a_row_of_another_table_has_a_donor() {
    let unit = |id: &str, row: &str| format!("unit-heading:{id}/{row}");
    let form = [unit("a", "Most"), unit("a", "Rate"), unit("b", "Most"), unit("b", "Rate")];
    let expect = |found: &[&str], row: [&str; 3]| {
        let guide = load(&format!("{CLEAN}\n{}", efficiencies(row))).unwrap();
        let ids: Vec<String> = super::ids(&guide).into_iter().filter(|id| !form.contains(id)).collect();
        assert_eq!(ids, found, "{row:?}");
    };
    expect(&[], ["41%", "52%", "63%"]);
    let wrong = ["quotient:b/Efficiency/1", "quotient:b/Efficiency/2", "quotient:b/Efficiency/3"];
    let copied = [&wrong[..], &["copied-row:b/Efficiency"]].concat();
    expect(&copied, ["61%", "72%", "83%"]);
    expect(&copied, ["62%", "73%", "83%"]);
    // Wrong, but nobody's.
    expect(&wrong, ["30%", "20%", "10%"]);
    // One wrong cell is a typing error.
    expect(&wrong[..1], ["61%", "52%", "63%"]);
}

#[test]
fn two_tables_state_a_quantity_once() {
    let guide = |first: &str, second: &str, rate: &str| {
        let list = format!(
            "table-list = [\n  {{ number = \"a\", text = \"{first}\", page = 1 }},\n  {{ number = \"b\", text = \"{second}\", page = 1 }},"
        );
        let table = |id: &str, caption: &str, rate: &str| {
            format!(
                "[[table]]\nid = \"{id}\"\ncaption = \"{caption}\"\nsection = \"1\"\ncorner = \"Port\"\n\
                 columns = [{{ heading = [\"MB/s\"], unit = \"MB/s\", role = \"theoretical\" }}]\n\
                 rows = [[\"Left\", \"400\"], [\"Right\", \"{rate}\"]]\n"
            )
        };
        let text = CLEAN.replace("table-list = [", &list);
        load(&format!("{text}\n{}{}", table("a", first, "200"), table("b", second, rate))).unwrap()
    };
    check_guide(&guide("Peak of the ports", "What ports reach at their peak", "200"), &[]);
    let found = ["same-quantity:a/Right/1/table b"];
    check_guide(&guide("Peak of the ports", "What ports reach at their peak", "210"), &found);
    check_guide(&guide("Read peak of the ports", "Write peak of the ports", "210"), &[]);
    check_guide(&guide("Peak of the ports of C1", "Peak of the ports of C2", "210"), &[]);
}

#[test]
fn columns_are_what_the_text_says_was_measured() {
    let claim = |memory: &str| {
        format!(
            "[[claim]]\nsection = \"2\"\ntext = \"What was measured\"\n\
             relation = {{ describes = {{ table = \"6\", also = [\"7\"], attributes = {{ memory = \"{memory}\" }} }} }}\n"
        )
    };
    with(&claim("L2 and DDR3"), &[]);
    with(&claim("L2"), &["column-text:6/\"What was measured\""]);
    with(&claim("L2, MSMC and DDR3"), &["column-text:6/\"What was measured\""]);
}

#[test]
fn statistics_have_an_order() {
    let table = |mean: &str| {
        format!(
            "[[table]]\nid = \"s\"\nsection = \"1\"\ncorner = \"Function\"\nunit = \"cycles\"\n\
             columns = [{{ heading = [\"min\"], tags = {{ statistic = \"min\" }} }}, \
             {{ heading = [\"max\"], tags = {{ statistic = \"max\" }} }}, {{ heading = [\"mean\"], tags = {{ statistic = \"mean\" }} }}]\n\
             rows = [[\"sine\", \"40\", \"64\", \"{mean}\"], [\"cosine\", \"50\", \"75\", \"54.03\"]]\n"
        )
    };
    with(&table("43.30"), &[]);
    with(&table("64.30"), &[]);
    with(&table("64.80"), &["statistic:s/sine/3"]);
    with(&table("39.10"), &["statistic:s/sine/1"]);
}

#[test]
fn no_time_is_shorter_than_a_cycle_of_its_clock() {
    let table = |time: &str| {
        format!(
            "[[table]]\nid = \"t\"\nsection = \"1\"\ncorner = \"Core\"\nconditions = {{ core = \"800 MHz\" }}\n\
             columns = [{{ heading = [\"Latency (ns)\"], unit = \"ns\" }}]\nrows = [[\"0\", \"30.5\"], [\"1\", \"{time}\"]]\n"
        )
    };
    with(&table("1.25"), &[]);
    with(&table("0.636"), &["under-a-cycle:t/1/1"]);
    with(&table("0.00"), &["under-a-cycle:t/1/1"]);
    // Too coarse to say anything but that it was short.
    with(&table("0"), &["under-a-cycle:t/1/1"]);
    with(&table("0").replace("(ns)", "(us)").replace("unit = \"ns\"", "unit = \"us\""), &[]);
}

/// The link tables of the clean guide as a clock of 1 GHz sees them that is polled every `tick` cycles; `late` ticks are added
/// to one time.
fn polled(tick: f64, late: f64) -> Guide {
    let mut guide = clean();
    guide.noise_percent = None;
    for table in guide.tables.iter_mut().filter(|table| table.id == "6" || table.id == "7") {
        table.conditions.insert("core".into(), "1000 MHz".into());
        table.conditions.insert("transactions".into(), "16".into());
        let first = table.id == "6";
        for row in &mut table.rows {
            let size: f64 = row.name.parse().unwrap();
            for (column, cell) in row.cells.iter_mut().enumerate() {
                let bits = 16.0 * 8.0 * size;
                let mut ticks = (bits * 1e3 / cell.value().unwrap() / tick).round();
                if first && size == 16.0 && column == 0 {
                    ticks += late;
                }
                *cell = Cell::read(&format!("{:.2}", bits * 1e3 / (ticks * tick)));
            }
        }
    }
    guide
}

#[test]
fn noise_is_the_tick_of_the_clock_and_not_a_share() {
    check_guide(&polled(40.0, 0.0), &[]);
    // 16 B take 5,040 ns and 32 B 5,240: a tick more than that is noise, ten more are not, and both are under 10 %.
    check_guide(&polled(40.0, 6.0), &[]);
    check_guide(&polled(40.0, 15.0), &["time-falls:6/32/1"]);
}

#[test]
fn without_a_clock_the_line_of_a_table_says_how_far_it_scatters() {
    let guide = |edits: &[(&str, &str)]| {
        let text = edits.iter().fold(CLEAN.to_owned(), |text, (from, to)| text.replace(from, to));
        let mut guide = load(&text).unwrap();
        guide.noise_percent = None;
        guide
    };
    check_guide(&guide(&[]), &[]);
    check_guide(&guide(&[("\"1439.28\"", "\"1650.00\"")]), &["time-falls:6/64/1"]);
    check_guide(&guide(&[("\"5490.52\"", "\"3824.40\"")]), &["falls-with-size:6/512/1"]);
    // With one of the largest sizes kept back nothing is known of the scatter, and nothing is said.
    check_guide(&guide(&[("\"1439.28\"", "\"1650.00\""), ("\"7874.76\"", "\"withheld\"")]), &[]);
}

#[test]
fn sizes_that_share_a_tick_are_no_coincidence() {
    // Whatever takes up to 5 us ends with the same poll: equal times are the clock's doing.
    let mut guide = polled(40.0, 0.0);
    let table = guide.tables.iter_mut().find(|table| table.id == "6").unwrap();
    for row in table.rows.iter_mut().take(5) {
        let size: f64 = row.name.parse().unwrap();
        for cell in &mut row.cells {
            *cell = Cell::read(&format!("{:.2}", 16.0 * 8.0 * size * 1e3 / 5000.0));
        }
    }
    let ids = super::ids(&guide);
    assert!(ids.iter().all(|id| !id.starts_with("constant-time")), "{ids:?}");
}

#[test]
fn a_heading_does_not_come_from_another_table() {
    let tables = |corner: &str| {
        let table = |id: &str, caption: &str, corner: &str| {
            format!(
                "[[table]]\nid = \"{id}\"\ncaption = \"{caption}\"\nsection = \"1\"\ncorner = \"{corner}\"\n\
                 columns = [{{ heading = [\"ns\"], unit = \"ns\" }}]\nrows = [[\"256\", \"30.5\"]]\n"
            )
        };
        let list = "table-list = [\n  { number = \"a\", text = \"Keys of RSA\", page = 1 },\n  { number = \"b\", text = \"Curves of ECDSA\", page = 1 },";
        let text = CLEAN.replace("table-list = [", list);
        load(&format!(
            "{text}\n{}{}",
            table("a", "Keys of RSA", corner),
            table("b", "Curves of ECDSA", "ECDSA")
        ))
        .unwrap()
    };
    check_guide(&tables("RSA"), &[]);
    check_guide(&tables("Key"), &[]);
    check_guide(&tables("ECDSA"), &["caption-corner:a"]);
}
