// The report's script: which runs and panels are shown, and the details of words.
"use strict";

function element(name, content, kind) {
  const made = document.createElement(name);
  if (content !== undefined) made.textContent = content;
  if (kind) made.className = kind;
  return made;
}

function table(caption, rows, marked) {
  const made = element("table");
  made.append(element("caption", caption));
  for (const [name, value] of rows) {
    const row = element("tr", undefined, name === marked ? "same" : "");
    const head = element("th", name);
    head.scope = "row";
    row.append(head, element("td", value));
    made.append(row);
  }
  return made;
}

// Boxes of a legend show and hide the runs of its figure.
for (const box of document.querySelectorAll("[data-shows]")) {
  box.addEventListener("change", () => {
    for (const run of box.closest("figure").querySelectorAll(`[data-run="${box.dataset.shows}"]`)) {
      run.style.display = box.checked ? "" : "none";
    }
  });
}

// Buttons show one of the panels.
for (const button of document.querySelectorAll('input[name="panel"]')) {
  button.addEventListener("change", () => {
    for (const panel of document.querySelectorAll("[data-panel]")) {
      panel.hidden = panel.dataset.panel !== button.value;
    }
  });
}

// Words show their details where they are pointed at, tapped, or reached with the keyboard.
for (const words of document.querySelectorAll(".words")) {
  const details = JSON.parse(document.getElementById(`words-${words.dataset.words}`).textContent);
  const every = [...words.querySelectorAll(".text .w")];
  const place = words.querySelector(".details");
  let shown = null;

  function show(word) {
    if (word === shown) return;
    if (shown) shown.classList.remove("shown");
    shown = word;
    word.classList.add("shown");
    const about = details[word.dataset.word];
    place.replaceChildren(element("h4", about.word));
    for (const line of about.about) place.append(element("p", line));
    for (const part of about.parts) {
      if (part.run) place.append(element("h4", part.run, "of-run"));
      if (part.read !== about.word) place.append(element("p", `read as ${part.read}`));
      const tables = element("div", undefined, "parts");
      if (part.best.length) tables.append(table("best words", part.best, part.read));
      if (part.why) tables.append(table("nats", part.why, ""));
      place.append(tables);
    }
  }

  function go(number) {
    if (!every[number]) return;
    for (const word of every) word.tabIndex = -1;
    every[number].tabIndex = 0;
    every[number].focus();
  }

  words.addEventListener("pointerover", (event) => {
    const word = event.target.closest(".text .w");
    if (word) show(word);
  });
  words.addEventListener("focusin", (event) => {
    const word = event.target.closest(".text .w");
    if (word) show(word);
  });
  words.addEventListener("click", (event) => {
    const word = event.target.closest(".text .w");
    if (word) go(every.indexOf(word));
  });
  words.addEventListener("keydown", (event) => {
    const at = every.indexOf(event.target);
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: every.length - 1 };
    if (at < 0 || !(event.key in steps)) return;
    event.preventDefault();
    go(steps[event.key]);
  });
}
