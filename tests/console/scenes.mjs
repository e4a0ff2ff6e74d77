// Tasks in several states, for the pages to show.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const PARSER = `fn parse(line: &str) -> Option<(&str, u32)> {
    let (name, count) = line.split_once(' ')?;
    // A count that is no number counts as none.
    Some((name, count.parse().unwrap_or(0)))
}
`;

/** Everything a model or a command could print to get out of the page. */
export const HOSTILE = [
  "<script>window.pwned = 1</script>",
  "<img src=x onerror=window.pwned=2>",
  "[click me](javascript:window.pwned=3)",
  "[data](data:text/html,<script>window.pwned=4</script>)",
  "![pixel](http://127.0.0.1:9/pixel.png)",
  "[bank](https://bank.example@evil.example/)",
  "[docs](https://docs.example/page)",
  "\u202Egnp.exe\u202C \u200B\u200B\u200B\u2066hidden\u2069",
].join(" ");

export async function seed(client, host) {
  writeFileSync(join(host.workspace, "parser.rs"), PARSER);
  const at = host.workspace;
  const done = await client.task(
    at,
    "plan: read the parser; count its lines; write notes\nread parser.rs\nrun printf '\\033[32mok\\033[0m  3 tests passed\\n\\033[1;33mwarning\\033[0m: unused variable\\n'; wc -l parser.rs\ncreate NOTES.md with \"The parser takes a name and a count.\"\nfinish the plan\nsum up",
    { name: "Describe the parser" },
  );
  const command = await client.task(at, "run git push --force origin main", { approvalPolicy: "untrusted", name: "Release 2.4" });
  const patch = await client.task(at, "replace unwrap_or(0) with ok()? in parser.rs", { approvalPolicy: "untrusted", name: "Counts that are no numbers are errors" });
  const hidden = await client.task(at, "run echo safe \u202E# tidy\u202C \u200B; rm -rf build", { approvalPolicy: "untrusted", name: "Clean the build folder" });
  const hostile = await client.task(at, `say ${HOSTILE}`, { name: "Answer from a page of the web" });
  return { done, command, patch, hidden, hostile };
}
