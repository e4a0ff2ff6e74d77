// Forms for questions of MCP servers (fields, a page to open, consent to a call) and for requests of more permissions. The answer
// is the JSON of the response that the question has on the wire.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import type { McpElicitationPrimitiveSchema } from "../../protocol";
import { plain } from "../safe/characters";
import type { AskedForm } from "../state/inbox";
import { Link, Visible } from "./Text";

interface FormProps<T extends AskedForm["type"]> {
  form: AskedForm & { type: T };
  isBusy: boolean;
  onAnswer: (text: string) => void;
}

export function AnswerForm(props: { form: AskedForm; isBusy: boolean; onAnswer: (text: string) => void }): JSX.Element {
  const { form, ...rest } = props;
  switch (form.type) {
    case "fields":
      return <FieldsForm form={form} {...rest} />;
    case "page":
      return <PageForm form={form} {...rest} />;
    case "consent":
      return <ConsentForm form={form} {...rest} />;
    case "permission":
      return <PermissionForm form={form} {...rest} />;
  }
}

function elicited(action: "accept" | "decline" | "cancel", content: unknown = null, meta: unknown = null): string {
  return JSON.stringify({ action, content, _meta: meta });
}

function Refusals({ isBusy, onAnswer }: { isBusy: boolean; onAnswer: (text: string) => void }): JSX.Element {
  return (
    <>
      <button type="button" class="danger" disabled={isBusy} onClick={() => onAnswer(elicited("decline"))}>Decline</button>
      <button type="button" disabled={isBusy} onClick={() => onAnswer(elicited("cancel"))}>Cancel</button>
    </>
  );
}

interface Choices {
  values: [value: string, label: string][];
  isMany: boolean;
}

/** The choices of a field. JSON Schema has four ways to list them: enum, enumNames, oneOf and anyOf. */
function choicesOf(field: McpElicitationPrimitiveSchema): Choices | undefined {
  const isMany = "items" in field;
  const source = (isMany ? field.items : field) as { enum?: string[]; enumNames?: string[] | null; oneOf?: { const: string; title: string }[]; anyOf?: { const: string; title: string }[] };
  const titled = source.oneOf ?? source.anyOf;
  if (titled !== undefined) return { values: titled.map((one) => [one.const, one.title]), isMany };
  if (source.enum === undefined) return undefined;
  return { values: source.enum.map((value, at) => [value, source.enumNames?.[at] ?? value]), isMany };
}

type Answer = string | boolean | string[];

