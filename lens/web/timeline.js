"use strict";

// The time line: a bar for each span, a lane for each key, and an arrow from each cause.

const timeline = make("svg", { class: "timeline", role: "group", tabindex: -1,
  "aria-label": "Time line" });
const timelineKey = make("select", { "aria-label": "Key",
  onchange: () => lens.select(timelineKey.value) });
const timelineChain = make("output", { class: "chain" });
const ticks = make("g"), laneNames = make("g"), arrowsOfChain = make("g"), bars = make("g");
timeline.append(make("defs", {}, arrow("cause", 7)), ticks, arrowsOfChain, bars, laneNames);

const kindsOfSpan = ["user", "watch", "queue", "sync", "request"]; // the rows of one key
const rowNames = ["others' writes", "watch", "queue", "sync", "request"];
const namesWidth = 118, axisHeight = 20, laneHeight = 26;

const view = { key: "", begin: 0, end: 1e9, follows: true, pointed: "", focus: "",
  width: 0, height: 0, size: 13 };
const shownBars = new Map();
let timelineDrawn = 0, timelineTimer = 0;

// lens.select shows what happened last to a key, or to all.
lens.select = (key) => {
  Object.assign(view, { key, follows: true });
  lens.draw("view");
};

// lastActivity returns the time from the end of the last pause of more than a second until now.
function lastActivity(spans) {
  const now = lens.now();
  const ends = ({ end }) => end || now;
  let begin = Infinity, end = 0;
  for (const span of [...spans].sort((a, b) => ends(b) - ends(a))) {
    if (span.what === "delay") continue;
    if (begin < Infinity && ends(span) < begin - 1e9) break;
    begin = Math.min(begin, span.begin);
    end = Math.max(end, ends(span));
  }
  if (begin === Infinity) return [0, 1e9];
  const room = Math.max(5e6, (end - begin) * 0.08);
  return [begin - room, end + room * 2];
}

// chainOf returns the IDs of the causes and effects of a span, with itself.
function chainOf(id) {
  const causes = new Set([id]), effects = new Set([id]);
  for (let before = 0; before < causes.size + effects.size;) {
    before = causes.size + effects.size;
    for (const [other, span] of lens.of("span")) {
      if (causes.has(other)) span.causes?.forEach((cause) => causes.add(cause));
      if (span.causes?.some((cause) => effects.has(cause))) effects.add(other);
    }
  }
  return new Set([...causes, ...effects].filter((other) => lens.entities.has(other)));
}

let rowKeys = []; // the key of each row

// newestKeys returns the keys of the spans, and when something happened to each; the newest last.
function newestKeys(spans) {
  const now = lens.now(), last = new Map();
  for (const [, { key, end }] of spans) {
    const before = last.get(key) ?? 0;
    last.delete(key);
    last.set(key, Math.max(before, end || now));
  }
  return last;
}

// placeKeys gives the rows to the newest keys. But a key keeps its row as long as something happens
// to it, and for 3 s after that, so that a person can read the row.
function placeKeys(last, room) {
  const newest = [...last.keys()].slice(-room);
  const since = view.follows ? Math.max(...last.values()) - 3e9 : 0;
  rowKeys = [...Array(room)].map((_, i) => rowKeys[i])
    .map((key) => (newest.includes(key) || last.get(key) >= since ? key : undefined));
  for (const key of newest) {
    const free = rowKeys.indexOf(undefined);
    if (!rowKeys.includes(key) && free >= 0) rowKeys[free] = key;
  }
}

