// Elements of the page. Text goes in as text, never as HTML: names of files and contents of results come from
// outside.

/** h("button", {class: "x", onclick: f, title: "..."}, "text", child, ...) */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const $ = (id) => document.getElementById(id);

/** One sentence at the top of the page; kind: "info" or "error". */
export function say(text, kind = "info") {
  const place = $("message");
  place.textContent = text;
  place.dataset.kind = kind;
}

/** Saves bytes or text as a file of the user's. */
export function download(name, content, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([content], {type}));
  const link = h("a", {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** The text of a file: UTF-8, UTF-16 with a byte order mark, or else Windows-1252, as lib/io/text_file.cpp decodes it. */
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer()), mark = bytes[0] << 8 | bytes[1];
  const encoding = {0xfffe: "utf-16le", 0xfeff: "utf-16be"}[mark] ?? "utf-8";
  try {
    return new TextDecoder(encoding, {fatal: encoding === "utf-8"}).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** Lets the user choose a file of theirs; its text goes to `use`. */
export function openText(accept, use) {
  const input = h("input", {type: "file", accept, class: "hidden"});
  input.addEventListener("change", async () => {
    if (input.files[0]) use(await textOf(input.files[0]), input.files[0].name);
    input.remove();
  });
  document.body.append(input);
  input.click();
}

/** A labelled control. */
export function labelled(text, control, hint = "") {
  return h("label", {class: "field", title: hint}, h("span", {}, text), control);
}

export function select(options, value, onchange, attributes = {}) {
  const element = h("select", {...attributes, onchange: () => onchange(element.value)},
    options.map(([key, text]) => h("option", {value: key, selected: key === value}, text)));
  return element;
}

/** A folding section of the side panel. */
export function section(title, open, ...content) {
  return h("details", {class: "section", open}, h("summary", {}, title), h("div", {class: "inside"}, ...content));
}

/** "0.01234", "1.2e-5", "-": a number for people, to `digits` significant ones. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return String(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2));
  return String(Number(value.toPrecision(digits)));
}

/** One cell of a CSV table. */
function cell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "nan";
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(header, rows) {
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}
