// Short names for what every part of the page does.

export const $ = (id) => document.getElementById(id);

/** Return a new element with these properties and children. */
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
