//! Reads a chip file.

use super::{Soc, SocError, check};

/// The largest file that is read, in bytes; a chip takes a hundredth of it.
const MAX_FILE: usize = 1 << 20;

/// Reads the description of a chip and checks that it hangs together.
///
/// # Errors
/// The first mistake with its line and column: what the syntax of TOML, the keys, the units or the chip itself forbid.
pub fn load(text: &str) -> Result<Soc, SocError> {
    if text.len() > MAX_FILE {
        return Err(SocError::at(text, &(0..0), format!("{} bytes; expected at most {MAX_FILE}", text.len())));
    }
    let soc: Soc = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        SocError::at(text, &span, error.message())
    })?;
    check::check(&soc).map_err(|fault| SocError::at(text, &fault.span, fault.what))?;
    Ok(soc)
}

/// The JSON schema of a chip file, for editors that complete and check TOML.
pub fn json_schema() -> schemars::Schema {
    schemars::schema_for!(Soc)
}