function FieldsForm({ form, isBusy, onAnswer }: FormProps<"fields">): JSX.Element {
  const fields = Object.entries(form.properties);
  const answers = useSignal<Record<string, Answer>>(
    Object.fromEntries(fields.filter(([, field]) => field.default != null).map(([name, field]) => [name, typeof field.default === "number" ? String(field.default) : (field.default as Answer)])),
  );
  const set = (name: string, answer: Answer) => (answers.value = { ...answers.peek(), [name]: answer });
  const isMissing = (name: string) => form.required.includes(name) && (answers.value[name] === undefined || answers.value[name] === "");
  const submit = (event: Event) => {
    event.preventDefault();
    const content: Record<string, unknown> = {};
    for (const [name, field] of fields) {
      const answer = answers.peek()[name] ?? (field.type === "boolean" ? false : undefined);
      if (answer === undefined || answer === "") continue;
      content[name] = field.type === "number" || field.type === "integer" ? Number(answer) : answer;
    }
    onAnswer(elicited("accept", content));
  };
  return (
    <form class="questions" onSubmit={submit}>
      {fields.map(([name, field]) => (
        <Field name={name} field={field} isRequired={form.required.includes(name)} answer={answers.value[name]} onAnswer={(answer) => set(name, answer)} />
      ))}
      <div class="decisions">
        <button type="submit" class="primary" disabled={isBusy || fields.some(([name]) => isMissing(name))}>{fields.length === 0 ? "Accept" : "Send"}</button>
        <Refusals isBusy={isBusy} onAnswer={onAnswer} />
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  field: McpElicitationPrimitiveSchema;
  isRequired: boolean;
  answer: Answer | undefined;
  onAnswer: (answer: Answer) => void;
}

function Field({ name, field, isRequired, answer, onAnswer }: FieldProps): JSX.Element {
  const choices = choicesOf(field);
  const title = plain(field.title ?? name);
  const about = field.description == null ? null : <span class="hint"><Visible text={field.description} /></span>;
  if (choices?.isMany === true) {
    const chosen = Array.isArray(answer) ? answer : [];
    return (
      <fieldset>
        <legend>{title}{isRequired && " *"}</legend>
        {about}
        {choices.values.map(([value, label]) => (
          <label class="option">
            <input type="checkbox" checked={chosen.includes(value)} onChange={(event) => onAnswer(event.currentTarget.checked ? [...chosen, value] : chosen.filter((one) => one !== value))} />
            <Visible text={label} />
          </label>
        ))}
      </fieldset>
    );
  }
  if (field.type === "boolean") {
    return (
      <label class="option">
        <input type="checkbox" checked={answer === true} onChange={(event) => onAnswer(event.currentTarget.checked)} />
        <span>{title} {about}</span>
      </label>
    );
  }
  const isNumber = field.type === "number" || field.type === "integer";
  return (
    <label class="stacked">
      <span>{title}{isRequired && " *"}</span>
      {choices !== undefined ? (
        <select value={String(answer ?? "")} onChange={(event) => onAnswer(event.currentTarget.value)}>
          <option value="">–</option>
          {choices.values.map(([value, label]) => <option value={value}>{plain(label)}</option>)}
        </select>
      ) : isNumber ? (
        <input type="number" step={field.type === "integer" ? 1 : "any"} value={String(answer ?? "")} onInput={(event) => onAnswer(event.currentTarget.value)} />
      ) : (
        <input type="text" value={String(answer ?? "")} onInput={(event) => onAnswer(event.currentTarget.value)} />
      )}
      {about}
    </label>
  );
}

/** A page that the person has to visit. Its link shows the host, and is only opened by a click. */
function PageForm({ form, isBusy, onAnswer }: FormProps<"page">): JSX.Element {
  return (
    <div class="questions">
      <p class="reason">The server asks you to open <Link address={form.url}><Visible text={form.url} /></Link></p>
      <div class="decisions">
        <button type="button" class="primary" disabled={isBusy} onClick={() => onAnswer(elicited("accept"))}>I have done it</button>
        <Refusals isBusy={isBusy} onAnswer={onAnswer} />
      </div>
    </div>
  );
}

/** Consent to one call of an MCP server's tool. */
function ConsentForm({ isBusy, onAnswer }: FormProps<"consent">): JSX.Element {
  return (
    <div class="decisions">
      <button type="button" class="primary" disabled={isBusy} onClick={() => onAnswer(elicited("accept"))}>Approve</button>
      <button type="button" disabled={isBusy} onClick={() => onAnswer(elicited("accept", null, { persist: "session" }))}>Approve for session</button>
      <button type="button" class="danger" disabled={isBusy} onClick={() => onAnswer(elicited("decline"))}>Decline</button>
    </div>
  );
}

function PermissionForm({ form, isBusy, onAnswer }: FormProps<"permission">): JSX.Element {
  const grant = (permissions: unknown, scope: "turn" | "session") => onAnswer(JSON.stringify({ permissions, scope }));
  return (
    <div class="decisions">
      <button type="button" class="primary" disabled={isBusy} onClick={() => grant(form.permissions, "turn")}>Grant for this turn</button>
      <button type="button" disabled={isBusy} onClick={() => grant(form.permissions, "session")}>Grant for the session</button>
      <button type="button" class="danger" disabled={isBusy} onClick={() => grant({}, "turn")}>Grant nothing</button>
    </div>
  );
}
