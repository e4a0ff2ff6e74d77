// Pictures that go with what somebody says: pasted, or chosen as files.

import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import type { UserInput } from "../../protocol";
import { say } from "../state/announce";

const MAX_PICTURE = 8 * 1024 * 1024;
const KINDS = "image/png,image/jpeg,image/gif,image/webp";

export function inputOf(text: string, pictures: readonly string[]): UserInput[] {
  const words: UserInput[] = text === "" ? [] : [{ type: "text", text, text_elements: [] }];
  return [...words, ...pictures.map((url) => ({ type: "image" as const, url }))];
}

export function takePictures(event: Event, files: FileList | null | undefined, pictures: Signal<string[]>): void {
  for (const file of files ?? []) {
    if (!KINDS.split(",").includes(file.type)) continue;
    event.preventDefault();
    if (file.size > MAX_PICTURE) {
      say("The picture is larger than 8 MB.", true);
      continue;
    }
    const reader = new FileReader();
    reader.onload = () => (pictures.value = [...pictures.peek(), String(reader.result)]);
    reader.readAsDataURL(file);
  }
}

export function Thumbs({ pictures }: { pictures: Signal<string[]> }): JSX.Element | null {
  if (pictures.value.length === 0) return null;
  return (
    <div class="thumbs">
      {pictures.value.map((url, index) => (
        <button type="button" aria-label={`Remove picture ${index + 1}`} onClick={() => (pictures.value = pictures.value.filter((_, at) => at !== index))}>
          <img src={url} alt="" />
        </button>
      ))}
    </div>
  );
}

export function PictureButton({ pictures }: { pictures: Signal<string[]> }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="picture-button" aria-label="Add a picture" title="Add a picture; pasting one works too" onClick={() => field.current?.click()}>
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
          <path d="M2 3.5h12v9H2zM2.5 11l3.5-3.5 2.5 2.5 2-2 3 3" fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round" />
          <circle cx="11" cy="6" r="1" fill="currentColor" />
        </svg>
      </button>
      <input
        ref={field}
        type="file"
        accept={KINDS}
        multiple
        hidden
        onChange={(event) => { takePictures(event, event.currentTarget.files, pictures); event.currentTarget.value = ""; }}
      />
    </>
  );
}
