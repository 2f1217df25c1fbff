// What people press: legend, search, gallery, confusion, keys.

const N_FOUND = 8;

// One button at a time says why rows are lit; pressed again, it lights all.
function showPressed(button) {
  for (const other of document.querySelectorAll("[aria-pressed=true]:not([data-mode])")) {
    other.setAttribute("aria-pressed", "false");
  }
  if (button) button.setAttribute("aria-pressed", "true");
}

const isPressed = button => button.getAttribute("aria-pressed") === "true";

function toggle(button, rows, words, options = {}) {
  if (isPressed(button)) light(null);
  else light(rows, words, { ...options, button });
}

function makeLegend() {
  const legend = document.getElementById("legend");
  if (!hasLabels) return;
  for (const code of [...drawnClasses].sort((one, other) => one - other)) {
    const rows = rowsOfClass[code];
    const words = isNamed(code) ? `of class ${scene.classes[code]}` : "without a label";
    const button = makeButton("", () => toggle(button, rows, words, { code }),
      { class: "chip", "aria-pressed": "false", data: { code } },
      makeLabel(code), make("span", { class: "quiet", text: thousands(rows.length) }));
    legend.append(button);
  }
}

function makeFilters() {
  const filters = document.getElementById("filters");
  const special = {
    misclassified: [isMisclassified, "misclassified"],
    new: [row => !isTraining(row), "not learned from"],
    "learned from": [isTraining, "learned from"],
    "far from everything": [isFar, "far from everything learned"],
  };
  for (const [name, [holds, words]] of Object.entries(special)) {
    const rows = allRows.filter(holds);
    if (!rows.length || rows.length === N_ROWS) continue;
    const button = makeButton(name, () => toggle(button, rows, words),
      { class: "chip", "aria-pressed": "false", data: { special: name } });
    button.append(make("span", { class: "quiet", text: thousands(rows.length) }));
    filters.append(button);
  }
}

function lightExemplar(number) {
  const button = document.querySelector(`[data-exemplar="${number}"]`);
  const rows = allRows.filter(row => nearestExemplar(scene.x[row], scene.y[row]).number === number);
  const code = exemplars.codes?.[number];
  const words = exemplars.codes ? `exemplar ${number + 1}, of class ${scene.classes[code]}` : `landmark ${number + 1}`;
  toggle(button, rows, `nearest to ${words}`, { exemplar: number, code });
}

function lightCell(button) {
  const [own, other] = [Number(button.dataset.true), Number(button.dataset.predicted)];
  const rows = rowsOfClass[own].filter(row => scene.predicted[row] === other && !isTraining(row));
  const [mine, theirs] = [scene.classes[own], scene.classes[other]];
  const words = own === other ? `of class ${mine}, classified correctly` : `of class ${mine}, predicted as ${theirs}`;
  toggle(button, rows, words);
}

function watchButtons() {
  const goToMap = () => {
    if (matchMedia("(max-width: 60rem)").matches) clearCard(); // it would lie over the map
    map.scrollIntoView({ block: "center", behavior: "smooth" });
  };
  for (const button of document.querySelectorAll("[data-exemplar]")) {
    button.addEventListener("click", () => {
      lightExemplar(Number(button.dataset.exemplar));
      goToMap();
    });
  }
  for (const button of document.querySelectorAll("[data-true]")) {
    button.addEventListener("click", () => {
      lightCell(button);
      goToMap();
    });
  }
  for (const button of document.querySelectorAll("[data-mode]")) {
    button.addEventListener("click", () => setMode(isPressed(button) ? false : button.dataset.mode));
  }
  document.getElementById("closer").addEventListener("click", () => zoom(0.6));
  document.getElementById("farther").addEventListener("click", () => zoom(1 / 0.6));
  document.getElementById("whole").addEventListener("click", showWhole);
}

function setMode(mode) {
  for (const button of document.querySelectorAll("[data-mode]")) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  }
  if (map._fullLayout?.dragmode !== mode) Plotly.relayout(map, { dragmode: mode });
}

// Rows whose id is what was typed, then those whose id begins so, then those that contain it.
function findRows(text) {
  const wanted = text.toLowerCase();
  const ranks = [[], [], []];
  for (let row = 0; row < N_ROWS && ranks[0].length < N_FOUND; row++) {
    const id = idOf(row).toLowerCase();
    const place = id.indexOf(wanted);
    if (place < 0) continue;
    const rank = id === wanted ? 0 : place === 0 ? 1 : 2;
    if (ranks[rank].length < N_FOUND) ranks[rank].push(row);
  }
  return ranks.flat().slice(0, N_FOUND);
}

function watchSearch() {
  const input = document.getElementById("wanted");
  const list = document.getElementById("found");
  const choose = row => {
    list.hidden = true;
    map.focus({ preventScroll: true });
    focusRow(row);
  };
  const show = () => {
    const text = input.value.trim();
    const rows = text ? findRows(text) : [];
    list.hidden = !text;
    list.replaceChildren(...rows.map(row => make("li", {},
      makeButton("", () => choose(row), {}, make("span", { text: idOf(row) }), hasLabels && makeLabel(scene.true[row])))));
    if (text && !rows.length) {
      list.append(make("li", { class: "quiet", text: `no row${scene.numbers ? " that is drawn" : ""} has this id` }));
    }
    return rows;
  };
  input.addEventListener("input", show);
  document.getElementById("search").addEventListener("submit", event => {
    event.preventDefault();
    const [first] = show();
    if (first !== undefined) choose(first);
  });
  document.getElementById("search").addEventListener("focusout", event => {
    if (!event.currentTarget.contains(event.relatedTarget)) list.hidden = true;
  });
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function watchKeys() {
  map.addEventListener("keydown", event => {
    if (ARROWS[event.key]) step(...ARROWS[event.key]);
    else if (event.key === "+") zoom(0.6);
    else if (event.key === "-") zoom(1 / 0.6);
    else if (event.key === "0") showWhole();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && lit.rows) light(null);
  });
}
