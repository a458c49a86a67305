"use strict";

// The picture: the API server on the left, the process on the right, and what moves between them.

// parts are in the order in which a change goes through them. place is what GET /code calls the
// code that is at work there. explain is in docs/lens.md, too.
const parts = {
  server: { title: "API server", about: "stores the objects", place: "meaning",
    explain: "it stores the objects. An object stands next to the one that it is made for" },
  watches: { title: "watches", about: "tell of each change", place: "cache",
    explain: "the API server sends each change to the program, as an event, in one stream for " +
      "each resource" },
  caches: { title: "caches", about: "copies of the objects, kept up to date", place: "cache",
    explain: "the program keeps a copy of each object. A sync reads the copies" },
  handlers: { title: "event handlers", about: "which key does it concern?", place: "handler",
    explain: "for each change, they find out which object has to be synced, and put its key on " +
      "the queue" },
  queue: { title: "queue", about: "keys: names of what to sync", place: "queue",
    explain: "keys wait here, each only once, until a worker takes them" },
  workers: { title: "workers", about: "compare what is with what should be", place: "sync",
    explain: "each takes a key and syncs its object: it compares what is with what should be. It " +
      "has one key at a time" },
  requests: { title: "requests", about: "write the difference", place: "create",
    explain: "a sync writes what is different. The API server answers" },
};

// lessons are what one should recognise: in which part, its name, and what it means.
const lessons = {
  duplicate: ["queue", "waits already", "The key was waiting, so the queue did not add it again. " +
    "One sync is enough for any number of changes, because it reads the newest state."],
  dirty: ["workers", "dirty: once more", "The key was added while a worker had it. The queue " +
    "hands it out again when this worker is done: two workers never have the same key."],
  backoff: ["queue", "failed, comes back", "The sync failed, so the key waits before the next " +
    "try, twice as long after each failure. A success ends this."],
  stale: ["caches", "stale cache", "The cache does not show the program's own last write yet. A " +
    "sync would decide on old data, so the key waits for the watch."],
  conflict: ["requests", "conflict", "Another program changed the object in between, so the API " +
    "server refused this write (409). The next sync reads the newer object and tries again. With " +
    "⚡, the lens has answered this, because you asked for it."],
  timeout: ["requests", "held by the lens", "The lens held this request back for longer than the " +
    "program waits for an answer: this controller waits for 10 s. It tries again, and that does no harm."],
  expired: ["watches", "history expired", "The API server no longer has the changes that the " +
    "watch missed (410). So the program lists all objects again, and watches from there."],
  noop: ["workers", "nothing to do", "The sync found everything as it should be, and sent no " +
    "request. So it does no harm to sync a key too often."],
  cut: ["watches", "watch broke", "The connection of the watch broke, so the program opens it " +
    "again. It asks for all changes since the last one that it has, and so misses nothing."],
  held: ["watches", "late", "The lens holds this change back. Until it comes, the cache shows " +
    "what was before."],
  taken: ["server", "name taken", "An object of this name exists and belongs to another owner. " +
    "The program leaves it alone, and says so in the status."],
  deleted: ["caches", "deleted", "The object is not in the cache any more. The sync has nothing " +
    "to do: the garbage collector deletes what the object owned."],
};

const arrow = (id, size) => make("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4,
  markerWidth: size, markerHeight: size, orient: "auto", markerUnits: "userSpaceOnUse" },
make("path", { d: "M0 0 8 4 0 8z" }));
const picture = make("svg", { class: "picture", role: "group", "aria-label": "The picture" },
  make("defs", {}, arrow("arrow", 10)));
const processBox = make("rect", { class: "process", rx: 12 });
const processName = make("tspan"), processAbout = make("tspan", { class: "about", dx: 8 });
const processTitle = make("text", { class: "title" }, processName, processAbout);
const processState = make("text", { class: "count" });
const gateLine = make("path", { class: "gateline" });
const flows = ["", "", "", "", "reads"].map((name) => make("path", { class: `flow ${name}` }));
const readsLabel = make("text", { class: "about" }, "a sync reads here");
picture.append(processBox, processTitle, processState, gateLine, ...flows, readsLabel);

