// One process at a time. The lock is a file that names its owner: one that was left by a killed process is removed.
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 250;

/**
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function holdingLock(file, work) {
  let isAnnounced = false;
  while (!isAcquired(file)) {
    const owner = ownerOf(file);
    if (owner === undefined) continue;
    if (!isRunning(owner)) {
      rmSync(file, { force: true });
      continue;
    }
    if (!isAnnounced) console.log(`[curfew] waiting for the build of process ${owner} (${file})`);
    isAnnounced = true;
    await sleep(POLL_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/** A link, because it appears together with its content or not at all. @param {string} file */
function isAcquired(file) {
  const own = `${file}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  try {
    linkSync(own, file);
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

/** @param {string} file @returns {number | undefined} */
function ownerOf(file) {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    // Released since.
    return undefined;
  }
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}
