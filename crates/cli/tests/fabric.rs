//! The fabric commands from outside: every command, exit codes, formats, and the examples of the documentation.

mod samples;

use clap::Parser as _;
use linerate_cli::args::{Cli, Command};
use linerate_cli::fabric::{self, builtin, error::FabricError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `linerate fabric ARGS` prints.
fn output(args: &[&str]) -> Result<String, FabricError> {
    let all = ["linerate", "fabric"].iter().chain(args);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Fabric(args) => fabric::output(&args.command),
        _ => unreachable!("the arguments say fabric"),
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Exit code, standard output and standard error of the program.
fn program(args: &[&str]) -> (Option<i32>, String, String) {
    let run =
        std::process::Command::new(env!("CARGO_BIN_EXE_linerate")).args(args).current_dir(root()).output();
    let run = run.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

/// A file that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("linerate-fabric-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn exit_codes() {
    let check = |args: &[&str], code: i32, said: &[&str]| {
        let (found, _, errors) = program(args);
        assert_eq!(found, Some(code), "{args:?}: {errors}");
        for words in said {
            assert!(errors.contains(words), "{words:?} for {args:?} in {errors}");
        }
    };
    let predict = |soc, transfer| ["fabric", "predict", soc, "--transfer", transfer];
    check(&predict("k2h", "edma:TC0:l2.0->msmc"), 0, &[]);
    check(&["fabric"], 2, &["Usage"]);
    check(&["fabric", "predict", "k2h"], 2, &["--transfer <TRANSFER>"]);
    check(
        &predict("k2x", "tcp:x"),
        2,
        &["'k2x' for 'SOC'", "one of k2h, k2e, softcore, stm32h743, xupv5, zcu102, or the path"],
    );
    check(&predict("no/such.toml", "tcp:x"), 2, &["cannot read no/such.toml"]);
    check(
        &predict("k2h", "dma:x"),
        2,
        &["'dma:x' for '--transfer <TRANSFER>'", "edma, core, load, store, memory, pcie, srio"],
    );
    check(&predict("k2h", "edma:TC99:l2.0->msmc"), 2, &["no transfer controller 'TC99'", "TC0, TC1"]);
    check(&predict("k2h", "edma:TC0:l2.8->msmc"), 2, &["no memory 'l2.8'", "l2.0 to l2.7"]);
    check(&predict("k2h", "edma:TC0:l9->msmc"), 2, &["no memory 'l9'", "ddr3a, ddr3b"]);
    check(&predict("k2h", "core:c64:msmc"), 2, &["no core 'c64'", "a15, c66x"]);
    check(&predict("k2h", "core:c66x:disk"), 2, &["no memory 'disk'", "msmc_sl3"]);
    check(&predict("k2h", "ethernet:64,port=wifi"), 2, &["no port 'wifi'", "10gbe"]);
    check(&predict("k2h", "tcp:nothing"), 2, &["no workload 'nothing'"]);
    check(&predict("xupv5", "srio:nwrite"), 2, &["no Serial RapidIO"]);
    check(&["fabric", "table", "k2h", "27"], 2, &["'27' for 'N'", "1 to 26, 10gbe"]);
    check(
        &["fabric", "table", "k2h", "9", "--format", "yaml"],
        2,
        &["yaml", "terminal, markdown, csv, json"],
    );
    check(&["fabric", "table", "k2h", "9", "--guide", "nope"], 2, &["'nope' for 'GUIDE'", "keystone2"]);
    check(
        &["fabric", "report", "k2h", "-o", "/no/such/dir/x.html"],
        1,
        &["cannot write /no/such/dir/x.html"],
    );
    check(&["fabric", "audit", "no/such.toml"], 2, &["cannot read"]);
    check(&["fabric", "fit", "k2h", "no/such.csv"], 2, &["cannot read"]);
    let bad = Scratch::new("bad.toml", "[chip]\nname = 1\n");
    check(&predict(bad.path(), "tcp:x"), 2, &["line 2, column 8"]);
    let data = Scratch::new("bad.csv", "table,row,column,value\n17,8,1,fast\n");
    check(&["fabric", "fit", "k2h", data.path()], 2, &["line 2"]);
    check(&["fabric", "fit", "k2h"], 2, &["expected DATA.csv, or --transfer"]);
    let flag = ["fabric", "explain", "k2h", "--transfer", "edma:TC0:msmc->l2"];
    check(
        &flag,
        2,
        &["expected the transfer without a flag: linerate fabric explain SOC 'edma:TC0:msmc->l2'"],
    );
    let empty = Scratch::new("empty.toml", "");
    check(&predict(empty.path(), "tcp:x"), 2, &["missing fields `chip` (with `name`, `title`), `clocks`"]);
    let ethernet = |more: [&'static str; 2]| [&predict("k2e", "ethernet:64,port=10gbe")[..], &more].concat();
    check(&ethernet(["--points", "4"]), 2, &["--sweep"]);
    check(&ethernet(["--sweep", "clock.ddr=1..2B"]), 2, &["for '--sweep'"]);
    let preamble = "links.ethernet.10gbe.preamble=999999999999 B";
    check(&ethernet(["--set", preamble]), 2, &["for '--set'", "1024 B at most"]);
}

#[test]
fn every_kind_of_transfer_has_an_answer() {
    let workload = builtin::soc("k2h").unwrap().links.tcp.keys().next().cloned().unwrap();
    let tcp = format!("tcp:{workload}");
    let transfers = [
        "edma:TC0:L2.0->MSMC:32KiB",
        "edma:TC2:L2.0<->DDR3A:32KiB,align=4",
        "edma:TC0:MSMC->L2.0,sync=ab,acnt=1024,bcnt=128,index=1088",
        "core:c66x:DDR3A:burst",
        "core:a15:ddr3b",
        "pcie:read:128B:bidir:edma=TC0",
        "srio:nwrite:4096B:4x:5G:L2",
        "srio:nread:64:1x:3.125G:DDR3",
        "srio:type11:512",
        "hyperlink:read:MSMC,path=far",
        "ethernet:1518B",
        &tcp,
    ];
    for transfer in transfers {
        let answer = json(&output(&["predict", "k2h", "--transfer", transfer, "--format", "json"]).unwrap());
        let number = |name: &str| answer[0][name].as_f64().unwrap();
        let (low, predicted, high) = (number("low"), number("predicted"), number("high"));
        assert!(0.0 < low && low <= predicted && predicted <= high, "{transfer}: {answer:#}");
        let limits = answer[0]["bottlenecks"].as_array().unwrap();
        assert!(!limits.is_empty(), "{transfer}");
        assert!(
            limits.iter().all(|limit| !limit["explanation"].as_str().unwrap().is_empty()),
            "{transfer}: {answer:#}"
        );
        let text = output(&["predict", "k2h", "--transfer", transfer]).unwrap();
        assert!(text.contains("  predicted ") && text.contains("  limits"), "{text}");
    }
}

#[test]
fn transfers_at_the_same_time_share() {
    let rate = |transfers: &[&str]| {
        let mut args = vec!["predict", "k2h", "--format", "json"];
        transfers.iter().for_each(|transfer| args.extend(["--transfer", transfer]));
        json(&output(&args).unwrap())[0]["predicted"].as_f64().unwrap()
    };
    let (one, two) = ("edma:TC0:msmc->ddr3a:1MiB", "edma:TC1:msmc->ddr3a:1MiB");
    let together = rate(&[one, two]);
    assert!(together <= 12_800.0, "{together}");
    assert!(together < rate(&[one]) + rate(&[two]), "{together}");
}

#[test]
fn the_engine_agrees_with_the_closed_form() {
    for transfers in [&["edma:TC0:ddr3a->msmc:128KiB"][..], &["edma:TC2:l2.0->msmc", "edma:TC6:l2.1->msmc"]] {
        let mut args = vec!["predict", "k2h", "--format", "json", "--without-setup", "--engine"];
        transfers.iter().for_each(|transfer| args.extend(["--transfer", transfer]));
        let answer = json(&output(&args).unwrap());
        let (closed, engine) =
            (answer[0]["predicted"].as_f64().unwrap(), answer[0]["engine"]["rate"].as_f64().unwrap());
        assert!((engine / closed - 1.0).abs() < 0.1, "{transfers:?}: {engine} and {closed} MB/s");
    }
}

#[test]
fn every_table_in_every_format() {
    let guide = builtin::guide("keystone2").unwrap();
    assert_eq!(guide.tables.len(), 27);
    for table in &guide.tables {
        let print = |format| output(&["table", "k2h", &table.id, "--format", format]).unwrap();
        let rows: usize = table.rows.iter().map(|row| row.cells.len()).sum();
        let object = json(&print("json"));
        assert_eq!(object["rows"].as_array().unwrap().len(), rows, "table {}", table.id);
        let csv = print("csv");
        let fields: BTreeSet<usize> = csv.lines().map(fields).collect();
        assert_eq!(fields, BTreeSet::from([8]), "table {}", table.id);
        assert_eq!(csv.lines().count(), rows + 1, "table {}", table.id);
        let markdown = print("markdown");
        let lines = markdown.lines().filter(|line| line.starts_with('|'));
        assert_eq!(lines.count(), rows + 2, "table {}", table.id);
        assert!(print("terminal").starts_with("Table "), "table {}", table.id);
    }
}

/// How many fields a line of CSV has.
fn fields(line: &str) -> usize {
    let mut quoted = false;
    let commas = line.chars().filter(|&c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    commas.count() + 1
}

#[test]
fn withheld_numbers_are_predicted_and_shown_as_withheld() {
    let object = json(&output(&["table", "k2h", "21", "--format", "json"]).unwrap());
    for row in object["rows"].as_array().unwrap() {
        assert_eq!(row["published"], "withheld");
        assert_eq!(row["error %"], Value::Null);
        let number = |name: &str| row[name].as_f64().unwrap();
        assert!(number("low") < number("predicted") && number("predicted") <= number("high"), "{row}");
    }
}

#[test]
fn the_report_has_everything_and_needs_nothing() {
    let guide = builtin::guide("keystone2").unwrap();
    let file = Scratch::new("report.html", "");
    let said = output(&["report", "k2h", "-o", file.path()]).unwrap();
    assert!(said.contains(file.path()), "{said}");
    let html = fs::read_to_string(file.path()).unwrap();
    let ids = guide.tables.iter().map(|table| format!("table-{}", table.id));
    let ids: Vec<String> = ids.chain((1..=25).map(|number| format!("figure-{number}"))).collect();
    for id in &ids {
        assert_eq!(html.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        assert_eq!(html.matches(&format!("href=\"#{id}\"")).count(), 1, "{id}");
    }
    for outside in ["http:", "https:", "<script", "<link", "<img", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Figure 24 shows a set-up; all others show curves or bars.
    assert_eq!(html.matches("<svg ").count(), 24);
    for (open, close) in
        [("<table", "</table>"), ("<figure", "</figure>"), ("<svg", "</svg>"), ("<section", "</section>")]
    {
        assert_eq!(html.matches(open).count(), html.matches(close).count(), "{open}");
    }
    for section in ["accuracy", "servers", "tables", "figures", "parameters", "clocks", "findings"] {
        assert!(html.contains(&format!("<section id=\"{section}\">")), "{section}");
    }
}

#[test]
fn every_chip_in_the_repository_is_built_in_and_has_a_report() {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(root().join("boards/socs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.insert(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(files, builtin::SOCS.iter().map(|(name, _)| (*name).to_owned()).collect());
    let guide = builtin::guide("keystone2").unwrap();
    for (name, _) in builtin::SOCS {
        let html = fabric::report::html(&builtin::soc(name).unwrap(), &guide).unwrap();
        assert!(html.ends_with("</html>\n"), "{name}");
    }
}

#[test]
fn small_rates_keep_their_digits() {
    let heron = "boards/socs/examples/heron.toml";
    let transfer = "edma:D0:dram->sram:64KiB";
    let args = ["fabric", "predict", heron, "--transfer", transfer, "--set", "clock.dram=1Hz"];
    let (code, text, errors) = program(&args);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains(" B/s   (") && !text.contains(" 0.000 ") && !text.contains(" 0 MB/s"), "{text}");
}

#[test]
fn a_fit_to_what_cannot_be_warns() {
    let heron = "boards/socs/examples/heron.toml";
    let check = |value: &str, expected: Option<&str>| {
        let measured = format!("edma:D0:dram->sram:64KiB={value}");
        let (code, _, errors) = program(&["fabric", "fit", heron, "--transfer", &measured]);
        assert_eq!(code, Some(0), "{errors}");
        match expected {
            Some(what) => assert!(errors.contains("warning: ") && errors.contains(what), "{value}: {errors}"),
            None => assert_eq!(errors, "", "{value}"),
        }
    };
    check("850MB/s", None);
    check("1000000000MB/s", Some("widths and clocks allow 2400; is the unit right?"));
    check("0.001MB/s", Some("went to the end of its range"));
}

#[test]
fn fit_reports_what_the_data_cannot_tell() {
    let guide = builtin::guide("keystone2").unwrap();
    let mut csv = "table,row,column,value\n".to_owned();
    for row in guide.table("17").unwrap().rows.iter() {
        if let Some(value) = row.cells.first().and_then(|cell| cell.value()) {
            let _ = writeln!(csv, "17,{},1,{value}", row.name);
        }
    }
    let data = Scratch::new("table17.csv", &csv);
    let text = output(&["fit", "k2h", data.path(), "--cell", "19,4096,1"]).unwrap();
    for part in [
        "Parameters of links",
        "links.srio.round_trip",
        "11 measurements: mean error",
        "identifiability:",
        "cell 19,4096,1: ",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let fitted =
        json(&output(&["fit", "k2h", data.path(), "--cell", "19,4096,1", "--format", "json"]).unwrap());
    let report = &fitted[0]["report"];
    assert!(report["mean_error"].as_f64().unwrap() < 0.05, "{report:#}");
    // One column at one line rate cannot tell how latencies scale with the line.
    assert!(!report["identifiability"]["ties"].as_array().unwrap().is_empty());
    let cell = &fitted[0]["predictions"][0]["prediction"];
    let width = (cell["high"].as_f64().unwrap() - cell["low"].as_f64().unwrap())
        / cell["predicted"].as_f64().unwrap();
    assert!(width > 0.1, "{cell:#}");
    let error = output(&["fit", "k2h", data.path(), "--cell", "5,x,1"]).unwrap_err();
    assert_eq!(error.code(), 2, "{error}");
}

#[test]
fn audit_prints_findings_with_their_arithmetic() {
    let text = output(&["audit", "keystone2"]).unwrap();
    assert!(text.contains("4341") && text.contains("6400") && text.contains("because:"), "{text}");
    let object = json(&output(&["audit", "keystone2", "--format", "json"]).unwrap());
    let findings = object["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| !finding["arithmetic"].as_str().unwrap().is_empty()));
    let alone = Scratch::new("guide.toml", builtin::GUIDES[0].1);
    let fewer = json(&output(&["audit", alone.path(), "--format", "json"]).unwrap());
    assert!(fewer["findings"].as_array().unwrap().len() < findings.len(), "the chip adds findings");
}

#[test]
fn schema_describes_a_chip() {
    let schema = json(&output(&["schema"]).unwrap());
    for key in ["chip", "clocks", "endpoints", "edma", "links"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
}

#[test]
fn examples_of_the_pages_are_true() {
    let check_page = |name: &str| samples::check_page(&root().join("docs/fabric").join(name), program);
    assert!(check_page("tutorial.md") >= 5);
    assert!(check_page("command.md") >= 4);
}

#[test]
fn the_tutorial_shows_its_file() {
    let page = fs::read_to_string(root().join("docs/fabric/tutorial.md")).unwrap();
    let file = fs::read_to_string(root().join("boards/socs/examples/heron.toml")).unwrap();
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 6);
    for block in blocks {
        assert!(file.contains(block.trim_end()), "not in heron.toml:\n{block}");
    }
}

/// What is open stands in the answer: the question, what each answer gives, what would decide, and limits for each.
#[test]
fn an_open_structure_is_told_with_its_limits() {
    let args = ["predict", "k2h", "--transfer", "edma:TC0:msmc->ddr3a:128KiB"];
    let text = output(&args).unwrap();
    for part in [
        "open: when a write to DDR3 leaves the window of its controller",
        "written, after as long as a read",
        "to decide, measure edma:TC0:msmc->ddr3a:128KiB",
        "limits if written, half of the FIFO at once",
        "512 B / 104.2 ns",
        "1024 B / 104.2 ns",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let answer = json(&output(&[&args[..], &["--format", "json"]].concat()).unwrap());
    assert_eq!(answer[0]["open"][0]["decides"], "edma:TC0:msmc->ddr3a:128KiB");
    assert!(answer[0]["ways"].as_array().unwrap().len() >= 2);
    let clear = output(&["predict", "k2h", "--transfer", "edma:TC0:l2.0->msmc:128KiB"]).unwrap();
    assert!(!clear.contains("open:") && clear.contains("limits, the most used first"), "{clear}");
}

/// Each point of a sweep has a label of its own.
#[test]
fn a_sweep_tells_its_points_apart() {
    let ask = ["predict", "k2h", "--transfer", "edma:TC0:ddr3a->msmc", "--format", "csv", "--points", "9"];
    let labels = |sweep: &str| -> Vec<String> {
        let csv = output(&[&ask[..], &["--sweep", sweep]].concat()).unwrap();
        csv.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
    };
    let fine = labels("endpoints.ddr3a.dram.efficiency=0.9..0.90001x");
    assert_eq!(fine.iter().collect::<BTreeSet<_>>().len(), 9, "{fine:?}");
    assert_eq!((fine[0].as_str(), fine[1].as_str()), ("0.9", "0.90000125"));
    assert_eq!(labels("clock.ddr=400..800MHz")[1], "450");
}

/// A picture of a way has what the transfer passes in order, and stands as a file of its own, as that of a sweep does.
#[test]
fn pictures_stand_alone_and_show_the_way_in_order() {
    let svg = output(&["explain", "k2h", "edma:TC0:ddr3a->l2.0:64KiB", "--format", "svg"]).unwrap();
    let stops = [
        "read from ddr3a",
        "over bridge ses0",
        "transfer controller TC0",
        "read window of one TC",
        "over bridge br2",
        "write to l2.0",
        "what to change first",
    ];
    let places: Vec<usize> =
        stops.iter().map(|stop| svg.find(stop).unwrap_or_else(|| panic!("{stop} in {svg}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(svg.contains("12800 MB/s, "), "capacity and use");
    // Whatever the parts are called in the question.
    let other = output(&["explain", "k2h", "edma:tc0:DDR3A.0->L2:64KiB", "--format", "svg"]).unwrap();
    let asked = ["edma:TC0:ddr3a-&gt;l2.0:65536B", "edma:tc0:DDR3A.0-&gt;L2:65536B"];
    assert_eq!(svg.replace(asked[0], ""), other.replace(asked[1], ""));
    let all = ["core:c66x:ddr3b", "srio:nread:4KiB:4x:5G:L2", "ethernet:1518", "edma:TC0:ddr3a<->msmc:4KiB"];
    let mut pictures = vec![svg];
    pictures.extend(all.map(|transfer| output(&["explain", "k2h", transfer, "--format", "svg"]).unwrap()));
    let sweep = ["--sweep", "clock.ddr=400..800MHz", "--points", "3", "--format", "svg"];
    let both = |other| ["predict", "k2h", "--transfer", "core:c66x:ddr3a", "--transfer", other];
    let mixed = output(&[&both("edma:TC0:ddr3a->msmc:64KiB")[..], &sweep[..]].concat()).unwrap_err();
    assert!(mixed.to_string().contains("transfers of one unit in a picture"), "{mixed}");
    let sweep = output(&[&both("core:a15:ddr3a")[..], &sweep[..]].concat()).unwrap();
    assert!(sweep.contains("core:c66x:ddr3a:single</text>"), "the names of the series: {sweep}");
    pictures.push(sweep);
    for svg in pictures {
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }
}

/// The page of a chip of one's own has all of it, and speaks of no guide.
#[test]
fn the_report_of_ones_own_chip_is_complete_and_neutral() {
    let guide = builtin::guide("keystone2").unwrap();
    let path = root().join("boards/socs/examples/heron.toml");
    let html = fabric::report::html(&builtin::soc(path.to_str().unwrap()).unwrap(), &guide).unwrap();
    for section in ["memories", "dma", "cores", "servers", "ports", "parameters", "clocks"] {
        assert!(html.contains(&format!("<section id=\"{section}\">")), "{section}");
    }
    assert!(html.contains("id=\"dma-sizes\""), "a curve over the size of a transfer");
    for word in ["guide", "KeyStone", "printed", "dsp3", "table out", "unseen"] {
        let body = html.split_once("</style>").unwrap().1;
        assert!(!body.contains(word), "{word}");
    }
}

#[test]
fn no_output_overwrites_the_chip() {
    let text = fs::read_to_string(root().join("boards/socs/k2h.toml")).unwrap();
    let chip = Scratch::new("self.toml", &text);
    for args in [&["report"][..], &["explain", "edma:TC0:ddr3a->l2.0:64KiB"]] {
        let (command, rest) = args.split_first().unwrap();
        let all = [&["fabric", command, chip.path()], rest, &["-o", chip.path()]].concat();
        let (code, _, errors) = program(&all);
        assert_eq!(code, Some(2), "{args:?}: {errors}");
        assert!(errors.contains("for '--output': expected a file other than"), "{args:?}: {errors}");
        assert_eq!(fs::read_to_string(&chip.0).unwrap(), text, "{args:?}");
    }
}
