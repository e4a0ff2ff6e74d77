import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { connection } from "../wire/connection";
import { hasToken, saveToken } from "../wire/token";

export function SignIn(): JSX.Element {
  const [token, setToken] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    saveToken(token);
    connection.reconnectNow();
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>Oarlock console</h1>
        <p>
          {hasToken()
            ? "The server does not answer, or it does not take this token."
            : "The server does not answer, or it asks for a token."}
        </p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="primary">Connect</button>
        <p class="hint">
          It is the one of <code>--ws-token-file</code>, or a signed one. It is kept in this tab until you close it. A link with{" "}
          <code>#token=…</code> at its end does the same.
        </p>
      </form>
    </main>
  );
}
