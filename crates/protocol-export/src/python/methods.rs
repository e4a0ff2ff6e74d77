//! The method tables as typed rows.

use std::collections::BTreeSet;

use super::layout;
use crate::ir::{ExportModel, MethodRow};

const TAIL: &str = include_str!("methods_tail.py");

/// One direction, under its Python names.
struct PythonTable<'a> {
    /// The `TypedDict` that gives every method the type of its row.
    name: &'static str,
    /// The union of the method names.
    names: &'static str,
    constant: &'static str,
    about: &'static str,
    rows: &'a [MethodRow],
}

/// The text of `methods.py`, given the type names that are classes.
pub(super) fn module(model: &ExportModel, classes: &BTreeSet<String>) -> String {
    let tables = tables(model);
    let used: BTreeSet<&str> = tables
        .iter()
        .flat_map(|table| table.rows)
        .flat_map(|row| [row.params.as_deref(), row.response.as_deref()])
        .flatten()
        .collect();
    let mut text = String::from(
        "\"\"\"Every method of the wire, one table per direction. Generated; do not edit.\"\"\"\n\n\
         from collections.abc import Mapping\n\
         from typing import Any, Final, Literal, TypeAlias, TypedDict, cast\n\n\
         from ._rows import Direction, NotificationMethod, RequestMethod, form\n",
    );
    text += &layout::lines("from .types import (", used.iter().map(|name| (*name).to_owned()), ")");
    text += &layout::lines("\n__all__ = [", exports().iter().map(|name| layout::string(name)), "]");
    for table in &tables {
        text += &table.print(classes);
    }
    text + "\n" + TAIL
}

/// The public names of `methods.py`, sorted the way imports are.
pub(super) fn exports() -> Vec<&'static str> {
    vec![
        "CLIENT_NOTIFICATIONS",
        "CLIENT_REQUESTS",
        "METHODS",
        "SERVER_NOTIFICATIONS",
        "SERVER_REQUESTS",
        "ClientNotificationMethod",
        "ClientNotifications",
        "ClientRequestMethod",
        "ClientRequests",
        "Direction",
        "NotificationMethod",
        "RequestMethod",
        "ServerNotificationMethod",
        "ServerNotifications",
        "ServerRequestMethod",
        "ServerRequests",
        "parse_message",
        "parse_response",
    ]
}

fn tables(model: &ExportModel) -> [PythonTable<'_>; 4] {
    [
        PythonTable {
            name: "ClientRequests",
            names: "ClientRequestMethod",
            constant: "CLIENT_REQUESTS",
            about: "What a client asks of the server.",
            rows: &model.client_requests,
        },
        PythonTable {
            name: "ServerRequests",
            names: "ServerRequestMethod",
            constant: "SERVER_REQUESTS",
            about: "What the server asks of a client.",
            rows: &model.server_requests,
        },
        PythonTable {
            name: "ServerNotifications",
            names: "ServerNotificationMethod",
            constant: "SERVER_NOTIFICATIONS",
            about: "What the server tells a client.",
            rows: &model.server_notifications,
        },
        PythonTable {
            name: "ClientNotifications",
            names: "ClientNotificationMethod",
            constant: "CLIENT_NOTIFICATIONS",
            about: "What a client tells the server.",
            rows: &model.client_notifications,
        },
    ]
}

impl PythonTable<'_> {
    fn print(&self, classes: &BTreeSet<String>) -> String {
        let methods: Vec<String> = self.rows.iter().map(|row| layout::string(row.method)).collect();
        let names = layout::literals(self.names, false, &methods);
        let types: String = self.rows.iter().map(row_type).collect();
        let rows: String = self.rows.iter().map(|row| print_row(row, classes)).collect();
        let Self { name, constant, about, .. } = self;
        format!(
            "\n{names}\n{name} = TypedDict(\n    \"{name}\",\n    {{\n{types}    }},\n)\n\n\
             {constant}: Final[{name}] = {{\n{rows}}}\n\"\"\"{about}\"\"\"\n"
        )
    }
}

fn row_type(row: &MethodRow) -> String {
    let params = row.params.as_deref().unwrap_or("None");
    let class = if row.response.is_some() { "RequestMethod" } else { "NotificationMethod" };
    let payloads: Vec<String> =
        std::iter::once(params).chain(row.response.as_deref()).map(str::to_owned).collect();
    layout::subscript(8, &format!("{}: {class}", layout::string(row.method)), &payloads, ",")
}

pub(super) fn print_row(row: &MethodRow, classes: &BTreeSet<String>) -> String {
    let payload = |name: &String| if classes.contains(name) { name.clone() } else { format!("form({name})") };
    let method = layout::string(row.method);
    let class = if row.response.is_some() { "RequestMethod" } else { "NotificationMethod" };
    let params = row.params.as_ref().map_or("None".to_owned(), payload);
    let response =
        row.response.as_ref().map_or(String::new(), |name| format!("        response={},\n", payload(name)));
    let experimental = if row.experimental { "True" } else { "False" };
    let doc = layout::argument(8, "doc", row.about);
    format!(
        "    {method}: {class}(\n        method={method},\n        params={params},\n{response}        \
         experimental={experimental},\n{doc}    ),\n"
    )
}