Object.entries(parts).forEach(([name, part], i) => {
  part.rect = make("rect", { class: "box", rx: 9 });
  part.number = make("g", { class: "number" }, make("circle", { r: 8.5 }), make("text", {}, i + 1));
  part.name = make("text", { class: "title" }, part.title);
  part.text = make("text", { class: "about" });
  part.count = make("text", { class: "count" });
  part.group = make("g", { class: `part ${name}`, "data-part": name, "data-place": part.place,
    role: "button", tabindex: 0 }, make("title", {}, `${part.title}: ${part.explain}.`),
  part.rect, part.number, part.name, part.text, part.count);
  picture.append(part.group);
});

// A Layer draws a list of things, one element for each, and moves them to where they are now.
class Layer {
  constructor(name) {
    this.group = picture.appendChild(make("g", { "data-layer": name }));
    this.shown = new Map();
  }

  draw(things) {
    const gone = new Map(this.shown);
    for (const thing of things) {
      let element = this.shown.get(thing.id);
      if (!element) {
        element = this.group.appendChild(make("g", { "data-id": thing.id }));
        this.shown.set(thing.id, element);
        element.at = thing.from ?? thing;
        element.via = thing.via;
        if (!calm()) element.animate([{ opacity: 0 }, {}], 250);
      }
      gone.delete(thing.id);
      moveTo(element, thing);
      paint(element, thing);
    }
    for (const [id, element] of gone) {
      this.shown.delete(id);
      element.removeAttribute("data-id");
      element.classList.add("gone");
      if (gone.size > 20 || calm()) element.remove();
      else setTimeout(() => element.remove(), 250);
    }
  }
}

const layers = {};
for (const name of ["watches", "objects", "caches", "handlers", "slots", "flights", "keys",
  "requests", "gate"]) layers[name] = new Layer(name);

let still = true; // nothing moves in a rush, or while everything is replaced
const calm = () => still || matchMedia("(prefers-reduced-motion: reduce)").matches;

// moveTo moves an element. The motion is added to those that are not over yet.
function moveTo(element, { x, y }) {
  const { at, via } = element;
  if (at.x === x && at.y === y && element.style.transform) return;
  const from = (place) => ({ transform: `translate(${place.x - x}px, ${place.y - y}px)` });
  if (!calm()) {
    element.animate([from(at), ...(via ? [from(via)] : []), {}],
      { duration: 380, easing: "ease-in-out", composite: "add" });
  }
  element.style.transform = `translate(${x}px, ${y}px)`;
  Object.assign(element, { at: { x, y }, via: null });
}

// paint draws a thing: a box of w and h with up to two lines of text, and a mark at its end.
function paint(element, thing) {
  const { w, h, round = 4, lines = [], mark, label, indent = 0, meter, path, above, below } = thing;
  const look = [thing.class, w, h, round, lines, mark, label, meter, path, above, below].join("|");
  if (element.look === look) return;
  const isNew = !element.look;
  element.look = look;
  const inset = indent + (round > 8 ? 9 : 6);
  const letter = { caption: 6.2, key: 7.2 }[thing.class.split(" ")[0]] ?? 6.3;
  const room = (w - inset - 4 - (mark?.length ?? 0) * 8) / letter;
  set(element, { class: `chip ${thing.class}`, "data-place": thing.place, "data-key": thing.key,
    "aria-label": label, role: label ? "img" : "presentation" });
  element.replaceChildren(...[
    make("title", {}, label ?? ""),
    make("rect", { width: w, height: h, rx: round }),
    path && make("path", { d: path }),
    ...lines.map((line, i) => make("text", { class: i ? "second" : "", x: inset,
      y: h / 2 + (lines.length > 1 ? i * 13 - 2.5 : 4) }, shorten(line, room * (i ? 1.1 : 1)))),
    mark && make("text", { class: "mark", x: lines.length ? w - 5 : w / 2, y: h / 2 + 4 }, mark),
    above && make("text", { class: "second", x: 12, y: -5 }, above),
    below && make("text", { class: "second", x: 12, y: h + 12 }, shorten(below, w / 6.4)),
    meter && make("rect", { class: "meter", x: 4, y: h - 4, height: 2.5, width: (w - 8) * meter }),
  ].filter(Boolean));
  if (isNew || calm() || !/object|request/.test(thing.class)) return;
  element.children[1].animate([{ strokeWidth: 5 }, {}], 500); // it has changed
}

