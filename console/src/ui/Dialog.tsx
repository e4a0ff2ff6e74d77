import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  class?: string;
  children: ComponentChildren;
}

/** A modal window. Escape and a click beside it close it; while it is open no key of the page acts. */
export function Dialog(props: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the next key can come, which must not act on the page behind it.
  useLayoutEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("[data-first]")?.focus();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog ${props.class ?? ""}`}
      aria-labelledby={id}
      onClose={props.onClose}
      onClick={(event) => { if (event.target === dialog.current) dialog.current?.close(); }}
    >
      <div class="dialog-body">
        <h2 id={id}>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}

/** Asks for one line of text. */
export function AskDialog(props: { title: string; label: string; value: string; action: string; onClose: () => void; onDone: (text: string) => void }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? "";
    if (text !== "") props.onDone(text);
    props.onClose();
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={submit}>
        <label class="stacked"><span>{props.label}</span><input ref={field} data-first type="text" value={props.value} maxLength={1_000} /></label>
        <div class="dialog-end">
          <button type="button" onClick={props.onClose}>Cancel</button>
          <button type="submit" class="primary">{props.action}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Asks whether to go on. */
export function SureDialog(props: { title: string; action: string; children: ComponentChildren; onClose: () => void; onDone: () => void }): JSX.Element {
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <p>{props.children}</p>
      <div class="dialog-end">
        <button type="button" data-first onClick={props.onClose}>Cancel</button>
        <button type="button" class="danger" onClick={() => { props.onClose(); props.onDone(); }}>{props.action}</button>
      </div>
    </Dialog>
  );
}
