/** What all pages of a session are given. */
import type { Job, SessionBrief } from "../generated/api";

export interface View {
  brief: SessionBrief;
  job: Job | null;
  /** Changes when there is something new to ask for. */
  stamp: string;
  query: URLSearchParams;
}
