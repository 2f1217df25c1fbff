// Put the page to work.

// The ink of the style sheet in the light, and a width that paper has.
const PRINTED_INK = "#22252b";
const PRINTED_WIDTH = 680;

function watchMap() {
  const show = ({ points: [point] }) => showCard(rowsOfTrace[point.curveNumber][point.pointNumber]);
  map.on("plotly_hover", show);
  map.on("plotly_click", show);
  map.on("plotly_selected", event => {
    if (!event?.lassoPoints && !event?.range) return; // not drawn by hand, but by `light`
    const rows = event.points.filter(point => point.curveNumber < MISTAKES)
      .map(point => rowsOfTrace[point.curveNumber][point.pointNumber]);
    light(rows.sort((one, other) => one - other), "in the lasso", { keepOutline: true });
  });
  map.on("plotly_deselect", () => light(null));
  map.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = map.getBoundingClientRect();
    const { xaxis, yaxis } = map._fullLayout;
    zoom(Math.exp(event.deltaY / 200),
      [xaxis.p2d(event.clientX - box.left), yaxis.p2d(event.clientY - box.top)]);
  }, { passive: false });
}

// Printers see what a WebGL canvas showed last, not what is drawn on it now: they get a copy.
function copyCanvases() {
  for (const canvas of map.querySelectorAll(".gl-container canvas")) {
    const copy = make("canvas", { class: "printed", width: canvas.width, height: canvas.height });
    copy.style.cssText = canvas.style.cssText;
    copy.getContext("2d").drawImage(canvas, 0, 0);
    canvas.after(copy);
  }
}

let printing = false;

function watchSize() {
  const fit = () => {
    const { width, height } = map._fullLayout;
    const same = map.clientWidth === width && map.clientHeight === height;
    if (!printing && !same) Plotly.Plots.resize(map);
  };
  new ResizeObserver(fit).observe(map);
}

// Colors are others in the dark and on paper, and paper is narrow.
function watchPaper() {
  const points = drawnClasses.map((_, trace) => trace);
  const repaint = (ink, dark) => {
    Plotly.restyle(map, { "marker.line.color": ink }, [MISTAKES]);
    Plotly.restyle(map, {
      "marker.color": drawnClasses.map(code => seenColor(code, dark)),
      "unselected.marker.color": styleOf("--faded"),
    }, points);
    if (exemplars) Plotly.restyle(map, { "marker.color": [exemplarColors()] }, [EXEMPLARS]);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint(inkColor()));
  window.addEventListener("beforeprint", () => {
    printing = true;
    repaint(PRINTED_INK, false);
    copyCanvases();
    const { width, height } = map._fullLayout;
    const scale = Math.min(1, PRINTED_WIDTH / width);
    map.style.cssText = `width: ${width}px; height: ${height}px; transform-origin: 0 0;
      transform: scale(${scale}); margin: 0 ${(scale - 1) * width}px ${(scale - 1) * height}px 0`;
  });
  window.addEventListener("afterprint", () => {
    repaint(inkColor());
    for (const copy of map.querySelectorAll(".printed")) copy.remove();
    map.style.cssText = "";
    printing = false;
  });
}

plot();
makeLegend();
makeFilters();
watchMap();
watchButtons();
watchSearch();
watchKeys();
watchSize();
watchPaper();
setMode(startMode());
