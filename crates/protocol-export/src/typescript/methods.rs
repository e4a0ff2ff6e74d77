//! The method tables as TypeScript: a union of messages per table, and one map from method to payloads per table.

use super::print::{TypeScriptPrinter, doc, quoted};
use crate::ir::{ExportModel, MethodRow};

/// One direction of messages, and what its types are called.
pub(super) struct TypeScriptTable<'a> {
    /// The union of all its messages.
    pub(super) union: &'static str,
    /// The map from its methods to their payloads.
    pub(super) map: &'static str,
    about: &'static str,
    rows: &'a [MethodRow],
}

impl<'a> TypeScriptTable<'a> {
    pub(super) fn all(model: &'a ExportModel) -> [Self; 4] {
        [
            TypeScriptTable {
                union: "ClientRequest",
                map: "ClientRequests",
                about: "What a client may ask of the server.",
                rows: &model.client_requests,
            },
            TypeScriptTable {
                union: "ServerRequest",
                map: "ServerRequests",
                about: "What the server may ask of a client.",
                rows: &model.server_requests,
            },
            TypeScriptTable {
                union: "ServerNotification",
                map: "ServerNotifications",
                about: "What the server tells clients without being asked.",
                rows: &model.server_notifications,
            },
            TypeScriptTable {
                union: "ClientNotification",
                map: "ClientNotifications",
                about: "What a client may tell the server without expecting an answer.",
                rows: &model.client_notifications,
            },
        ]
    }

    /// Every message of the table, told apart by `method`.
    pub(super) fn union(&self, printer: &mut TypeScriptPrinter) -> String {
        let arms: String = self.rows.iter().map(|row| arm(printer, row)).collect();
        format!("{}export type {} =\n{};\n", doc(&[self.about], 0), self.union, arms.trim_end())
    }

    fn map(&self, printer: &mut TypeScriptPrinter) -> String {
        let entries: String = self.rows.iter().map(|row| entry(printer, row)).collect();
        format!("{}export interface {} {{\n{entries}}}\n", doc(&[self.about], 0), self.map)
    }
}

/// For clients generic over the method: `request<M extends keyof ClientRequests>(…)`.
pub(super) fn maps(printer: &mut TypeScriptPrinter, tables: &[TypeScriptTable]) -> String {
    let maps: Vec<String> = tables.iter().map(|table| table.map(printer)).collect();
    maps.join("\n")
}

fn arm(printer: &mut TypeScriptPrinter, row: &MethodRow) -> String {
    let id = match row.response {
        Some(_) => format!(" id: {};", printer.reference("RequestId")),
        None => String::new(),
    };
    let optional = if row.params.is_some() { "" } else { "?" };
    let params = params(printer, row);
    let method = quoted(row.method);
    format!("{}  | {{ method: {method};{id} params{optional}: {params} }}\n", row_doc(row))
}

fn entry(printer: &mut TypeScriptPrinter, row: &MethodRow) -> String {
    let params = params(printer, row);
    let payloads = match &row.response {
        Some(response) => format!("{{ params: {params}; response: {} }}", printer.reference(response)),
        None => params,
    };
    format!("{}  {}: {payloads};\n", row_doc(row), quoted(row.method))
}

fn params(printer: &mut TypeScriptPrinter, row: &MethodRow) -> String {
    printer.reference(row.params.as_deref().unwrap_or("NoParams"))
}

fn row_doc(row: &MethodRow) -> String {
    let tags: &[&str] = if row.experimental { &[row.about, "@experimental"] } else { &[row.about] };
    doc(tags, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        method: &'static str,
        about: &'static str,
        params: Option<&str>,
        response: Option<&str>,
    ) -> MethodRow {
        let owned = |name: &str| name.to_owned();
        MethodRow {
            method,
            about,
            experimental: false,
            params: params.map(owned),
            response: response.map(owned),
        }
    }

    fn check(print: fn(&TypeScriptTable, &mut TypeScriptPrinter) -> String) -> String {
        let rows = [
            row("thread/start", "Creates a thread.", Some("ThreadStartParams"), Some("ThreadStartResponse")),
            row("account/logout", "Logs out.", None, Some("LogoutAccountResponse")),
            row("turn/started", "A turn began.", Some("TurnStartedNotification"), None),
            MethodRow { experimental: true, ..row("initialized", "Ready.", None, None) },
        ];
        let table =
            TypeScriptTable { union: "Message", map: "Messages", about: "All there is.", rows: &rows };
        let mut printer = TypeScriptPrinter::default();
        let body = print(&table, &mut printer);
        printer.imports_for("Message") + &body
    }

    #[test]
    fn a_map_leads_from_methods_to_payloads() {
        insta::assert_snapshot!(check(|table, printer| table.map(printer)), @r#"
        import type { LogoutAccountResponse } from "./LogoutAccountResponse";
        import type { NoParams } from "./NoParams";
        import type { ThreadStartParams } from "./ThreadStartParams";
        import type { ThreadStartResponse } from "./ThreadStartResponse";
        import type { TurnStartedNotification } from "./TurnStartedNotification";

        /** All there is. */
        export interface Messages {
          /** Creates a thread. */
          "thread/start": { params: ThreadStartParams; response: ThreadStartResponse };
          /** Logs out. */
          "account/logout": { params: NoParams; response: LogoutAccountResponse };
          /** A turn began. */
          "turn/started": TurnStartedNotification;
          /**
           * Ready.
           * @experimental
           */
          "initialized": NoParams;
        }
        "#);
    }

    #[test]
    fn a_union_has_an_arm_per_method() {
        insta::assert_snapshot!(check(|table, printer| table.union(printer)), @r#"
        import type { NoParams } from "./NoParams";
        import type { RequestId } from "./RequestId";
        import type { ThreadStartParams } from "./ThreadStartParams";
        import type { TurnStartedNotification } from "./TurnStartedNotification";

        /** All there is. */
        export type Message =
          /** Creates a thread. */
          | { method: "thread/start"; id: RequestId; params: ThreadStartParams }
          /** Logs out. */
          | { method: "account/logout"; id: RequestId; params?: NoParams }
          /** A turn began. */
          | { method: "turn/started"; params: TurnStartedNotification }
          /**
           * Ready.
           * @experimental
           */
          | { method: "initialized"; params?: NoParams };
        "#);
    }
}
