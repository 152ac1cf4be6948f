//! What all reports look like: tables in four forms, pictures in SVG, and a page that needs nothing but itself.

#[cfg(feature = "experiments")]
pub mod grid;
pub mod html;
#[cfg(feature = "experiments")]
pub mod page;
#[cfg(feature = "experiments")]
pub mod plot;
