// An MCP server whose one tool asks the person a form, and answers with what it was told.
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const waiting = new Map();

const FORM = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name of the release" },
    copies: { type: "integer", title: "Copies" },
    color: { type: "string", title: "Colour", enum: ["red", "green"] },
    loud: { type: "boolean", title: "With a message to all" },
  },
  required: ["name"],
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") {
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "asker", version: "1" } } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: [{ name: "ask", description: "Asks.", inputSchema: { type: "object", properties: {} }, annotations: { readOnlyHint: true } }] } });
  } else if (method === "tools/call") {
    waiting.set(`ask-${id}`, id);
    send({ id: `ask-${id}`, method: "elicitation/create", params: { message: "Which release is it?", requestedSchema: FORM } });
  } else if (method === undefined && waiting.has(id)) {
    send({ id: waiting.get(id), result: { content: [{ type: "text", text: `told ${JSON.stringify(result)}` }] } });
  } else if (id !== undefined && method !== undefined) {
    send({ id, result: {} });
  }
});
