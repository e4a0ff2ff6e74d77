import type { JSX } from "preact";

import { Dialog } from "./Dialog";

const KEYS: [string, [string, string][]][] = [
  ["Everywhere", [["t", "Tasks"], ["i", "Inbox"], ["n", "New task"], ["h", "Host"], ["v", "Diffs in one column or two"], ["?", "These keys"], ["Esc", "Leave a field, close a window"]]],
  ["Tasks", [["j  k", "Next, previous"], ["→  ←", "Unfold, fold its agents"], ["Enter", "Open"], ["/", "Search"]]],
  ["Inbox", [["j  k", "Next, previous"], ["a", "Approve exactly what is shown"], ["d", "Decline"], ["s", "Approve for the session"], ["e", "Edit it and run that instead"], ["x", "Select for a decision about many"], ["o", "Open the task"]]],
  ["Task", [["a  s  d  e", "Decide what it waits for"], ["j  k", "Next, previous of what it waits for"], ["f", "Follow the end"], ["/", "Write to the task"], ["c  p  r", "Conversation, what the model sees, records"], ["w", "Each item also as it came on the wire"], ["u", "Back to all tasks"]]],
];

export function Help({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keys" class="help" onClose={onClose}>
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
      <form method="dialog" class="dialog-end"><button data-first>Close</button></form>
    </Dialog>
  );
}
