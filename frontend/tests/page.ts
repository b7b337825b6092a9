/** Stands for the browser where a module asks for it as it is loaded: an address, its history, and a document. */
export const went: string[] = [];

function to(url: string): void {
  went.push(url);
  Object.assign(globalThis.location, { pathname: url.split("?")[0], search: url.includes("?") ? url.slice(url.indexOf("?")) : "" });
}

export function at(url: string): void {
  to(url);
  went.length = 0;
}

Object.assign(globalThis, {
  location: { pathname: "/", search: "" },
  history: {
    pushState: (_: unknown, __: string, url: string) => to(url),
    replaceState: (_: unknown, __: string, url: string) => to(`replaced ${url}`),
  },
  addEventListener: () => {},
  scrollTo: () => {},
  document: { hidden: false },
});
