//! Every key of the chips that come with the program changes an answer, or is refused when it changes.

use super::{Soc, load};
use crate::memory::Pattern;
use crate::predict::TableModel;
use crate::{ask, guide, memory, mix};

const CHIPS: [(&str, &str); 6] = [
    ("xupv5", include_str!("../../../../boards/socs/xupv5.toml")),
    ("zcu102", include_str!("../../../../boards/socs/zcu102.toml")),
    ("k2h", include_str!("../../../../boards/socs/k2h.toml")),
    ("k2e", include_str!("../../../../boards/socs/k2e.toml")),
    ("stm32h743", include_str!("../../../../boards/socs/stm32h743.toml")),
    ("softcore", include_str!("../../../../boards/socs/softcore.toml")),
];

/// Words for people, and what stands for other keys.
const WORDS: [&str; 5] = ["chip.", ".title", "alternatives.", ".question", ".spread"];

/// Other values of the same kind.
fn others(value: &str) -> Vec<String> {
    let (number, unit) = crate::units::split_number(value);
    if let Ok(number) = number.parse::<f64>() {
        let whole = unit.is_empty() && number.fract() == 0.0;
        let factors =
            [0.5, 0.05, 20.0, 0.01].map(|factor| if number == 0.0 { factor } else { number * factor });
        let text = |number: f64| if whole { number.ceil() } else { number };
        return factors.map(|number| format!("{} {unit}", text(number)).trim().to_owned()).to_vec();
    }
    let other = match value {
        "true" => "false",
        "false" => "true",
        "half" => "full",
        "full" => "half",
        "8b10b" => "4b5b",
        _ if value.contains('b') && value.len() <= 6 => "8b10b",
        _ => return Vec::new(),
    };
    vec![other.to_owned()]
}

/// Settings under which keys count that have nothing to say otherwise: a second rank, another line rate, copies by cores.
const WORLD: [(&str, &str); 6] = [
    ("links.tcp.*.serial_share", "50 %"),
    ("links.tcp.*.per_acknowledgement", "1000 cycles"),
    ("endpoints.*.dram.ranks", "2"),
    ("links.hyperlink.line_rate", "10 Gbaud"),
    ("links.tcp.*.copies", "2"),
    ("links.tcp.*.checksum_offload", "false"),
];

/// The chip in that world, as far as it has the keys.
fn in_the_world(soc: &Soc) -> Soc {
    let mut soc = soc.clone();
    let servers: Vec<String> = soc.links.tcp.keys().cloned().collect();
    for (key, value) in WORLD {
        // One server may refuse what others take.
        let keys: Vec<String> = match key.strip_prefix("links.tcp.*") {
            Some(rest) => servers.iter().map(|name| format!("links.tcp.{name}{rest}")).collect(),
            None => vec![key.to_owned()],
        };
        for key in keys {
            soc = soc.with(&[(key, value.to_owned())]).unwrap_or(soc);
        }
    }
    soc
}

/// What a chip answers to many questions, with the reasons.
fn answers(soc: &Soc, key: &str) -> Vec<String> {
    let mut all =
        if key.starts_with("links.") || key.starts_with("clocks.") { links(soc) } else { Vec::new() };
    if key.starts_with("links.") {
        return all;
    }
    let controllers: Vec<&str> = ask::controllers(soc).collect();
    let memories: Vec<String> = soc
        .endpoints
        .iter()
        .flat_map(|(name, memory)| {
            [format!("{name}.0"), format!("{name}.{}", memory.count.saturating_sub(1))]
        })
        .collect();
    let base: Vec<&str> = soc.endpoints.keys().map(String::as_str).collect();
    for controller in controllers {
        for (at, from) in base.iter().enumerate() {
            for to in [Some(from), base.get(at + 1), base.first()].into_iter().flatten() {
                for options in
                    [":64KiB", ",sync=ab,acnt=40,bcnt=64,index=64", ",sync=ab,acnt=64,bcnt=64,index=16384"]
                {
                    let text = format!("edma:{controller}:{from}->{to}{options}");
                    all.push(format!("{:?}", ask::answer(soc, &text)));
                }
            }
        }
    }
    all.push(format!("{memories:?}"));
    for (core, of) in &soc.cores {
        for source in of.reads.keys() {
            for pattern in [Pattern::Single, Pattern::Burst] {
                all.push(format!("{:?}", memory::read(soc, core, source, pattern)));
            }
        }
        for size in of.levels.values().filter_map(|level| level.size.as_ref()) {
            for bytes in [0.5, 1.5, 4.0].map(|part| (part * size.value()) as u64) {
                let sets = [
                    "load:CORE:SIZE",
                    "load:CORE:SIZE:burst",
                    "load:CORE:SIZE:burst,stride=128",
                    "store:CORE:SIZE",
                ];
                let all_of_it = [
                    "memory:CORE:read:SIZE",
                    "memory:CORE:read:SIZE,element=4",
                    "memory:CORE:read:SIZE,element=16",
                    "memory:CORE:fill:SIZE",
                    "memory:CORE:copy:SIZE,from=4,to=8",
                ];
                for question in sets.iter().chain(&all_of_it) {
                    let text = question.replace("CORE", core).replace("SIZE", &bytes.to_string());
                    all.push(format!("{:?}", ask::answer(soc, &text)));
                }
            }
        }
        for memory in &base {
            for number in [0, 1, 3, 7] {
                let flows = format!(
                    "title = \"\"\n[[flow]]\nname = \"a\"\ntransfer = \"fill:{core}.{number}:{memory}\"\nbytes = \"1 KiB\"\n"
                );
                all.push(format!("{:?}", mix::load(&flows).map(|flows| mix::run(soc, &flows))));
            }
        }
    }
    all
}

