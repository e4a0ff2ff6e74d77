// A model that does what the last message of the user says: what the offline one cannot, agents and many items at once.
//
//   agent: TEXT     starts an agent with this text, then says that it did
//   many: NUMBER    says so many messages, one item each
//   run: COMMAND    runs it, then says what came of it
//   hold: NUMBER    says so many words, one delta each; after half of them it waits for `go`
//   flood: NUMBER   says so many words, 2,000 a second
//   think: TEXT     thinks it aloud, then says that it did
import http from "node:http";
import { gunzipSync } from "node:zlib";

const USAGE = {
  input_tokens: 1_000, input_tokens_details: { cached_tokens: 200 },
  output_tokens: 500, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 1_500,
};

export class TestModel {
  async start() {
    let number = 0;
    /** Requests that were answered. */
    this.requests = 0;
    this.server = http.createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      if (request.method !== "POST") {
        response.setHeader("content-type", "application/json").end(JSON.stringify({ data: [], models: [] }));
        return;
      }
      const bytes = Buffer.concat(chunks);
      const body = JSON.parse(request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes);
      number += 1;
      this.requests = number;
      const slow = slowOf(body, number);
      if (slow !== undefined) {
        response.setHeader("content-type", "text/event-stream");
        await this.stream(response, slow, number);
        return;
      }
      const events = [
        { type: "response.created", response: { id: `resp_${number}` } },
        ...itemsOf(body, number).map((item) => ({ type: "response.output_item.done", item })),
        { type: "response.completed", response: { id: `resp_${number}`, usage: USAGE } },
      ];
      response.setHeader("content-type", "text/event-stream");
      response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
    });
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${this.server.address().port}/v1`;
    this.flags = [
      "-c", `model_providers.test={name="test",base_url="${url}",request_max_retries=0,stream_max_retries=0}`,
      "-c", "model=scripted", "-c", "prices.scripted={input = 100.0, cached_input = 100.0, output = 1000.0}",
    ];
  }

  /** Lets what holds go on. */
  go() {
    this.release?.();
    this.release = undefined;
  }

  async stream(response, { words, perSecond }, number) {
    const send = (event) => response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const item = (text) => ({ type: "message", role: "assistant", id: `msg_${number}`, content: [{ type: "output_text", text }] });
    send({ type: "response.created", response: { id: `resp_${number}` } });
    send({ type: "response.output_item.added", output_index: 0, item: { ...item(""), content: [] } });
    const say = (delta) => send({ type: "response.output_text.delta", item_id: `msg_${number}`, output_index: 0, content_index: 0, delta });
    const begun = performance.now();
    for (let sent = 0; sent < words.length; ) {
      if (perSecond === undefined) {
        if (sent === Math.floor(words.length / 2)) await new Promise((resolve) => (this.release = resolve));
        say(words[sent]);
        sent += 1;
        continue;
      }
      const due = Math.min(words.length, Math.floor(((performance.now() - begun) / 1_000) * perSecond));
      for (; sent < due; sent += 1) say(words[sent]);
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
    this.saidAllAt = Date.now();
    send({ type: "response.output_item.done", output_index: 0, item: item(words.join("")) });
    send({ type: "response.completed", response: { id: `resp_${number}`, usage: USAGE } });
    response.end();
  }

  close() {
    this.go();
    this.server.closeAllConnections();
    this.server.close();
  }
}

const isUser = (item) => item.type === "message" && item.role === "user";

/** The last wish of the user: the whole text, its verb, and the rest. */
function wishOf(body) {
  const said = body.input.filter(isUser).flatMap((item) => item.content.map((part) => part.text ?? ""));
  const wish = said.findLast((text) => /^(agent|many|run|say|hold|flood|think): /.test(text)) ?? "say: nothing";
  return /^(\w+): ([^]*)$/.exec(wish);
}

function slowOf(body) {
  const [, verb, rest] = wishOf(body);
  const words = Array.from({ length: Number(rest) || 0 }, (_, at) => `w${at} `);
  if (verb === "hold") return { words };
  return verb === "flood" ? { words, perSecond: 2_000 } : undefined;
}

function itemsOf(body, number) {
  const [wish, verb, rest] = wishOf(body);
  const asked = body.input.findLastIndex((item) => isUser(item) && item.content.some((part) => part.text === wish));
  const isAnswered = body.input.slice(asked).some((item) => item.type === "function_call_output");
  const message = (text, at = 0) => ({ type: "message", role: "assistant", id: `msg_${number}_${at}`, content: [{ type: "output_text", text }] });
  const call = (name, given) => ({ type: "function_call", id: `fc_${number}`, call_id: `call_${number}`, name, arguments: JSON.stringify(given) });
  if (verb === "many") return Array.from({ length: Number(rest) }, (_, at) => message(`Message **${at}** of ${rest}`, at));
  if (verb === "say") return [message(rest)];
  if (verb === "think") {
    const reasoning = { type: "reasoning", id: `rs_${number}`, summary: [{ type: "summary_text", text: rest }], encrypted_content: null };
    return [reasoning, message("I have thought.")];
  }
  if (isAnswered) return [message("It is done.")];
  if (verb === "agent") return [call("spawn_agent", { message: rest })];
  const names = body.tools.map((tool) => tool.name);
  return [names.includes("exec_command") ? call("exec_command", { cmd: rest }) : call("shell_command", { command: rest })];
}
