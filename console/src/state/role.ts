// The role of this connection. A host names it; a server that names none allows everything it has.

import { connection } from "../wire/connection";

/** `viewer` until the server has answered, so that no button appears too early. */
function role(): string {
  const server = connection.server.value;
  return server === undefined ? "viewer" : (server.capabilities?.host?.role ?? "operator");
}

/** Approvers and above. */
export function mayDecide(): boolean {
  return role() !== "viewer";
}

/** Operators and admins. */
export function mayOperate(): boolean {
  return role() !== "viewer" && role() !== "approver";
}

export function roleName(): string {
  return role();
}
