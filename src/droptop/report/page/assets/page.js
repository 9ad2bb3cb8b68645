"use strict";
(() => {
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const data = read("data"), maps = read("maps-data");

  // -- Charts: their colours are CSS variables, filled in here, so that they follow the reader's colour scheme --------
  // With `ast`, Vega interprets the expressions of a chart: the page's policy lets no text become code.

  const objects = {};  // the rows of each section as objects, which is what Vega takes
  for (const [name, { columns, rows }] of Object.entries(data)) {
    objects[name] = rows.map((row) => Object.fromEntries(columns.map((column, place) => [column, row[place]])));
  }

  function scheme() {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const [ink, muted, line] = ["--ink", "--muted", "--line"].map(colour);
    const font = getComputedStyle(document.body).fontFamily;
    const config = {
      background: null, font, view: { stroke: null },
      title: { color: ink, fontSize: 13, fontWeight: 600, anchor: "start", offset: 8 },
      axis: { labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line,
              labelFontSize: 11, titleFontSize: 11, titleFontWeight: 400, labelLimit: 150 },
      legend: { labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontSize: 11, titleFontWeight: 400 },
    };
    return { colour, config };
  }

  async function draw() {
    const { colour, config } = scheme();
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    for (const place of all(".chart")) {
      const { section, chart } = place.dataset;
      const filled = JSON.parse(JSON.stringify(data[section].charts[chart]), (_, value) =>
        typeof value === "string" ? value.replace(/^var\((--[\w-]+)\)$/, (_, name) => colour(name) || value) : value);
      const spec = { ...filled, datasets: { rows: objects[section] } };
      try {
        place.view?.finalize();
        const options = { actions: false, ast: true, renderer: "svg", config, tooltip: { theme: dark ? "dark" : "light" } };
        place.view = await vegaEmbed(place, spec, options);
      } catch (error) {
        place.textContent = `This chart could not be drawn: ${error.message}`;
        console.error(error);
      }
    }
    root.dataset.drawn = "true";
  }

  // -- The numbers behind each chart ---------------------------------------------------------------------------------

  // As `csv_cell` in escapes.py has it: one line per row, and no text that a spreadsheet would calculate.
  const unseen = /[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
  const escaped = (letter) => {
    const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[letter], code = letter.codePointAt(0), hex = code.toString(16);
    return short ?? (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`);
  };

  function csv({ columns, rows }) {
    const cell = (value) => {
      if (typeof value !== "string") return value === null ? "" : String(value);
      const formula = /^[=+@\t\r\n＝＋－＠-]/.test(value) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value);
      const text = (formula ? "'" : "") + value.replace(unseen, escaped);
      return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }
  for (const link of all(".csv")) {
    link.href = URL.createObjectURL(new Blob([csv(data[link.dataset.section])], { type: "text/csv" }));
  }

  // -- Where the model looks -----------------------------------------------------------------------------------------

  const SIDE = 288;  // pixels per side of a picture
  const STOPS = [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]];  // magma
  const heat = (value) => {
    const place = (value / 255) * (STOPS.length - 1), low = Math.min(Math.floor(place), STOPS.length - 2);
    return STOPS[low].map((from, channel) => from + (STOPS[low + 1][channel] - from) * (place - low));
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  function overlay(context, arm, moment, image) {
    const [height, width] = arm.cells, attention = arm.attention[moment], small = document.createElement("canvas");
    [small.height, small.width] = [height, width];
    const pixels = new ImageData(width, height);
    for (let cell = 0; cell < height * width; cell++) {
      pixels.data.set([...heat(attention[image * height * width + cell]), 255], 4 * cell);
    }
    small.getContext("2d").putImageData(pixels, 0, 0);
    context.globalAlpha = 0.68;
    context.drawImage(small, 0, 0, SIDE, SIDE);
    context.globalAlpha = 1;
  }

  function outline(context, arm, moment, image) {
    const gone = arm.dropped[moment], [height, width] = arm.grid;
    if (!gone) return 0;
    context.strokeStyle = "#16d9e3";
    context.lineWidth = Math.max(1, Math.min(3, SIDE / width / 6));
    let count = 0;
    for (let cell = 0; cell < height * width; cell++) {
      const bit = image * height * width + cell;
      if (!(gone[bit >> 3] & (128 >> (bit & 7)))) continue;
      const x = (cell % width) * SIDE / width, y = Math.floor(cell / width) * SIDE / height;
      context.strokeRect(x + 1, y + 1, SIDE / width - 2, SIDE / height - 2);
      count++;
    }
    return count;
  }

  function show(moment, pictures) {
    const { step, task } = maps.moments[moment], when = `task ${task}, step ${step}`;
    for (const canvas of all("#cards canvas")) {
      const image = Number(canvas.dataset.image), arm = maps.arms[canvas.dataset.arm];
      const context = canvas.getContext("2d");
      context.imageSmoothingEnabled = pictures[image].naturalWidth > 100;
      context.drawImage(pictures[image], 0, 0, SIDE, SIDE);
      context.imageSmoothingEnabled = false;
      if (!arm) continue;
      overlay(context, arm, moment, image);
      const count = outline(context, arm, moment, image);
      canvas.dataset.moment = moment;
      canvas.setAttribute("aria-label", `${canvas.dataset.name}: attention of ${arm.name} at ${when}, ${count} cells dropped`);
    }
    document.getElementById("moment").setAttribute("aria-valuetext", when);
    document.getElementById("when").textContent = `${when} (${moment + 1} of ${maps.moments.length})`;
  }

  async function watchTraining() {
    if (!maps) return;
    for (const arm of maps.arms) {
      arm.attention = arm.attention.map(bytes);
      arm.dropped = arm.dropped.map((text) => text && bytes(text));
    }
    for (const canvas of all("#cards canvas")) canvas.width = canvas.height = SIDE;
    const pictures = await Promise.all(maps.images.map(async (source) => {
      const picture = new Image();
      picture.src = source;
      await picture.decode();
      return picture;
    }));
    const slider = document.getElementById("moment"), play = document.getElementById("play");
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
    };
    const go = (moment) => {
      slider.value = moment;
      show(Number(slider.value), pictures);
    };
    slider.addEventListener("input", () => { stop(); go(slider.value); });
    play.addEventListener("click", () => {
      if (timer) return stop();
      if (Number(slider.value) === maps.moments.length - 1) go(0);
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      timer = setInterval(() => {
        if (Number(slider.value) === maps.moments.length - 1) return stop();
        go(Number(slider.value) + 1);
      }, 700);
    });
    const kept = sessionStorage.getItem("moment");
    go(kept === null ? maps.moments.length - 1 : kept);
    root.dataset.looking = "true";
  }

  // -- A page that is served asks for newer ones ---------------------------------------------------------------------

  function keepUp() {
    const version = root.dataset.version;
    if (!version) return;
    history.scrollRestoration = "manual";
    scrollTo(0, Number(sessionStorage.getItem("scroll") ?? 0));
    setInterval(async () => {
      try {
        const newest = await (await fetch("version")).text();
        if (newest === version) return;
        sessionStorage.setItem("scroll", scrollY);
        const slider = document.getElementById("moment");
        if (slider && slider.value !== slider.max) sessionStorage.setItem("moment", slider.value);
        else sessionStorage.removeItem("moment");
        location.reload();
      } catch {
        // the server has ended: the page stays as it is
      }
    }, 3000);
  }

  document.getElementById("copy").addEventListener("click", async (event) => {
    const place = document.getElementById("command");
    try {
      await navigator.clipboard.writeText(place.textContent);
      event.target.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(place);
    }
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
  watchTraining();
  draw().then(keepUp);
})();
