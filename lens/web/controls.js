"use strict";

// Everything around the picture: time, actions, recordings, what happens, and the code.

const live = document.body.dataset.steps;

// button makes a button. After a click it does not keep the focus, so that Space pauses again.
const button = (text, onclick, more) => make("button", { type: "button", ...more,
  onclick: (event) => {
    if (event.detail) event.currentTarget.blur();
    onclick(event.currentTarget);
  } }, text);
const panel = (name, title, ...children) => make("section", { class: name, "aria-label": title },
  make("h2", {}, title), ...children);

const state = make("div", { class: "state", role: "status" });
const pause = button("", togglePause, { class: "main", "aria-keyshortcuts": "Space" });
const stepButton = button("Step ▸|", () => oneStep(1), { "aria-keyshortcuts": "ArrowRight" });
const speeds = live
  ? [["Slow", "slow"], ["Fast", "open"]]
  : [["0.25×", 0.25], ["1×", 1], ["4×", 4]];
const speedButtons = speeds.map(([name, value]) => button(name, () => setSpeed(value)));
const scrub = make("input", { type: "range", min: 0, max: 1, step: 0.0005, value: 0,
  "aria-label": "Time", oninput: () => lens.replay && lens.seek(lens.replay.begin +
    scrub.value * (lens.replay.end - lens.replay.begin)) });
const playedTime = make("output", { class: "played" });

const output = make("pre", { class: "output", tabindex: 0, "aria-label": "Output", hidden: "" });
const explained = make("p", { class: "explained" });
const actionsPanel = make("section", { class: "actions", "aria-label": "Actions" });
const log = make("div", { role: "log", "aria-label": "What happens" });
const codeFile = make("p", { class: "file" });
const code = make("pre", { tabindex: 0, "aria-label": "Code" });

document.body.append(
  make("header", {}, make("h1", {}, "The lens"), pause, stepButton,
    make("span", { class: "speeds", role: "group", "aria-label": "Speed" }, ...speedButtons),
    make("span", { class: "keys" }, "space: pause, →: step"),
    ...(live ? [] : [scrub, playedTime]),
    legend),
  state,
  make("main", {}, picture,
    make("section", { class: "times", "aria-label": "Time line" },
      make("div", { class: "tools" }, make("h2", {}, "Time line"), timelineKey, timelineChain,
        button("−", () => zoom(1.5), { "aria-label": "Zoom out" }),
        button("+", () => zoom(0.67), { "aria-label": "Zoom in" }),
        button("Fit", () => lens.select(view.key))), timeline)),
  make("aside", {}, actionsPanel,
    panel("log", "What happens", make("div", { class: "entries", tabindex: 0 }, log)),
    panel("code", "The code at that place", codeFile, code)));

const post = (url) => fetch(url, { method: "POST" });
const gateMode = () => lens.one("gate").mode ?? "open";

function togglePause() {
  const { replay } = lens;
  if (live && !guide.hidden) return guideTo(8);
  if (live) return post(gateMode() === "paused" ? "gate/open" : "gate/paused");
  if (!replay) return;
  if (!replay.playing && replay.at >= replay.end) lens.seek(replay.begin);
  replay.playing = !replay.playing;
  replay.frame = performance.now();
  lens.draw("replay");
}

async function oneStep(direction) {
  if (live && gateMode() !== "paused") await post("gate/paused");
  if (live) return post("gate/step");
  if (!lens.replay) return;
  lens.replay.playing = false;
  lens.move(direction);
}

function setSpeed(value) {
  if (live) return post(`gate/${value}`);
  if (lens.replay) lens.replay.speed = value;
  lens.draw("replay");
}

document.addEventListener("keydown", (event) => {
  const onButton = event.target.closest?.("button, summary, [role=button]");
  const inField = event.target.closest?.("select, input, textarea, pre, .timeline");
  if (event.ctrlKey || event.altKey || event.metaKey || inField) return;
  if (event.key === " " && !onButton) togglePause();
  else if (event.key === "ArrowRight") oneStep(1);
  else if (event.key === "ArrowLeft" && !live) oneStep(-1);
  else return;
  event.preventDefault();
});

