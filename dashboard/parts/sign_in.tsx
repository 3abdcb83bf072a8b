import { useState } from "preact/hooks";
import { needsAccess, signIn, signInReason } from "../state/session.ts";
import { Problem } from "./text.tsx";

/** After a 401: asks for a token, or leads to the login page of Cloudflare Access. */
export const SignIn = () => (needsAccess.value ? <AccessSignIn /> : <TokenSignIn />);

const AccessSignIn = () => (
  <section class="card sign-in">
    <header>
      <h1>Sign in</h1>
    </header>
    <div class="body stack">
      <p>This server is behind Cloudflare Access. Loading the page again leads to its login page, and back to what you see here.</p>
      {signInReason.value && <Problem message={signInReason.value} />}
      <div>
        <button type="button" class="button primary" onClick={() => location.reload()}>
          Sign in with Cloudflare Access
        </button>
      </div>
    </div>
  </section>
);

function TokenSignIn() {
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
