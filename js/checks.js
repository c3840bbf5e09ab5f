// Checks of what callers give: errors say where it is, what was expected and what was found.

/** Return a value for error messages, abbreviated. */
export function shown(value) {
  if (typeof value === "bigint") return `${value}n`.slice(0, 80);
  try {
    return (JSON.stringify(value) ?? `a value of type ${typeof value}`).slice(0, 80);
  } catch {
    return `a value of type ${typeof value}`; // it contains itself, or a BigInt
  }
}

/** Return an object that is no array. */
export function checkObject(value, where, expected = "an object") {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Error(`${where}: expected ${expected}, got ${shown(value)}`);
}

/** Return an object with no other keys than these. */
export function checkKeys(value, names, where) {
  checkObject(value, where, `an object with ${names.join(", ")}`);
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown === undefined) return value;
  throw new Error(`${where}: unknown key ${shown(unknown)}; expected ${names.join(", ")}`);
}

/** Return an AbortSignal, or undefined. */
export function checkSignal(value) {
  if (value === undefined || (value && typeof value.throwIfAborted === "function")) return value;
  throw new Error(`signal: expected an AbortSignal, got ${shown(value)}`);
}
