// Tokens and roles: a 401 leads to the form, the token is kept in the tab only, and controls that the role may not use are not shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { end, startBrowser, type Browser } from "./browser.ts";
import { reaches } from "./scene.ts";
import { startServer, type Server } from "./server.ts";
import { review } from "./workflows.ts";

const ADMIN = "admin-token-0123456789";
const READ = "read-token-0123456789";
const tokens = { [ADMIN]: { name: "ada", roles: ["admin"] }, [READ]: { name: "rick", roles: ["read"] } };

let server: Server;
let browser: Browser;
before(async () => {
  [server, browser] = await Promise.all([startServer({ CURFEW_TOKENS: JSON.stringify(tokens) }, ADMIN), startBrowser()]);
  await server.client.put("workflows", review);
  await server.client.start("review", { run_id: "guarded", input: { title: "x", amount: 1 } });
  await reaches(server.client, "guarded", "waiting");
});
after(() => end(browser, server));

test("a wrong token is refused, a right one lets in, and it ends with the tab", async () => {
  const page = await browser.open();
  await page.goto(`${server.url}/runs/guarded`);
  await page.getByLabel("Token").fill("wrong-token-0123456789");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(ADMIN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator('.page-head [data-status="waiting"]').waitFor();
  await page.getByText("ada", { exact: true }).first().waitFor();
  await page.reload();
  await page.locator('.page-head [data-status="waiting"]').waitFor();
  assert.equal(await page.evaluate(() => Object.values(localStorage).join().includes("token")), false);
  const other = await page.context().newPage();
  await other.goto(`${server.url}/runs`);
  await other.getByLabel("Token").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
});

test("a reader sees no controls, an admin does", async () => {
  for (const [token, isAdmin] of [[READ, false], [ADMIN, true]] as const) {
    const page = await browser.open();
    await page.goto(`${server.url}/runs`);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(isAdmin ? "ada" : "rick", { exact: true }).first().waitFor();
    await page.getByRole("link", { name: "guarded" }).waitFor();
    assert.equal(await page.getByLabel("Select run guarded").isVisible(), isAdmin);
    await page.getByRole("link", { name: "guarded" }).click();
    await page.locator(".gate").waitFor();
    assert.equal(await page.getByRole("button", { name: "Cancel …" }).count(), isAdmin ? 1 : 0);
    assert.equal(await page.getByRole("button", { name: "approve" }).count(), isAdmin ? 1 : 0);
    assert.equal(await page.locator(".handle").count(), isAdmin ? 1 : 0);
  }
});
