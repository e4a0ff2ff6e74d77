import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import type { ToolRequestUserInputQuestion } from "../../protocol";
import { Visible } from "./Text";

/** Questions of the agent, with options or free text. The answer is the JSON of the response that the question has on the wire. */
export function Questions(props: { questions: ToolRequestUserInputQuestion[]; isBusy: boolean; onAnswer: (text: string) => void }): JSX.Element {
  const answers = useSignal<Record<string, string>>({});
  const set = (id: string, text: string) => (answers.value = { ...answers.peek(), [id]: text });
  const submit = (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(props.questions.map(({ id }) => [id, { answers: [answers.peek()[id] ?? ""] }]));
    props.onAnswer(JSON.stringify({ answers: given }));
  };
  const isComplete = props.questions.every(({ id }) => (answers.value[id] ?? "") !== "");
  return (
    <form class="questions" onSubmit={submit}>
      {props.questions.map((question) => (
        <fieldset>
          <legend><Visible text={question.question} /></legend>
          {(question.options ?? []).map((option) => (
            <label class="option">
              <input type="radio" name={question.id} checked={answers.value[question.id] === option.label} onChange={() => set(question.id, option.label)} />
              <span><b><Visible text={option.label} /></b> <Visible text={option.description} /></span>
            </label>
          ))}
          {question.isSecret ? (
            <input type="password" aria-label="Your answer, hidden" onInput={(event) => set(question.id, event.currentTarget.value)} />
          ) : (
            <input
              type="text"
              aria-label="An answer of your own"
              placeholder={question.options === null ? "Answer" : "Or an answer of your own"}
              onInput={(event) => set(question.id, event.currentTarget.value)}
            />
          )}
        </fieldset>
      ))}
      <button type="submit" class="primary" disabled={props.isBusy || !isComplete}>Answer</button>
    </form>
  );
}
