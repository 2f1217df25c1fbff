// The map itself: a WebGL scatter plot, one trace per class, then misclassified rows and exemplars above them.

const styleOf = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isNamed = code => code !== scene.unlabeled;

// Rows without a label lie below those that have one.
const drawnClasses = scene.classes.map((_, code) => code).filter(code => rowsOfClass[code].length)
  .sort((one, other) => isNamed(one) - isNamed(other));
const misclassifiedRows = Array.from(allRows.filter(isMisclassified));

// Which rows each trace of points draws.
const rowsOfTrace = [...drawnClasses.map(code => rowsOfClass[code]), misclassifiedRows];
const MISTAKES = drawnClasses.length;
const EXEMPLARS = MISTAKES + 1;

// What is lit: all rows, or some, and why.
const lit = { rows: null, words: "", code: undefined, exemplar: undefined };

// Without WebGL, points are drawn as SVG: slower, and all the same else.
const KIND = make("canvas").getContext("webgl") ? "scattergl" : "scatter";

const pointSize = Math.min(8, Math.max(2.5, 60 / N_ROWS ** 0.3));

function pointsTrace(rows, marker) {
  return {
    type: KIND,
    mode: "markers",
    x: Float32Array.from(rows, row => scene.x[row]),
    y: Float32Array.from(rows, row => scene.y[row]),
    marker,
    hoverinfo: "none",
    unselected: { marker: { color: styleOf("--faded"), opacity: 0.5 } },
  };
}

function traces() {
  const opacity = N_ROWS > 20000 ? 0.6 : 0.8;
  const points = drawnClasses.map(code => pointsTrace(rowsOfClass[code],
    { color: seenColor(code), size: pointSize, opacity: isNamed(code) || !hasLabels ? opacity : 0.6 * opacity }));
  const many = misclassifiedRows.length > 200; // then crosses are finer, so that points can be seen
  const crosses = pointsTrace(misclassifiedRows, {
    symbol: "x-thin", size: pointSize + (many ? 2 : 4), line: { color: inkColor(), width: many ? 1 : 1.3 },
    opacity: Math.min(1, 12 / misclassifiedRows.length ** 0.4),
  });
  crosses.hoverinfo = "skip";
  crosses.unselected = { marker: { opacity: 0 } };
  return [...points, crosses, exemplarTrace()].filter(trace => trace);
}

function exemplarTrace() {
  return exemplars && {
    type: KIND,
    mode: "markers",
    x: exemplars.x,
    y: exemplars.y,
    hoverinfo: "skip", // rows lie under them, and are what is pointed at
    marker: { symbol: "circle-open", size: exemplars.x.length > 60 ? 10 : 15, color: exemplarColors(), opacity: 1, line: { width: 2 } },
  };
}

// One of them, those of a class, none if other rows are lit, or all: open symbols cannot be faded as
// points are.
function exemplarColors() {
  const [red, faded] = [styleOf("--exemplar"), styleOf("--faded")];
  return Array.from(exemplars.x, (_, number) => {
    if (lit.exemplar !== undefined) return number === lit.exemplar ? red : faded;
    return !lit.rows || (exemplars.codes && exemplars.codes[number] === lit.code) ? red : faded;
  });
}

// In the dark, classes are a little lighter, as in the style sheet; rows without a label stay quiet.
function seenColor(code, dark = matchMedia("(prefers-color-scheme: dark)").matches) {
  const color = scene.colors[code];
  if (!dark || (hasLabels && !isNamed(code))) return color;
  const lighter = [1, 3, 5].map(place => parseInt(color.slice(place, place + 2), 16) * 0.84 + 255 * 0.16);
  return `rgb(${lighter.map(Math.round).join()})`;
}

const inkColor = () => styleOf("--ink");

