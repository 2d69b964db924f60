//! The claims of a publication, as `claims/*.toml` states them.
//!
//! `lab::claims` checks the same files strictly. This reader takes what the pages show.

use toml_edit::{DocumentMut, Item, Table, Value};

/// The claims of one publication.
pub struct ClaimTable {
    /// The name for `headtime paper`.
    pub name: String,
    /// The title of the publication.
    pub title: String,
    /// The authors, venue and year.
    pub source: String,
    /// The claims, in the order of their file.
    pub claims: Vec<PublishedClaim>,
}

/// One claim.
pub struct PublishedClaim {
    /// The identifier.
    pub id: String,
    /// The section, table or figure of the publication.
    pub place: String,
    /// The measured quantity.
    pub text: String,
    /// The check of an ordering or a trend.
    pub check: Option<String>,
    /// The published figures.
    pub figures: Vec<PublishedFigure>,
}

/// One published figure.
pub struct PublishedFigure {
    /// The name; the only figure of a claim has none.
    pub name: Option<String>,
    /// The value, range or bound, with its unit.
    pub theirs: String,
}

impl ClaimTable {
    /// Reads `claims/NAME.toml`.
    ///
    /// # Errors
    /// If the text is not a table of claims.
    pub fn parse(name: &str, text: &str) -> Result<ClaimTable, String> {
        let problem = |problem: String| format!("claims/{name}.toml: {problem}");
        let document: DocumentMut = text
            .parse()
            .map_err(|error: toml_edit::TomlError| problem(error.to_string()))?;
        let claims = document.get("claim").and_then(Item::as_array_of_tables);
        let claims = claims.ok_or_else(|| problem(String::from("expected [[claim]]")))?;
        let of_paper = |key| words(document.as_table(), key).map_err(problem);
        Ok(ClaimTable {
            name: name.to_string(),
            title: of_paper("title")?,
            source: format!("{}, {}", of_paper("authors")?, of_paper("venue")?),
            claims: claims
                .iter()
                .map(|claim| PublishedClaim::parse(claim).map_err(problem))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl PublishedClaim {
    fn parse(table: &Table) -> Result<PublishedClaim, String> {
        let figures = table.get("figures").and_then(Item::as_array);
        Ok(PublishedClaim {
            id: words(table, "id")?,
            place: words(table, "where")?,
            text: words(table, "text")?,
            check: words(table, "shape").ok(),
            figures: figures
                .into_iter()
                .flatten()
                .map(PublishedFigure::parse)
                .collect(),
        })
    }
}

impl PublishedFigure {
    fn parse(value: &Value) -> PublishedFigure {
        let table = value.as_inline_table();
        let field = |key| table.and_then(|table| table.get(key));
        let number = |key| {
            let value = field(key)?;
            let whole = value.as_integer().map(|number| number.to_string());
            whole.or_else(|| Some(value.as_float()?.to_string()))
        };
        let theirs = if let Some(bound) = number("at_least") {
            format!(">= {bound}")
        } else if let Some(bound) = number("at_most") {
            format!("<= {bound}")
        } else if let (Some(low), Some(high)) = (number("low"), number("high")) {
            format!("{low} to {high}")
        } else {
            let value = number("value").unwrap_or_default();
            let within = number("within").map(|within| format!(" +- {within}"));
            value + &within.unwrap_or_default()
        };
        let text = |key| field(key).and_then(Value::as_str);
        PublishedFigure {
            name: text("name").map(str::to_string),
            theirs: format!("{theirs} {}", text("unit").unwrap_or_default()),
        }
    }
}

fn words(table: &Table, key: &str) -> Result<String, String> {
    let words = table.get(key).and_then(Item::as_str);
    words
        .map(str::to_string)
        .ok_or_else(|| format!("expected `{key} = \"...\"`"))
}
