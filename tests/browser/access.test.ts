// Cloudflare Access in front of the dashboard: its cookie signs in, roles come from it, and an ended session leads to its login page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { AUDIENCE, Team } from "../workerd/access-team.ts";
import { end, startBrowser, type Browser } from "./browser.ts";
import { until } from "./scene.ts";
import { startServer, type Server } from "./server.ts";
import { review } from "./workflows.ts";

let team: Team;
let server: Server;
let browser: Browser;
before(async () => {
  team = await new Team().start();
  const roles = JSON.stringify({ "ada@example.com": "admin", "@example.com": "read" });
  [server, browser] = await Promise.all([startServer({ CURFEW_ACCESS_TEAM: team.url, CURFEW_ACCESS_AUD: AUDIENCE, CURFEW_ACCESS_ROLES: roles }), startBrowser()]);
  const headers = { "cf-access-jwt-assertion": team.assertion() };
  await server.client.put("workflows", review, { headers });
  await server.client.start("review", { run_id: "guarded", input: { title: "x", amount: 1 } }, { headers });
  await until("the run to wait", async () => (await server.client.run("guarded", { headers })).status === "waiting");
});
after(() => end(browser, server, team));

/** What Access sets after its login page. */
const setSession = (page: Page, assertion: string) => page.context().addCookies([{ name: "CF_Authorization", value: assertion, url: server.url, httpOnly: true }]);

test("the session of Access signs in, by the cookie alone, with its roles", async () => {
  const admin = await browser.open();
  await setSession(admin, team.assertion());
  await admin.goto(`${server.url}/runs/guarded`);
  await admin.locator('.page-head [data-status="waiting"]').waitFor();
  await admin.getByText("ada@example.com").first().waitFor();
  await admin.getByRole("button", { name: "Cancel …" }).waitFor();
  assert.equal(await admin.getByRole("button", { name: "Sign out" }).count(), 0, "the session is that of Access");
  assert.deepEqual(await admin.evaluate(() => [Object.keys(localStorage), Object.keys(sessionStorage).filter((key) => key.includes("token")), document.cookie]), [[], [], ""]);

  const reader = await browser.open();
  await setSession(reader, team.assertion({ email: "rick@example.com" }));
  await reader.goto(`${server.url}/runs/guarded`);
  await reader.getByText("rick@example.com").first().waitFor();
  await reader.locator(".gate").waitFor();
  assert.equal(await reader.getByRole("button", { name: "Cancel …" }).count(), 0);
  assert.equal(await reader.getByRole("button", { name: "approve" }).count(), 0);
});

test("without a session, or with one that is not valid, the page leads to the login and back", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs/guarded`);
  await page.getByRole("button", { name: "Sign in with Cloudflare Access" }).waitFor();
  assert.equal(await page.getByLabel("Token").count(), 0);
  await setSession(page, team.assertion());
  await page.getByRole("button", { name: "Sign in with Cloudflare Access" }).click();
  await page.locator('.page-head [data-status="waiting"]').waitFor();
  assert.equal(page.url(), `${server.url}/runs/guarded`);
});

test("a session that ends while the page is open is noticed: Access answers with a redirect", async () => {
  const page = await browser.open();
  await setSession(page, team.assertion());
  await page.goto(`${server.url}/runs`);
  await page.getByRole("link", { name: "guarded" }).waitFor();
  // Its login page is on another host; the policy of the page does not let it be read.
  await page.route(/\/v1\//, (route) => route.fulfill({ status: 302, headers: { location: `${team.url}/cdn-cgi/access/login` } }));
  await page.getByText("the session of Cloudflare Access has ended").waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.getByRole("button", { name: "Sign in with Cloudflare Access" }).click();
  await page.getByRole("link", { name: "guarded" }).waitFor();
});
