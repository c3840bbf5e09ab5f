// How the page asks the server. A page without a server has another module of this name.

/** Return the reply of the protocol; a path has no slash at its beginning, for the page may lie under another. */
export async function ask(path, body) {
  const how = body === undefined
    ? {}
    : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try {
    reply = await fetch(path, how);
  } catch {
    throw new Error("The server can't be reached.");
  }
  const found = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    const problem = new Error(found.error?.message ?? `${reply.status} ${reply.statusText}`);
    throw Object.assign(problem, { code: found.error?.code });
  }
  return found;
}