// flow puts entries into a box, row by row: as large things if all have room, else as small ones,
// and says how many more there are.
function flow(entries, box, large, small, most, id, toThing) {
  const gap = ({ w }) => (w > 20 ? 5 : 3.5);
  const fit = (size) => ["w", "h"].map((side) =>
    Math.max(1, Math.floor((box[side] + gap(size)) / (size[side] + gap(size)))));
  const [wide, high] = fit(large);
  const size = entries.length <= wide * high ? large : small;
  const [across, down] = fit(size), step = gap(size);
  const room = Math.min(most, across * down);
  const shown = entries.length <= room ? entries.length : room - Math.ceil(34 / (size.w + step));
  const at = (i) => ({ x: box.x + (i % across) * (size.w + step), h: size.h,
    y: box.y + Math.floor(i / across) * (size.h + step) });
  const things = entries.slice(0, shown).map((entry, i) => {
    const thing = Object.assign(toThing(entry), at(i), { w: size.w });
    return size.w > 20 ? thing : Object.assign(thing, { lines: [], mark: "" });
  });
  const rest = (entries.length - shown).toLocaleString("en");
  if (rest !== "0") things.push({ id: `more/${id}`, class: "more", ...at(shown), w: 40,
    lines: [`+${rest}`], label: `${rest} more` });
  return things;
}

let boxes; // where the parts are, in units of the picture
let lanes = new Map(); // from resource to where its cache is: its watch is as high

function arrange([{ contentRect: { width, height } }]) {
  if (!width || !height) return;
  const scale = Math.min(width / 900, height / 450);
  const w = width / scale, h = height / scale;
  picture.setAttribute("viewBox", `0 0 ${w} ${h}`);
  const left = 238 + (w - 900) * 0.3, inside = left + 190 + (w - 900) * 0.2; // of the process
  const right = w - 13, bottom = h - 13, top = 38, middle = top + (h - 88) * 0.45;
  const lower = middle + 36, half = inside + 12 + (right - inside - 52) * 0.56;
  boxes = {
    server: { x: 1, y: 1, w: left, h: h - 2 },
    process: { x: inside, y: 1, w: w - inside - 1, h: h - 2 },
    watches: { x: left + 6, y: 6, w: inside - left - 12, h: middle - 6 },
    caches: { x: inside + 12, y: top, w: half - inside - 12, h: middle - top },
    handlers: { x: half + 34, y: top, w: right - half - 34, h: middle - top },
    queue: { x: half + 34, y: lower, w: right - half - 34, h: bottom - lower },
    workers: { x: inside + 12, y: lower, w: half - inside - 12, h: bottom - lower },
    requests: { x: left + 6, y: lower, w: inside - left - 12, h: bottom - lower },
    gate: { x: left + (inside - left) * 0.46, y: middle + 6 },
  };
  for (const [name, part] of Object.entries(parts)) {
    const { x, y, w, h } = boxes[name];
    set(part.rect, { x, y, width: w, height: h });
    part.number.style.transform = `translate(${x + 20}px, ${y + 18}px)`;
    set(part.name, { x: x + 34, y: y + 22.5 });
    set(part.count, { x: x + w - 10, y: y + 22.5 });
    set(part.text, { x: x + 12, y: y + 40 });
    part.content = { x: x + 10, y: y + 48, w: w - 20, h: h - 58 };
  }
  const { process, caches, handlers, queue, workers, gate } = boxes;
  set(processBox, { x: process.x, y: process.y, width: process.w, height: process.h });
  set(processTitle, { x: process.x + 14, y: 24 });
  set(processState, { x: right, y: 24 });
  set(gateLine, { d: `M${gate.x} 54V${h - 6}` });
  const down = handlers.x + handlers.w / 2, up = caches.x + caches.w / 2;
  [
    `M${half + 4} ${top + caches.h / 2}H${handlers.x - 3}`,
    `M${down} ${middle + 4}V${lower - 12}`,
    `M${queue.x - 4} ${lower + 65}H${workers.x + workers.w + 3}`,
    `M${inside + 8} ${lower + 52}H${left + 5}`,
    `M${up} ${middle + 4}V${lower - 12}`,
  ].forEach((d, i) => flows[i].setAttribute("d", d));
  set(readsLabel, { x: up + 8, y: middle + 22 });
  lens.draw("layout");
}

