// Light or dark: as the system prefers until the user switches.

const KEY = "dic-theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;  // a report opened where the browser keeps nothing
  }
}

export const isDark = () => document.documentElement.dataset.theme === "dark";

function use(theme) {
  document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}

export function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem(KEY, theme);
  } catch { /* it lasts as long as the page */ }
  use(theme);
}

/** Calls back after each switch, for what is drawn on a canvas. */
export const onTheme = (listener) => listeners.push(listener);

const preferred = () => (prefersDark.matches ? "dark" : "light");
prefersDark.addEventListener("change", () => { if (!stored()) use(preferred()); });
use(stored() ?? preferred());
