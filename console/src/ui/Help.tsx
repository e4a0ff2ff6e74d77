import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, [string, string][]][] = [
  ["Everywhere", [["t", "Tasks"], ["i", "Inbox"], ["n", "New task"], ["h", "Host"], ["?", "These keys"], ["Esc", "Leave a field, close a window"]]],
  ["Tasks", [["j  k", "Next, previous"], ["Enter", "Open"], ["/", "Search"]]],
  ["Inbox", [["j  k", "Next, previous"], ["a", "Approve exactly what is shown"], ["d", "Decline"], ["s", "Approve for the session"], ["x", "Select for a decision about many"], ["o", "Open the task"]]],
  ["Task", [["f", "Follow the end"], ["/", "Write to the task"], ["u", "Back to all tasks"]]],
];

export function Help({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose} onClick={(event) => { if (event.target === dialog.current) dialog.current?.close(); }}>
      <h2 id="help-title">Keys</h2>
      <div class="help-groups">
        {KEYS.map(([name, keys]) => (
          <section>
            <h3>{name}</h3>
            <dl>
              {keys.map(([key, meaning]) => (
                <div>
                  <dt>{key.split(/\s+/).map((one) => <kbd>{one}</kbd>)}</dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
