//! A chip made ready for many questions, in every way that its description leaves open.
//!
//! A question is asked of those ways only that differ on its path: an answer that changes a memory which the transfer
//! never touches cannot change its rate. Ways are made when they are first needed, and kept.

use super::outside::link_at;
use super::{AskError, Edma, Rapidio, Transfer, edma_transfers, single};
use crate::edma;
use crate::links::Links;
use crate::model::mixture::mix;
use crate::predict::Prediction;
use crate::soc::{Choice, Soc, combined};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A chip with all that is open of it.
pub struct Ready {
    /// The description itself; nothing is open of it.
    plain: Rc<Way>,
    open: Vec<Question>,
    /// The ways that were made, by the questions that they answer.
    made: RefCell<BTreeMap<Vec<usize>, Ways>>,
}

type Ways = Rc<Vec<Rc<Way>>>;

/// Something that is open.
struct Question {
    name: String,
    text: String,
    decides: String,
    /// The answers that nothing rules out.
    choices: Vec<Choice>,
    /// The keys that any of them changes, level by level.
    keys: Vec<Vec<String>>,
}

/// One way in which the chip may be.
struct Way {
    choices: Vec<(String, String)>,
    weight: f64,
    soc: Soc,
    /// Its links at the clocks of the chip.
    links: Links,
}

/// What is asked at once.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// EDMA transfers that start together; whether the time before the first byte counts.
    Together(&'a [&'a Edma], bool),
    /// One transfer of any kind.
    One(&'a Transfer),
}

/// What one way in which the chip may be says.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The answer to each open question on the path: its name, and that of the option.
    pub choices: Vec<(String, String)>,
    /// Its share; all add up to 1.
    pub weight: f64,
    /// What it says.
    pub prediction: Prediction,
}

/// A question that is open on the path of a transfer, and to which the transfer's answers differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Undecided {
    /// Its name in the description.
    pub name: String,
    /// What is not known.
    pub question: String,
    /// Each answer with its share, and the least and the most that the transfer does if it is true.
    pub answers: Vec<(String, f64, f64, f64)>,
    /// The transfer whose measurement would tell.
    pub decides: String,
}

/// Answers that differ by less are the same.
const SAME: f64 = 1e-3;

impl Way {
    fn new(choices: Vec<(String, String)>, weight: f64, soc: Soc) -> Rc<Self> {
        let links = soc.links.at_clocks(|clock| soc.frequency(clock));
        Rc::new(Self { choices, weight, soc, links })
    }

    fn ask(&self, asked: Asked<'_>) -> Result<Prediction, AskError> {
        match asked {
            Asked::Together(transfers, setup) => super::edma(&self.soc, transfers, setup),
            Asked::One(transfer) => {
                link_at(&self.links, &self.soc, transfer).unwrap_or_else(|| single(&self.soc, transfer))
            }
        }
    }
}

impl Ready {
    /// Makes a chip ready.
    pub fn new(soc: &Soc) -> Self {
        let plain = Soc { alternatives: BTreeMap::new(), ..soc.clone() };
        let open = soc
            .alternatives
            .iter()
            .map(|(name, open)| {
                let mut choices = open.choices();
                choices.retain(|choice| choice.weight > 0.0);
                let keys = choices.iter().flat_map(|choice| choice.set.keys());
                Question {
                    name: name.clone(),
                    text: open.question.clone(),
                    decides: open.decides.to_string(),
                    keys: keys.map(|key| key.split('.').map(str::to_owned).collect()).collect(),
                    choices,
                }
            })
            .collect();
        Self { plain: Way::new(Vec::new(), 1.0, plain), open, made: RefCell::default() }
    }

    /// The mixture of all ways, each by its weight. Its limits are those of the likeliest.
    ///
    /// # Errors
    /// What the chip does not have.
    pub fn predict(&self, asked: Asked<'_>) -> Result<Prediction, AskError> {
        let ways = self.ways(asked)?;
        let Some(best) = likeliest(&ways) else { return self.plain.ask(asked) };
        let first = best.ask(asked)?;
        if ways.len() == 1 {
            return Ok(first);
        }
        // The same names in every way.
        let moves = match asked {
            Asked::Together(transfers, _) => edma_transfers(&self.plain.soc, transfers)?,
            Asked::One(_) => Vec::new(),
        };
        let mut members = Vec::with_capacity(ways.len());
        for way in ways.iter() {
            let said = match asked {
                _ if Rc::ptr_eq(way, best) => first.clone(),
                // The figures alone: the limits of one way are enough.
                Asked::Together(_, setup) => {
                    edma::bounded_rate(&way.soc, &moves, setup).map_err(AskError::new)?
                }
                Asked::One(_) => way.ask(asked)?,
            };
            members.push((way.weight, said));
        }
        let mixed = mix(&members, None).unwrap_or_else(|| first.clone());
        Ok(Prediction { bottlenecks: first.bottlenecks, ..mixed })
    }

