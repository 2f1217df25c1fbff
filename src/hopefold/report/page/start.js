// Put the page to work.

function watchMap() {
  map.on("plotly_hover", ({ points: [point] }) => {
    if (point.curveNumber < MISTAKES) showCard(rowsOfTrace[point.curveNumber][point.pointNumber]);
  });
  map.on("plotly_click", ({ points: [point] }) => {
    if (point.curveNumber === EXEMPLARS) lightExemplar(point.pointNumber);
    else if (point.curveNumber < MISTAKES) showCard(rowsOfTrace[point.curveNumber][point.pointNumber]);
  });
  map.on("plotly_selected", event => {
    if (!event) return;
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

// Crosses are in the colour of ink, which is another in the dark and on paper.
function watchInk() {
  const repaint = () => Plotly.restyle(map, { "marker.line.color": inkColour() }, [MISTAKES]);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  matchMedia("print").addEventListener("change", repaint);
}

plot();
makeLegend();
watchMap();
watchButtons();
watchSearch();
watchKeys();
watchInk();
setMode(startMode());
