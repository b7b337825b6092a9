/** What drawings need to know of the page: how wide their place is, and whether it is dark. */
import { useEffect, useRef, useState } from "preact/hooks";

export function useWidth() {
  const place = useRef<HTMLDivElement>(null);
  const [width, set] = useState(0);
  useEffect(() => {
    if (!place.current) return;
    const observer = new ResizeObserver(([entry]) => set(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return { place, width };
}

export function useScheme(): string {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [scheme, set] = useState(dark.matches ? "dark" : "light");
  useEffect(() => {
    const changed = () => set(dark.matches ? "dark" : "light");
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);
  return scheme;
}

/** `/` leads to the search field of the page. */
export function useSlash() {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const written = event.target instanceof HTMLElement && event.target.matches("textarea, select, input:not([type=checkbox])");
      if (event.key !== "/" || written) return;
      event.preventDefault();
      field.current?.select();
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, []);
  return field;
}
