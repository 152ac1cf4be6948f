//! Where the soft core's clocks go, by function: every instruction that ends is counted, with the clocks since the one before it.

use super::{OUT, count};
use crate::shell;
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Functions that are shown.
const SHOWN: usize = 30;
/// What is counted, and what of.
const MEASURED: [(&str, &str); 4] =
    [("requests", "request"), ("closing", "request"), ("receive", "segment"), ("send", "segment")];

/// Instructions, clocks, lines of code and lines of data from memory.
type Sums = [f64; 4];

/// What one measurement took, for each request or segment.
struct Counted {
    figure: String,
    total: Sums,
    by_function: Vec<(String, Sums)>,
}

/// What is counted under this name.
pub fn named(name: &str) -> Result<&'static str> {
    let found = MEASURED.into_iter().map(|(what, _)| what).find(|what| *what == name);
    found.with_context(|| {
        format!("nothing to count is called {name:?}, but {}", MEASURED.map(|(what, _)| what).join(", "))
    })
}

/// Counts what `only` names, or everything; prints it and writes it to `target/boards/softcore-count.json`.
pub fn run(hardware: &Path, image: &Path, only: Option<&str>) -> Result<()> {
    let functions = count::functions(image)?;
    let mut report = Map::new();
    for (what, unit) in MEASURED.iter().filter(|(what, _)| only.is_none_or(|only| only == *what)) {
        let counted = measure(hardware, image, what, &functions)?;
        print(what, unit, &counted);
        report.insert((*what).to_owned(), counted.json(unit));
    }
    let path = Path::new(OUT).join("softcore-count.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&Value::Object(report))?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

/// Whether a measurement can be counted, and is told completely: for the board's test.
pub fn check(hardware: &Path, image: &Path) -> Result<String> {
    let counted = measure(hardware, image, "requests", &count::functions(image)?)?;
    let [instructions, clocks, ..] = counted.total;
    ensure!(clocks > instructions && instructions > 1_000.0, "{instructions} instructions, {clocks} clocks");
    let named: f64 =
        counted.by_function.iter().filter(|(name, _)| name != NAMELESS).map(|(_, sums)| sums[0]).sum();
    ensure!(
        named > 0.9 * instructions,
        "only {named:.0} of {instructions:.0} instructions lie in a function"
    );
    Ok(format!("{instructions:.0} instructions and {clocks:.0} clocks a request"))
}

/// What lies in no function.
const NAMELESS: &str = "without a name";

fn measure(hardware: &Path, image: &Path, what: &str, functions: &count::Functions) -> Result<Counted> {
    let file = Path::new(OUT).join(format!("softcore-counts-{what}"));
    let mut command = Command::new(hardware);
    command
        .arg(image)
        .args(["measure", what])
        .arg(format!("counts={}", file.display()))
        .stderr(Stdio::null());
    let figure = shell::output(&mut command).with_context(|| what.to_owned())?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let (total, by_function) = sums(&text, functions)?;
    Ok(Counted { figure: figure.trim().to_owned(), total, by_function })
}

/// The sums of a file of counts, each divided by the units that its first line tells.
fn sums(text: &str, functions: &count::Functions) -> Result<(Sums, Vec<(String, Sums)>)> {
    let mut lines = text.lines();
    let units: f64 = lines.next().context("no counts")?.parse()?;
    ensure!(units > 0.0, "nothing was measured");
    let (mut total, mut sums) = (Sums::default(), BTreeMap::<&str, Sums>::new());
    for line in lines {
        let mut fields = line.split(' ');
        let address = u64::from_str_radix(fields.next().unwrap_or_default(), 16)?;
        let sum = sums.entry(count::function_at(functions, address).unwrap_or(NAMELESS)).or_default();
        for (at, field) in fields.enumerate().take(total.len()) {
            let each = field.parse::<f64>()? / units;
            total[at] += each;
            sum[at] += each;
        }
    }
    let mut by_function: Vec<_> = sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    by_function.sort_by(|a, b| b.1[1].total_cmp(&a.1[1]));
    Ok((total, by_function))
}

fn print(what: &str, unit: &str, counted: &Counted) {
    let [instructions, clocks, code, data] = counted.total;
    println!("\n{what}: {}", counted.figure);
    println!(
        "{clocks:.0} clocks, {instructions:.0} instructions, {code:.0} lines of code and {data:.0} of data from memory each {unit}:"
    );
    println!("{:>8} {:>6} {:>8} {:>7} {:>7}  function", "clocks", "%", "instr.", "code", "data");
    for (name, [instructions, own, code, data]) in counted.by_function.iter().take(SHOWN) {
        let share = 100.0 * own / clocks;
        println!("{own:>8.0} {share:>6.1} {instructions:>8.0} {code:>7.1} {data:>7.1}  {name}");
    }
}

impl Counted {
    fn json(&self, unit: &str) -> Value {
        let value = |[instructions, clocks, code, data]: Sums| {
            let round = |value: f64| (value * 10.0).round() / 10.0;
            json!({ "instructions": round(instructions), "clocks": round(clocks), "lines_of_code": round(code), "lines_of_data": round(data) })
        };
        let functions: Map<String, Value> =
            self.by_function.iter().map(|(name, sums)| (name.clone(), value(*sums))).collect();
        json!({ "each": unit, "figure": self.figure, "total": value(self.total), "functions": functions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_by_function_and_divided_by_units() {
        let functions =
            count::Functions::from([(0x100, (0x110, "one".to_owned())), (0x200, (0x210, "two".to_owned()))]);
        let (total, by_function) =
            sums("2\n100 4 6 2 0\n10e 2 2 0 0\n110 2 2 0 0\n200 10 40 4 8\n", &functions).unwrap();
        assert_eq!(total, [9.0, 25.0, 3.0, 4.0]);
        let expected =
            [("two", [5.0, 20.0, 2.0, 4.0]), ("one", [3.0, 4.0, 1.0, 0.0]), (NAMELESS, [1.0, 1.0, 0.0, 0.0])];
        assert_eq!(by_function, expected.map(|(name, sums)| (name.to_owned(), sums)));
        assert!(sums("", &functions).is_err());
        assert!(sums("0\n", &functions).is_err());
        assert!(sums("1\nxyz 1 1 1 1\n", &functions).is_err());
    }
}
