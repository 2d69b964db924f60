//! Published findings: the output of `headtime paper NAME --json` with its command, commit and date.

use serde_json::Value;

use super::claims::ClaimTable;

/// The findings of one run.
pub struct Publication {
    /// The command that printed the findings.
    pub command: String,
    /// The commit from which the program was built.
    pub commit: String,
    /// The date of the commit.
    pub date: String,
    /// A restriction of the findings, for their readers.
    pub remark: Option<String>,
    /// The findings, in the order of the output.
    pub findings: Vec<Finding>,
}

/// One finding: our figures of one claim.
pub struct Finding {
    /// The claim's identifier.
    pub id: String,
    /// The label of the scheduler's belief.
    pub label: Option<String>,
    /// The figures by name; the only figure of a claim has none.
    pub ours: Vec<(Option<String>, f64)>,
    /// The verdict on the claim: holds, differs, not comparable.
    pub verdict: String,
    /// The reading of the claim.
    pub reading: Option<String>,
    /// The reason, unless the claim holds.
    pub reason: Option<String>,
    /// The same figures in other setups.
    pub setups: Vec<Setup>,
    /// The circumstances of the measurement.
    pub note: String,
}

/// The figures of a finding in another setup.
pub struct Setup {
    /// The difference from the judged setup.
    pub name: String,
    /// The figures by name.
    pub ours: Vec<(Option<String>, f64)>,
    /// Whether the claim holds with it.
    pub holds: bool,
}

impl Publication {
    /// Reads `docs/results/NAME.json`.
    ///
    /// # Errors
    /// If the text is not a publication, or a finding is of none of these claims.
    pub fn parse(text: &str, table: &ClaimTable) -> Result<Publication, String> {
        let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let rows = whole.get("findings").and_then(Value::as_array);
        let rows = rows.ok_or("expected `findings`, the rows that the command prints")?;
        let findings: Vec<Finding> = rows.iter().map(Finding::parse).collect::<Result<_, _>>()?;
        let is_known = |finding: &&Finding| table.claims.iter().any(|claim| claim.id == finding.id);
        if let Some(unknown) = findings.iter().find(|finding| !is_known(finding)) {
            return Err(format!(
                "{}: expected a claim of {}",
                unknown.id, table.name
            ));
        }
        Ok(Publication {
            command: words(&whole, "command")?,
            commit: words(&whole, "commit")?,
            date: words(&whole, "date")?,
            remark: words(&whole, "remark").ok(),
            findings,
        })
    }

    /// Checks that the findings are of a whole run: every claim has one, none is quick.
    ///
    /// # Errors
    /// If a claim has no finding, or a run had fewer requests than a full one.
    pub fn check_complete(&self, table: &ClaimTable) -> Result<(), String> {
        let has_finding = |id: &str| self.findings.iter().any(|finding| finding.id == id);
        if let Some(missing) = table.claims.iter().find(|claim| !has_finding(&claim.id)) {
            let command = &self.command;
            return Err(format!(
                "no finding of {}: expected those of `{command}`",
                missing.id
            ));
        }
        let is_short = |finding: &&Finding| {
            let begin = finding.note.split(';').next().unwrap_or_default();
            begin.starts_with("quick: ") || begin.ends_with(" requests in each run")
        };
        match self.findings.iter().find(is_short) {
            Some(short) => Err(format!(
                "{}: expected a run without --quick and --requests",
                short.id
            )),
            None => Ok(()),
        }
    }
}

impl Finding {
    fn parse(row: &Value) -> Result<Finding, String> {
        let id = words(row, "id")?;
        let problem = |problem: &str| format!("{id}: {problem}");
        let holds = |row: &Value| row.get("holds").and_then(Value::as_bool);
        let ours = |row: &Value| {
            figures(row.get("ours"))
                .ok_or_else(|| problem("expected `ours`, a number or an object of numbers"))
        };
        let verdict = match (words(row, "verdict").ok(), holds(row)) {
            (Some(verdict), Some(_)) => verdict,
            // Findings that were printed before verdicts had words.
            (None, Some(true)) => String::from(HOLDS),
            (None, Some(false)) => String::from(DIFFERS),
            (_, None) => return Err(problem("expected `holds`, true or false")),
        };
        let mut setups = Vec::new();
        for setup in row
            .get("setups")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            setups.push(Setup {
                name: words(setup, "setup").map_err(|missing| problem(&missing))?,
                ours: ours(setup)?,
                holds: holds(setup) == Some(true),
            });
        }
        Ok(Finding {
            ours: ours(row)?,
            label: words(row, "mode").ok(),
            verdict,
            reading: words(row, "reading").ok(),
            reason: words(row, "reason").ok(),
            setups,
            note: words(row, "note").map_err(|missing| problem(&missing))?,
            id,
        })
    }

    /// Whether the claim holds.
    pub fn holds(&self) -> bool {
        self.verdict == HOLDS
    }

    /// Our figure of this name.
    pub fn figure(&self, name: Option<&str>) -> Option<f64> {
        let mut figures = self.ours.iter();
        figures
            .find(|(of, _)| of.as_deref() == name)
            .map(|(_, value)| *value)
    }
}

/// A number, or an object of numbers.
fn figures(value: Option<&Value>) -> Option<Vec<(Option<String>, f64)>> {
    match value? {
        Value::Object(figures) => figures
            .iter()
            .map(|(name, value)| Some((Some(name.clone()), value.as_f64()?)))
            .collect(),
        value => value.as_f64().map(|value| vec![(None, value)]),
    }
}

fn words(from: &Value, key: &str) -> Result<String, String> {
    let words = from.get(key).and_then(Value::as_str);
    words
        .map(str::to_string)
        .ok_or_else(|| format!("expected `{key}`, a text"))
}

/// The word of a claim that holds.
const HOLDS: &str = "holds";

/// The word of a claim that does not.
pub const DIFFERS: &str = "differs";
