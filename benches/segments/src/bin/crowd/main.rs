//! What a packet, a byte and an idle connection cost the HTTP server as their number grows.
//!
//! `crowd requests COUNT CONNECTIONS [idle]` asks our HTTP server COUNT times for 354 bytes, each time over another of so many
//! connections, in random order; with `idle` all have been quiet for 5 s. `crowd answers LENGTH` asks over one connection
//! for as many answers of LENGTH bytes as make 4 MiB, at least one. What is to be counted is within the function `measured`.
//!
//! `crowd idle own|kernel COUNT` prints the bytes that our HTTP server and its stack, or the kernel's sockets under it,
//! have allocated for each of so many connections that have asked once.

mod asking;
mod idle;
mod weight;

use std::process::ExitCode;

const USAGE: &str = "expected: requests COUNT CONNECTIONS [idle], answers LENGTH, or idle own|kernel COUNT";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match said(&words) {
        Some(Ok(said)) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("{}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// What to print; `None` where the words say nothing.
fn said(words: &[&str]) -> Option<std::io::Result<String>> {
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number > 0);
    Some(match words {
        ["requests", count, connections, rest @ ..] if rest.is_empty() || rest == ["idle"] => Ok(format!(
            "{} packets",
            asking::requests(number(count)?, number(connections)?, !rest.is_empty())
        )),
        ["answers", len] => Ok(format!("{} bytes", asking::answers(number(len)?))),
        ["idle", "own", count] => Ok(format!("{} bytes each", idle::own(number(count)?))),
        ["idle", "kernel", count] => idle::kernel(number(count)?).map(|bytes| format!("{bytes} bytes each")),
        _ => return None,
    })
}
