"use strict";

// The picture is a set of entities. Steps change it (see lens/model/step.go). They come from the
// lens while a program runs, or from a recording. The other scripts draw what is here. All of
// them are classic scripts in one scope, so that the page works from the disk, too.

const lens = {
  entities: new Map(), // from ID to entity
  drawers: [], // called once per frame with the kinds of entities that have changed
  epoch: 0, // counts how often everything was replaced
  connected: true,
  rush: false, // so much happens that nobody can follow single things
  pace: 0, // how long a step of the tour is shown, in milliseconds; 0 outside of the tour
  replay: null, // what is played: a recording and where in it we are
};

const kinds = new Map(); // from the first part of an ID to a map from ID to entity
const unseen = new Set(["span", "note", "gate", "process"]); // nothing moves for these
let changed = new Set();
let pending = []; // steps that are not applied yet
let nextStep = 0; // when the next one may be, in milliseconds of the page
let scheduled = false;
let drawnAt = 0; // when the drawers were called, in milliseconds of the page
let latest = 0, latestCame = 0; // the time of the newest step, and when it came
let shownAt = 0; // the time of the step that was applied last

const kindOf = (id) => id.split("/", 1)[0];
lens.of = (kind) => kinds.get(kind) ?? kinds.set(kind, new Map()).get(kind);
lens.one = (id) => lens.entities.get(id) ?? {};
// now is the time of what is shown, which may be a moment later than it happened.
lens.now = () => (pending.length ? shownAt
  : lens.replay?.at ?? latest + (performance.now() - latestCame) * 1e6);

lens.apply = (step) => {
  if (step.first) lens.reset();
  shownAt = step.at;
  for (const [id, entity] of Object.entries(step.set ?? {}).sort(byNumber)) {
    lens.entities.set(id, entity);
    lens.of(kindOf(id)).set(id, entity);
    changed.add(kindOf(id));
  }
  for (const id of step.drop ?? []) {
    lens.entities.delete(id);
    lens.of(kindOf(id)).delete(id);
    changed.add(kindOf(id));
  }
  lens.draw();
};

lens.reset = () => {
  lens.entities.clear();
  for (const [kind, all] of kinds) {
    all.clear();
    changed.add(kind);
  }
  lens.epoch++;
};

// draw makes the drawers draw in the next frame, as if entities of these kinds had changed.
lens.draw = (...more) => {
  for (const kind of more) changed.add(kind);
  if (!scheduled) requestAnimationFrame(frame);
  scheduled = true;
};

function frame(now) {
  scheduled = false;
  play(now);
  applySome(now);
  if (pending.length || lens.replay?.playing) lens.draw();
  if (lens.rush && pending.length && now < drawnAt + 200) return; // drawing takes long then
  drawnAt = now;
  const toDraw = changed;
  changed = new Set();
  for (const drawer of lens.drawers) drawer(toDraw, now);
}

// Most steps happen within a millisecond, which nobody can follow. So applySome leaves some time
// after each step that one can see: less, the more steps there are to come.
function applySome(now) {
  nextStep = Math.max(nextStep, now - 17);
  let count = 0;
  while (count < pending.length && nextStep <= now) {
    const step = pending[count++];
    lens.apply(step);
    if (isSeen(step)) nextStep += pauseAfterStep(pending.length - count);
  }
  pending.splice(0, count);
}

function applyAll() {
  for (const step of pending) lens.apply(step);
  pending = [];
}

const isSeen = (step) => Object.keys(step.set ?? {}).some((id) => !unseen.has(kindOf(id)));

function pauseAfterStep(waiting) {
  if (lens.pace) return lens.pace;
  const { replay } = lens;
  const coming = waiting + (replay ? countUntil(replay.at + 5e8) - replay.index : 0);
  lens.rush = coming > 150;
  return Math.min(140, (replay ? 2000 : 500) / coming) / (replay?.speed ?? 1);
}

// countUntil returns how many steps of the recording are not later than a time.
function countUntil(at) {
  const { steps } = lens.replay;
  const later = steps.findIndex((step) => step.at > at);
  return later < 0 ? steps.length : later;
}