/// What its links answer.
fn links(soc: &Soc) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for port in soc.links.ethernet.keys() {
        texts.extend(
            ["64", "1514", "1518", "1522"].map(|frame| format!("ethernet:{frame},port={port},count=packet")),
        );
    }
    texts.extend(soc.links.tcp.keys().map(|server| format!("tcp:{server}")));
    for way in ["read", "write"] {
        for more in ["", ":bidir", ":bridged"] {
            texts.extend([64, 128, 256, 512].map(|size| format!("pcie:{way}:{size}{more}")));
        }
        for memory in ["L2", "MSMC", "DDR3"] {
            texts.extend(["near", "far"].map(|path| format!("hyperlink:{way}:{memory},path={path}")));
        }
    }
    for kind in ["nread", "nwrite", "type11"] {
        for size in [8, 70, 256, 4096] {
            for rate in ["1.25", "2.5", "3.125", "5"] {
                for lanes in [1, 2, 4] {
                    texts.extend(
                        ["L2", "DDR3"].map(|memory| format!("srio:{kind}:{size}:{lanes}x:{rate}G:{memory}")),
                    );
                }
            }
        }
    }
    let mut all: Vec<String> = texts.iter().map(|text| format!("{:?}", ask::answer(soc, text))).collect();
    let port = soc.links.pcie.as_ref();
    all.push(format!(
        "{:?}",
        port.map(|port| port.predict(&crate::links::pcie::PcieTransfer {
            read: true,
            bidirectional: false,
            payload: crate::units::Bytes::new(512.0),
            burst: crate::units::Bytes::new(512.0),
            bridged: false,
            lanes: None,
        }))
    ));
    all
}

#[test]
fn every_key_counts_or_is_refused() {
    let guide = guide::load(include_str!("../../../../boards/guides/keystone2.toml")).expect("the guide");
    for (chip, text) in CHIPS {
        let soc = load(text).unwrap_or_else(|error| panic!("{chip}: {error}"));
        let plain = Soc { alternatives: std::collections::BTreeMap::new(), ..soc };
        let world = in_the_world(&plain);
        let cells = |soc: &Soc| -> Vec<String> {
            let tables = guide.tables.iter().filter(|table| matches!(table.id.as_str(), "1" | "2"));
            let ask = |id: &str, row: &str| format!("{:?}", soc.cell(id, row, 1));
            tables
                .flat_map(|table| table.rows.iter().map(|row| ask(&table.id, &row.name)).collect::<Vec<_>>())
                .collect()
        };
        let bases = [&plain, &world];
        let before = bases.map(|base| ["links.", "clocks.", ""].map(|prefix| answers(base, prefix)));
        let keys = plain.keys();
        let zero = |key: &str| {
            // A time of 0 is the reference that others are counted from: nothing of it can be paced.
            let table = key.rsplit_once('.').map_or("", |(table, _)| table);
            keys.iter().any(|(other, value)| *other == format!("{table}.time") && value == "0 ns")
        };
        let mut idle = Vec::new();
        for (key, value) in &keys {
            if WORDS.iter().any(|word| key.contains(word)) || zero(key) {
                continue;
            }
            let group = usize::from(!key.starts_with("links."))
                + usize::from(!key.starts_with("links.") && !key.starts_with("clocks."));
            let others = others(value);
            let counts = others.iter().any(|to| {
                bases.iter().zip(&before).any(|(base, before)| {
                    // What is refused counts; so does what changes an answer.
                    let Ok(changed) = base.with(&[(key.clone(), to.clone())]) else { return true };
                    before.get(group) != Some(&answers(&changed, key)) || cells(&changed) != cells(base)
                })
            });
            if !others.is_empty() && !counts {
                idle.push(format!("{key} = {value}"));
            }
        }
        assert!(
            idle.is_empty(),
            "{chip}: these keys change nothing and are not refused:\n{}",
            idle.join("\n")
        );
    }
}
