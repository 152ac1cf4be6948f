//! What every HTML page of ours has: one style sheet, and text that means nothing to HTML.

/// The style sheet of every page; its colours are variables, light and dark.
pub const STYLE: &str = include_str!("page.css");

/// Text for HTML, inside elements and attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