function layout() {
  const [low, high] = scene.frame;
  const axis = { showgrid: false, zeroline: false, showticklabels: false, ticks: "" };
  return {
    margin: { l: 0, r: 0, t: 0, b: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    hovermode: "closest",
    hoverdistance: 12,
    dragmode: startMode(),
    xaxis: { ...axis, range: [low[0], high[0]] },
    yaxis: { ...axis, range: [low[1], high[1]], scaleanchor: "x" },
    newselection: { line: { color: inkColor(), width: 1, dash: "dot" } },
  };
}

// On a touch screen, dragging scrolls the page until something else is asked for.
const startMode = () => (matchMedia("(pointer: coarse)").matches ? false : "pan");

function plot() {
  const config = { displayModeBar: false, doubleClick: "reset", plotGlPixelRatio: devicePixelRatio };
  Plotly.newPlot(map, traces(), layout(), config);
  map.prepend(backdrop);
  map.append(marks);
  map.on("plotly_afterplot", () => {
    map.dataset.ready ??= performance.now();
    drawMarks();
  });
  map.on("plotly_relayouting", drawMarks);
  map.on("plotly_relayout", drawMarks);
}

// Light some rows and fade all others; null lights all.
function light(rows, words = "", options = {}) {
  lit.rows = rows && Array.from(rows);
  lit.words = words;
  lit.code = options.code;
  lit.exemplar = options.exemplar;
  const chosen = rows && new Set(lit.rows);
  const selected = rowsOfTrace.map(mine => {
    if (!chosen) return null;
    return mine.flatMap((row, place) => (chosen.has(row) ? [place] : []));
  });
  const changes = { selectedpoints: selected };
  if (exemplars) {
    selected.push(null);
    const colors = rowsOfTrace.map((_, trace) => map.data[trace].marker.color);
    changes["marker.color"] = [...colors, exemplarColors()];
  }
  const selections = options.keepOutline ? map.layout.selections || [] : [];
  Plotly.update(map, changes, { selections });
  showChosen();
  showPressed(options.button);
}

// The part of the map that is nearer to an exemplar than to any other: a box, cut along the line
// halfway to each of the others.
function regionOf(number) {
  const { low, high } = scene.backdrop;
  const place = k => [exemplars.x[k], exemplars.y[k]];
  const [x, y] = place(number);
  let corners = [[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]];
  for (let other = 0; other < exemplars.x.length; other++) {
    const [right, up] = [place(other)[0] - x, place(other)[1] - y];
    if (right === 0 && up === 0) continue;
    const halfway = (right * (2 * x + right) + up * (2 * y + up)) / 2;
    corners = cut(corners, corner => halfway - right * corner[0] - up * corner[1]);
  }
  return corners;
}

// The part of a convex polygon in which a linear function is not negative.
function cut(corners, height) {
  return corners.flatMap((corner, k) => {
    const next = corners[(k + 1) % corners.length];
    const [here, there] = [height(corner), height(next)];
    const kept = here >= 0 ? [corner] : [];
    if (here >= 0 === there >= 0) return kept;
    const share = here / (here - there);
    return [...kept, corner.map((value, axis) => value + share * (next[axis] - value))];
  });
}

function zoom(factor, center) {
  const { xaxis, yaxis } = map._fullLayout;
  const around = (range, middle = (range[0] + range[1]) / 2) =>
    range.map(end => middle + (end - middle) * factor);
  Plotly.relayout(map, {
    "xaxis.range": around(xaxis.range, center?.[0]),
    "yaxis.range": around(yaxis.range, center?.[1]),
  });
}

function showWhole() {
  const [low, high] = scene.frame;
  Plotly.relayout(map, { "xaxis.range": [low[0], high[0]], "yaxis.range": [low[1], high[1]] });
}

// Move the map so that a point is in it; nothing moves if it is there already.
function bringIntoView(x, y) {
  const { xaxis, yaxis } = map._fullLayout;
  const inside = (axis, value) => value > axis.range[0] && value < axis.range[1];
  if (inside(xaxis, x) && inside(yaxis, y)) return;
  const shifted = (axis, value) => {
    const half = (axis.range[1] - axis.range[0]) / 2;
    return [value - half, value + half];
  };
  Plotly.relayout(map, { "xaxis.range": shifted(xaxis, x), "yaxis.range": shifted(yaxis, y) });
}