function drawTime() {
  const { replay } = lens;
  const paused = live ? gateMode() === "paused" : !replay?.playing;
  say(pause, paused ? (live ? "▶ Go on" : "▶ Play") : "❚❚ Pause");
  speeds.forEach(([, speed], i) => set(speedButtons[i], {
    "aria-pressed": speed === (live ? gateMode() : replay?.speed) }));
  if (!replay) return;
  const length = replay.end - replay.begin || 1, played = replay.at - replay.begin;
  if (document.activeElement !== scrub || replay.playing) scrub.value = played / length;
  say(playedTime, `${(played / 1e9).toFixed(1)} of ${(length / 1e9).toFixed(1)} s`);
}

// drawState says what is gone, and what the lens does to the program.
function drawState() {
  const process = lens.one("process"), gate = lens.one("gate");
  const slow = "To the program, this is a slow network.";
  const lines = [
    live && !lens.connected && ["bad", "✕ The lens does not answer: what you see is old. " +
      "If you have stopped it, start it again, and open the address that it prints then."],
    lens.one("server").state === "down" && ["bad", "✕ The API server does not answer. The " +
      "program goes on with what is in its caches; its requests fail."],
    process.state === "exited" && ["bad", `✕ The program has exited. ${process.note ?? ""} ` +
      "Its caches and its queue are gone; the objects are still in the API server."],
    process.state === "starting" && ["warn", `◔ The program starts. ${process.note ?? ""}`],
    live && gate.mode === "paused" && ["warn", guide.hidden ? "❚❚ Paused: the lens holds back what " +
      `passes the wire, ${gate.waiting ? plural(gate.waiting, "thing") : "nothing to step"} now. ${slow}`
      : "❚❚ Paused for the tour: press Next."],
    live && gate.mode === "slow" && ["warn", "◔ Slow: the lens holds back each thing for " +
      `${gate.delay}. ${slow}`],
  ].filter(Boolean);
  if (!lines.length && live) lines.push(["", "Everything passes at once. The picture shows one " +
    "thing after the other, a moment later; the times are the real ones."]);
  else if (!lines.length) lines.push(["", lens.replay?.title ?? "Choose a recording."]);
  if (state.lines === lines.join()) return;
  state.lines = lines.join();
  state.replaceChildren(...lines.map(([look, line]) => make("p", { class: look }, line)));
}

let actionsFor = -1; // how many watches there were when the actions were loaded
let firstAction = "", secondAction = "", lastAction = "";
const moreActions = []; // below the buttons

// loadActions makes the buttons. Which there are depends on what the program watches. A button that
// stays is not made anew: it may be in use.
async function loadActions() {
  const watches = actionsFor = lens.of("watch").size;
  const actions = await fetch("actions").then((answer) => answer.json()).catch(() => []);
  if (watches !== actionsFor) return; // the next answer has more
  [firstAction, secondAction] = actions.map(({ title }) => title);
  lens.draw("actions");
  const groups = [...Map.groupBy(actions, (action) => action.group)].map(([group, members], i) => {
    const details = actionsPanel.querySelector(`[data-group="${group}"]`) ??
      make("details", { name: "actions", "data-group": group, open: i === 0 && "" },
        make("summary", {}, group), make("div", { class: "buttons" }));
    setChildren(details.lastChild, members.map(actionButton));
    return details;
  });
  setChildren(actionsPanel, [...groups, ...moreActions, guide, explained, output]);
}

// setChildren gives an element these children. Those that it has already stay where they are.
function setChildren(parent, children) {
  for (const old of [...parent.children]) if (!children.includes(old)) old.remove();
  children.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
}

