"use strict";

// The page of the lens, with its lens in a Worker: there are the API server and the program, too.
// So what the page asks of a server goes to the Worker.
{
  const programs = { ".": "the finished controller", "docs/tutorial/04-queue": "chapter 4",
    "docs/tutorial/05-owning": "chapter 5", "docs/tutorial/06-renaming": "chapter 6",
    "docs/tutorial/07-status": "chapter 7", "docs/tutorial/08-errors": "chapter 8" };
  const asked = new URLSearchParams(location.search).get("program");
  const program = Object.hasOwn(programs, asked) ? asked : ".";
  const worker = new Worker(`worker.js?program=${encodeURIComponent(program)}`);
  const waiting = new Map(); // by number: what gets the pieces of an answer
  let last = 0;

  const send = (method, url, body, piece) => {
    waiting.set(++last, piece);
    worker.postMessage([last, method, url, body ?? ""]);
  };

  const loading = document.createElement("p");
  loading.setAttribute("role", "status");
  loading.className = "warn";
  const say = (text) => { loading.textContent = text; };
  say("The controller is loaded …");
  document.addEventListener("DOMContentLoaded", () => document.body.prepend(loading));

  worker.onerror = ({ message }) => {
    say(`The controller does not run: ${message}`);
    document.body?.prepend(loading);
  };
  worker.onmessage = ({ data: { number, status, text, loaded, size, ready } }) => {
    if (loaded) say(`The controller is loaded: ${(100 * loaded / size).toFixed(0)} %`);
    if (ready) loading.remove();
    if (number) waiting.get(number)(status, text);
    if (text === null) waiting.delete(number);
  };

  window.fetch = (url, { method = "GET", body } = {}) => new Promise((resolve) => {
    let all = "";
    send(method, url, body, (status, text) => {
      if (text !== null) all += text;
      else resolve(new Response(all, { status: status || 200 }));
    });
  });

  window.EventSource = class {
    static CLOSED = 2; // it is never that: the Worker ends with the page
    readyState = 0;

    constructor(url) {
      let rest = "";
      send("GET", url, "", (status, text) => {
        const messages = (rest + (text ?? "")).split("\n\n");
        rest = messages.pop();
        if (this.readyState !== 1) this.onopen({ type: "open" });
        this.readyState = 1;
        for (const message of messages) {
          if (message.startsWith("data: ")) this.onmessage({ data: message.slice(6) });
        }
      });
    }
  };

  // A choice of programs, and a box for YAML below the buttons.
  document.addEventListener("DOMContentLoaded", () => {
    const choice = make("select", { "aria-label": "Program",
      onchange: () => { location.search = `?program=${encodeURIComponent(choice.value)}`; } },
      ...Object.entries(programs).map(([value, name]) => make("option", { value }, name)));
    choice.value = program;
    document.querySelector("h1").after(choice);
    const yaml = make("textarea", { "aria-label": "YAML", rows: 8, spellcheck: "false" });
    yaml.value = "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata:\n" +
      "  name: my-foo\nspec:\n  deploymentName: my-foo\n  replicas: 2\n";
    moreActions.push(make("details", { name: "actions" }, make("summary", {}, "Apply YAML"),
      yaml, button("Apply", () => ask("apply", yaml.value))));
  });
}