function drawTimeline(now) {
  timelineDrawn = now;
  const { width, height } = view;
  const room = Math.max(1, Math.floor((height - axisHeight) / laneHeight));
  const spans = [...lens.of("span")].filter(([, span]) => !view.key || span.key === view.key);
  const clock = lens.now();
  const isSeen = ([, { begin, end }]) => (end || clock) >= view.begin && begin <= view.end;
  if (view.follows) {
    const shown = new Set([...newestKeys(spans).keys()].slice(-room).concat(rowKeys));
    [view.begin, view.end] = lastActivity(spans.map(([, span]) => span)
      .filter(({ key }) => shown.has(key)));
  }
  const visible = spans.filter(isSeen), last = newestKeys(visible);
  placeKeys(last, room);
  const seen = visible.filter(([, span]) => rowKeys.includes(span.key)).slice(-300);
  const scale = (width - namesWidth - 8) / (view.end - view.begin);
  const x = (at) => namesWidth + (at - view.begin) * scale;

  const keys = [...new Set(seen.map(([, span]) => span.key))];
  const one = keys.length === 1;
  const high = one ? (height - axisHeight - 6) / kindsOfSpan.length : laneHeight;
  const row = (span) => (one ? kindsOfSpan.indexOf(span.what === "delay" ? "queue" : span.what)
    : rowKeys.indexOf(span.key));
  const heights = { sync: 16, request: 8, user: 16 };
  const barHeight = (what) => (one ? Math.min(20, high - 6) : heights[what] ?? 6);
  const middle = (span) => axisHeight + row(span) * high + high / 2;

  const names = one ? rowNames : rowKeys.map((key) => (keys.includes(key) ? shortKey(key) : ""));
  const head = one ? shortKey(keys[0]) : last.size ? `${keys.length} of ${last.size} keys` : "";
  laneNames.replaceChildren(make("rect", { class: "names", width: namesWidth - 4, height }),
    make("text", { x: 8, y: 14, class: "about" }, shorten(head, 18)),
    ...names.map((name, i) => make("text", { x: 8, y: axisHeight + i * high + high / 2 + 4 },
      shorten(name, 16))));
  drawTicks(x, width, height);

  const next = new Map(); // from ID to the bar behind it: a text ends there
  const past = new Map(); // from ID to the end of all bars up to it: a text beside it begins there
  for (const bars of Map.groupBy(seen, ([, span]) => row(span)).values()) {
    let end = 0;
    bars.sort(([, a], [, b]) => a.begin - b.begin);
    bars.forEach(([id, span], i) => {
      next.set(id, bars[i + 1] ? x(bars[i + 1][1].begin) : width);
      past.set(id, end = Math.max(end, x(span.begin) + 3, x(span.end || clock)));
    });
  }

  const chain = view.pointed && lens.entities.has(view.pointed) ? chainOf(view.pointed) : null;
  const drawn = new Map(seen.filter(([, span]) => row(span) >= 0));
  const gone = new Map(shownBars);
  for (const [id, span] of drawn) {
    gone.delete(id);
    if (!shownBars.has(id)) {
      shownBars.set(id, bars.appendChild(make("g", { "data-id": id, role: "img" },
        make("title"), make("rect", { rx: 2 }), make("text"))));
    }
    const [title, rect, text] = shownBars.get(id).children;
    const from = Math.max(x(span.begin), namesWidth - 6);
    const to = Math.min(x(span.end || clock), width);
    const h = barHeight(span.what), w = Math.max(3, to - from);
    const time = span.end - span.begin < 1000 ? "" : duration((span.end || clock) - span.begin);
    set(shownBars.get(id), { class: `bar ${span.what} ${span.failed ? "failed" : ""} ` +
      (chain && !chain.has(id) ? "aside" : ""), tabindex: id === view.focus ? 0 : -1,
      "data-place": span.place, "aria-label": `${span.what}: ${span.label}, ${time}` });
    set(rect, { x: from, y: middle(span) - h / 2, width: w, height: h });
    const wording = `${span.failed ? "✕ " : ""}${time && `${time}  `}${span.label}`;
    const inside = Math.min(next.get(id), to) - from, beside = one ? next.get(id) - past.get(id) : 0;
    const letters = Math.floor(Math.max(inside, beside) / (0.51 * view.size) - 1);
    set(text, { x: inside >= beside ? from + 5 : past.get(id) + 4, y: middle(span) + 4,
      class: one ? "" : "over" }); // it is higher than the bar
    say(text, letters > 7 ? shorten(wording, letters) : "");
    say(title, wording);
  }
  for (const [id, element] of gone) {
    element.remove();
    shownBars.delete(id);
  }
  if (!drawn.has(view.focus)) view.focus = [...drawn.keys()].at(-1);
  shownBars.get(view.focus)?.setAttribute("tabindex", 0);
  drawCauses(drawn, chain, one, x, middle);
  sayChain(chain);
  listKeys();
}

function drawTicks(x, width, height) {
  const step = [1, 2, 5].flatMap((n) => [...Array(9)].map((_, i) => n * 10 ** (i + 3)))
    .sort((a, b) => a - b).find((n) => (x(n) - x(0)) > 80) ?? 5e12;
  const lines = [];
  for (let at = 0; at <= view.end - view.begin && lines.length < 80; at += step) {
    const left = x(view.begin + at);
    if (left > width - 30) break;
    lines.push(make("path", { d: `M${left} ${axisHeight}V${height}` }),
      make("text", { x: left + 3, y: 14 },
        at ? `+${duration(at)}` : `at ${duration(Math.max(0, view.begin))}`));
  }
  ticks.replaceChildren(...lines);
}

