// Draws the stacks of the page that it stands in. No library, no network, nothing but this file and the page's data.
//
// Words: a stack is a node of the data's tree; a box is a node of the tree that is drawn, in which stacks are merged by
// function, told apart by thread, or turned around (innermost frame first). Weights are in the profile's unit.
"use strict";

(() => {
  const ROW = 18;
  const MAX_ROWS = 900;
  const LEAST_WIDTH = 0.4;
  const LETTER_FONT = '12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
  const KINDS = ["other", "python", "native", "kernel", "generated", "interpreter", "framework", "math", "allocator",
    "library"];
  const SIGNIFICANT = 0.05;
  const OFFSETS = 50;
  const MAX_COLUMNS = 300;

  const byId = (id) => document.getElementById(id);
  const settings = byId("settings").dataset;
  const compared = settings.compared === "yes";

  // ---- data

  async function load() {
    const packed = Uint8Array.from(atob(byId("data").textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  /** Numbers of frames such that frames of one function share one; with lines, of one function and line. */
  function keysOf(data, withLines) {
    const known = new Map();
    return data.frames.map(([name, file, line, module]) => {
      const key = `${name} ${file} ${module} ${withLines ? line : 0}`;
      if (!known.has(key)) known.set(key, known.size);
      return known.get(key);
    });
  }

  /**
   * The tree that is drawn, as columns of boxes; box 0 is all of it, callers stand before what they call.
   * view: {inverted, lines, split, thread, from, to, first}
   */
  function treeOf(data, view) {
    const keys = keysOf(data, view.lines);
    const parent = [-1], frame = [-1], thread = [-1], stack = [-1], own = [0], ownBefore = [0];
    const children = [new Map()];
    const box = (above, key, frameId, threadId, stackId) => {
      const found = children[above].get(key);
      if (found !== undefined) return found;
      const made = parent.length;
      children[above].set(key, made);
      children.push(new Map());
      parent.push(above); frame.push(frameId); thread.push(threadId); stack.push(stackId);
      own.push(0); ownBefore.push(0);
      return made;
    };
    const places = new Map();
    const place = (root, number) => {
      if (number < 0) return root;
      let of = places.get(root);
      if (!of) places.set(root, (of = new Map()));
      const chain = [];
      let at = number;
      while (at >= 0 && !of.has(at)) { chain.push(at); at = data.parent[at]; }
      let current = at < 0 ? root : of.get(at);
      while (chain.length) {
        at = chain.pop();
        current = box(current, keys[data.frame[at]], data.frame[at], -1, at);
        of.set(at, current);
      }
      return current;
    };
    const turned = (root, number) => {
      let current = root;
      for (let at = number; at >= 0; at = data.parent[at]) {
        current = box(current, keys[data.frame[at]], data.frame[at], -1, -1);
      }
      return current;
    };
    const { stack: stacks, thread: threads, weight, before, at } = data.rows;
    for (let row = 0; row < stacks.length; row++) {
      if (view.thread >= 0 && threads[row] !== view.thread) continue;
      if (view.to !== null && at && (at[row] < view.from || at[row] >= view.to)) continue;
      const root = view.split ? box(0, `thread ${threads[row]}`, -1, threads[row], -1) : 0;
      const leaf = view.inverted ? turned(root, stacks[row]) : place(root, stacks[row]);
      own[leaf] += weight[row];
      if (before) ownBefore[leaf] += before[row];
    }
    return laidOut({ parent, frame, thread, stack, own, ownBefore, children: children.map((c) => [...c.values()]) }, view);
  }

  /** Totals, depths and places: each box begins at `start` and is `width` wide, in units of weight. */
  function laidOut(tree, view) {
    const count = tree.parent.length;
    const total = Float64Array.from(tree.own), before = Float64Array.from(tree.ownBefore);
    for (let i = count - 1; i > 0; i--) { total[tree.parent[i]] += total[i]; before[tree.parent[i]] += before[i]; }
    const width = view.first ? before : total;
    const start = new Float64Array(count), depth = new Int32Array(count), height = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      tree.children[i].sort((a, b) => width[b] - width[a]);
      let at = start[i];
      for (const child of tree.children[i]) {
        start[child] = at; depth[child] = depth[i] + 1; at += width[child];
      }
    }
    for (let i = count - 1; i > 0; i--) height[tree.parent[i]] = Math.max(height[tree.parent[i]], height[i] + 1);
    return { ...tree, total, before, width, start, depth, height, count };
  }

  // ---- words

  const NS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const BYTES = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

  function weightText(weight, unit) {
    const steps = unit === "ns" ? NS : unit === "bytes" ? BYTES : null;
    if (!steps) return `${weight.toLocaleString("en", { maximumFractionDigits: 2 })} ${unit}`.trim();
    const [size, name] = steps.find(([least]) => weight >= least) || steps[steps.length - 1];
    return `${Number((weight / size).toPrecision(3)).toLocaleString("en")} ${name}`;
  }

  function percent(ratio) {
    const value = 100 * ratio;
    if (value > 0 && value < 0.1) return "< 0.1 %";
    return `${value === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(1)} %`;
  }

  function growthText(before, after) {
    if (!before) return "new";
    if (!after) return "gone";
    const growth = 100 * (after / before - 1);
    return `${growth >= 0 ? "+" : ""}${growth.toFixed(0)} %`;
  }

  // ---- the graph

  function flameGraph(data) {
    const canvas = byId("flame"), context = canvas.getContext("2d");
    const view = { inverted: false, lines: false, split: false, thread: -1, from: 0, to: null, first: false };
    const names = data.frames.map(([name]) => data.strings[name]);
    const lowered = names.map((name) => name.toLowerCase());
    const changedOwn = new Set(data.changed || []);
    let tree, zoom = 0, cursor = 0, hover = -1, query = "", matched = new Uint8Array(0), rows = [], colours = {};

    const nameOf = (box) => {
      if (box === 0) return "all";
      if (tree.thread[box] !== -1 || tree.frame[box] < 0) return data.threads[tree.thread[box]] || "no thread told";
      const [, , line] = data.frames[tree.frame[box]];
      return view.lines && line ? `${names[tree.frame[box]]}:${line}` : names[tree.frame[box]];
    };

    function rebuild() {
      tree = treeOf(data, view);
      zoom = cursor = 0;
      hover = -1;
      search(query);
      draw();
      tell();
    }

    function readColours() {
      const style = getComputedStyle(document.documentElement);
      const names = [...KINDS, "ink", "page", "line", "more", "less", "noise", "hit", "hit-ink", "all", "cursor"];
      colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--f-${name}`).trim()]));
    }

    function colourOf(box) {
      if (tree.frame[box] < 0) return colours.all;
      if (!compared) return colours[KINDS[data.frames[tree.frame[box]][4]]] || colours.other;
      const significant = view.inverted
        ? changedOwn.has(tree.frame[box])
        : tree.stack[box] >= 0 && data.p[tree.stack[box]] < SIGNIFICANT;
      if (!significant) return colours.noise;
      return tree.total[box] > tree.before[box] * data.speed ? colours.more : colours.less;
    }

    const isAbove = (box, other) => {
      while (other > box) other = tree.parent[other];
      return other === box;
    };

    function draw() {
      const scale = window.devicePixelRatio || 1;
      const wide = Math.max(200, canvas.parentElement.clientWidth);
      const depth = Math.min(MAX_ROWS, tree.depth[zoom] + tree.height[zoom] + 1);
      canvas.style.height = `${depth * ROW}px`;
      canvas.width = Math.round(wide * scale);
      canvas.height = Math.round(depth * ROW * scale);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.font = LETTER_FONT;
      context.textBaseline = "middle";
      const letter = context.measureText("m").width;
      const perUnit = tree.width[zoom] ? wide / tree.width[zoom] : 0;
      rows = Array.from({ length: depth }, () => []);
      const one = (box, x, w) => {
        if (tree.depth[box] >= depth) return;
        rows[tree.depth[box]].push([x, w, box]);
        paint(box, x, w, letter);
      };
      for (let box = tree.parent[zoom]; box >= 0; box = tree.parent[box]) one(box, 0, wide);
      const waiting = [zoom];
      while (waiting.length) {
        const box = waiting.pop();
        const x = (tree.start[box] - tree.start[zoom]) * perUnit, w = tree.width[box] * perUnit;
        if (w < LEAST_WIDTH) continue;
        one(box, x, w);
        for (const child of tree.children[box]) waiting.push(child);
      }
      for (const row of rows) row.sort((a, b) => a[0] - b[0]);
    }

    function paint(box, x, w, letter) {
      const y = tree.depth[box] * ROW, gap = w > 3 ? 1 : 0;
      const hit = matched[box] === 1;
      context.globalAlpha = query && !hit && box !== 0 ? 0.45 : 1;
      context.fillStyle = hit ? colours.hit : colourOf(box);
      context.fillRect(x, y, Math.max(w - gap, 0.5), ROW - 1);
      if (w > 8 && tree.frame[box] >= 0 && !data.frames[tree.frame[box]][5]) hatch(x, y, w - gap, hit);
      context.globalAlpha = 1;
      if (box === cursor) {
        context.strokeStyle = colours.cursor;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(w - gap - 2, 1), ROW - 3);
      }
      const letters = Math.floor((w - 6) / letter);
      if (letters < 3) return;
      const name = nameOf(box);
      context.fillStyle = hit ? colours["hit-ink"] : colours.ink;
      context.fillText(name.length <= letters ? name : `${name.slice(0, letters - 1)}\u2026`, x + 3, y + ROW / 2);
    }

    /** Frames without a name are hatched along their lower edge: their colour is a guess. */
    function hatch(x, y, w, hit) {
      context.strokeStyle = hit ? colours["hit-ink"] : colours.ink;
      context.lineWidth = 0.6;
      context.beginPath();
      for (let at = x + 2; at < x + w - 3; at += 5) { context.moveTo(at, y + ROW - 2); context.lineTo(at + 3, y + ROW - 5); }
      context.stroke();
    }

    // ---- what is said

    function describe(box) {
      const whole = tree.total[0] || 1;
      const parts = [nameOf(box)];
      if (compared) {
        const before = weightText(tree.before[box], data.unit), after = weightText(tree.total[box], data.unit);
        parts.push(`${before} \u2192 ${after}${data.per} (${growthText(tree.before[box], tree.total[box])})`);
        if (tree.stack[box] >= 0 && !view.inverted) {
          parts.push(data.p[tree.stack[box]] < SIGNIFICANT ? "beyond sampling noise" : "within sampling noise");
        }
      } else {
        parts.push(`${percent(tree.total[box] / whole)}, ${weightText(tree.total[box], data.unit)}`);
        if (tree.own[box] && tree.own[box] !== tree.total[box]) {
          parts.push(`self ${percent(tree.own[box] / whole)}, ${weightText(tree.own[box], data.unit)}`);
        }
      }
      if (tree.frame[box] >= 0) {
        const [, file, line, module, , resolved] = data.frames[tree.frame[box]];
        if (data.strings[file]) parts.push(line && (view.lines || compared) ? `${data.strings[file]}:${line}` : data.strings[file]);
        if (data.strings[module]) parts.push(data.strings[module]);
        if (!resolved) parts.push("no name known");
      }
      return parts.join("  \u00b7  ");
    }

    function tell(aloud) {
      const box = hover >= 0 ? hover : cursor;
      byId("now").textContent = describe(box);
      if (aloud) byId("said").textContent = `${describe(box)}. Depth ${tree.depth[box]}.`;
      byId("zoom-out").disabled = zoom === 0;
      canvas.dataset.zoom = nameOf(zoom);
      canvas.dataset.cursor = nameOf(cursor);
    }

    // ---- actions

    function search(text) {
      query = text.trim().toLowerCase();
      matched = new Uint8Array(tree.count);
      let weight = 0, found = 0;
      const inside = new Uint8Array(tree.count);
      for (let box = 1; box < tree.count; box++) {
        const above = inside[tree.parent[box]];
        const name = tree.frame[box] >= 0 ? lowered[tree.frame[box]] : nameOf(box).toLowerCase();
        if (query && name.includes(query)) {
          matched[box] = 1;
          found += 1;
          if (!above) weight += tree.total[box];
        }
        inside[box] = above || matched[box];
      }
      byId("matched").textContent = !query ? "" : !found ? "no match" : `${percent(weight / (tree.total[0] || 1))} in matching stacks`;
    }

    function zoomTo(box) {
      zoom = cursor = box;
      draw();
      tell(true);
    }

    function set(change) {
      Object.assign(view, change);
      rebuild();
    }

    function move(box) {
      if (box === undefined || box < 0) return;
      cursor = box;
      hover = -1;
      if (!isAbove(zoom, box) && !isAbove(box, zoom)) zoom = box;
      draw();
      tell(true);
      const y = canvas.getBoundingClientRect().top + tree.depth[box] * ROW;
      if (y < 120 || y > window.innerHeight - 40) window.scrollBy(0, y - window.innerHeight / 2);
    }

    function sibling(step) {
      const around = cursor > 0 ? tree.children[tree.parent[cursor]] : [];
      return around[around.indexOf(cursor) + step];
    }

    const KEYS = {
      ArrowDown: () => move(tree.children[cursor][0]),
      ArrowUp: () => move(tree.parent[cursor]),
      ArrowLeft: () => move(sibling(-1)),
      ArrowRight: () => move(sibling(1)),
      Enter: () => zoomTo(cursor),
      Backspace: () => zoomTo(Math.max(0, tree.parent[zoom])),
      Escape: () => zoomTo(0),
      Home: () => zoomTo(0),
      n: () => move(next(matched)),
    };

    function next(marks) {
      for (let step = 1; step <= marks.length; step++) {
        const box = (cursor + step) % marks.length;
        if (marks[box]) return box;
      }
      return -1;
    }

    const boxAt = (event) => {
      const area = canvas.getBoundingClientRect();
      const row = rows[Math.floor((event.clientY - area.top) / ROW)] || [], x = event.clientX - area.left;
      const found = row.find(([at, w]) => x >= at && x < at + Math.max(w, 1));
      return found ? found[2] : -1;
    };

    canvas.addEventListener("mousemove", (event) => {
      hover = boxAt(event);
      canvas.style.cursor = hover >= 0 ? "pointer" : "default";
      tell();
    });
    canvas.addEventListener("mouseleave", () => { hover = -1; tell(); });
    canvas.addEventListener("click", (event) => { const box = boxAt(event); if (box >= 0) zoomTo(box); });
    canvas.addEventListener("keydown", (event) => {
      const action = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
    new ResizeObserver(() => draw()).observe(canvas.parentElement);
    for (const asked of ["(prefers-color-scheme: dark)", "print"]) {
      window.matchMedia(asked).addEventListener("change", () => { readColours(); draw(); });
    }

    readColours();
    rebuild();
    return { set, zoomTo, search: (text) => { search(text); draw(); tell(); }, view };
  }

  // ---- the heat map: seconds from left to right, the offset within the second from top to bottom

  function heatMap(data, graph) {
    const canvas = byId("heat"), context = canvas.getContext("2d"), { at, weight } = data.rows;
    let first = Infinity, last = -Infinity;
    for (const moment of at) if (moment >= 0) { first = Math.min(first, moment); last = Math.max(last, moment); }
    const origin = Math.floor(first / 1e6), seconds = Math.floor(last / 1e6) - origin + 1;
    const per = Math.ceil(seconds / MAX_COLUMNS), columns = Math.ceil(seconds / per);
    const cells = new Float64Array(columns * OFFSETS);
    at.forEach((moment, row) => {
      if (moment < 0) return;
      const second = Math.floor(moment / 1e6);
      const column = Math.floor((second - origin) / per);
      cells[column * OFFSETS + Math.min(OFFSETS - 1, Math.floor(((moment / 1e6 - second) * OFFSETS)))] += weight[row];
    });
    const most = cells.reduce((a, b) => Math.max(a, b), 0) || 1;
    let anchor = -1, focus = 0, chosen = null;
    byId("heat-from").textContent = `second ${origin}`;
    byId("heat-to").textContent = columns * 24 < canvas.clientWidth ? `${seconds} s in total` : `second ${origin + seconds}`;

    function draw() {
      const scale = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
      const style = getComputedStyle(document.documentElement);
      canvas.width = Math.round(wide * scale);
      canvas.height = Math.round(high * scale);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      const w = Math.min(wide / columns, 24), h = high / OFFSETS;
      context.fillStyle = style.getPropertyValue("--f-heat").trim();
      for (let column = 0; column < columns; column++) {
        for (let offset = 0; offset < OFFSETS; offset++) {
          const heat = cells[column * OFFSETS + offset] / most;
          if (!heat) continue;
          context.globalAlpha = 0.12 + 0.88 * Math.sqrt(heat);
          context.fillRect(column * w, offset * h, Math.max(w - (w > 4 ? 0.5 : 0), 1), h);
        }
      }
      context.globalAlpha = 1;
      context.strokeStyle = style.getPropertyValue("--f-cursor").trim();
      context.lineWidth = 2;
      if (chosen) context.strokeRect(chosen[0] * w + 1, 1, (chosen[1] - chosen[0] + 1) * w - 2, high - 2);
      else if (document.activeElement === canvas) context.strokeRect(focus * w + 1, 1, Math.max(w - 2, 1), high - 2);
    }

    const clock = (column) => (origin + column * per).toLocaleString("en");

    function choose(from, to) {
      chosen = from === null ? null : [Math.min(from, to), Math.max(from, to)];
      draw();
      byId("chosen").textContent = chosen ? `second ${clock(chosen[0])} to ${clock(chosen[1] + 1)} is drawn` : "the whole time is drawn";
      byId("whole-time").disabled = !chosen;
      graph.set(chosen
        ? { from: (origin + chosen[0] * per) * 1e6, to: (origin + (chosen[1] + 1) * per) * 1e6 }
        : { from: 0, to: null });
    }

    const columnAt = (event) => {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      return Math.max(0, Math.min(columns - 1, Math.floor(x / Math.min(canvas.clientWidth / columns, 24))));
    };
    canvas.addEventListener("pointerdown", (event) => { anchor = columnAt(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (anchor < 0) return;
      chosen = [Math.min(anchor, columnAt(event)), Math.max(anchor, columnAt(event))];
      draw();
    });
    canvas.addEventListener("pointerup", (event) => { if (anchor >= 0) choose(anchor, columnAt(event)); anchor = -1; });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) {
        const from = event.shiftKey && chosen ? chosen : [focus, focus];
        focus = Math.max(0, Math.min(columns - 1, focus + step));
        if (event.shiftKey) choose(step > 0 ? from[0] : Math.min(from[0], focus), step > 0 ? focus : from[1]);
      } else if (event.key === "Enter") choose(focus, focus);
      else if (event.key === "Escape") choose(null, null);
      else return;
      event.preventDefault();
      draw();
    });
    for (const what of ["focus", "blur"]) canvas.addEventListener(what, draw);
    byId("whole-time").addEventListener("click", () => choose(null, null));
    new ResizeObserver(draw).observe(canvas);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  }

  // ---- the page

  function controls(data, graph) {
    const toggle = (id, change) => {
      const button = byId(id);
      if (!button) return;
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        graph.set(change(on));
      });
    };
    toggle("invert", (on) => ({ inverted: on }));
    toggle("lines", (on) => ({ lines: on }));
    toggle("first", (on) => ({ first: on }));
    byId("zoom-out").addEventListener("click", () => graph.zoomTo(0));
    const search = byId("search");
    search.addEventListener("input", () => graph.search(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { search.value = ""; graph.search(""); }
      if (event.key === "Enter") byId("flame").focus();
    });
    const threads = byId("threads");
    if (threads) {
      threads.addEventListener("change", () => {
        const value = Number(threads.value);
        graph.set({ split: value === -2, thread: Math.max(-1, value) });
      });
    }
    document.addEventListener("keydown", (event) => {
      if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") { event.preventDefault(); search.focus(); }
      if (event.key === "i") byId("invert").click();
    });
    for (const link of document.querySelectorAll("button[data-find]")) {
      link.addEventListener("click", () => {
        search.value = link.dataset.find;
        graph.search(search.value);
        byId("flame").focus();
        byId("graph").scrollIntoView();
      });
    }
  }

  load().then((data) => {
    const graph = flameGraph(data);
    controls(data, graph);
    if (byId("heat")) heatMap(data, graph);
    document.documentElement.dataset.ready = "yes";
  }, (error) => {
    byId("now").textContent = `The stacks on this page cannot be read: ${error.message}`;
  });
})();
