// Average lumas of a PNG on a grid, row by row; runs in an empty page of the product's browser.
async ([base64, grid]) => {
  const packed = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  const blob = new Blob([packed], { type: "image/png" });
  const exact = { colorSpaceConversion: "none", premultiplyAlpha: "none" };
  const bitmap = await createImageBitmap(blob, exact);
  const { width, height } = bitmap;
  const sums = new Float64Array(grid * grid);
  const counts = new Float64Array(grid * grid);
  // In bands, because the pixels of a long page do not fit into one canvas.
  const band = Math.min(height, 256);
  const canvas = new OffscreenCanvas(width, band);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  for (let top = 0; top < height; top += band) {
    pen.clearRect(0, 0, width, band);
    pen.drawImage(bitmap, 0, -top);
    const rows = Math.min(band, height - top);
    const pixels = pen.getImageData(0, 0, width, rows).data;
    for (let y = 0, at = 0; y < rows; y += 1) {
      const row = Math.floor(((top + y) * grid) / height) * grid;
      for (let x = 0; x < width; x += 1, at += 4) {
        const cell = row + Math.floor((x * grid) / width);
        sums[cell] += 299 * pixels[at] + 587 * pixels[at + 1] + 114 * pixels[at + 2];
        counts[cell] += 1;
      }
    }
  }
  return Array.from(sums, (sum, cell) => (counts[cell] ? sum / counts[cell] / 1000 : 0));
}
