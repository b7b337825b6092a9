/** Addresses: every state of the page has one, and the browser's back and forward lead through them. */
import { useEffect, useState } from "preact/hooks";

export interface Address {
  path: string;
  query: URLSearchParams;
}

function here(): Address {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

const listeners = new Set<(address: Address) => void>();
const tell = () => listeners.forEach((listener) => listener(here()));
addEventListener("popstate", tell);

export function useAddress(): Address {
  const [address, set] = useState(here);
  useEffect(() => {
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  return address;
}

/** Go to an address. */
export function go(url: string): void {
  history.pushState(null, "", url);
  tell();
  scrollTo(0, 0);
}

/** Change the state of this page; null takes a word out. `keep`: as a step that back returns from. */
export function change(values: Record<string, string | null>, keep = true): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const url = location.pathname + (text ? `?${text}` : "");
  if (keep) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  tell();
}

/** Links of the page's own lead there without loading it again. */
export function onClick(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const href = link.getAttribute("href") ?? "";
  if (link.target || link.hasAttribute("download") || !/^\/(?!\/|api\/)/.test(href)) return;
  event.preventDefault();
  go(href);
}
