//! Tests of chip files: what loads, and where what does not is refused.

use super::*;
use proptest::prelude::*;

const K2H: &str = include_str!("../../../../boards/socs/k2h.toml");

const CHIPS: [(&str, &str); 6] = [
    ("k2h", K2H),
    ("k2e", include_str!("../../../../boards/socs/k2e.toml")),
    ("stm32h743", include_str!("../../../../boards/socs/stm32h743.toml")),
    ("softcore", include_str!("../../../../boards/socs/softcore.toml")),
    ("xupv5", include_str!("../../../../boards/socs/xupv5.toml")),
    ("zcu102", include_str!("../../../../boards/socs/zcu102.toml")),
];

/// A chip with one of everything, in which each test breaks one line.
const SMALL: &str = r#"[chip]
name = "X"
title = "A chip"
[clocks]
a = { frequency = "1 GHz" }
b = { from = "a", divide = 2 }
[fabrics]
f = { width = "128 bit", clock = "b" }
g = { width = "64 bit", clock = "b" }
[bridges]
w = { from = "f", to = "g", width = "64 bit", clock = "b", crossing = "3 cycles @ b", gap = "1 cycle @ b" }
[endpoints.m]
kind = "sram"
fabric = "g"
width = "64 bit"
clock = "b"
direction = "half"
[endpoints.n]
kind = "sram"
fabric = "f"
behind = "m"
width = "64 bit"
clock = "b"
direction = "full"
[cores.c]
count = 1
clock = "a"
width = "64 bit"
outstanding = { own = 2 }
reads.m = { latency = "9 cycles @ a", pipeline = "own" }
[edma.e]
fabric = "f"
width = "128 bit"
clock = "b"
default_burst = "64 B"
fifo = "512 B"
outstanding_reads = "256 B"
outstanding_writes = "512 B"
setup = "9 cycles @ b"
transfer_controllers = [{ name = "TC0", bridges = ["w"] }]
"#;

/// Replaces one piece of the small chip and expects an error that starts with `what` where `at` first stands.
fn check(old: &str, new: &str, at: &str, what: &str) {
    assert!(SMALL.contains(old), "{old:?} is not in the chip");
    let broken = SMALL.replacen(old, new, 1);
    let place = broken.find(at).expect("the place is in the file");
    let expected = SocError::at(&broken, &(place..place), what).to_string();
    match load(&broken) {
        Ok(_) => panic!("{new:?} loads"),
        Err(error) => {
            assert!(error.to_string().starts_with(&expected), "{new:?}:\n found {error}\n  want {expected}")
        }
    }
}

#[test]
fn the_chips_that_come_with_the_program_load() {
    for (name, text) in CHIPS {
        if let Err(error) = load(text) {
            panic!("{name}: {error}");
        }
    }
    assert!(load(SMALL).is_ok());
}

#[test]
fn keys_and_units_are_refused_at_their_place() {
    check("divide = 2", "divides = 2", "divides", "unknown field `divides`, expected one of");
    check("\"1 GHz\"", "\"1\"", "\"1\"", "\"1\" has no unit; expected one of Hz, kHz, MHz, GHz");
    check("\"1 GHz\"", "1", "1 }", "invalid type: integer `1`, expected text with a unit");
    check("\"1 GHz\"", "\"0 Hz\"", "\"0 Hz\"", "\"0 Hz\" is absurd; expected 1 to");
    check("\"1 GHz\"", "\"9e9 GHz\"", "\"9e9 GHz\"", "\"9e9 GHz\" is absurd");
    check("\"128 bit\"", "\"0 bit\"", "\"0 bit\"", "\"0 bit\" is absurd");
    check(
        "\"128 bit\"",
        "\"128 ns\"",
        "\"128 ns\"",
        "\"ns\" does not fit here; expected one of B/cycle, bit",
    );
    check(
        "{ frequency = \"1 GHz\" }",
        "\"1 GHz\"",
        "\"1 GHz\"",
        "invalid type: string \"1 GHz\", expected a table such as { frequency = \"800 MHz\" }",
    );
    check("name = \"X\"", "", "[chip]", "missing field `name`");
    check("kind = \"sram\"", "kind = \"rom\"", "\"rom\"", "unknown variant `rom`, expected `sram` or `dram`");
    check("\"3 cycles @ b\"", "\"3 ns\"", "\"3 ns\"", "\"ns\" does not fit here");
}

