// The scene as typed arrays, and what can be asked of its rows.

const TYPES = {
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array,
  float32: Float32Array, float64: Float64Array,
};

function decode(array) {
  const text = atob(array.bytes);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return new TYPES[array.type](bytes.buffer);
}

const scene = JSON.parse(document.getElementById("scene").textContent);
for (const name of ["x", "y", "true", "predicted", "leading", "shares", "flags"]) {
  scene[name] = scene[name] && decode(scene[name]);
}
scene.numbers = scene.numbers && decode(scene.numbers);
if (scene.columns) scene.columns.values = decode(scene.columns.values);
if (scene.interactions) {
  for (const name of ["rows", "own", "moves"]) scene.interactions[name] = decode(scene.interactions[name]);
}
const exemplars = scene.exemplars;
if (exemplars) {
  for (const name of ["x", "y", "codes"]) exemplars[name] = exemplars[name] && decode(exemplars[name]);
}

// A map that was learned without labels predicts nothing, and its rows need not have labels.
const hasLabels = scene.unlabeled !== 0;
const predicts = scene.predicted !== null;

const N_ROWS = scene.x.length;
const allRows = Uint32Array.from({ length: N_ROWS }, (_, row) => row);

// A row's id is what the user calls it, or its number among all rows, from 0 as in Python.
const idOf = row =>
  scene.ids ? scene.ids[row] : String(scene.numbers ? scene.numbers[row] : row);
const isTraining = row => (scene.flags[row] & 1) === 1;
const isFar = row => (scene.flags[row] & 2) === 2;
const isMisclassified = row => predicts && scene.true[row] !== scene.unlabeled &&
  scene.true[row] !== scene.predicted[row] && !isTraining(row);

const rowsOfClass = scene.classes.map(() => []);
for (let row = 0; row < N_ROWS; row++) rowsOfClass[scene.true[row]].push(row);

function squaredDistance(row, x, y) {
  return (scene.x[row] - x) ** 2 + (scene.y[row] - y) ** 2;
}

// The rows nearest to another one in the map: so few are wanted that sorting would be waste.
function nearestRows(row, n) {
  const found = [];
  for (let other = 0; other < N_ROWS; other++) {
    if (other === row) continue;
    const distance = squaredDistance(other, scene.x[row], scene.y[row]);
    if (found.length === n && distance >= found[n - 1].distance) continue;
    const place = found.findIndex(entry => distance < entry.distance);
    found.splice(place < 0 ? found.length : place, 0, { row: other, distance });
    if (found.length > n) found.pop();
  }
  return found.map(entry => entry.row);
}

function nearestExemplar(x, y) {
  let best = -1, least = Infinity;
  for (let k = 0; k < exemplars.x.length; k++) {
    const distance = (exemplars.x[k] - x) ** 2 + (exemplars.y[k] - y) ** 2;
    if (distance < least) [best, least] = [k, distance];
  }
  return { number: best, distance: Math.sqrt(least) };
}

const thousands = number => number.toLocaleString("en");
const countRows = number => `${thousands(number)} ${number === 1 ? "row" : "rows"}`;
const asPercent = share =>
  share > 0.9995 && share < 1 ? "> 99.9\u202f%" : `${(100 * share).toFixed(1)}\u202f%`;
const asNumber = value =>
  Math.abs(value) >= 1000 ? thousands(Math.round(value)) : String(Number(value.toPrecision(4)));

// An element with text and children. Text from the data is only ever set as text, never as HTML.
function make(tag, options = {}, ...children) {
  const { text, style, data, ...attributes } = options;
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const [name, value] of Object.entries(style || {})) element.style.setProperty(name, value);
  Object.assign(element.dataset, data || {});
  if (text !== undefined) element.textContent = text;
  element.append(...children.filter(child => child));
  return element;
}

function makeButton(text, act, options = {}, ...children) {
  const button = make("button", { type: "button", ...options }, ...children);
  if (text) button.append(text);
  button.addEventListener("click", act);
  return button;
}

function makeLabel(code) {
  return make("span", { class: "label" },
    make("i", { class: "swatch", style: { "--c": scene.colors[code] } }),
    make("span", { class: "name", text: scene.classes[code] }));
}
