// What differs between browsers and Node. Here is what browsers do; `node/platform.js` changes it.

export const platform = {
  /** Return the bytes of a file at a URL. */
  async bytesAt(url) {
    const reply = await fetch(url);
    if (!reply.ok) throw new Error(`${url}: ${reply.status} ${reply.statusText}`);
    return new Uint8Array(await reply.arrayBuffer());
  },

  /** Return a worker as `thinker.js` uses it; null: that of browsers. */
  newWorker: null,
};
