// The rows that are lit, as a list and as a CSV file.

const chosenPanel = document.getElementById("chosen");
const N_LISTED = 100;

// The columns of a row in a CSV file; unknown classes are left out.
const CSV_COLUMNS = {
  id: idOf,
  ...(hasLabels && { true: row => scene.classes[scene.true[row]] }),
  ...(predicts && {
    predicted: row => scene.classes[scene.predicted[row]],
    probability: row => (scene.shares[row * scene.n_leading] / 65535).toFixed(4),
  }),
  x: row => scene.x[row],
  y: row => scene.y[row],
  learned_from: isTraining,
  far: isFar,
};

function showChosen() {
  chosenPanel.hidden = !lit.rows;
  if (!lit.rows) {
    chosenPanel.replaceChildren();
    return;
  }
  const listed = lit.rows.slice(0, N_LISTED);
  const rest = lit.rows.length - listed.length;
  chosenPanel.replaceChildren(
    make("h2", { text: `${countRows(lit.rows.length)}${scene.numbers ? " drawn" : ""} ${lit.words}` }),
    make("div", { class: "bar" },
      lit.rows.length ? makeButton("Download CSV", downloadChosen, { id: "download" }) : null,
      makeButton("Show all rows", () => light(null), { id: "clear" })),
    lit.rows.length ? make("div", { class: "scroll list" }, makeTable(listed)) : "",
    rest ? make("p", { class: "note", text: `and ${thousands(rest)} more, which are in the CSV file` }) : "");
}

function makeTable(rows) {
  const titles = predicts ? ["Row", "True", "Predicted"] : hasLabels ? ["Row", "Label"] : ["Row"];
  const head = make("tr", {}, ...titles.map(text => make("th", { scope: "col", text })));
  const body = rows.map(row => make("tr", { class: isMisclassified(row) ? "misclassified" : "" },
    make("th", { scope: "row" }, makeButton(idOf(row), () => focusRow(row))),
    hasLabels && make("td", {}, makeLabel(scene.true[row])),
    predicts && make("td", {}, makeLabel(scene.predicted[row]))));
  return make("table", { class: "rows" }, make("thead", {}, head), make("tbody", {}, ...body));
}

// Text that a spreadsheet would run as a formula gets an apostrophe before it, as in `csv_files.py`.
function asText(text) {
  const formula = /^'*[=+\-@\t\r\n＝＋－＠]/, number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
  return formula.test(text) && !number.test(text) ? `'${text}` : text;
}

function chosenAsCsv() {
  const quoted = value => {
    const text = typeof value === "string" ? asText(value) : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const tell = Object.values(CSV_COLUMNS);
  const lines = Array.from(lit.rows, row => tell.map(one => quoted(one(row))).join(","));
  return `${[Object.keys(CSV_COLUMNS).join(","), ...lines].join("\r\n")}\r\n`;
}

function downloadChosen() {
  const address = URL.createObjectURL(new Blob([chosenAsCsv()], { type: "text/csv" }));
  make("a", { href: address, download: "rows.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
