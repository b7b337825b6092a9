/** Asks the REST interface; the browser's cookie carries the right to. */
import { answered, doubt } from "./connection";

export class Problem extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

async function answer(response: Response): Promise<unknown> {
  if (response.ok) return response.json();
  let detail = response.statusText;
  try {
    detail = ((await response.json()) as { detail?: string }).detail ?? detail;
  } catch {
    // No JSON: something between this page and its server answered.
  }
  throw new Problem(response.status, detail);
}

/** GET below /api/v1. Unchanged answers come from the browser's cache (ETag). */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, { ...(signal ? { signal } : {}), credentials: "same-origin" });
  } catch (error) {
    if (signal?.aborted) throw error;
    void doubt();
    throw new Problem(0, "the server does not answer; has stepscope view ended?");
  }
  answered();
  return (await answer(response)) as T;
}

/** A change below /api/v1. */
export async function send<T>(method: "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
  const response = await fetch(`/api/v1${path}`, {
    method,
    credentials: "same-origin",
    ...(body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  });
  return (await answer(response)) as T;
}

export const post = <T>(path: string, body: unknown) => send<T>("POST", path, body);
export const remove = <T>(path: string) => send<T>("DELETE", path);
