// Elements from plain strings: text goes in as text nodes only, so no name can become markup.

type Child = Node | string | null | undefined | false;
type Value = string | number | boolean | ((event: never) => void);

/** An element; `on…` keys are listeners, `style:…` keys style properties, true is a bare attribute. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value | null> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else if (key.startsWith("style:")) element.style.setProperty(key.slice(6), String(value));
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

export function add(element: Element, children: Child[]): void {
  for (const child of children) if (child) element.append(child);
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => Boolean(child)));
}

/** A string from data with every control, bidirectional or invisible character shown as an escape. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Z}]/gu, (one) =>
    one === " " ? one : `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}

/** A string from data, harmless and cut to `length` characters. */
export function short(text: string, length = 80): string {
  const cut = text.length > length ? `${text.slice(0, length - 1)}…` : text;
  return printable(cut);
}