// lens.live shows what happens now. If the connection breaks, the browser connects again; then the
// first message has everything that is there.
lens.live = (url) => {
  const source = new EventSource(url);
  let first = true;
  source.onopen = source.onerror = ({ type }) => {
    lens.connected = type === "open";
    first = true;
    lens.draw("connection");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => lens.live(url), 2000);
  };
  source.onmessage = (message) => {
    const step = JSON.parse(message.data);
    latest = first ? step.at : Math.max(latest, step.at);
    latestCame = performance.now();
    if (first) pending = [];
    pending.push(Object.assign(step, { first }));
    first = false;
    if (document.hidden) applyAll(); // no frames come, and nobody looks
    lens.draw();
  };
};

// lens.recording plays a recording, which is compressed. Its file calls this.
lens.recording = async (packed) => startReplay(await unpack(packed));

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
}

function startReplay(recording) {
  lens.replay = { ...recording, index: 0, at: 0, speed: 1, playing: true, frame: 0 };
  lens.replay.begin = recording.steps[0].at;
  lens.replay.end = recording.steps.at(-1).at;
  lens.seek(lens.replay.begin);
}

lens.seek = (at) => {
  const replay = lens.replay;
  rewind(countUntil(at));
  replay.at = Math.min(Math.max(at, replay.begin), replay.end);
};

// lens.move goes forwards or backwards in a recording to the next step that one can see.
lens.move = (direction) => {
  const replay = lens.replay;
  applyAll();
  let count = replay.index;
  do count += direction;
  while (count > 0 && count < replay.steps.length && !isSeen(replay.steps[count - 1]));
  if (direction < 0) rewind(Math.max(count, 1));
  while (replay.index < Math.min(count, replay.steps.length)) {
    lens.apply(replay.steps[replay.index++]);
  }
  replay.at = replay.steps[replay.index - 1].at;
};

function rewind(count) {
  pending = [];
  lens.reset();
  lens.replay.index = count;
  for (const step of lens.replay.steps.slice(0, count)) lens.apply(step);
  lens.draw("replay", "process", "server");
}

// play moves a recording on. It waits while steps that are due already are being shown.
function play(now) {
  const replay = lens.replay;
  if (!replay?.playing) return;
  if (!pending.length && nextStep <= now) {
    replay.at += Math.min(now - replay.frame, 100) * 1e6 * replay.speed;
  }
  replay.frame = now;
  const next = replay.steps[replay.index]?.at;
  if (next > replay.at + 2e9) replay.at = next - 1e9; // nobody waits for hours
  while (replay.steps[replay.index]?.at <= replay.at) pending.push(replay.steps[replay.index++]);
  if (replay.at >= replay.end) {
    replay.at = replay.end;
    replay.playing = false;
  }
  changed.add("replay");
}

// What waits for a time, or takes long, is drawn again with the time that is left or has passed.
setInterval(() => {
  const isOpen = [...lens.of("span").values()].some(({ end }) => !end);
  if (isOpen) lens.draw("key", "worker", "clock");
}, 200);

const inSVG = new Set(["svg", "g", "rect", "path", "text", "tspan", "title", "circle", "defs",
  "marker"]);

// make returns a new element. Texts become text nodes, so nothing in them is taken for markup.
function make(tag, attributes = {}, ...children) {
  const element = inSVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// duration is for people; it takes nanoseconds.
function duration(nanoseconds) {
  const ms = nanoseconds / 1e6;
  if (ms >= 10000) return `${(ms / 1000).toFixed(0)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 10) return `${ms.toFixed(0)} ms`;
  return ms >= 0.1 ? `${ms.toFixed(1)} ms` : `${(ms * 1000).toFixed(0)} µs`;
}

const plural = (count = 0, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const numberOf = (id) => Number(id.split("/")[1]) || 0;
const byNumber = ([a], [b]) => numberOf(a) - numberOf(b);
const shortResource = (resource = "") => resource.split(".")[0];

// shortKey leaves out the namespace if there is only one.
const shortKey = (key = "") => (oneNamespace ? key.slice(key.indexOf("/") + 1) : key);
let oneNamespace = true;

// shorten keeps the end of a name, which is often what differs.
function shorten(text = "", length) {
  if (text.length <= length) return text;
  const end = length > 8 && /^[\w./-]+$/.test(text) ? 5 : 0;
  return text.slice(0, Math.max(1, length - end - 1)) + "…" + text.slice(text.length - end);
}