const actionButton = (action) => actionsPanel.querySelector(`[data-action="${action.id}"]`) ??
  button(action.title, (element) => run(action, element), { "data-action": action.id,
    title: action.explain, "aria-current": action.id === lastAction });

// markLast marks the button that was pressed last, of those whose data has that name.
function markLast(name, value) {
  for (const element of actionsPanel.querySelectorAll(`[data-${name}]`)) {
    set(element, { "aria-current": element.dataset[name] === value });
  }
}

// The first Foo is guided: each part in its turn says what it does. The lens is paused meanwhile. The
// change of the Foo passes only at the end: a program whose request waits too long gives up.
const guide = make("div", { class: "guide", hidden: "" },
  button("Next", guideOn, { class: "main" }), button("Skip", () => guideTo(8)));
let guided = 0; // the number of the part, 8 after the last
const guideNotes = {
  1: "There is your object. Parts 1 to 5 only explain.",
  2: "The lens holds back the change now. Next explains where it will go.",
  3: "The cache is empty now: the change waits before it.",
  5: "The queue is empty now. The key of your object will be here only for a moment.",
  6: "Look at part 2, and press Next: the change passes from 2 to 7 within a second.",
  7: "Press Next to let the request pass, which the lens holds back. (After 10 s, it times out: the " +
    "sync fails and comes back, with a new request. That does no harm. Press Next all the same.)",
};

function guideOn() {
  if (guided !== 6 || lens.pace) return guideTo(guided + 1);
  lens.pace = 400; // nobody reads while things move: part 7 is explained when its request is there
  say(explained, "The change passes. Follow it in the picture, from 2 to 7.");
  post("gate/step");
}

function guideTo(number) {
  guided = number;
  lens.pace = 0;
  guide.hidden = number > 7;
  Object.values(parts).forEach(async ({ group, title, explain, place }, i) => {
    group.classList.toggle("guided", i + 1 === number);
    if (i + 1 !== number) return;
    await lens.show(place);
    if (guided === number) say(explained, [`${number} of 7, ${title}: ${explain}.`,
      guideNotes[number]].filter(Boolean).join(" "));
  });
  if (number > 7) {
    say(explained, "The tour is over. Each change of the new object is an event, too, so more syncs " +
      "follow: one writes the status, and the last ones find nothing to do. Now press " +
      `“${secondAction}”, or break something.`);
    setSpeed(speeds[0][1]);
  }
}

// ask lets the lens do something, and shows what came of it.
async function ask(url, body) {
  const result = await fetch(url, { method: "POST", body }).then((answer) => answer.json())
    .catch((error) => ({ error: `The lens does not answer: ${error.message}` }));
  const commands = (result.commands ?? []).map((command) => `$ ${command}`);
  output.hidden = false;
  say(output, [...commands, result.output, result.error].filter(Boolean).join("\n"));
  output.classList.toggle("failed", Boolean(result.error));
  return result;
}

async function run(action, element) {
  element.disabled = true; // before anything is awaited: a second click does nothing
  markLast("action", lastAction = action.id);
  const first = !guided && action.title === firstAction && gateMode() === "slow";
  if (first) await post("gate/paused");
  output.hidden = false;
  say(explained, action.explain ?? "");
  say(output, `${action.title} …`);
  const result = await ask(`actions/${action.id}`);
  if (result.error) say(explained, `The command failed: the output below says why. ${
    first ? `Then press “${firstAction}” again.` : action.explain ?? ""}`);
  if (first && result.error) await setSpeed(speeds[0][1]);
  else if (first) guideTo(1);
  element.disabled = false;
}

// lens.recordings shows a list of recordings. The file beside them calls this.
lens.recordings = (list) => {
  const open = (file) => {
    location.hash = file;
    markLast("file", file);
    actionsPanel.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    document.head.append(make("script", { src: document.body.dataset.recordings + file }));
  };
  actionsPanel.append(make("h2", {}, "Recordings"), make("div", { class: "recordings" },
    ...list.map(({ file, title, about = "" }) => {
      const entry = button("", () => open(file), { "data-file": file });
      entry.append(make("b", {}, title), make("span", {}, about));
      return entry;
    })));
  const isWanted = ({ file }) => new URL(`#${file}`, location).hash === location.hash;
  if (list.length) open((list.find(isWanted) ?? list[0]).file);
};

