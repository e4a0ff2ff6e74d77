//! Which task or placement of a host is meant: by its id, the beginning of one, or its name. A miss says what there is.

use anyhow::Result;
use serde_json::{Value, json};

use super::client::{HostChoice, HostConnection};
use super::commands::{code, every, waiting};
use crate::threads::{Nameable, choose};

/// A whole id, which needs no look at the others.
const WHOLE_ID: usize = 36;

/// A row of `task/list`.
pub(super) struct ListedTask(pub(super) Value);

/// A row of `placement/list`.
pub(super) struct ListedPlacement(pub(super) Value);

/// Text that is there.
fn words(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

impl Nameable for ListedTask {
    const KIND: &'static str = "task";
    const FIRST_COUNTS: bool = false;

    fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }

    fn name(&self) -> Option<&str> {
        words(&self.0["name"])
    }

    fn about(&self) -> String {
        self.name().or_else(|| words(&self.0["preview"])).unwrap_or("nothing was said yet").to_owned()
    }
}

impl Nameable for ListedPlacement {
    const KIND: &'static str = "placement";
    const FIRST_COUNTS: bool = false;

    fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }

    fn name(&self) -> Option<&str> {
        words(&self.0["name"])
    }

    fn about(&self) -> String {
        let status = words(&self.0["status"]).unwrap_or_default();
        format!("{} ({status})", self.name().unwrap_or_default())
    }
}

/// Every task, those of the archive last.
pub(super) fn every_task(host: &mut HostConnection) -> Result<Vec<ListedTask>> {
    let mut tasks = every(host, "task/list", json!({}))?;
    tasks.extend(every(host, "task/list", json!({ "archived": true }))?);
    Ok(tasks.into_iter().map(ListedTask).collect())
}

pub(super) fn every_placement(host: &mut HostConnection) -> Result<Vec<ListedPlacement>> {
    let mut listed = host.ask("placement/list", &json!({}))?;
    let Value::Array(placements) = listed["data"].take() else { return Ok(Vec::new()) };
    Ok(placements.into_iter().map(ListedPlacement).collect())
}

/// The id of the task that `text` names.
pub(super) fn chosen_task(host: &mut HostConnection, text: &str) -> Result<String> {
    if text.len() == WHOLE_ID {
        return Ok(text.to_ascii_lowercase());
    }
    Ok(choose(&every_task(host)?, text)?.id().to_owned())
}

/// The id of the placement that `text` names.
pub(super) fn chosen_placement(host: &mut HostConnection, text: &str) -> Result<String> {
    Ok(choose(&every_placement(host)?, text)?.id().to_owned())
}

/// The words that name something of a host, for the completion of command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostWord {
    Task,
    Placement,
    /// The code of what waits.
    Code,
}

/// Nothing where no host answers.
pub(crate) fn host_words(choice: &HostChoice, wanted: HostWord) -> Vec<String> {
    fn names<T: Nameable>(rows: &[T]) -> Vec<String> {
        let ids = rows.iter().map(|row| row.id().to_owned());
        rows.iter().filter_map(|row| row.name().map(str::to_owned)).chain(ids).collect()
    }
    let asked = || -> Result<Vec<String>> {
        let mut host = HostConnection::open_for_words(choice)?;
        Ok(match wanted {
            HostWord::Task => names(&every_task(&mut host)?),
            HostWord::Placement => names(&every_placement(&mut host)?),
            HostWord::Code => waiting(&mut host)?.iter().map(code).collect(),
        })
    };
    asked().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let row = |id: &str, name: &str, preview: &str| {
            ListedTask(json!({ "id": id, "name": name, "preview": preview }))
        };
        let tasks = [
            row("0199c0de-0001-7000-8000-00000000000a", "Ship it", ""),
            row("0199c0de-0002-7000-8000-00000000000b", "Nightly", ""),
            row("0199c0de-0003-7000-8000-00000000000c", "Nightly", "look at the log"),
        ];
        let found = choose(&tasks, text);
        let told = found.map_or_else(|error| error.to_string(), |task| task.id().to_owned());
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn a_task_goes_by_its_id_the_beginning_of_it_or_its_name() {
        check("0199c0de-0002", "0199c0de-0002-7000-8000-00000000000b");
        check("Ship it", "0199c0de-0001-7000-8000-00000000000a");
        check("Shp it", "there is no task `Shp it`; did you mean `Ship it`?");
        check(
            "Nightly",
            "several have the name `Nightly`; write the id of one:\
             \n  0199c0de-0002-7000-8000-00000000000b  Nightly\n  0199c0de-0003-7000-8000-00000000000c  Nightly",
        );
    }
}