let resources = []; // the primary one first
const rank = (resource) => Math.min(2, Math.max(0, resources.indexOf(resource)));
const round = (resource, h) => [h / 2, 3, 0][rank(resource)];
const places = new Map(); // where the objects are drawn in the API server

function objectThing([id, object], cached, h = 30) {
  const version = cached ? object.cached : object.resourceVersion;
  const summary = (cached ? object.cachedSummary : object.summary) ?? "";
  const behind = cached && version !== object.resourceVersion;
  const state = behind ? (object.resourceVersion ? "behind" : "deleted there")
    : object.deleting ? "being deleted" : "";
  const name = [object.namespace, object.name].filter(Boolean).join("/");
  const look = behind ? "behind" : object.deleting ? "deleting" : "";
  return {
    id, key: name, place: cached ? "cache" : "meaning", round: round(object.resource, h),
    class: `object r${rank(object.resource)} ${look}`,
    lines: [shortKey(name), state || summary].filter(Boolean),
    label: `${object.kind} ${name}, version ${version}${summary && `: ${summary}`}` +
      (behind ? `. In the API server: version ${object.resourceVersion || "none"}` : ""),
  };
}

// drawObjects draws what the API server stores: what is owned beside its owner.
function drawObjects() {
  const all = [...lens.of("object")];
  const known = [...lens.of("watch").values(), ...lens.of("object").values()];
  resources = [...new Set([lens.one("process").primary, ...known.map((one) => one.resource)])]
    .filter(Boolean);
  const here = all.filter(([, object]) => object.resourceVersion);
  oneNamespace = new Set(all.map(([, object]) => object.namespace)).size < 2;
  const stored = new Set(here.map(([id]) => id));
  const rootOf = (owner) => {
    for (let i = 0; i < 5 && stored.has(owner); i++) {
      const next = lens.one(owner).owner;
      if (!stored.has(next)) return owner;
      owner = next;
    }
    return ""; // it is a root itself; or the owners are a circle, and all of them are roots
  };
  const owned = Map.groupBy(here, ([, { owner }]) => rootOf(owner));
  const units = (owned.get("") ?? []).map((root) => [root, ...(owned.get(root[0]) ?? [])]);
  const { x, y, w, h } = parts.server.content;
  const column = w / 2 + 3;
  const counts = resources.map((resource) =>
    `${shortResource(resource)} ${here.filter(([, o]) => o.resource === resource).length}`);
  const things = [counts.slice(0, 1), counts.slice(1)].map((lines, i) => ({ id: `counts/${i}`,
    class: "caption", x: x + i * column, y: y - 2, w: column, h: 16, lines: [lines.join(", ")],
    place: "meaning", label: lines.length && (i ? "others that the program watches"
      : "what the program looks after: the name of each is a key") }));
  const rows = units.reduce((sum, unit) => sum + Math.max(1, unit.length - 1), 0);
  let row = 0;
  for (const [root, ...kids] of rows * 37 <= h - 18 ? units : []) {
    const put = (entry, i, row, path) => things.push({ ...objectThing(entry), path,
      x: x + i * column, y: y + 18 + row * 37, w: column - 8, h: 31 });
    put(root, root[1].resource === resources[0] ? 0 : 1, row);
    kids.forEach((kid, i) => put(kid, 1, row + i, i ? `M0 15H-4V${15 - 37 * i}` : "M0 15H-8"));
    row += Math.max(1, kids.length);
  }
  const dot = { w: 26, h: 12 };
  if (!row) {
    things.push(...flow(units, { x, y: y + 20, w, h: h - 20 }, dot, dot, 60, "objects", (unit) =>
      ({ unit })).flatMap((thing) => (thing.unit?.slice(0, 2) ?? []).map((entry, i) => ({
      ...objectThing(entry, false, 12), x: thing.x + i * 14, y: thing.y, w: 12, h: 12, lines: [],
    })).concat(thing.unit ? [] : thing)));
  }
  places.clear();
  for (const thing of things) places.set(thing.id, thing);
  layers.objects.draw(things);
  describe("server", plural(here.length, "object"));
}