let lastNote = 0, logEpoch = -1, logDrawn = 0;

function drawLog(now) {
  if (now - logDrawn < 100) return setTimeout(() => lens.draw("note"), 100);
  logDrawn = now;
  if (logEpoch !== lens.epoch) log.replaceChildren(), lastNote = 0;
  logEpoch = lens.epoch;
  const notes = lens.of("note");
  for (const old of [...log.children]) if (!notes.has(old.dataset.id)) old.remove();
  for (const [id, note] of notes) {
    if (numberOf(id) <= lastNote) continue;
    lastNote = numberOf(id);
    let later = null; // nearly always: the note is the newest
    for (let last = log.lastElementChild; last?.at > note.at; last = last.previousElementSibling) {
      later = last;
    }
    log.insertBefore(Object.assign(noteElement(id, note), { at: note.at }), later);
  }
  if (!log.firstChild) log.append(make("p", {}, "Nothing yet."));
}

function noteElement(id, note) {
  const [part, title, text] = lessons[note.lesson] ?? [];
  const time = make("time", {}, (note.at / 1e9).toFixed(3));
  if (!part) return make("p", { "data-id": id }, time, note.text);
  const explanation = make("span", { class: "explanation", hidden: "" }, text);
  const head = button("", () => {
    explanation.hidden = !explanation.hidden;
    set(head, { "aria-expanded": !explanation.hidden });
    lens.show(parts[part].place);
    if (note.key) lens.select(note.key);
  }, { "aria-expanded": "false" });
  head.append(note.text, " ", make("mark", {}, title));
  return make("p", { "data-id": id, "data-lesson": note.lesson }, time, head, explanation);
}

const codeOf = new Map();
let codePlace = ""; // whose code is shown

// lens.show shows the code that is at work at a place.
lens.show = async (place) => {
  codePlace = place;
  for (const part of Object.values(parts)) {
    part.group.classList.toggle("shown", part.place === place);
  }
  if (live && !codeOf.has(place)) {
    const found = await fetch(`code?place=${place}`).catch(() => null);
    if (found?.ok) codeOf.set(place, await found.json());
  }
  if (codePlace !== place) return;
  const found = live ? codeOf.get(place) : lens.replay?.code?.[place];
  say(codeFile, found ? `${found.file}:${found.line}  ${found.name}` : "There is no code here.");
  say(code, found?.text ?? "");
  code.scrollTop = 0;
  return found;
};

let newestPlace, shownRecording;

// followCode shows the code of the newest span, as long as things pass one by one.
function followCode() {
  const oneByOne = live ? gateMode() !== "open" && guide.hidden
    : lens.replay && !lens.replay.playing;
  const place = [...lens.of("span").values()].findLast((span) => span.place)?.place;
  if (oneByOne && place && place !== newestPlace) lens.show(place);
  newestPlace = place;
}

lens.drawers.push((changed, now) => {
  drawTime();
  drawState();
  if (changed.has("note") || logEpoch !== lens.epoch) drawLog(now);
  if (changed.has("span")) followCode();
  if (lens.pace && [...lens.of("request").values()].some(({ state }) => state === "held")) guideTo(7);
  if (firstAction && !lastAction) say(explained, `The program ${looksAfter()}. Press “${
    firstAction}”, and follow the change from 1 to 7 in the picture.`);
  if (live && lens.connected && actionsFor !== lens.of("watch").size) loadActions();
  if (shownRecording !== lens.replay) lens.show("sync");
  shownRecording = lens.replay;
});
lens.draw("replay");
if (live) lens.live(live);
if (live) lens.show("sync");
