//! One step of the demo: a spec goes in, Kestra lines come out, both are kept as files.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::kestra;

/// Runs steps of the tool on one table, as a flow's tasks do.
#[derive(Debug)]
pub struct Runner {
    /// The binary.
    pub guard: PathBuf,
    /// Where specs and Kestra lines are kept.
    pub folder: PathBuf,
    /// The database.
    pub db_uri: String,
    /// The table.
    pub table_name: String,
    /// Steps run so far, to number the files.
    pub count: usize,
}

/// What a step answered.
#[derive(Debug)]
pub struct Answer {
    /// The step with its number, for messages.
    pub title: String,
    /// Its outputs.
    pub outputs: Value,
}

impl Runner {
    /// Runs a step with the fields that are its own; `fields` must be an object.
    pub fn run(&mut self, step: &str, execution_id: &str, fields: Value) -> Result<Answer> {
        self.count += 1;
        let title = format!("{}-{step}", self.count);
        let spec_file = self.folder.join(format!("{title}.spec.json"));
        let lines_file = self.folder.join(format!("{title}.kestra.txt"));
        let spec = self.spec(step, execution_id, fields);
        fs::write(&spec_file, serde_json::to_string_pretty(&spec)?)?;

        let run = Command::new(&self.guard)
            .current_dir(&self.folder)
            .stdin(Stdio::from(File::open(&spec_file)?))
            .output()
            .with_context(|| format!("cannot start {}", self.guard.display()))?;
        fs::write(&lines_file, &run.stdout)?;
        let lines = lines_file.display();
        // Kestra shows whatever stands on stderr as an error.
        let stderr = String::from_utf8_lossy(&run.stderr);
        ensure!(stderr.is_empty(), "{title} wrote to stderr: {stderr}");
        let stdout = str::from_utf8(&run.stdout).with_context(|| format!("in {lines}"))?;
        let outputs = match kestra::read(stdout) {
            Ok(captured) => Value::Object(captured.outputs),
            Err(error) => bail!("{title} ended with {}: {error:#} (see {lines})", run.status),
        };
        if !run.status.success() {
            let error = &outputs["error"];
            bail!(
                "{title} ended with {}: {} {} (see {lines})",
                run.status,
                error["message"].as_str().unwrap_or("no message"),
                error["hint"].as_str().unwrap_or_default(),
            );
        }
        Ok(Answer { title, outputs })
    }

    fn spec(&self, step: &str, execution_id: &str, fields: Value) -> Value {
        let mut spec = Map::new();
        spec.insert("spec_version".to_owned(), 1.into());
        spec.insert("step".to_owned(), step.into());
        spec.insert("db_uri".to_owned(), self.db_uri.clone().into());
        spec.insert("table_name".to_owned(), self.table_name.clone().into());
        spec.insert("execution_id".to_owned(), execution_id.into());
        if let Value::Object(fields) = fields {
            spec.extend(fields);
        }
        Value::Object(spec)
    }
}

impl Answer {
    /// The output at a JSON pointer; absent is an error.
    pub fn get(&self, pointer: &str) -> Result<&Value> {
        self.outputs
            .pointer(pointer)
            .with_context(|| format!("{} has no output {pointer}", self.title))
    }

    /// The count at a JSON pointer.
    pub fn count(&self, pointer: &str) -> Result<u64> {
        let value = self.get(pointer)?;
        value
            .as_u64()
            .with_context(|| format!("{}: output {pointer} is {value}, not a count", self.title))
    }

    /// The summary in words.
    pub fn summary(&self) -> Result<&str> {
        self.get("/summary")?
            .as_str()
            .context("the summary is no string")
    }

    /// Fails unless the output at a JSON pointer is the one expected.
    pub fn expect(&self, pointer: &str, expected: impl Into<Value>) -> Result<()> {
        let (found, expected) = (self.get(pointer)?, expected.into());
        ensure!(
            *found == expected,
            "{}: output {pointer} should be {expected} and is {found}. It says: {}",
            self.title,
            self.summary().unwrap_or("nothing"),
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_spec_has_the_common_fields_and_those_of_its_step() {
        let runner = Runner {
            guard: "guard".into(),
            folder: "folder".into(),
            db_uri: "/db".to_owned(),
            table_name: "documents".to_owned(),
            count: 0,
        };
        assert_eq!(
            runner.spec("compact", "run-1", json!({"dry_run": true})),
            json!({
                "spec_version": 1, "step": "compact", "db_uri": "/db", "table_name": "documents",
                "execution_id": "run-1", "dry_run": true
            })
        );
    }

    #[test]
    fn an_output_that_is_not_as_expected_is_named_with_both_values() {
        let answer = Answer {
            title: "4-verify".to_owned(),
            outputs: json!({"verification_passed": false, "summary": "Rows are missing."}),
        };
        let error = answer.expect("/verification_passed", true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "4-verify: output /verification_passed should be true and is false. \
             It says: Rows are missing."
        );
        assert_eq!(
            answer.expect("/gone", 1).unwrap_err().to_string(),
            "4-verify has no output /gone"
        );
    }
}
