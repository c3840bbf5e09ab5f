// How the page asks the server. A page without a server has another module of this name.

export const HAS_LINKS = true; // that friends can play and watch at a table by

/**
 * Return the reply of the protocol; a path has no slash at its beginning, for the page may lie under another. What stands
 * behind a # is for the page without a server, which has to find the position again: browsers do not send it.
 *
 * `signal` stops the wait for it.
 */
export async function ask(path, body, signal) {
  const how = body === undefined
    ? { signal }
    : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
  let reply;
  try {
    reply = await fetch(path, how);
  } catch {
    throw signal?.aborted ? signal.reason : new Error("The server can't be reached.");
  }
  const found = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    const problem = new Error(found.error?.message ?? `${reply.status} ${reply.statusText}`);
    throw Object.assign(problem, { code: found.error?.code });
  }
  return found;
}
