// The role of this connection. A host names it; a server that names none allows everything it has.

import { connection } from "../wire/connection";

/** Nothing is offered before it is known. */
function role(): string {
  const server = connection.server.value;
  return server === undefined ? "viewer" : (server.capabilities?.host?.role ?? "operator");
}

/** Also decides what waits. */
export function mayDecide(): boolean {
  return role() !== "viewer";
}

/** Also starts and stops. */
export function mayOperate(): boolean {
  return role() !== "viewer" && role() !== "approver";
}

export function roleName(): string {
  return role();
}
