//! The way of a transfer as a picture: what it passes from top to bottom, with the room of each part and how full it is.

use super::show::figure;
use linerate_fabric::ask::{Transfer, edma_transfers};
use linerate_fabric::predict::{Bottleneck, Prediction, Unit};
use linerate_fabric::soc::Soc;
use linerate_lab::report::page::escape;
use std::fmt::Write as _;

/// The picture, in its own units: narrow enough to be read on a phone.
const WIDTH: usize = 560;
const EDGE: usize = 16;
const HEAD: usize = 74;
const TITLE: usize = 26;
const ROOM: usize = 44;
const GAP: usize = 26;

/// A part of the way with the limits that lie in it.
struct Stop<'a> {
    name: String,
    rooms: Vec<&'a Bottleneck>,
}

/// The longest line below the picture, in characters.
const LINE: usize = 78;

/// The picture of a transfer with what is said below it; lines that do not begin with a space are headings.
pub fn picture(soc: &Soc, transfer: &Transfer, found: &Prediction, said: &[String]) -> String {
    let stops = stops(soc, transfer, found);
    let said: Vec<String> = said.iter().flat_map(|line| wrapped(line)).collect();
    let tall = |stop: &Stop<'_>| TITLE + ROOM * stop.rooms.len() + 6;
    let way: usize = stops.iter().map(|stop| tall(stop) + GAP).sum();
    let height = HEAD + way + 20 * said.len() + 16;
    let title = escape(&transfer.to_string());
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\"><title>{title}</title><style>{STYLE}</style>\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\
         <text x=\"{EDGE}\" y=\"26\" font-weight=\"bold\">{}</text>\
         <text x=\"{EDGE}\" y=\"46\">{} {}, between {} and {}</text>",
        escape(&shortened(&transfer.to_string(), 72)),
        figure(found.predicted),
        found.unit.symbol(),
        figure(found.low),
        figure(found.high)
    );
    let mut top = HEAD;
    for (place, stop) in stops.iter().enumerate() {
        if place > 0 {
            arrow(&mut svg, top - GAP, top);
        }
        draw(&mut svg, stop, top, tall(stop), found.unit);
        top += tall(stop) + GAP;
    }
    for (place, line) in said.iter().enumerate() {
        let text = line.trim_start();
        let weight = if text.len() == line.len() { " font-weight=\"bold\"" } else { "" };
        let (x, y) = (EDGE + 6 * (line.len() - text.len()), top + 4 + 20 * place);
        let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\"{weight}>{}</text>", escape(text));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Colours for light and dark.
const STYLE: &str = ".paper{fill:#fff}text{fill:#1b1f23}.soft{fill:#57606a}.stop{fill:#f6f8fa;stroke:#8a949e}\
    .room{fill:#e4e8ec}.used{fill:#3d75b0}.full{fill:#b3261e}.arrow{stroke:#57606a;fill:none;stroke-width:1.6}\
    .tip{fill:#57606a}@media (prefers-color-scheme:dark){.paper{fill:#14171a}text{fill:#e6e8ea}.soft{fill:#9aa4af}\
    .stop{fill:#1d2125;stroke:#5b6570}.room{fill:#343a41}.used{fill:#5aa9ff}.full{fill:#ff8a7a}.arrow{stroke:#9aa4af}\
    .tip{fill:#9aa4af}}";

/// From here a room is the one that binds.
const FULL: f64 = 0.995;

fn arrow(svg: &mut String, from: usize, to: usize) {
    let x = WIDTH / 2;
    let (line, tip) = (to - 7, to - 1);
    let _ = write!(
        svg,
        "<path class=\"arrow\" d=\"M{x} {from}V{line}\"/><path class=\"tip\" d=\"M{} {line}h10L{x} {tip}z\"/>",
        x - 5
    );
}

fn draw(svg: &mut String, stop: &Stop<'_>, top: usize, tall: usize, unit: Unit) {
    let wide = WIDTH - 2 * EDGE;
    let inner = wide - 24;
    let _ = write!(
        svg,
        "<rect class=\"stop\" x=\"{EDGE}\" y=\"{top}\" width=\"{wide}\" height=\"{tall}\" rx=\"6\"/>\
         <text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        EDGE + 12,
        top + 19,
        escape(&stop.name)
    );
    for (place, room) in stop.rooms.iter().enumerate() {
        let y = top + TITLE + place * ROOM;
        let used = (room.share * inner as f64).clamp(1.0, inner as f64);
        let class = if room.share >= FULL { "full" } else { "used" };
        let x = EDGE + 12;
        let _ = write!(
            svg,
            "<text x=\"{x}\" y=\"{}\">{}</text><text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}, {:.1} %</text>\
             <rect class=\"room\" x=\"{x}\" y=\"{}\" width=\"{inner}\" height=\"14\"/>\
             <rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{used:.1}\" height=\"14\"/>",
            y + 14,
            escape(&shortened(&room.name, 34)),
            WIDTH - EDGE - 12,
            y + 14,
            escape(&capacity(room, unit)),
            room.share * 100.0,
            y + 19,
            y + 19
        );
    }
}