    /// What every way says that differs on the path, the likeliest first.
    ///
    /// # Errors
    /// What the chip does not have.
    pub fn said(&self, asked: Asked<'_>) -> Result<Vec<Said>, AskError> {
        let mut said = Vec::new();
        for way in self.ways(asked)?.iter() {
            let (choices, weight) = (way.choices.clone(), way.weight);
            said.push(Said { choices, weight, prediction: way.ask(asked)? });
        }
        said.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        Ok(said)
    }

    /// The questions that make a difference among these.
    pub fn undecided(&self, said: &[Said]) -> Vec<Undecided> {
        let undecided = self.open.iter().filter_map(|question| {
            let chosen = |one: &Said| {
                one.choices.iter().find(|(name, _)| *name == question.name).map(|(_, answer)| answer.clone())
            };
            let others = |one: &Said| -> Vec<(String, String)> {
                one.choices.iter().filter(|(name, _)| *name != question.name).cloned().collect()
            };
            let far = |a: &Said, b: &Said| {
                let (a, b) = (a.prediction.predicted, b.prediction.predicted);
                (a - b).abs() > SAME * a.abs().max(b.abs())
            };
            let differs = said.iter().enumerate().any(|(at, a)| {
                let later = said.iter().skip(at + 1);
                chosen(a).is_some() && later.clone().any(|b| far(a, b) && others(a) == others(b))
            });
            if !differs {
                return None;
            }
            let mut answers: Vec<(String, f64, f64, f64)> = Vec::new();
            for one in said {
                let (Some(answer), found) = (chosen(one), one.prediction.predicted) else { continue };
                match answers.iter_mut().find(|(known, ..)| *known == answer) {
                    Some((_, weight, low, high)) => {
                        (*weight, *low, *high) = (*weight + one.weight, low.min(found), high.max(found));
                    }
                    None => answers.push((answer, one.weight, found, found)),
                }
            }
            Some(Undecided {
                name: question.name.clone(),
                question: question.text.clone(),
                answers,
                decides: question.decides.clone(),
            })
        });
        undecided.collect()
    }

    /// The ways that differ on the path of what is asked.
    fn ways(&self, asked: Asked<'_>) -> Result<Ways, AskError> {
        if self.open.is_empty() {
            return Ok(Rc::new(vec![Rc::clone(&self.plain)]));
        }
        let path = path(&self.plain.soc, asked)?;
        let open = self.open.iter().enumerate();
        let on_path: Vec<usize> =
            open.filter(|(_, question)| question.is_on(&path)).map(|(at, _)| at).collect();
        if let Some(known) = self.made.borrow().get(&on_path) {
            return Ok(Rc::clone(known));
        }
        let questions: Vec<(&str, Vec<Choice>)> = on_path
            .iter()
            .filter_map(|at| self.open.get(*at))
            .map(|question| (question.name.as_str(), question.choices.clone()))
            .collect();
        let structures = combined(&self.plain.soc, &questions).map_err(AskError::new)?;
        let ways: Ways =
            Rc::new(structures.into_iter().map(|one| Way::new(one.choices, one.weight, one.soc)).collect());
        self.made.borrow_mut().insert(on_path, Rc::clone(&ways));
        Ok(ways)
    }
}

fn likeliest(ways: &[Rc<Way>]) -> Option<&Rc<Way>> {
    // The first of equals: the description itself comes first.
    ways.iter().rev().max_by(|a, b| a.weight.total_cmp(&b.weight))
}

impl Question {
    /// Whether any answer changes what is on the path, or what is on every path.
    fn is_on(&self, path: &[Vec<&str>]) -> bool {
        self.keys.iter().any(|key| {
            let shared = !matches!(
                key.first().map(String::as_str),
                Some(
                    "edma"
                        | "endpoints"
                        | "endpoint"
                        | "bridges"
                        | "bridge"
                        | "cores"
                        | "core"
                        | "links"
                        | "link"
                )
            );
            shared || path.iter().any(|item| meets(key, item))
        })
    }
}

/// Whether a key lies below an item of a path, or the item below the key.
fn meets(key: &[String], item: &[&str]) -> bool {
    key.iter().zip(item).enumerate().all(|(place, (key, item))| match place {
        // The first level may be written in the singular.
        0 => key.trim().trim_end_matches('s') == item.trim_end_matches('s'),
        _ => key == "*" || key.trim() == *item,
    })
}

