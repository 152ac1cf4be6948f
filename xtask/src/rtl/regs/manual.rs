//! The manual page.

use super::{Description, Field, Word};
use anyhow::Result;
use std::fmt::Write as _;

/// What the page opens with.
pub const HEAD: &str = "# Registers, descriptors and app words\n\nGenerated from `rtl/regs/*.toml` by `cargo xtask rtl regs`, like the constants of \
the driver and of the RTL. All words have\n32 bits and are little endian. Access: rw read and written; ro read only; w1c writing 1 clears; w1s writing 1 starts \
something, and it\nreads 1 until that is done. Bits without a name read 0, and writing them does nothing.\n";

/// The part of one description.
pub fn page(description: &Description) -> Result<String> {
    let block = &description.block;
    let mut text =
        format!("\n## {}\n\n`{}`, {:#x} bytes of addresses.\n", block.text, block.name, block.size);
    for bank in &description.bank {
        let name = &bank.name;
        write!(
            text,
            "\nBank {name}: {}, `{}` of them, queue q at {:#05x} + {:#x} q.\n",
            bank.text.to_lowercase(),
            bank.count,
            bank.base,
            bank.stride
        )?;
    }
    text.push_str("\n| offset | register | access | reset | |\n|---|---|---|---|---|\n");
    for register in &description.register {
        let place = register.bank.as_ref().map_or_else(String::new, |bank| format!("{bank} + "));
        let count = if register.count > 1 { format!(" x {}", register.count) } else { String::new() };
        writeln!(
            text,
            "| {place}{:#05x}{count} | **{}** | {} | {:#x} | {} |",
            register.offset, register.name, register.access, register.reset, register.text
        )?;
        for field in &register.fields {
            row(&mut text, field, field.access.as_deref().unwrap_or(""))?;
        }
    }
    for descriptor in &description.descriptor {
        write!(
            text,
            "\n### Descriptor `{}`: {} bytes, at a multiple of {}\n\n{}.\n\n| offset | word | written by | | |\n|---|---|---|---|---|\n",
            descriptor.name, descriptor.bytes, descriptor.alignment, descriptor.text
        )?;
        for Word { name, offset, written_by, text: doc, fields } in &descriptor.words {
            writeln!(text, "| {offset:#04x} | **{name}** | {written_by} | | {doc} |")?;
            for field in fields {
                row(&mut text, field, "")?;
            }
        }
    }
    for app in &description.app {
        write!(
            text,
            "\n### App words `{}`: layout {}, {}\n\n{}.\n\n| word | bits | | | |\n|---|---|---|---|---|\n",
            app.name, app.layout, app.direction, app.text
        )?;
        for word in &app.words {
            writeln!(
                text,
                "| **{}** | | | | {} |",
                word.name,
                if word.fields.is_empty() { "not used" } else { "" }
            )?;
            for field in &word.fields {
                row(&mut text, field, "")?;
            }
        }
    }
    Ok(text)
}

fn row(text: &mut String, field: &Field, access: &str) -> Result<()> {
    let mut values = String::new();
    for (name, value) in field.by_number() {
        write!(values, "{}{value} {name}", if values.is_empty() { ". " } else { ", " })?;
    }
    let reset = if field.reset > 0 { field.reset.to_string() } else { String::new() };
    Ok(writeln!(text, "| [{}] | {} | {access} | {reset} | {}{values} |", field.bits, field.name, field.text)?)
}
