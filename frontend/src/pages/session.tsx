/** One session, live or at rest: what all of its pages share, and which of them is shown. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { useJob, useLoaded } from "../data";
import type { Job, SessionBrief } from "../generated/api";
import { Failed, Frame, Phase, State, Waiting } from "../parts/common";
import { CodePage } from "./code";
import { FlamePage } from "./flame";
import { GraphPage } from "./graph";
import { InputPage } from "./input";
import { MemoryPage } from "./memory";
import { OpsPage } from "./ops";
import { Overview } from "./overview";
import { Tasks } from "./tasks";
import { TimelinePage } from "./timeline";
import type { View } from "./view";

/** A server beside a job stays while it is asked (docs/page.md). */
const LOOK_MS = 20_000;
/** While a job runs, its pages ask so often whether the server has analysed it again; else their answers are the old ones. */
const AGAIN_S = 15;

/** null: does not wait for the session's brief. */
const PAGES: [string, string, ((view: View) => JSX.Element) | null][] = [
  ["", "Overview", Overview],
  ["tasks", "Tasks", Tasks],
  ["timeline", "Timeline", null],
  ["input", "Input", InputPage],
  ["ops", "Ops", OpsPage],
  ["graph", "Graph", GraphPage],
  ["flame", "Flame graph", FlamePage],
  ["code", "Code", CodePage],
  ["memory", "Memory", MemoryPage],
];

export function SessionPage({ session, page, query }: { session: string; page: string; query: URLSearchParams }) {
  const brief = useLoaded<SessionBrief>(`/sessions/${session}`, { every: LOOK_MS });
  const { job, ended } = useJob(brief.value?.pid ?? null);
  useEffect(() => {
    if (ended) brief.again();
  }, [ended]);
  const here = `/sessions/${session}`;
  const api = `/api/v1${here}`;
  const nav = (
    <>
      <span class="where">
        {brief.value?.label.name || brief.value?.name || session} {brief.value && <State state={job && !ended ? job.state : brief.value.state} />}{" "}
        {job && !ended && <Phase status={job.status} />}
      </span>
      <nav aria-label="Pages of the session">
        {PAGES.map(([name, title]) => (
          <a key={name} href={name ? `${here}/${name}` : here} {...(name === page ? { "aria-current": "page" } : {})}>
            {title}
          </a>
        ))}
        <a href={`/compare?before=${session}`}>Compare</a>
        <a href={`${api}/report?format=html`} target="_blank">
          Report
        </a>
        {brief.value && !brief.value.pid && (
          <a href={`${api}/pack`} download>
            Download
          </a>
        )}
      </nav>
    </>
  );
  const { analysed_unix_s = 0, updated_unix_s = 0, anatomy = [] } = job?.status ?? {};
  const stamp = `${analysed_unix_s} ${anatomy.length > 0} ${Math.floor(updated_unix_s / AGAIN_S)} ${done(job)} ${ended}`;
  const known = PAGES.find(([name]) => name === page);
  const Shown = known ? known[2] : NoPage;
  const view = { job: ended ? null : job, stamp, query };
  return (
    <Frame title={brief.value?.label.name || brief.value?.name || ""} nav={nav}>
      {brief.problem && <Failed problem={brief.problem} again={brief.again} />}
      {brief.problem?.status === 404 && (
        <p>
          It may have been deleted or moved. <a href="/">All sessions and running jobs</a>
        </p>
      )}
      {brief.value?.problem && (
        <p class="failed" role="alert">
          {brief.value.problem}
        </p>
      )}
      {page === "timeline" && (brief.value || !brief.problem) && <TimelinePage session={session} {...view} />}
      {page !== "timeline" && !brief.value && !brief.problem && <Waiting what="Opening the session" />}
      {Shown && brief.value && <Shown brief={brief.value} {...view} />}
    </Frame>
  );
}

function NoPage({ brief }: View) {
  return (
    <p class="failed" role="alert">
      There is no such page of this session. <a href={`/sessions/${brief.key}`}>Overview</a>
    </p>
  );
}

function done(job: Job | null): number {
  return job?.status.captures.filter((capture) => capture.state === "done").length ?? 0;
}
