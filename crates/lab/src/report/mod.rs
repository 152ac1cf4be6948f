//! What all reports look like: tables in four forms, pictures in SVG, and a page that needs nothing but itself.

pub mod grid;
pub mod page;
pub mod plot;