// drawWatches draws the watches, the caches that they fill, and the handlers behind these.
function drawWatches() {
  const order = ([, { resource }]) => resources.indexOf(resource);
  const watches = [...lens.of("watch")].sort((a, b) => order(a) - order(b)).slice(0, 4);
  const { x, y, w, h: height } = parts.caches.content;
  const h = (height + 6) / Math.max(1, watches.length) - 6;
  const start = boxes.server.x + boxes.server.w;
  const cached = Map.groupBy([...lens.of("object")], ([, o]) => (o.cached ? o.resource : ""));
  const tubes = [], caches = [], handlers = [];
  lanes = new Map(watches.map(([, watch], i) => [watch.resource, { x, y: y + i * (h + 6), w, h }]));
  for (const [id, watch] of watches) {
    const lane = lanes.get(watch.resource);
    const name = shortResource(watch.resource);
    const objects = cached.get(watch.resource) ?? [];
    const state = watch.state === "open" ? "" : watch.state === "listing" ? ", lists" : ", closed";
    const behind = watch.behind ? `, ${plural(watch.behind, "event")} behind` : "";
    const count = watch.behind ? behind : ` ${objects.length}`;
    tubes.push({ id, x: start, y: lane.y + h / 2 - 9, w: x - start, h: 18, round: 9, place: "cache",
      class: `tube ${watch.state}`, path: `M10 9H${x - start - 8}`,
      above: `${watch.state === "closed" ? "✕ " : ""}${name}${state}${behind}`, below: watch.note,
      label: `Watch of ${name}: ${watch.state}${behind}. ${watch.note ?? ""}` });
    caches.push({ ...lane, id: `cache/${watch.resource}`, class: "inner", place: "cache",
      round: 6, label: `Cache of ${name}: ${plural(objects.length, "object")}` });
    if (!isGone()) caches.push({ ...lane, id: `cached/${watch.resource}`, class: "caption", h: 17,
      place: "cache", lines: [name + count] });
    const inner = { x: x + 8, y: lane.y + 19, w: w - 16, h: h - 24 };
    const dot = { w: 9, h: 9 }, large = inner.h < 25 ? dot
      : { w: (inner.w - 5) / 2, h: Math.min(30, inner.h) };
    const high = objects.length > 2 ? 9 : large.h;
    caches.push(...flow(objects, inner, large, dot, 60, watch.resource, (entry) =>
      objectThing(entry, true, high)));
    const own = watch.resource === lens.one("process").primary;
    const { content } = parts.handlers;
    if (!isBlind() && !isGone()) handlers.push({ id: `handler/${watch.resource}`, class: "inner",
      place: "enqueue", x: content.x, y: lane.y, w: content.w, h, round: 6,
      label: `Event handler of ${name}`, lines: [name, `→ their ${own ? "own" : "owner's"} key`] });
  }
  layers.watches.draw(tubes);
  layers.caches.draw(caches);
  layers.handlers.draw(handlers);
  const behind = watches.reduce((sum, [, watch]) => sum + watch.behind, 0);
  const inCaches = lens.of("object").size - (cached.get("")?.length ?? 0);
  describe("watches", `${plural(behind, "event")} behind`);
  describe("caches", plural(inCaches, "object"));
}

const symbols = { ADDED: "+", MODIFIED: "~", DELETED: "−" };

