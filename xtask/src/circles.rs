//! Circles of modules: within a folder no module uses, directly or by way of others, one that uses it.
//!
//! A module uses another when it names it or something in it, also by way of a re-export; and a type whose methods
//! stand in another module (`impl Type` away from its file) uses that one, since it calls them. Tests may use all.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// Folders that have a circle. None may come; who undoes one takes it off the list.
const KNOWN: [&str; 10] = [
    "crates/embedded/src",
    "crates/nic/src",
    "crates/serve/src/http",
    "crates/serve/src/iperf3",
    "crates/serve/src/iperf3/client",
    "crates/stack/src",
    "crates/stack/src/tcp",
    "crates/stack/src/tcp/connection",
    "crates/transport/src",
    "crates/wire/src",
];

/// A module's place below the root of its crate.
type Place = Vec<String>;

/// The modules that each module of a folder uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Checks the crates named so; `files` are all source files.
pub fn check(crates: &[&str], files: &[std::path::PathBuf], faults: &mut Vec<String>) -> Result<()> {
    for name in crates {
        let root = format!("crates/{name}/src");
        let mut modules = BTreeMap::new();
        for path in files {
            let Ok(inner) = path.strip_prefix(&root) else { continue };
            let place = place(inner);
            if place.iter().any(|part| part == "tests" || part == "testing") {
                continue;
            }
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            modules.insert(place, Module::read(&text));
        }
        for (folder, uses) in folders(&modules) {
            let folder = [root.clone()].into_iter().chain(folder).collect::<Vec<_>>().join("/");
            let known = KNOWN.contains(&folder.as_str());
            match circle(&uses) {
                Some(circle) if !known => {
                    faults.push(format!("{folder}: a circle: {}", circle.join(" uses ")))
                }
                None if known => {
                    faults.push(format!(
                        "{folder}: no circle any more; take it off the list in xtask/src/circles.rs"
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn place(inner: &Path) -> Place {
    let inner = inner.with_extension("");
    let mut place: Place = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if place.last().is_some_and(|last| last == "mod") || place == ["lib"] {
        place.pop();
    }
    place
}

/// What a module's text says of others, as it is written.
#[derive(Default)]
struct Module {
    /// Paths that it names.
    named: Vec<Vec<String>>,
    /// Those of them that it makes its own (`pub use`).
    exported: Vec<Vec<String>>,
    /// Types that get methods here.
    extended: Vec<String>,
}

impl Module {
    fn read(text: &str) -> Module {
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or("");
        let words = words(text);
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let mut module = Module::default();
        let mut at = 0;
        while at < words.len() {
            let before = if at == 0 { ";" } else { word(at - 1) };
            match word(at) {
                "use" => {
                    let mut paths = Vec::new();
                    at = use_tree(&words, at + 1, &[], &mut paths);
                    if matches!(before, "pub" | ")") {
                        module.exported.extend(paths.iter().cloned());
                    }
                    module.named.extend(paths);
                }
                "super" | "crate" if word(at + 1) == "::" => {
                    let mut path = vec![word(at).to_string()];
                    while word(at + 1) == "::" && is_name(word(at + 2)) {
                        path.push(word(at + 2).to_string());
                        at += 2;
                    }
                    module.named.push(path);
                }
                "impl" if matches!(before, ";" | "}" | "]") => {
                    let name = skip_generics(&words, at + 1);
                    let after = skip_generics(&words, name + 1);
                    if matches!(word(after), "{" | "where") {
                        module.extended.push(word(name).to_string());
                    }
                }
                _ => {}
            }
            at += 1;
        }
        module
    }
}

/// Names, `::`, `->` and single characters, without comments and literals.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let name = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if name > 0 {
            words.push(rest[..name].to_string());
            name
        } else if c == '"' {
            let raw = words.last().is_some_and(|word| word == "r" || word == "br");
            literal_len(rest, '"', raw)
        } else if c == '\'' && (rest[1..].starts_with('\\') || rest[1..].chars().nth(1) == Some('\'')) {
            literal_len(rest, '\'', false)
        } else if rest.starts_with("::") || rest.starts_with("->") {
            words.push(rest[..2].to_string());
            2
        } else {
            if !c.is_whitespace() {
                words.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[len..];
    }
    words
}

/// The length of a literal with its quotes.
fn literal_len(text: &str, quote: char, raw: bool) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if !raw => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(word: &str) -> bool {
    word.starts_with(is_name_char)
}

/// Reads what stands after `use`, up to the end of the item or list; answers where that is.
fn use_tree(words: &[String], mut at: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut renamed = false;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            ";" | "}" | "," => {
                if path.len() > prefix.len() {
                    paths.push(std::mem::replace(&mut path, prefix.to_vec()));
                }
                if word != "," {
                    return at;
                }
                renamed = false;
            }
            "{" => {
                at = use_tree(words, at + 1, &path, paths);
                path = prefix.to_vec();
            }
            "as" => renamed = true,
            name if is_name(name) && !renamed => path.push(name.to_string()),
            _ => {}
        }
        at += 1;
    }
    at
}

/// Where the words go on after `<...>`, if that stands here.
fn skip_generics(words: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "<" => depth += 1,
            ">" => depth -= 1,
            _ if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Who uses whom within each folder of a crate.
fn folders(modules: &BTreeMap<Place, Module>) -> BTreeMap<Place, Uses> {
    let resolve = |from: &Place, path: &[String]| find(modules, from, path);
    let mut exports = BTreeMap::new();
    for (place, module) in modules {
        for path in &module.exported {
            if let Some((target, Some(item))) = resolve(place, path) {
                exports.insert((place.clone(), item), target);
            }
        }
    }
    let mut folders: BTreeMap<Place, Uses> = BTreeMap::new();
    let mut add = |from: &Place, to: &Place| {
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let folder = folders.entry(from[..common].to_vec()).or_default();
        if let (Some(from), Some(to)) = (from.get(common), to.get(common)) {
            folder.entry(from.clone()).or_default().insert(to.clone());
        }
    };
    for (place, module) in modules {
        for path in &module.named {
            let Some((mut target, item)) = resolve(place, path) else { continue };
            if let Some(item) = item {
                // A re-export may lead to another one.
                for _ in 0..modules.len() {
                    match exports.get(&(target.clone(), item.clone())) {
                        Some(origin) if *origin != target => target = origin.clone(),
                        _ => break,
                    }
                }
                if target != *place && module.extended.contains(&item) {
                    add(&target, place);
                }
            }
            add(place, &target);
        }
    }
    folders
}

/// The module that a path leads to, and the item of it that it names.
fn find(modules: &BTreeMap<Place, Module>, from: &Place, path: &[String]) -> Option<(Place, Option<String>)> {
    let below = |place: &Place, name: &String| {
        let mut inner = place.clone();
        inner.push(name.clone());
        modules.contains_key(&inner).then_some(inner)
    };
    let mut path = path;
    let mut place = from.clone();
    match path.first()?.as_str() {
        "crate" => (place, path) = (Place::new(), &path[1..]),
        "self" => path = &path[1..],
        "super" => {
            while path.first().is_some_and(|name| name == "super") {
                place.pop();
                path = &path[1..];
            }
        }
        // Of paths without one of these words only those to the module's own children are of interest.
        _ if below(&place, &path[0]).is_none() => return None,
        _ => {}
    }
    while let Some(inner) = path.first().and_then(|name| below(&place, name)) {
        (place, path) = (inner, &path[1..]);
    }
    Some((place, path.first().cloned()))
}

/// A shortest way from a module back to itself.
fn circle(uses: &Uses) -> Option<Vec<String>> {
    let circle_from = |start: &String| {
        let mut came_from: BTreeMap<&String, &String> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for next in uses.get(at).into_iter().flatten() {
                if came_from.contains_key(next) {
                    continue;
                }
                came_from.insert(next, at);
                queue.push_back(next);
            }
        }
        let mut way = vec![start.clone()];
        let mut at = *came_from.get(start)?;
        while at != start {
            way.push(at.clone());
            at = came_from[at];
        }
        way.push(start.clone());
        way.reverse();
        Some(way)
    };
    uses.keys().filter_map(circle_from).min_by_key(Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_of(files: &[(&str, &str)]) -> Option<String> {
        let modules: BTreeMap<Place, Module> =
            files.iter().map(|(path, text)| (place(Path::new(path)), Module::read(text))).collect();
        folders(&modules).values().find_map(circle).map(|circle| circle.join(" "))
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        let root = ("lib.rs", "mod a;\npub use a::A;\n");
        let a = ("a.rs", "use super::b::B;\n");
        for text in [
            "use super::{c, a::{self, A}};",
            "fn f() { super::a::g() }",
            "pub(super) use crate::a;",
            "struct B; use super::A;",
        ] {
            assert_eq!(circle_of(&[root, a, ("b.rs", text)]).as_deref(), Some("a b a"), "{text}");
        }
        let inner = [root, a, ("b/mod.rs", "mod inner;"), ("b/inner.rs", "use super::super::a::A as X;")];
        assert_eq!(circle_of(&inner).as_deref(), Some("a b a"));
    }

    #[test]
    fn methods_away_from_their_type_are_used_by_it() {
        let b = ("b.rs", "pub struct B<T>(T);\nimpl<T: Fn() -> u8> B<T> {}\n");
        let a = |text| circle_of(&[("a.rs", text), b]);
        assert_eq!(a("use super::b::B;\nimpl<T> B<T> { }").as_deref(), Some("a b a"));
        assert_eq!(a("use super::b::B;\nimpl<T> Clone for B<T> { }"), None);
        assert_eq!(a("use super::b::B;\nfn f() -> impl B { }"), None);
    }

    #[test]
    fn what_is_no_use_makes_no_circle() {
        let a = ("a.rs", "use super::b::B;\n");
        for text in [
            "// use super::a;",
            "const A: &str = \"use super::a; // \\\" super::a\";",
            "const A: char = '\"'; const B: &str = \"super::a\";",
            "fn f<'a>(x: &'a u8) {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}",
            "use core::a;",
        ] {
            assert_eq!(circle_of(&[a, ("b.rs", text)]), None, "{text}");
        }
        assert_eq!(circle_of(&[("a.rs", "use super::b;"), ("b.rs", "use super::c;"), ("c.rs", "")]), None);
        let three = [("a.rs", "use super::b;"), ("b.rs", "use super::c;"), ("c.rs", "use super::a;")];
        assert_eq!(circle_of(&three).as_deref(), Some("a b c a"));
    }
}