#[test]
fn a_value_makes_no_new_part() {
    let soc = load(SMALL).expect("the chip loads");
    for (key, names) in [("clock.z", "a, b"), ("bridges.z", "w"), ("edma.z", "e")] {
        let error = soc.with(&[(key.into(), "800MHz".into())]).expect_err(key);
        assert_eq!(error.what, format!("nothing is named 'z'; expected one of {names}"));
    }
}

#[test]
fn names_that_nothing_has_are_refused_at_their_place() {
    check("from = \"a\"", "from = \"z\"", "\"z\"", "no clock is named \"z\"; expected one of: a, b");
    check("from = \"f\"", "from = \"z\"", "\"z\"", "no fabric is named \"z\"; expected one of: f, g");
    check("\"3 cycles @ b\"", "\"3 cycles @ z\"", "\"3 cycles @ z\"", "no clock is named \"z\"");
    check("[\"w\"]", "[\"z\"]", "\"z\"", "no bridge is named \"z\"; expected one of: w");
    check("behind = \"m\"", "behind = \"z\"", "\"z\"", "no endpoint is named \"z\"; expected one of: m, n");
    check("pipeline = \"own\"", "pipeline = \"z\"", "\"z\"", "no pipeline is named \"z\"");
}

#[test]
fn circles_and_impossible_sizes_are_refused_at_their_place() {
    check("{ frequency = \"1 GHz\" }", "{ from = \"b\" }", "\"b\" }", "clock \"a\" derives from itself");
    check("behind = \"m\"", "behind = \"n\"", "\"n\"", "endpoint \"n\" is behind itself");
    check("to = \"g\"", "to = \"f\"", "\"f\", width = \"64", "a bridge joins two different fabrics");
    check("divide = 2", "divide = 0", "0 }", "expected 1 to 65536");
    check("\"1 GHz\" }", "\"1 GHz\", divide = 2 }", "{ frequency", "clock \"a\": expected either");
    check("\"256 B\"", "\"32 B\"", "\"32 B\"", "expected at least the default burst size");
    check("\"64 B\"", "\"0 B\"", "\"0 B\"", "expected at least 1 B");
    check("kind = \"sram\"", "kind = \"dram\"", "[endpoints.m]", "endpoint \"m\": expected a dram section");
    check("own = 2", "own = 0", "[cores.c]", "expected outstanding reads from 1 to 1024");
}

/// Questions do not tell the case of names, and take them apart at dots and colons.
#[test]
fn names_that_no_question_reaches_are_refused() {
    let twice = |what: &str, name: &str, other: &str| {
        format!("{what} {name:?} beside {other:?}: questions do not tell them apart; expected another name")
    };
    check("[endpoints.n]", "[endpoints.M]", "[endpoints.m]", &twice("endpoint", "m", "M"));
    let core = "[cores.C]\ncount = 1\nclock = \"a\"\nwidth = \"64 bit\"\n[edma.e]";
    check("[edma.e]", core, "[cores.c]", &twice("core", "c", "C"));
    let second = "bridges = [\"w\"] }, { name = \"tc0\" }]";
    check("bridges = [\"w\"] }]", second, "\"tc0\"", &twice("transfer controller", "tc0", "TC0"));
    let apart =
        |what: &str, name: &str| format!("{what} {name:?}: no question reaches it; expected a name without");
    check("[endpoints.n]", "[endpoints.\"n.1\"]", "[endpoints.\"n.1\"]", &apart("endpoint", "n.1"));
    check("[cores.c]", "[cores.\"c.d\"]", "[cores.\"c.d\"]", &apart("core", "c.d"));
    check("\"TC0\"", "\"TC:0\"", "\"TC:0\"", &apart("transfer controller", "TC:0"));
}

#[test]
fn a_fault_of_a_link_has_a_place() {
    let broken = K2H.replacen("packets_per_acknowledgement = 1", "packets_per_acknowledgement = 0", 1);
    let place = broken.find("0\nmax_payload_out").expect("it was put there");
    let error = load(&broken).expect_err("acknowledgements are for packets");
    let SocError { line, column, .. } = SocError::at(&broken, &(place..place), "");
    assert_eq!((error.line, error.column), (line, column), "{error}");
}

