//! Every figure that the text of the source documents prints, with its place. Pictures and empty tables give none.

use crate::schema::{Record, SchemaError, read};

/// The documents: number and table.
const TABLES: [(&str, &str); 4] = [
    ("000", include_str!("../published/seed-000.csv")),
    ("002", include_str!("../published/seed-002.csv")),
    ("003", include_str!("../published/seed-003.csv")),
    ("004", include_str!("../published/seed-004.csv")),
];

/// All figures of all documents, in the order of the documents.
pub fn all() -> Result<Vec<Record>, SchemaError> {
    let mut records = Vec::new();
    for (seed, text) in TABLES {
        records.extend(read(&format!("published/seed-{seed}.csv"), text)?);
    }
    Ok(records)
}

/// The figures of one document, by its number as in `000`; none for a document without a table.
pub fn of(seed: &str) -> Result<Vec<Record>, SchemaError> {
    let table = TABLES.iter().find(|(number, _)| *number == seed);
    table.map_or(Ok(Vec::new()), |(number, text)| read(&format!("published/seed-{number}.csv"), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Origin;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_is_published_once_and_has_its_place() {
        for (seed, _) in TABLES {
            let mut seen = BTreeSet::new();
            for record in of(seed).unwrap() {
                assert_eq!(record.origin, Origin::Published, "{record:?}");
                assert!(record.source.starts_with(&format!("seed {seed}, ")), "{record:?}");
                assert!(record.value.is_finite(), "{record:?}");
                assert!(seen.insert((record.key(), record.source.clone())), "twice: {record:?}");
            }
        }
    }
}