/// What a transfer touches, level by level.
fn path<'a>(soc: &'a Soc, asked: Asked<'a>) -> Result<Vec<Vec<&'a str>>, AskError> {
    let mut path = Vec::new();
    match asked {
        Asked::Together(transfers, _) => {
            for transfer in transfers {
                moved(soc, transfer, &mut path)?;
            }
        }
        Asked::One(Transfer::Edma(transfer)) => moved(soc, transfer, &mut path)?,
        Asked::One(Transfer::Core { core, memory, .. }) => {
            let name = soc.cores.keys().find(|name| name.eq_ignore_ascii_case(core));
            let reads = name.and_then(|name| soc.cores.get(name)).map(|core| &core.reads);
            let read = reads.and_then(|all| all.iter().find(|(name, _)| name.eq_ignore_ascii_case(memory)));
            path.extend(name.map(|name| vec!["cores", name.as_str()]));
            path.push(vec!["bridges"]);
            if let Some(memory) = read.and_then(|(_, read)| read.memory.as_deref()) {
                at_memory(soc, memory, &mut path);
            }
        }
        Asked::One(Transfer::Set { core, .. }) => {
            let name = soc.cores.keys().find(|name| name.eq_ignore_ascii_case(core));
            path.extend(name.map(|name| vec!["cores", name.as_str()]));
        }
        Asked::One(other) => outside(soc, other, &mut path),
    }
    Ok(path)
}

fn outside<'a>(soc: &'a Soc, transfer: &'a Transfer, path: &mut Vec<Vec<&'a str>>) {
    match transfer {
        Transfer::Pcie { .. } => path.extend([vec!["links", "pcie"], vec!["edma"]]),
        Transfer::Srio { transaction: Rapidio::Nread, .. } => path.push(vec!["links", "srio"]),
        Transfer::Srio { .. } => {
            // Only reads wait for a response and its copy.
            let parts = ["packet_engine", "issue", "doorbell", "memory", "descriptor"];
            path.extend(parts.map(|part| vec!["links", "srio", part]));
            let sizes = ["lanes", "line_rates", "encoding", "max_payload", "device_id", "word", "delimiter"];
            path.extend(sizes.map(|part| vec!["links", "srio", part]));
            let rest = ["maintenance", "measured_line_rate", "spread"];
            path.extend(rest.map(|part| vec!["links", "srio", part]));
        }
        Transfer::Hyperlink { .. } => path.push(vec!["links", "hyperlink"]),
        Transfer::Ethernet { .. } => path.push(vec!["links", "ethernet"]),
        Transfer::Tcp { workload } => {
            path.push(vec!["links", "ethernet"]);
            path.extend(
                soc.links.tcp.contains_key(workload).then(|| vec!["links", "tcp", workload.as_str()]),
            );
        }
        Transfer::Edma(_) | Transfer::Core { .. } | Transfer::Set { .. } => {}
    }
}

fn moved<'a>(soc: &'a Soc, transfer: &'a Edma, path: &mut Vec<Vec<&'a str>>) -> Result<(), AskError> {
    for one in edma_transfers(soc, &[transfer])? {
        let of = |name: &str| {
            soc.edma
                .iter()
                .find(|(_, engine)| engine.transfer_controllers.iter().any(|tc| tc.name.as_str() == name))
        };
        let Some((engine, described)) = of(&one.controller) else { continue };
        path.push(vec!["edma", engine.as_str()]);
        let own = described.transfer_controllers.iter().find(|tc| tc.name.as_str() == one.controller);
        path.extend(
            own.into_iter().flat_map(|tc| &tc.bridges).map(|bridge| vec!["bridges", bridge.as_str()]),
        );
        for end in [&one.source, &one.destination] {
            at_memory(soc, end.split('.').next().unwrap_or(""), path);
        }
    }
    Ok(())
}

fn at_memory<'a>(soc: &'a Soc, name: &str, path: &mut Vec<Vec<&'a str>>) {
    if let Some((name, memory)) = soc.endpoints.get_key_value(name) {
        path.push(vec!["endpoints", name.as_str()]);
        path.extend(soc.in_front_of(memory).into_iter().map(|(front, _)| vec!["endpoints", front]));
    }
}

/// Ways that say nearly the same for the same reason, joined: the likeliest of each stands for them all.
///
/// Two are joined where the same limit comes first and their figures are within a tenth of each other.
pub fn joined(said: &[Said]) -> Vec<(f64, &Said)> {
    let mut groups: Vec<(f64, &Said)> = Vec::new();
    for one in said {
        let first = |said: &Said| said.prediction.bottlenecks.first().map(|limit| limit.name.clone());
        let near = |known: &Said| {
            let (a, b) = (known.prediction.predicted, one.prediction.predicted);
            (a - b).abs() <= 0.1 * a.abs().max(b.abs()) && first(known) == first(one)
        };
        match groups.iter_mut().find(|(_, known)| near(known)) {
            Some((weight, _)) => *weight += one.weight,
            None => groups.push((one.weight, one)),
        }
    }
    groups.sort_by(|a, b| b.0.total_cmp(&a.0));
    groups
}
