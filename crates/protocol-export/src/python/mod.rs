//! The Python package `oarlock-protocol`: a pydantic model for every type, and the method tables as typed rows.

mod layout;
mod methods;
mod names;
mod shapes;
#[cfg(test)]
mod tests;
mod types;

use std::collections::HashSet;

use crate::ir::ExportModel;
use crate::{File, Surface};
use types::Declarations;

/// The hand-written base of the generated modules.
const BASE: &str = include_str!("base.py");
const ROWS: &str = include_str!("rows.py");
const INIT_TAIL: &str = include_str!("init_tail.py");
const README: &str = include_str!("README.md");

/// The names of `_base.py` that callers need.
const BASE_EXPORTS: [&str; 6] = ["Number", "UnknownVariant", "Variant", "WireModel", "read", "write"];

const GENERATED: &str = "Generated; do not edit.";

/// The whole distribution: the package, its metadata and its readme.
pub fn python(surface: Surface) -> Vec<File> {
    package(&ExportModel::for_reading(surface))
}

fn package(model: &ExportModel) -> Vec<File> {
    let types = types::declarations(&model.types);
    let module = |name: &str, text: String| File { path: format!("src/oarlock_protocol/{name}"), text };
    vec![
        File { path: "README.md".to_owned(), text: README.to_owned() },
        File { path: "pyproject.toml".to_owned(), text: pyproject() },
        module("__init__.py", init(&types)),
        module("_base.py", BASE.to_owned()),
        module("_rows.py", ROWS.to_owned()),
        module("methods.py", methods::module(model, &types.classes)),
        module("py.typed", String::new()),
        module("types.py", types_module(&types)),
    ]
}

fn types_module(types: &Declarations) -> String {
    let head = format!(
        "\"\"\"Every type of the wire, each after the ones it mentions. {GENERATED}\"\"\"\n\n\
         from typing import Annotated, Any, Literal, TypeAlias\n\n\
         from pydantic import Field, StrictBool, StrictInt\n\n"
    );
    let base = [
        "FIRST_MATCH",
        "NOT_NULL",
        "ClosedModel",
        "Keyed",
        "Number",
        "Open",
        "Tagged",
        "UnknownVariant",
        "Variant",
        "WireModel",
        "read",
        "wire",
    ];
    // A surface need not use every helper, and an import nobody uses does not pass the linter.
    let words: HashSet<&str> = types.text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let base = base.iter().filter(|name| words.contains(*name)).map(|name| (*name).to_owned());
    let base = layout::lines("from ._base import (", base, ")");
    let all = layout::lines("\n__all__ = [", types.names.iter().map(|name| layout::string(name)), "]");
    format!("{head}{base}{all}{}", types.text)
}

/// Names are loaded when they are first asked for: a program that starts should not wait for models it does not use.
fn init(types: &Declarations) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let types: Vec<&str> = types.names.iter().map(String::as_str).collect();
    let modules = [("_base", BASE_EXPORTS.to_vec()), ("methods", methods::exports()), ("types", types)];
    let quoted = |names: &[&str]| names.iter().map(|name| layout::string(name)).collect::<Vec<_>>();
    let imports: String = modules
        .iter()
        .map(|(module, names)| {
            let names: String = names.iter().map(|name| format!("        {name},\n")).collect();
            format!("    from .{module} import (\n{names}    )\n")
        })
        .collect();
    let all: Vec<String> = modules.iter().flat_map(|(_, names)| quoted(names)).collect();
    let all = layout::lines("__all__ = [\n    \"__version__\",", all.into_iter(), "]");
    let base = layout::lines("_BASE = {", quoted(&modules[0].1).into_iter(), "}");
    let methods = layout::lines("_METHODS = {", quoted(&modules[1].1).into_iter(), "}");
    format!(
        "\"\"\"The app-server protocol: a model for every type, a table for every direction. {GENERATED}\"\"\"\n\n\
         from importlib import import_module\n\
         from typing import TYPE_CHECKING, Any\n\n\
         if TYPE_CHECKING:\n{imports}\n\
         __version__ = \"{version}\"\n\n{all}\n{base}\n{methods}{INIT_TAIL}"
    )
}

fn pyproject() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let width = layout::WIDTH;
    format!(
        r#"[build-system]
requires = ["hatchling>=1.24"]
build-backend = "hatchling.build"

[project]
name = "oarlock-protocol"
version = "{version}"
description = "Typed models of the Oarlock app-server protocol."
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.10"
dependencies = ["pydantic>=2.7"]

[tool.hatch.build.targets.wheel]
packages = ["src/oarlock_protocol"]

[tool.ruff]
line-length = {width}
target-version = "py310"
src = ["src", "tests"]

[tool.ruff.lint]
select = ["B", "E", "F", "I", "UP"]
# Method names are no identifiers, so a table of them cannot be a class.
ignore = ["UP013"]

[tool.ruff.lint.isort]
case-sensitive = true

[tool.mypy]
strict = true
python_version = "3.10"
mypy_path = "src"

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
filterwarnings = ["error"]
"#
    )
}