#[test]
fn clocks_divide_and_routes_cross_bridges() {
    let soc = load(K2H).expect("loads");
    assert_eq!(soc.frequency("dsp3").map(Hertz::value), Some(4e8));
    let route = |tc, to| soc.route(tc, to).map_err(|error| error.to_string());
    assert_eq!(route("TC2", "ddr3a"), Ok(vec!["br5".to_owned(), "ses0".to_owned()]));
    assert_eq!(route("TC0", "msmc"), Ok(vec!["sms0".to_owned()]));
    assert_eq!(route("TC2", "l2.7"), Ok(vec![]));
    assert_eq!(route("TC2", "l2.8"), Err("no memory is named \"l2.8\"".to_owned()));
    assert_eq!(route("TC2", "l1d"), Err("no fabric reaches \"l1d\"".to_owned()));
    assert_eq!(route("TC77", "l2"), Err("no transfer controller is named \"TC77\"".to_owned()));
}

#[test]
fn the_schema_names_every_section() {
    let schema = serde_json::to_string(&json_schema()).expect("a schema is JSON");
    for section in
        ["clocks", "fabrics", "bridges", "endpoints", "cores", "edma", "links", "additionalProperties"]
    {
        assert!(schema.contains(&format!("\"{section}\"")), "{section}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A byte of a good file changed, dropped or doubled: an error or a chip, never a panic.
    #[test]
    fn no_file_panics(at in 0..K2H.len(), byte in 32u8..127, kind in 0..3u8) {
        let mut bytes = K2H.as_bytes().to_vec();
        match kind {
            0 => bytes[at] = byte,
            1 => { bytes.remove(at); }
            _ => bytes.insert(at, byte),
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = load(&text);
        }
    }
}

#[test]
fn all_that_is_missing_is_said_at_once() {
    let check = |text: &str, expected: &str| {
        assert_eq!(load(text).expect_err(text).to_string(), expected, "{text}");
    };
    check("", "line 1, column 1: missing fields `chip` (with `name`, `title`), `clocks`");
    check(
        "[chip]\nname = \"X\"\n[clocks]\na = { frequency = \"1 GHz\" }\n[fabrics.f]\n[bridges.w]\nfrom = \"f\"\n",
        "line 1, column 1: missing field `title` of [chip]; line 5: missing fields `width`, `clock` of [fabrics.f]; \
         line 6: missing fields `to`, `width`, `clock`, `crossing` of [bridges.w]",
    );
}

/// Every key that reading needs is one that the schema says is needed, and the other way round.
#[test]
fn the_schema_needs_what_reading_needs() {
    let whole: toml::Table = toml::from_str(SMALL).expect("the chip is TOML");
    fn walk(root: &toml::Table, path: &mut Vec<String>, seen: &mut Vec<(String, bool, bool)>) {
        let table = path.iter().fold(root, |table, key| table[key].as_table().expect("a table"));
        for (key, value) in table {
            let mut without = root.clone();
            let place =
                path.iter().fold(&mut without, |table, key| table[key].as_table_mut().expect("a table"));
            place.remove(key);
            let text = toml::to_string(&without).expect("TOML");
            let read = crate::document::read::<Soc>(&text);
            let named = |error: &str| error.contains(&format!("missing field `{key}`"));
            let reads = read.as_ref().is_err_and(|error| named(error.message()));
            let says =
                super::missing::all(&text).is_some_and(|error| error.what.contains(&format!("`{key}`")));
            seen.push((format!("{}.{key}", path.join(".")), reads, says));
            if value.is_table() {
                path.push(key.clone());
                walk(root, path, seen);
                path.pop();
            }
        }
    }
    let mut seen = Vec::new();
    walk(&whole, &mut Vec::new(), &mut seen);
    assert!(seen.iter().any(|(_, reads, _)| *reads) && seen.iter().any(|(_, reads, _)| !reads));
    for (key, reads, says) in seen {
        assert_eq!(reads, says, "{key}");
    }
}
