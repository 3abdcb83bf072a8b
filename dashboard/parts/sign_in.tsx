import { useState } from "preact/hooks";
import { signIn, signInReason } from "../state/session.ts";
import { Problem } from "./text.tsx";

/** Asks for a token after a 401. */
export function SignIn() {
  const [given, setGiven] = useState("");
  return (
    <section class="card sign-in">
      <header>
        <h1>Sign in</h1>
      </header>
      <form
        class="body stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (given.trim() !== "") signIn(given.trim());
        }}
      >
        <p>This server asks for a token: one of its secret CURFEW_TOKENS. It is kept in this tab until the tab is closed.</p>
        {signInReason.value && <Problem message={signInReason.value} />}
        <label class="field">
          <span class="label">Token</span>
          <input class="input mono" type="password" autocomplete="off" spellcheck={false} value={given} autofocus onInput={(event) => setGiven(event.currentTarget.value)} />
        </label>
        <div>
          <button class="button primary" disabled={given.trim() === ""}>
            Sign in
          </button>
        </div>
      </form>
    </section>
  );
}
