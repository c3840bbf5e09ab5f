// The rules of a game, as a player reads them: the Markdown of its RULES.md as nodes.

import { element } from "./dom.js";

const FOR_PROGRAMS = /^(?:## (?:Text notation|The trivial player)|Custom deal|<!--)/m; // from there on

/** Return the nodes of a text with `code`, **strong** and *emphasis*. */
function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)/).map((part) => {
    const [, mark, inner] = /^(`|\*\*|\*)(.+)\1$/s.exec(part) ?? [];
    if (!mark) return part;
    return node({ "`": "code", "**": "strong", "*": "em" }[mark], ...inline(inner));
  });
}

const node = (name, ...children) => element(name, {}, ...children);

/** Return the rules in short, and all else, as nodes. */
export function rulesInTwo(markdown) {
  const [, before, short, after] = /^(.*?)\n## In short\n(.*?)(\n## .*)?$/s.exec(markdown) ?? ["", markdown, "", ""];
  return { short: asNodes(short), long: asNodes(before + (after ?? "")) };
}

/** Return Markdown as nodes: headings, paragraphs and lists; without the title. */
function asNodes(markdown) {
  const found = [];
  for (const block of markdown.split(FOR_PROGRAMS)[0].split(/\n(?=#|- |\n)/)) {
    const text = block.trim().replace(/\s*\n\s*/g, " ");
    const [, mark, rest] = /^(#+|-) (.*)$/.exec(text) ?? [];
    if (mark === "-") {
      if (found.at(-1)?.localName !== "ul") found.push(node("ul"));
      found.at(-1).append(node("li", ...inline(rest)));
    } else if (mark) {
      if (mark.length > 1) found.push(node("h3", ...inline(rest)));
    } else if (text) {
      found.push(node("p", ...inline(text)));
    }
  }
  return found;
}
