// What is drawn over and under the points. Over them: names of classes, the row in focus, lines to
// its neighbors. Under them: the regions of the classes, of an exemplar, the density of all rows.

const SVG = "http://www.w3.org/2000/svg";
const LABEL_HEIGHT = 18;
const LONGEST_NAME = 22;

const map = document.getElementById("map");
const marks = drawOn(null, "svg", { class: "marks", "aria-hidden": "true" });
const backdrop = drawOn(null, "svg", { class: "marks", "aria-hidden": "true" });

let focused = null;

function drawOn(sheet, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  sheet?.append(element);
  return element;
}

const draw = (...what) => drawOn(marks, ...what);

function median(values) {
  const sorted = Float32Array.from(values).sort();
  return sorted[sorted.length >> 1];
}

// The largest classes come first, so that their names stay where names would overlap.
const places = rowsOfClass
  .map((rows, code) => ({ code, rows }))
  .filter(({ code, rows }) => rows.length && code !== scene.unlabeled)
  .sort((one, other) => other.rows.length - one.rows.length)
  .map(({ code, rows }) => ({
    code,
    x: median(rows.map(row => scene.x[row])),
    y: median(rows.map(row => scene.y[row])),
  }));

const crowded = places.length > 24;
const letterWidth = crowded ? 6 : 7.5;
if (crowded) marks.classList.add("crowded");

// Where a place of the map lies in the plot, in pixels.
function pixels(x, y) {
  const { xaxis, yaxis } = map._fullLayout;
  return [xaxis._offset + xaxis.d2p(x), yaxis._offset + yaxis.d2p(y)];
}

const backdropImages = [scene.backdrop.regions, scene.backdrop.density]
  .filter(source => source)
  .map(href => drawOn(backdrop, "image", { href, preserveAspectRatio: "none" }));
const region = drawOn(backdrop, "polygon", { class: "region" });

function drawBackdrop() {
  const [left, bottom] = pixels(...scene.backdrop.low);
  const [right, top] = pixels(...scene.backdrop.high);
  const box = { x: left, y: top, width: right - left, height: bottom - top };
  for (const image of backdropImages) {
    for (const [name, value] of Object.entries(box)) image.setAttribute(name, value);
  }
  const corners = lit.exemplar === undefined ? [] : regionOf(lit.exemplar);
  region.setAttribute("points", corners.map(corner => pixels(...corner).join()).join(" "));
  if (!corners.length) return;
  const color = exemplars.codes ? scene.colors[exemplars.codes[lit.exemplar]] : styleOf("--accent");
  region.setAttribute("fill", color);
}

function drawNames() {
  const boxes = [];
  for (const { code, x, y } of places) {
    let name = scene.classes[code];
    if (name.length > LONGEST_NAME) name = `${name.slice(0, LONGEST_NAME - 1)}…`;
    const [left, top] = pixels(x, y);
    const half = (name.length * letterWidth) / 2 + 4;
    const down = top - 16;
    const overlaps = boxes.some(box =>
      Math.abs(box.left - left) < box.half + half && Math.abs(box.down - down) < LABEL_HEIGHT);
    if (overlaps) continue;
    boxes.push({ left, down, half });
    const faded = lit.code !== undefined && lit.code !== code;
    draw("text", { x: left, y: down, class: faded ? "place faded" : "place" }, name);
  }
}

function drawFocus() {
  if (!focused) return;
  const [x, y] = pixels(focused.x, focused.y);
  for (const row of focused.neighbors) {
    const [toX, toY] = pixels(scene.x[row], scene.y[row]);
    draw("line", { x1: x, y1: y, x2: toX, y2: toY, class: "tie" });
  }
  draw("circle", { cx: x, cy: y, r: 9, class: "halo" });
  draw("circle", { cx: x, cy: y, r: 9, class: "focus" });
}

function drawMarks() {
  if (!map._fullLayout?.xaxis) return;
  drawBackdrop();
  marks.replaceChildren();
  drawNames();
  drawFocus();
}
