/** Memory: address spaces as they were looked at, their growth, page faults. State: ?from=, ?to= of the charts. */
import { useLoaded } from "../data";
import * as format from "../format";
import type { MemoryList, MemoryShown, Region, Series } from "../generated/api";
import { Charts, type Columns } from "../parts/charts";
import { Facts, Failed, Waiting } from "../parts/common";
import type { View } from "./view";

const CHARTS = ["Memory", "Address space", "Mappings", "CPU in the kernel"];
const HEIGHT = 26;
const SHARES = [
  ["mapped", "mapped"],
  ["resident", "resident"],
  ["huge", "resident in huge pages"],
] as const;

export function MemoryPage({ brief, stamp, query }: View) {
  const path = `/sessions/${brief.key}`;
  const memory = useLoaded<MemoryList>(`${path}/memory`, { stamp });
  const series = useLoaded<Series>(`${path}/series`, { stamp });
  if (memory.problem) return <Failed problem={memory.problem} again={memory.again} />;
  if (!memory.value) return <Waiting what="Reading memory snapshots" />;
  const items = memory.value.items;
  return (
    <>
      <h1>Memory</h1>
      {!items.length && (
        <p class="quiet">
          {brief.pid ? "The job's memory has not been mapped yet: that is done once a minute. At once: " : "The job's memory was not mapped: that is done once a minute, so a shorter job has no map. For a running job: "}
          <code>stepscope memory {brief.pid ?? "PID"}</code>.
        </p>
      )}
      {series.problem && <Failed problem={series.problem} again={series.again} />}
      {series.value && <Charts columns={{ ...series.value.columns, ...growth(items[0]) }} query={query} only={CHARTS} />}
      {items.map((one) => (
        <Process key={one.map.pid} one={one} />
      ))}
    </>
  );
}

/** The looks at a process as columns of a chart. */
function growth(one: MemoryShown | undefined): Columns {
  const looks = one?.map.looks ?? [];
  if (looks.length < 2) return {};
  const mb = (value: number) => value / 1e6;
  return {
    look_t: looks.map((look) => look.at_ns / 1e9),
    "look:anonymous_mb": looks.map((look) => mb(look.anonymous_bytes)),
    "look:huge_mb": looks.map((look) => mb(look.huge_bytes)),
    "look:mappings": looks.map((look) => look.mappings),
  };
}

function Process({ one }: { one: MemoryShown }) {
  const { map } = one;
  const title = `process-${map.pid}`;
  return (
    <section aria-labelledby={title}>
      <h2 id={title}>Process {map.pid}</h2>
      <p class="command">
        <code>{map.command.join(" ")}</code>
      </p>
      <Facts
        facts={[
          ["Resident", format.bytes(map.resident_bytes)],
          ["Anonymous", format.bytes(map.anonymous_bytes)],
          ["In huge pages", format.bytes(map.huge_bytes)],
          ["Page tables", format.bytes(map.page_table_bytes)],
          ["Mappings", format.count(map.mappings)],
        ]}
      />
      <dl class="said">
        <Said title="Huge pages" lines={one.huge_pages} />
        <Said title="Layout" lines={one.layout} />
        <Said title="Page faults" lines={[one.faults]} />
        <Said title="Growth" lines={[one.growth || "only one snapshot"]} />
        <Said title="Kernel work" lines={[one.kernel_work]} />
        <Said title="Processor" lines={one.hardware} />
        <Said title="TLB misses" lines={one.translation} />
        <Said title="Page sizes" lines={one.page_sizes} />
        <Said title="Free memory" lines={one.free_memory} />
      </dl>
      <Sizes one={one} />
      <h3>The address space</h3>
      <ul class="legend">
        {SHARES.map(([css, text]) => (
          <li key={css}>
            <i class={`m-${css}`} /> {text}
          </li>
        ))}
      </ul>
      <p class="quiet">Each strip is a region without large holes; the height of a colour is its share of that part of the region.</p>
      {map.regions.map((region) => (
        <Strip key={region.start} region={region} />
      ))}
      {map.hidden_bytes > 0 && <p class="quiet">{format.bytes(map.hidden_bytes)} resident elsewhere.</p>}
    </section>
  );
}

function Said({ title, lines }: { title: string; lines: string[] }) {
  if (!lines.length) return null;
  return (
    <div>
      <dt>{title}</dt>
      {lines.map((line) => (
        <dd key={line}>{line}</dd>
      ))}
    </div>
  );
}

function Sizes({ one }: { one: MemoryShown }) {
  if (!one.sizes.length) return null;
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Anonymous mappings by size</th>
            <th class="number">Number</th>
            <th class="number">Resident</th>
            <th class="number">In huge pages</th>
          </tr>
        </thead>
        <tbody>
          {one.map.sizes.map((size, at) => (
            <tr key={one.sizes[at]}>
              <td>{one.sizes[at]}</td>
              <td class="number">{format.count(size.mappings)}</td>
              <td class="number">{format.bytes(size.resident_bytes)}</td>
              <td class="number">{format.bytes(size.huge_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Strip({ region }: { region: Region }) {
  const name = region.name.split("/").pop() || "anonymous";
  const size = format.bytes(region.end - region.start);
  const said = `0x${region.start.toString(16)}: ${format.bytes(region.resident_bytes)} resident of ${size}, mostly ${name}`;
  return (
    <figure class="strip">
      <figcaption>{said}</figcaption>
      <svg viewBox={`0 0 ${region.mapped.length} ${HEIGHT}`} preserveAspectRatio="none" height={HEIGHT} role="img" aria-label={said}>
        <rect class="m-hole" width={region.mapped.length} height={HEIGHT} />
        {SHARES.map(([css]) => (
          <path key={css} class={`m-${css}`} d={outline(region[css])} />
        ))}
      </svg>
    </figure>
  );
}

/** Columns of the height of their share, as one path. */
function outline(shares: number[]): string {
  return shares
    .map((share, at) => (share > 0 ? `M${at} ${HEIGHT}V${HEIGHT - Math.max(1, share * HEIGHT)}h1V${HEIGHT}z` : ""))
    .join("");
}
