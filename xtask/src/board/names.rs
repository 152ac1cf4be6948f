//! Addresses that a board prints when it ends, with the functions and lines that they lie in.

use super::Board;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What stands in front of such an address, alone on its line.
const AT: &str = "  at 0x";

/// An image that addresses are looked up in.
#[derive(Clone, Debug)]
pub struct Names {
    image: PathBuf,
    tool: &'static str,
}

impl Names {
    /// The names of a board's image.
    pub fn new(board: &Board, image: &Path) -> Names {
        // Each comes with the compiler for FreeRTOS.
        let is_64 = board.target.starts_with("aarch64");
        Names::by(if is_64 { "aarch64-linux-gnu-addr2line" } else { "arm-none-eabi-addr2line" }, image)
    }

    /// Those of an image that this tool understands.
    pub fn by(tool: &'static str, image: &Path) -> Names {
        Names { image: image.to_owned(), tool }
    }

    /// The functions at the address that a line of the console tells, from the innermost on, a line each; nothing for other lines.
    pub fn of(&self, line: &str) -> Result<String> {
        let Some(digits) = line.trim_end().strip_prefix(AT) else { return Ok(String::new()) };
        let address = format!("0x{digits}");
        let mut command = Command::new(self.tool);
        command.args(["-f", "-i", "-e"]).arg(&self.image).arg(&address);
        let output = command.output().with_context(|| format!("cannot start {}", self.tool))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let here = std::env::current_dir().unwrap_or_default().display().to_string();
        let name = |pair: &[&str]| {
            let [function, place] = pair else { return String::new() };
            // On some processors the place of each call has a label, which is found before the function.
            let function = if function.starts_with(".L") { "in" } else { function };
            let place = place.strip_prefix(&here).map_or(*place, |inside| inside.trim_start_matches('/'));
            format!("     {:#} ({place})\n", rustc_demangle::demangle(function))
        };
        Ok(lines.chunks(2).map(name).collect())
    }

    /// A text with the names below each line that tells an address.
    pub fn explain(&self, text: &str) -> String {
        let line = |line: &str| {
            let names = self.of(line).unwrap_or_else(|error| format!("     {error:#}\n"));
            format!("{line}\n{names}")
        };
        text.lines().map(line).collect()
    }

    /// Copies a console as it comes, with the names below each line that tells an address.
    pub fn copy(&self, mut from: impl Read, mut to: impl Write) -> Result<()> {
        let (mut bytes, mut line) = ([0; 256], Vec::new());
        loop {
            let len = from.read(&mut bytes)?;
            if len == 0 {
                return Ok(());
            }
            for byte in &bytes[..len] {
                to.write_all(&[*byte])?;
                line.push(*byte);
                if *byte == b'\n' {
                    let names = self.of(&String::from_utf8_lossy(&line))?;
                    // The terminal is raw: a new line needs its return.
                    to.write_all(names.replace('\n', "\r\n").as_bytes())?;
                    line.clear();
                }
            }
            to.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_with_an_address_are_explained() {
        let names = Names { image: PathBuf::from("/none"), tool: "true" };
        let text = "pc 0x1234\n at 0x12\n  at 0x12\n";
        assert_eq!(names.explain(text), text);
        let names = Names { image: PathBuf::from("/none"), tool: "/nowhere/addr2line" };
        assert_eq!(names.explain(text).lines().count(), 4);
        let mut out = Vec::new();
        Names { image: PathBuf::from("/none"), tool: "true" }.copy(text.as_bytes(), &mut out).unwrap();
        assert_eq!(out, text.as_bytes());
    }
}