function drawCauses(drawn, chain, one, x, middle) {
  const paths = [];
  for (const [id, span] of drawn) {
    for (const cause of span.causes ?? []) {
      const from = drawn.get(cause);
      const inChain = chain?.has(id) && chain.has(cause);
      if (!from || !(one || inChain)) continue;
      const begin = x(span.begin), start = Math.min(x(from.end || span.begin), begin);
      const a = middle(from), b = middle(span);
      const bend = Math.max(6, (begin - start) / 2);
      paths.push(make("path", { class: chain && !inChain ? "aside" : "", "data-cause": cause,
        "data-effect": id, "marker-end": "url(#cause)",
        d: Math.abs(begin - start) < 8 ? `M${start} ${a}V${b - Math.sign(b - a) * 8}`
          : `M${start} ${a}C${start + bend} ${a} ${begin - bend} ${b} ${begin} ${b}` }));
    }
  }
  arrowsOfChain.replaceChildren(...paths);
}

function sayChain(chain) {
  if (!chain) return say(timelineChain, "");
  const spans = [...chain].map(lens.one).sort((a, b) => a.begin - b.begin);
  const end = Math.max(...spans.map((span) => span.end || lens.now()));
  const words = spans.slice(0, 6).map((span) => span.what === "user" ? span.label
    : `${span.what} ${duration((span.end || lens.now()) - span.begin)}`);
  if (spans.length > 6) words.push(`${spans.length - 6} more`);
  say(timelineChain, `${words.join(" → ")}: ${duration(end - spans[0].begin)} in all`);
}

function listKeys() {
  const spans = [...lens.of("span").values()];
  const keys = [...new Set(spans.map((span) => span.key))].slice(-100).sort();
  const have = [...timelineKey.options].slice(1).map((option) => option.value);
  if (keys.join() !== have.join() || !timelineKey.options.length) {
    timelineKey.replaceChildren(make("option", { value: "" }, "all keys"),
      ...keys.map((key) => make("option", { value: key }, shortKey(key))));
  }
  if (timelineKey.value !== view.key) timelineKey.value = view.key;
}

function zoom(factor, at = (view.begin + view.end) / 2) {
  view.follows = false;
  view.begin = at - (at - view.begin) * factor;
  view.end = Math.max(at + (view.end - at) * factor, view.begin + 1000);
  lens.draw("view");
}

const timeAt = (clientX) => {
  const x = clientX - timeline.getBoundingClientRect().left - namesWidth;
  return view.begin + (x / (view.width - namesWidth - 8)) * (view.end - view.begin);
};

function point(id = "") {
  if (view.pointed !== id) lens.draw("view");
  view.pointed = id;
}

timeline.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.clientX));
}, { passive: false });
timeline.addEventListener("pointermove", (event) => {
  if (!event.buttons) return point(event.target.closest("[data-id]")?.dataset.id);
  const moved = timeAt(event.clientX - event.movementX) - timeAt(event.clientX);
  Object.assign(view, { follows: false, begin: view.begin + moved, end: view.end + moved });
  lens.draw("view");
});
timeline.addEventListener("focusin", (event) => point(event.target.dataset.id));
for (const end of ["pointerleave", "focusout"]) timeline.addEventListener(end, () => point(""));
timeline.addEventListener("click", (event) => {
  const { place, id } = event.target.closest(".bar")?.dataset ?? {};
  if (place) lens.show(place);
  if (id) lens.select(lens.one(id).key);
});
timeline.addEventListener("keydown", (event) => {
  const ids = [...shownBars.keys()];
  const next = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (event.key === "Enter") event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  if (!next) return;
  event.stopPropagation();
  view.focus = ids[Math.min(ids.length - 1, Math.max(0, ids.indexOf(view.focus) + next))];
  shownBars.get(view.focus)?.focus();
});
new ResizeObserver(([{ contentRect: { width, height } }]) => {
  const size = parseFloat(getComputedStyle(timeline).fontSize); // of the page: texts are smaller
  Object.assign(view, { width, height, size });
  timeline.setAttribute("viewBox", `0 0 ${width} ${height}`);
  lens.draw("view");
}).observe(timeline);

lens.drawers.push((changed, now) => {
  if (!view.width || !["view", "span", "clock"].some((kind) => changed.has(kind))) return;
  if (changed.has("view") || now - timelineDrawn > 150) return drawTimeline(now);
  clearTimeout(timelineTimer);
  timelineTimer = setTimeout(() => lens.draw("view"), 150);
});
