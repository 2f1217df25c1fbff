// The card of the row in focus.

const card = document.getElementById("card");
const hint = card.querySelector(".hint");
const N_NEIGHBORS = 5;
const N_VALUES = 6;

function showCard(row) {
  const neighbors = nearestRows(row, N_NEIGHBORS);
  focused = { row, x: scene.x[row], y: scene.y[row], neighbors };
  card.dataset.row = row;
  card.replaceChildren(...[
    makeHead(row),
    hasLabels && makeLabels(row),
    predicts && makeShares(row),
    scene.columns && makeValues(row),
    scene.interactions && makeInteractions(row),
    exemplars && makeNearestExemplar(row),
    makeNeighbors(neighbors),
  ].filter(part => part));
  drawMarks();
}

function clearCard() {
  focused = null;
  delete card.dataset.row;
  card.replaceChildren(hint);
  drawMarks();
}

function makeHead(row) {
  const head = make("div", { class: "head" });
  if (scene.images) head.append(makeThumbnail(row, 104));
  const badges = [
    isTraining(row) ? "learned from" : "new",
    isMisclassified(row) && "misclassified",
    isFar(row) && "far from everything learned",
  ].filter(badge => badge);
  head.append(make("div", {},
    make("h3", { text: scene.ids ? idOf(row) : `Row ${idOf(row)}` }),
    make("p", { class: "badges" }, ...badges.map(badge =>
      make("span", { class: `badge ${badge.split(" ")[0]}`, text: badge })))),
  makeButton("×", clearCard, { class: "close", "aria-label": "Close the card" }));
  return head;
}

function makeLabels(row) {
  if (!predicts) {
    return make("dl", { class: "labels" },
      make("dt", { text: "Label" }), make("dd", {}, makeLabel(scene.true[row])));
  }
  return make("dl", { class: "labels" },
    make("dt", { text: "True" }), make("dd", {}, makeLabel(scene.true[row])),
    make("dt", { text: "Predicted" }), make("dd", {}, makeLabel(scene.predicted[row])));
}

function makeShares(row) {
  const list = make("ul", { class: "shares", "aria-label": "Probabilities" });
  for (let k = 0; k < scene.n_leading; k++) {
    const place = row * scene.n_leading + k;
    const share = scene.shares[place] / 65535;
    list.append(make("li", {},
      makeLabel(scene.leading[place]),
      make("span", { class: "number", text: asPercent(share) }),
      make("i", { class: "track", style: { "--share": share, "--c": scene.colors[scene.leading[place]] } })));
  }
  return list;
}

// The columns in which the row is unusual, and which tell classes apart.
function makeValues(row) {
  const { names, separation, mean, deviation, values } = scene.columns;
  const entries = names.map((name, column) => {
    const value = values[row * names.length + column];
    const away = deviation[column] > 0 ? (value - mean[column]) / deviation[column] : 0;
    return { name, value, away, weight: separation[column] * Math.abs(away), column };
  });
  entries.sort((one, other) => other.weight - one.weight);
  const table = make("table", { class: "columns" });
  for (const { name, value, away, column } of entries.slice(0, N_VALUES)) {
    const side = away >= 0 ? "above" : "below";
    table.append(make("tr", { title: `mean ${asNumber(mean[column])}; ${Math.abs(away).toFixed(1)} deviations ${side} it` },
      make("th", { scope: "row", text: name }),
      make("td", { class: "number", text: asNumber(value) }),
      make("td", { class: "gauge" },
        make("i", { style: { "--at": Math.max(-1, Math.min(1, away / 3)) } }))));
  }
  return table;
}

// The row's largest terms, each with an arrow: where it moves the row in the map, and how far.
function makeInteractions(row) {
  const { names, n_own, rows, own, moves } = scene.interactions;
  const place = placeOf(rows, row);
  if (place < 0) return null;
  const table = make("table", { class: "terms" });
  for (let k = 0; k < n_own; k++) {
    const at = place * n_own + k;
    const [x, y] = [moves[2 * at], moves[2 * at + 1]];
    const turn = `${-Math.atan2(y, x)}rad`;
    table.append(make("tr", {},
      make("th", { scope: "row", text: names[own[at]] }),
      make("td", { class: "number", text: asNumber(Number(Math.hypot(x, y).toPrecision(2))) }),
      make("td", { class: "arrow" }, make("i", { style: { "--turn": turn }, text: "→" }))));
  }
  return make("div", { class: "near interactions" }, make("h4", { text: "What moves it from the mean row" }), table);
}

// Where a number is in an ascending array, or -1.
function placeOf(numbers, wanted) {
  let low = 0, high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) low = middle + 1; else high = middle;
  }
  return numbers[low] === wanted ? low : -1;
}

function makeNearestExemplar(row) {
  const { number, distance } = nearestExemplar(scene.x[row], scene.y[row]);
  const button = makeButton("", () => lightExemplar(number), { class: "exemplar" },
    makeExemplarPicture(number, 36),
    exemplars.codes && makeLabel(exemplars.codes[number]),
    make("span", { class: "quiet", text: `no. ${number + 1}, ${asNumber(distance)} away` }));
  const title = exemplars.codes ? "Nearest exemplar" : "Nearest landmark shown";
  return make("div", { class: "near" }, make("h4", { text: title }), button);
}

function makeNeighbors(rows) {
  const list = make("ul", { class: scene.images ? "neighbors pictures" : "neighbors" });
  for (const row of rows) {
    const words = hasLabels ? `${idOf(row)}, ${scene.classes[scene.true[row]]}` : idOf(row);
    const swatch = hasLabels && make("i", { class: "swatch", style: { "--c": scene.colors[scene.true[row]] } });
    const display = scene.images
      ? [makeThumbnail(row, 40), swatch]
      : [hasLabels && makeLabel(scene.true[row]), make("span", { class: "quiet", text: idOf(row) })];
    list.append(make("li", {},
      makeButton("", () => focusRow(row), { title: words, "aria-label": `Row ${words}` }, ...display)));
  }
  return make("div", { class: "near" }, make("h4", { text: "Nearest rows" }), list);
}

function focusRow(row) {
  bringIntoView(scene.x[row], scene.y[row]);
  showCard(row);
}

// From the row in focus to the next one in a direction: near, and not far off to the side.
function step(right, up) {
  const rows = lit.rows || allRows;
  if (!rows.length) return;
  const from = focused || { row: -1, x: (scene.frame[0][0] + scene.frame[1][0]) / 2, y: (scene.frame[0][1] + scene.frame[1][1]) / 2 };
  let best = -1, least = Infinity;
  for (const row of rows) {
    const x = scene.x[row] - from.x, y = scene.y[row] - from.y;
    const ahead = x * right + y * up;
    const aside = Math.abs(x * up) + Math.abs(y * right);
    if (row === from.row || (focused && (ahead <= 0 || aside > ahead))) continue;
    const cost = focused ? ahead + 2 * aside : x * x + y * y;
    if (cost < least) [best, least] = [row, cost];
  }
  if (best >= 0) focusRow(best);
}