function drawFlights() {
  const lined = {}; // how many are at the same place
  const flights = isGone() ? [] : [...lens.of("flight")].slice(-40);
  layers.flights.draw(flights.flatMap(([id, flight]) => {
    const lane = lanes.get(flight.resource);
    if (!lane) return [];
    const line = Math.min(4, lined[flight.resource + flight.state] ?? 0);
    lined[flight.resource + flight.state] = line + 1;
    const name = flight.object?.split("/").slice(2).join("/") ?? "";
    const y = lane.y + lane.h / 2 - 7, from = places.get(flight.object);
    const x = { held: boxes.gate.x - 20 - 17 * line, passed: lane.x - 9 - 3 * line }[flight.state];
    return [{ id, x: x ?? boxes.handlers.x + 12, y, w: 14, h: 14, key: name, place: "handler",
      round: round(flight.resource, 14), mark: symbols[flight.type],
      class: `flight r${rank(flight.resource)} ${flight.state}`,
      label: `${flight.type} ${shortResource(flight.resource)} ${name}: ${flight.state}`,
      from: from && { x: from.x + from.w - 14, y: from.y + 8 },
      via: { x: boxes.server.w + 4, y } }];
  }));
  describe("handlers", "they put keys on the queue");
}

let slots = new Map(); // from key to the place of its worker

// drawWorkers draws a row for each worker. If there are many and few of them have a key, it draws a
// small box for each, and a row for each key.
function drawWorkers() {
  const workers = [...lens.of("worker")].sort(byNumber);
  const { x, y, w, h } = parts.workers.content;
  const busy = workers.filter(([, worker]) => worker.key);
  const withText = workers.length < 5 || busy.length < 4;
  const boxed = withText && workers.length > 4;
  const large = { w, h: boxed ? (h - 74) / 3 - 5 : (h + 5) / 4 - 5 };
  const high = (h + 5) / Math.ceil(workers.length / 2) - 5;
  const half = { w: (w - 5) / 2, h: Math.max(12, Math.min(36, high)) };
  const row = ([id, worker]) =>
    ({ id: boxed ? `row/${id}` : id, worker, place: "worker", round: 6 });
  const size = withText ? large : half;
  const rows = flow(boxed ? busy : workers, { x, y, w, h: h + 1 }, size, size, 16, "workers", row);
  slots = new Map();
  for (const thing of rows) if (thing.worker) describeWorker(thing, withText);
  const box = { x, y: y + h - 39, w, h: 40 }, little = { w: 17, h: 17 };
  const all = boxed ? [{ id: "boxes", class: "caption", x: x - 6, y: box.y - 18, w, h: 17,
    place: "worker", lines: [`${workers.length} workers, ${workers.length - busy.length} idle`] },
  ...flow(workers, box, little, { w: 8, h: 8 }, 60, "boxes", ([id, { key }]) => ({ id,
    class: `worker ${key ? "has" : "idle"}`, place: "worker",
    label: `Worker ${id.split("/")[1]}: ${key || "waits for a key"}` }))] : [];
  layers.slots.draw([...rows, ...all]);
  describe("workers", `${busy.length} of ${workers.length} at work`);
  const { finished = 0 } = lens.one("process");
  say(parts.workers.count, finished ? plural(finished, "sync") : "");
}

function describeWorker(thing, withText) {
  const { key, since, request } = thing.worker;
  const { verb, what = "" } = lens.one(request);
  const long = lens.now() - since > 1e9 ? ` ${duration(lens.now() - since)}` : "";
  const doing = key ? `${verb ?? "compares"}${long}` : "waits for a key";
  const chip = thing.w * (withText ? 0.48 : 0.52);
  if (key) slots.set(key, { ...thing, chip });
  Object.assign(thing, { class: `worker ${key ? "busy" : "idle"}`,
    indent: key ? chip + 3 * withText : 0, lines: [withText ? doing : !key ? "idle" : verb ?? "reads"],
    label: `Worker ${key ?? ""}: ${doing}${verb ? `, waits for the answer about ${what}` : ""}` });
}

function keyThing([id, entity]) {
  const { x, y, w, h } = boxes.handlers;
  const { key, state, failures = 0, merged, until, since } = entity;
  const left = Math.max(0, until - lens.now()) || 0;
  const failed = failures ? `, failed ${failures}×` : "";
  return { id, key, place: state === "delayed" ? "worker" : "queue", round: 4,
    class: `key ${state} ${entity.dirty ? "dirty" : ""}`, lines: [shortKey(key)],
    from: { x: x + w / 2 - 40, y: y + h - 30 },
    mark: state === "delayed" ? `${failures ? `${failures}✕ ` : ""}${duration(left)}`
      : entity.dirty ? "↻" : merged && state === "waiting" ? `×${merged}` : "",
    meter: state === "delayed" ? left / (until - since) : 0,
    label: `Key ${key}: ${state}` +
      (entity.dirty ? ", dirty: it was added meanwhile, and will be synced again" : "") +
      (entity.because ? `, because ${entity.because}` : "") + failed };
}

