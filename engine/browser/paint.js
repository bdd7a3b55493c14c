// Draw boxes over a picture, in an isolated world that page scripts cannot access.
(async (png, boxes) => {
  const bytes = Uint8Array.from(atob(png), (sign) => sign.charCodeAt(0));
  const drawn = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(drawn.width, drawn.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(drawn, 0, 0);
  pen.fillStyle = "#888888";
  for (const [x, y, width, height] of boxes) pen.fillRect(x, y, width, height);
  const blob = await canvas.convertToBlob({ type: "image/png" });
  const reader = new FileReader();
  await new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = reject;
    reader.readAsDataURL(blob);
  });
  return reader.result.slice(reader.result.indexOf(",") + 1);
})
