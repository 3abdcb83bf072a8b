// The frame of every page: navigation, the banner of a lost connection, notices, sign-in.
import { useEffect } from "preact/hooks";
import type { Route } from "./logic/routes.ts";
import { Guard } from "./parts/guard.tsx";
import { Icon, type IconName } from "./parts/icon.tsx";
import { takesKeys } from "./parts/keys.ts";
import { Later } from "./parts/later.tsx";
import { SignIn } from "./parts/sign_in.tsx";
import { Text } from "./parts/text.tsx";
import { RunPage } from "./pages/run.tsx";
import { RunsPage } from "./pages/runs.tsx";
import { route } from "./state/location.ts";
import { dismiss, notices } from "./state/notices.ts";
import { usePolled } from "./state/poll.ts";
import { hasToken, identity, isOffline, signInReason, signOut } from "./state/session.ts";
import { nextTheme, theme, type Theme } from "./state/theme.ts";

const LINKS: { page: Route["page"]; path: string; title: string }[] = [
  { page: "runs", path: "/runs", title: "Runs" },
  { page: "inbox", path: "/inbox", title: "Inbox" },
  { page: "workflows", path: "/workflows", title: "Workflows" },
  { page: "breakers", path: "/breakers", title: "Breakers" },
  { page: "health", path: "/health", title: "Health" },
];
/** The link that belongs to a page without one. */
const PARENTS: Partial<Record<Route["page"], Route["page"]>> = { run: "runs", workflow: "workflows" };
const THEME_ICONS: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };
const INBOX_EVERY_MS = 5_000;

export function Shell() {
  const current = route.value;
  return (
    <>
      <a class="skip" href="#main" data-external>
        Skip to the content
      </a>
      <div class="head-of-page">
        <Top page={current.page} />
        {isOffline.value && (
          <div class="banner" role="status">
            <Icon name="clock" />
            The connection to Curfew is lost. What you see may be old; it is brought up to date as soon as the server answers.
          </div>
        )}
      </div>
      <main id="main" tabIndex={-1}>
        {signInReason.value === undefined ? (
          <Guard key={current.page} what="This page">
            <Page route={current} />
          </Guard>
        ) : (
          <SignIn />
        )}
      </main>
      <Notices />
    </>
  );
}

function Top({ page }: { page: Route["page"] }) {
  const section = PARENTS[page] ?? page;
  return (
    <header class="top">
      <a class="brand" href="/runs">
        <Icon name="mark" size={20} /> Curfew
      </a>
      <nav class="nav" aria-label="Pages">
        {LINKS.map((link) => (
          <a key={link.page} href={link.path} aria-current={link.page === section ? "page" : undefined}>
            {link.title}
            {link.page === "inbox" && <InboxCount />}
          </a>
        ))}
      </nav>
      {identity.value?.name && <Text value={identity.value.name} line className="small muted" />}
      {hasToken.value && (
        <button type="button" class="button quiet small" onClick={signOut}>
          Sign out
        </button>
      )}
      <button type="button" class="button quiet small" onClick={nextTheme} aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value}`}>
        <Icon name={THEME_ICONS[theme.value]} size={16} />
      </button>
    </header>
  );
}

function InboxCount() {
  const { data } = usePolled("inbox-count", INBOX_EVERY_MS, (client, signal) => client.gates({ limit: 100, signal }));
  const waiting = data.value?.items.length ?? 0;
  if (waiting === 0) return null;
  return (
    <span class="badge" title="Gates that wait for a decision">
      {data.value?.next_cursor ? `${waiting}+` : waiting}
    </span>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "runs":
      return <RunsPage />;
    case "run":
      return <RunPage key={route.run} run={route.run} token={route.token} />;
    case "inbox":
      return <Later load={() => import("./pages/inbox.tsx").then((module) => module.InboxPage)} />;
    case "workflows":
      return <Later key="workflows" load={() => import("./pages/workflows.tsx").then((module) => module.WorkflowsPage)} />;
    case "workflow":
      return <Later key={route.id} load={() => import("./pages/workflow.tsx").then((module) => () => <module.WorkflowPage id={route.id} />)} />;
    case "breakers":
      return <Later key="breakers" load={() => import("./pages/breakers.tsx").then((module) => module.BreakersPage)} />;
    case "health":
      return <Later key="health" load={() => import("./pages/health.tsx").then((module) => module.HealthPage)} />;
    case "unknown":
      return (
        <div class="empty">
          <h1>There is no page here</h1>
          <p>
            <Text value={route.path} /> is no page of the dashboard. <a href="/runs">Go to the runs</a>.
          </p>
        </div>
      );
  }
}

function Notices() {
  useEffect(() => {
    // A button can hardly be reached by keyboard while a decision may still be taken back.
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "u" && takesKeys(event)) notices.value.findLast(({ undo }) => undo !== undefined)?.undo?.();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map(({ id, tone, text, undo }) => (
        <div key={id} class={`notice tone-${tone}`}>
          <div class="grow">
            <Text value={text} max={600} />
          </div>
          {undo && (
            <button type="button" class="button small" onClick={undo}>
              Undo <kbd>u</kbd>
            </button>
          )}
          <button type="button" class="button quiet small" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
