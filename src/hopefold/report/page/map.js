// The map itself: a WebGL scatter plot, a trace a class, then mistakes and exemplars above them.

const FADED = 0.07;
const EXEMPLAR = getComputedStyle(document.documentElement).getPropertyValue("--exemplar").trim();
const drawnClasses = scene.classes.map((_, code) => code).filter(code => rowsOfClass[code].length);
const mistakenRows = Array.from(allRows.filter(isMistaken));

// Which rows each trace of points draws.
const rowsOfTrace = [...drawnClasses.map(code => rowsOfClass[code]), mistakenRows];
const MISTAKES = drawnClasses.length;
const EXEMPLARS = MISTAKES + 1;

// What is lit: all rows, or some, and why.
const lit = { rows: null, words: "", code: undefined };

const pointSize = Math.min(8, Math.max(2.5, 60 / N_ROWS ** 0.3));

function pointsTrace(rows, marker) {
  return {
    type: "scattergl",
    mode: "markers",
    x: Float32Array.from(rows, row => scene.x[row]),
    y: Float32Array.from(rows, row => scene.y[row]),
    marker,
    hoverinfo: "none",
    unselected: { marker: { opacity: FADED } },
  };
}

function traces() {
  const opacity = N_ROWS > 20000 ? 0.6 : 0.8;
  const points = drawnClasses.map(code => pointsTrace(rowsOfClass[code],
    { color: scene.colours[code], size: pointSize, opacity }));
  const crosses = pointsTrace(mistakenRows, {
    symbol: "x-thin", size: pointSize + 4, opacity: 1,
    line: { color: inkColour(), width: 1.3 },
  });
  crosses.hoverinfo = "skip";
  return [...points, crosses, exemplarTrace()].filter(trace => trace);
}

function exemplarTrace() {
  return exemplars && {
    type: "scattergl",
    mode: "markers",
    x: exemplars.x,
    y: exemplars.y,
    hoverinfo: "none",
    marker: { symbol: "circle-open", size: 15, color: EXEMPLAR, opacity: 1, line: { width: 2 } },
    unselected: { marker: { opacity: 0.25 } },
  };
}

const inkColour = () => getComputedStyle(document.body).color;

function backdropImage(source) {
  const { low, high } = scene.backdrop;
  return {
    source, xref: "x", yref: "y", layer: "below", sizing: "stretch",
    x: low[0], y: high[1], sizex: high[0] - low[0], sizey: high[1] - low[1],
  };
}

const backdropImages = [scene.backdrop.regions, scene.backdrop.density]
  .filter(source => source).map(backdropImage);

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
    images: backdropImages,
    xaxis: { ...axis, range: [low[0], high[0]] },
    yaxis: { ...axis, range: [low[1], high[1]], scaleanchor: "x" },
    newselection: { line: { color: inkColour(), width: 1, dash: "dot" } },
  };
}

// On a touch screen, dragging scrolls the page until something else is asked for.
const startMode = () => (matchMedia("(pointer: coarse)").matches ? false : "pan");

function plot() {
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset" };
  Plotly.newPlot(map, traces(), layout(), config);
  map.append(marks);
  map.on("plotly_afterplot", () => {
    map.dataset.ready = "yes";
    drawMarks();
  });
  map.on("plotly_relayouting", drawMarks);
  map.on("plotly_relayout", drawMarks);
}

// Light some rows and fade all others; null lights all. The exemplars given, or all, stay lit.
function light(rows, words = "", options = {}) {
  lit.rows = rows && Array.from(rows);
  lit.words = words;
  lit.code = options.code;
  const chosen = rows && new Set(lit.rows);
  const selected = rowsOfTrace.map(mine => {
    if (!chosen) return null;
    return mine.flatMap((row, place) => (chosen.has(row) ? [place] : []));
  });
  if (exemplars) selected.push(options.exemplars || null);
  Plotly.update(map, { selectedpoints: selected }, {
    selections: options.keepOutline ? map.layout.selections || [] : [],
    images: options.region ? [...backdropImages, options.region] : backdropImages,
  });
  showChosen();
  showPressed(options.button);
}

// The part of the map that is nearer to an exemplar than to any other, as an image.
function regionOf(number) {
  const side = 160;
  const canvas = make("canvas", { width: side, height: side });
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  const { low, high } = scene.backdrop;
  const colour = scene.colours[exemplars.codes[number]];
  const channels = [1, 3, 5].map(place => parseInt(colour.slice(place, place + 2), 16));
  for (let cell = 0; cell < side * side; cell++) {
    const x = low[0] + ((cell % side) + 0.5) / side * (high[0] - low[0]);
    const y = high[1] - (Math.floor(cell / side) + 0.5) / side * (high[1] - low[1]);
    if (nearestExemplar(x, y).number !== number) continue;
    image.data.set([...channels, 70], 4 * cell);
  }
  context.putImageData(image, 0, 0);
  return backdropImage(canvas.toDataURL());
}

function zoom(factor, centre) {
  const { xaxis, yaxis } = map._fullLayout;
  const around = (range, middle = (range[0] + range[1]) / 2) =>
    range.map(end => middle + (end - middle) * factor);
  Plotly.relayout(map, {
    "xaxis.range": around(xaxis.range, centre?.[0]),
    "yaxis.range": around(yaxis.range, centre?.[1]),
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
