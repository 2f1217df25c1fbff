// Thumbnails: cut from sheets that are decoded when one is needed.

const sheetAddresses = new Map();

function sheetAddress(number) {
  if (!sheetAddresses.has(number)) {
    const text = document.getElementById(`sheet-${number}`).textContent;
    sheetAddresses.set(number, `url(data:image/webp;base64,${text})`);
  }
  return sheetAddresses.get(number);
}

function makeThumbnail(row, side) {
  const { height, width, side: across, is_ink: isInk } = scene.images;
  const enlarged = side / Math.max(height, width);
  const place = row % across ** 2;
  const left = (place % across) * width * enlarged;
  const top = Math.floor(place / across) * height * enlarged;
  return make("span", {
    class: isInk ? "thumbnail ink" : "thumbnail",
    role: "img",
    "aria-label": `Image of row ${idOf(row)}`,
    style: {
      width: `${width * enlarged}px`,
      height: `${height * enlarged}px`,
      "background-image": sheetAddress(Math.floor(row / across ** 2)),
      "background-size": `${across * width * enlarged}px auto`,
      "background-position": `-${left}px -${top}px`,
    },
  });
}

function makeExemplarPicture(number, side) {
  const shown = document.querySelector(`[data-exemplar="${number}"] img`);
  if (!shown) return null;
  const picture = shown.cloneNode();
  picture.style.height = `${side}px`;
  return picture;
}
