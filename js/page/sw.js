// Keeps the page for visits without a network. The build puts VERSION and FILES, relative to this file, before it.

// All pages of an origin share its caches: the names of this one's begin with its folder.
const OWN = `card_envs ${new URL("./", self.location).pathname} `;
const KEPT = OWN + VERSION;

self.addEventListener("install", (event) => {
  const files = FILES.map((file) => new Request(file, { cache: "no-cache" })); // none of an earlier version
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(files)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const outdated = (names) => names.filter((name) => name.startsWith(OWN) && name !== KEPT);
  const forget = async () => Promise.all(outdated(await caches.keys()).map((name) => caches.delete(name)));
  event.waitUntil(forget().then(() => self.clients.claim()));
});

/** Answer from what is kept; what isn't, such as the files of strong players, is fetched once. */
async function answer(request) {
  const cache = await caches.open(KEPT);
  const kept = await cache.match(request, { ignoreSearch: true });
  if (kept) return kept;
  const reply = await fetch(request);
  if (reply.ok) await cache.put(request, reply.clone()).catch(() => {}); // there may be no room
  return reply;
}

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(self.registration.scope)) event.respondWith(answer(event.request));
});
