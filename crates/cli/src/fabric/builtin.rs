//! Chips and guides that come with the program, and those in files.

use super::error::FabricError;
use linerate_fabric::guide::{self, Guide};
use linerate_fabric::soc::{self, Soc};
use std::path::Path;

/// Chips by name.
pub const SOCS: [(&str, &str); 6] = [
    ("k2h", include_str!("../../../../boards/socs/k2h.toml")),
    ("k2e", include_str!("../../../../boards/socs/k2e.toml")),
    ("softcore", include_str!("../../../../boards/socs/softcore.toml")),
    ("stm32h743", include_str!("../../../../boards/socs/stm32h743.toml")),
    ("xupv5", include_str!("../../../../boards/socs/xupv5.toml")),
    ("zcu102", include_str!("../../../../boards/socs/zcu102.toml")),
];

/// Guides by name.
pub const GUIDES: [(&str, &str); 1] =
    [("keystone2", include_str!("../../../../boards/guides/keystone2.toml"))];

/// What cross-validation found of chips and guides that come with the program.
pub const ACCURACY: [&str; 1] = [include_str!("../../../../boards/accuracy/k2h.toml")];

/// The chip of a built-in name or in a file.
pub fn soc(name: &str) -> Result<Soc, FabricError> {
    let (file, text) = text("SOC", name, &SOCS)?;
    soc::load(&text).map_err(|error| FabricError::Malformed { file, why: error.to_string() })
}

/// The guide of a built-in name or in a file.
pub fn guide(name: &str) -> Result<Guide, FabricError> {
    let (file, text) = text("GUIDE", name, &GUIDES)?;
    guide::load(&text).map_err(|error| FabricError::Malformed { file, why: error.to_string() })
}

/// Those of these chips and guides that are files.
pub fn files<'a>(names: &[&'a str]) -> Vec<&'a Path> {
    let is_known = |name: &str| SOCS.iter().chain(&GUIDES).any(|(known, _)| known.eq_ignore_ascii_case(name));
    names.iter().filter(|name| !is_known(name)).map(|name| Path::new(*name)).collect()
}

/// What is built in under this name, or stands in the file.
fn text(argument: &'static str, name: &str, known: &[(&str, &str)]) -> Result<(String, String), FabricError> {
    if let Some((name, text)) = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let path = Path::new(name);
    // A word without dot or slash is a misspelt name rather than a file that is missing.
    if !path.exists() && !name.contains(['.', '/']) {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}, or the path of a TOML file", names.join(", "));
        return Err(FabricError::value(argument, name, expected));
    }
    read(path).map(|text| (name.to_owned(), text))
}

/// A text file.
pub fn read(path: &Path) -> Result<String, FabricError> {
    std::fs::read_to_string(path).map_err(|why| FabricError::Unreadable { path: path.to_owned(), why })
}