function drawKeys() {
  const all = Map.groupBy([...lens.of("key")], ([, key]) => key.state);
  const of = (state) => (all.get(state) ?? []).sort(([, a], [, b]) =>
    a.since - b.since || a.position - b.position || 0);
  const waiting = of("waiting"), delayed = of("delayed");
  const depth = waiting.length;
  const { x, y, w, h } = parts.queue.content;
  const shelf = 68, top = y + h - shelf;
  const half = { w: (w - 5) / 2, h: 24 }, dot = { w: 13, h: 13 };
  const working = of("processing").filter(([, { key }]) => slots.has(key)).map((entry) => {
    const slot = slots.get(entry[1].key), h = Math.min(26, slot.h - 3);
    return { ...keyThing(entry), ...(slot.chip < 70 && { mark: "" }), x: slot.x + 3,
      y: slot.y + (slot.h - h) / 2, w: slot.chip, h };
  });
  layers.keys.draw(isSilent() || isGone() ? [] : [
    { id: "shelf", class: "inner", x, y: top, w, h: shelf, round: 6 },
    { id: "delayed", class: "caption", x, y: top + 1, w, h: 17, place: "worker",
      lines: [delayed.length ? `delayed ${delayed.length}` : "no key is delayed"] },
    ...flow(waiting, { x, y, w, h: h - shelf - 6 }, half, dot, 40, "keys", keyThing),
    ...flow(delayed, { x: x + 4, y: top + 19, w: w - 8, h: 47 }, { w: w - 8, h: 21 }, dot, 20,
      "delayed", keyThing),
    ...working,
  ]);
  describe("queue", `${depth} waiting, ${delayed.length} delayed`);
  say(parts.queue.count, depth ? depth.toLocaleString("en") : "");
}

const rows = new Map(); // from request to its row

const requestPlace = ({ verb, what }) => (what.includes("/status") ? "status"
  : { create: verb, update: verb, delete: verb, patch: "update" }[verb] ?? "read");

function answer({ state, code, held }) {
  if (state !== "answered") return ["", ""];
  if (held) return ["timeout", "❚❚"];
  if (code >= 200 && code < 400) return ["good", "✓"];
  return code >= 400 && code < 500 ? ["warn", "!"] : ["bad", "✕"];
}

function drawRequests() {
  const all = isGone() ? [] : [...lens.of("request")].reverse();
  const underWay = all.filter(([, request]) => request.state !== "answered").reverse();
  const refused = all.filter(([, request]) => /warn|bad|timeout/.test(answer(request)[0])).slice(0, 3);
  const { y, h: height } = parts.requests.content;
  const h = underWay.length > 4 ? 15 : 30, room = Math.floor((height - 8) / (h + 4));
  const requests = [...new Map([...refused, ...underWay, ...all.slice(0, room)])].slice(0, room);
  const shown = new Set(requests.map(([id]) => id));
  for (const [id, row] of rows) if (!shown.has(id) || row >= room) rows.delete(id);
  const taken = new Set(rows.values());
  for (const id of shown) {
    let row = rows.get(id) ?? 0;
    while (!rows.has(id) && taken.has(row)) row++;
    rows.set(id, row);
    taken.add(row);
  }
  const w = 104;
  layers.requests.draw(requests.map(([id, request]) => {
    const [look, symbol] = answer(request);
    const [resource, name = ""] = request.what.split(" ");
    const at = y + 12 + rows.get(id) * (h + 4), first = `${request.verb} ${request.code || ""}`;
    const x = { held: boxes.gate.x + 6, going: boxes.server.w - 4 }[request.state];
    return { id, x: x ?? boxes.process.x - w + 8, y: at, w, h, round: 5, key: request.key,
      class: `request ${request.state} ${look}`, place: requestPlace(request),
      lines: h > 20 ? [first, resource] : [request.code ? first : first + resource],
      mark: (request.injected && symbol ? "⚡" : "") + symbol,
      label: `${request.verb} ${resource} ${name}: ${request.state} ${request.code || ""} ` +
        `${request.reason ?? ""}${request.injected ? " (this answer was asked for here)" : ""}`,
      from: { x: boxes.workers.x, y: slots.get(request.key)?.y ?? at } };
  }));
  describe("requests", `${underWay.length} under way`);
  say(parts.requests.count, underWay.length > room ? `+${underWay.length - room}` : "");
}

