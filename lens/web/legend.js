"use strict";

// The legend says what the parts mean, in the words of docs/lens.md, and what the colours mean.

// colours has for each row how the sample looks, what one sees, and what it means.
const colours = [
  ["r0 round", "blue, round", "an object that the program looks after, and its changes"],
  ["r1", "green-blue, square", "an object of another resource, and its changes"],
  ["r0 behind round", "hollow, dashed edge", "a copy that is behind, or an object that is gone"],
  ["", "+ ~ − at a change", "the object was added, modified, deleted"],
  ["key", "violet", "a key, the name of an object to sync, and what happens to it"],
  ["worker", "a small box among the workers", "a worker: violet while it has the key above it"],
  ["key dirty", "a thick, dashed edge and ↻",
    "a dirty key: added while a worker had it, so synced again"],
  ["", "×3 at a key in the queue", "it was added three more times while it waited"],
  ["", "a bar that gets shorter in a delayed key", "the time that is left"],
  ["", "4✕ at a delayed key", "so many syncs have failed in a row"],
  ["request", "grey, with a verb", "a request"],
  ["good", "green and ✓", "the answer was a success"],
  ["warn", "yellow and !", "the request was refused: 409 and other 4xx. To try again is normal"],
  ["bad", "red and ✕", "the API server failed (5xx), or the connection broke; a sync failed"],
  ["request timeout", "grey, dashed and ❚❚", "held back until the program no longer waited"],
  ["", "⚡", "you have asked the lens for this answer"],
  ["bar user", "pink", "a write of another program, for example of kubectl"],
  ["behind", "a dashed box", "the lens cannot see this part, or it is gone. The box says why"],
  ["", "+960", "so many more, which are not drawn"],
];

const legendTable = (title, rows) => make("table", {}, make("caption", {}, title),
  ...rows.map(([look, text, head, meaning]) => make("tr", {},
    make("td", {}, ...(look ? [make("i", { class: `sample chip ${look}` }, text)] : [])),
    make("th", { scope: "row" }, head), make("td", {}, meaning))));

const legend = make("details", { class: "legend",
  onkeydown: ({ key }) => { legend.open &&= key !== "Escape"; } },
  make("summary", {}, "What do the colours mean?"), make("div", { tabindex: 0 },
    legendTable("The parts", Object.values(parts).map(({ title, explain }, i) =>
      ["number", i + 1, title, explain])),
    legendTable("Colours and symbols", colours.map(([look, ...words]) => [look, "", ...words]))));