/// What a room allows; a window and a part of a time say how they come about.
fn capacity(room: &Bottleneck, unit: Unit) -> String {
    match unit {
        Unit::Cycles | Unit::Nanoseconds => room.explanation.clone(),
        _ if room.name.contains("window") => shortened(&room.explanation, 40),
        _ => format!("{} {}", figure(room.rate), unit.symbol()),
    }
}

/// A line in pieces that fit; those after the first stand further in.
fn wrapped(line: &str) -> Vec<String> {
    let margin = line.len() - line.trim_start().len();
    let mut lines = vec![" ".repeat(margin)];
    for word in line.split_whitespace() {
        let full = lines.last().is_some_and(|last| {
            !last.trim().is_empty() && last.chars().count() + word.chars().count() >= LINE
        });
        if full {
            lines.push(" ".repeat(margin + 3));
        }
        if let Some(last) = lines.last_mut() {
            if !last.trim().is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short
}

/// The stops from where the data is to where it goes; limits that are nowhere in particular stand with who moves the data.
fn stops<'a>(soc: &Soc, transfer: &Transfer, found: &'a Prediction) -> Vec<Stop<'a>> {
    let mut left: Vec<&Bottleneck> = found.bottlenecks.iter().collect();
    let mut take = |name: &str, wanted: &dyn Fn(&str) -> bool| {
        let (rooms, rest): (Vec<&Bottleneck>, Vec<&Bottleneck>) =
            left.iter().copied().partition(|room| wanted(&room.name));
        left = rest;
        Stop { name: name.to_owned(), rooms }
    };
    match transfer {
        Transfer::Edma(edma) if !edma.both_ways => {
            // By the names that the limits have, however the question spells them.
            let asked = edma_transfers(soc, &[edma]).unwrap_or_default().into_iter().next();
            let (controller, from, to) = asked.map_or_else(
                || (edma.controller.clone(), edma.from.clone(), edma.to.clone()),
                |one| (one.controller, one.source, one.destination),
            );
            let route = |end: &str| soc.route(&controller, end).unwrap_or_default();
            let same = from == to;
            let at = |memory: &str, way: &str, name: &str| {
                name == memory
                    || name.strip_prefix(memory).is_some_and(|rest| {
                        rest == " rows"
                            || rest == " port"
                            || rest == format!(" {way}")
                            || rest == format!(" port {way}")
                    })
            };
            let mut stops = vec![take(&format!("read from {from}"), &|name| at(&from, "read", name))];
            for bridge in route(&from).iter().rev() {
                stops.push(take(&format!("over bridge {bridge}"), &|name| {
                    name == format!("bridge {bridge} read")
                }));
            }
            let middle = stops.len();
            let mut after = Vec::new();
            for bridge in &route(&to) {
                after.push(take(&format!("over bridge {bridge}"), &|name| {
                    name == format!("bridge {bridge} write")
                }));
            }
            let end = if same { "written to the same memory" } else { "" };
            let last = format!("write to {to}");
            after.push(take(if same { end } else { &last }, &|name| at(&to, "write", name)));
            stops.insert(middle, take(&format!("transfer controller {controller}"), &|_| true));
            stops.extend(after);
            stops
        }
        Transfer::Core { core, memory, .. } => {
            let mut stops = vec![Stop { name: format!("core {core} asks"), rooms: Vec::new() }];
            stops.push(take("on the way", &|name| name.starts_with("way ") || name.starts_with("bridge")));
            stops.push(take(&format!("in {memory}"), &|_| true));
            stops
        }
        other => {
            let text = other.to_string();
            let (from, to) = ends(other);
            let kind = text.split(':').next().unwrap_or("").to_owned();
            let mut stops = vec![Stop { name: from, rooms: Vec::new() }];
            stops.push(take(&kind, &|_| true));
            stops.push(Stop { name: to, rooms: Vec::new() });
            stops
        }
    }
}

/// Where the data of a link comes from and goes to.
fn ends(transfer: &Transfer) -> (String, String) {
    use linerate_fabric::ask::{Direction, Rapidio};
    let chips = |read: bool, memory: &str| {
        let (here, there) = (format!("{memory} of this chip"), format!("{memory} of the other chip"));
        if read { (there, here) } else { (here, there) }
    };
    match transfer {
        Transfer::Pcie { direction, .. } => chips(*direction == Direction::Read, "memory"),
        Transfer::Srio { transaction, memory, .. } => chips(*transaction == Rapidio::Nread, memory),
        Transfer::Hyperlink { direction, memory, .. } => chips(*direction == Direction::Read, memory),
        Transfer::Tcp { workload } => (format!("server {workload}"), "the network".to_owned()),
        _ => ("the network".to_owned(), "memory".to_owned()),
    }
}