// describe sets the accessible name of a part.
function describe(name, text) {
  set(parts[name].group, { "aria-label": `${parts[name].title}: ${text}. Show its code` });
}

// isBlind reports whether nothing can be known of the queue and of the workers: a change has come,
// and the log does not say what the program does with it.
function isBlind() {
  const { hasLog, state, note } = lens.one("process");
  if (hasLog || state !== "running" || lens.of("worker").size) return false;
  const old = ({ what, end }) => what === "watch" && end && end < lens.now() - 1e9;
  return Boolean(note) || [...lens.of("span").values()].some(old);
}

// isSilent reports whether the log has told nothing of the queue and of the workers until now.
const isSilent = () => !lens.one("process").hasLog && !lens.of("worker").size;
// isGone reports whether the program has exited, and with it all that it had.
const isGone = () => lens.one("process").state === "exited";
const looksAfter = () =>
  `${isSilent() ? "watches" : "looks after"} ${shortResource(lens.one("process").primary)}`;

function drawProcess() {
  const { command = "the program", state = "", starts } = lens.one("process");
  const { mode, waiting, delay } = lens.one("gate");
  const name = command.replace(/^go run (-\S+ )*/, "").split(" ")[0].split("/").pop();
  const symbol = { running: "● ", exited: "✕ " }[state] ?? "";
  say(processName, name);
  say(processAbout, lens.one("process").primary ? looksAfter() : "");
  say(processState, `${symbol}${state}${starts > 1 ? `, start ${starts}` : ""}`);
  const blind = isBlind();
  picture.classList.toggle("exited", isGone());
  picture.classList.toggle("starting", state === "starting");
  picture.classList.toggle("blind", blind);
  picture.classList.toggle("down", lens.one("server").state === "down");
  for (const [name, part] of Object.entries(parts)) {
    const logged = ["handlers", "queue", "workers"].includes(name);
    say(part.text, isGone() && name !== "server" ? "gone, with the program"
      : logged && blind ? "the program does not log this" : part.about);
  }
  const text = { paused: `❚❚ holds ${waiting}`, slow: `◔ ${delay} late` }[mode] ?? "open";
  layers.gate.draw([{ id: "gate", class: `gate ${mode}`, x: boxes.gate.x - 56, y: boxes.gate.y,
    w: 112, h: 22, round: 11, mark: `lens: ${text}`,
    label: "The lens: everything between the program and the API server passes here" }]);
}

let drawnEpoch = -1, wasBlind = false;

lens.drawers.push((changed) => {
  if (!boxes) return;
  const has = (...kinds) => kinds.concat("layout").some((kind) => changed.has(kind));
  still = drawnEpoch !== lens.epoch || changed.has("layout") || lens.rush;
  drawnEpoch = lens.epoch;
  if (wasBlind !== isBlind()) changed.add("process");
  wasBlind = isBlind();
  if (has("process", "server", "gate", "flight")) drawProcess();
  if (has("object", "watch", "process")) drawObjects(), drawWatches();
  if (has("object", "watch", "flight", "process")) drawFlights();
  if (has("worker", "process", "request")) drawWorkers();
  if (has("worker", "key", "process", "request")) drawKeys();
  if (has("worker", "request", "process")) drawRequests();
});

function choose(event) {
  const { place, key } = event.target.closest("[data-place]")?.dataset ?? {};
  if (place) lens.show(place);
  if (key) lens.select(key);
}

picture.addEventListener("click", choose);
picture.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  choose(event);
});
new ResizeObserver(arrange).observe(picture);
