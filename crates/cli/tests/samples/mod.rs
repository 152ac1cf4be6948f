//! Samples in pages: in a console block, after a line `$ linerate ...`, stands what it prints.

use std::fs;
use std::path::Path;

/// Exit code, standard output and standard error of the program.
pub type Printed = (Option<i32>, String, String);

/// Runs the samples of a page and compares; returns how many there are. With `LINERATE_UPDATE_DOCS` set, writes the page
/// anew instead.
pub fn check_page(path: &Path, program: impl Fn(&[&str]) -> Printed) -> usize {
    let page = fs::read_to_string(path).unwrap();
    let (mut fresh, mut inside, mut samples) = (String::new(), false, 0);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        let command = line.strip_prefix("$ linerate ").filter(|_| inside);
        if inside && command.is_none() && !line.starts_with("```") {
            continue;
        }
        fresh.push_str(line);
        fresh.push('\n');
        if let Some(command) = command {
            samples += 1;
            // As a shell takes them: quotes are for it.
            let words: Vec<String> = command.split_whitespace().map(|word| word.replace('\'', "")).collect();
            let (code, text, errors) = program(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(code == Some(0) || code == Some(2), "{command}: {errors}");
            fresh.push_str(&text);
            fresh.push_str(&errors);
        }
    }
    if std::env::var_os("LINERATE_UPDATE_DOCS").is_some() {
        fs::write(path, &fresh).unwrap();
    } else {
        assert!(page == fresh, "{} is out of date: run with LINERATE_UPDATE_DOCS=1\n{fresh}", path.display());
    }
    samples
}
