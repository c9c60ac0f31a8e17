"use strict";
// Draws the panels of the report: one figure each, redrawn when the reader chooses another variant.
(() => {
  const panels = JSON.parse(document.getElementById("report-data").textContent).panels;
  const config = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false };
  let printing = false;

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const merged = (under, over) => {
    const result = { ...under };
    for (const [key, value] of Object.entries(over || {})) {
      result[key] = isObject(value) && isObject(result[key]) ? merged(result[key], value) : value;
    }
    return result;
  };
  const see_through = (hex, alpha) =>
    "rgba(" + [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",") + "," + alpha + ")";

  // What a role looks like.
  const look = (role) => {
    const ink = color("ink"), main = color("main"), second = color("second"), faint = color("faint");
    const bars = (own, width) => ({ color: own, thickness: width, width: 0 });
    return {
      line: { line: { color: main, width: 2.5 }, marker: { color: main } },
      second: { line: { color: second, width: 2.5, dash: "dash" }, marker: { color: second } },
      reference: { line: { color: faint, width: 1.5, dash: "dot" }, hoverinfo: "skip" },
      low: { line: { width: 0, color: main }, hoverinfo: "skip", showlegend: false },
      high: { line: { width: 0, color: main }, hoverinfo: "skip", fill: "tonexty", fillcolor: see_through(main, 0.18) },
      points: { marker: { color: main, size: 9 }, error_x: bars(main, 3), error_y: bars(main, 2) },
      band: { marker: { color: main, size: 1 }, error_x: bars(see_through(main, 0.45), 1.5), hoverinfo: "skip" },
      rival: { marker: { color: second, size: 9, symbol: "diamond-open", line: { width: 2 } }, error_x: bars(second, 2) },
      faint: { marker: { color: faint, size: 8, symbol: "circle-open" }, line: { color: faint } },
      bars: { marker: { color: main } },
      map: { marker: { color: main, opacity: 0.8, line: { color: ink, width: 1 } }, textfont: { color: ink, size: 11 } },
      heat: {
        colorscale: [[0, color("low")], [0.5, color("middle")], [1, color("high")]],
        colorbar: { thickness: 10, outlinewidth: 0, tickfont: { color: color("soft") } },
        textfont: { size: 11 },
      },
    }[role] || {};
  };

  const common_layout = (n_legend) => {
    const axis = {
      gridcolor: color("rule"), zerolinecolor: color("faint"), linecolor: color("rule"), automargin: true,
      fixedrange: true, tickfont: { color: color("soft") }, title: { font: { color: color("soft"), size: 12 }, standoff: 10 },
    };
    return {
      axis,
      layout: {
        autosize: true, height: 360, margin: { l: 12, r: 16, t: n_legend > 1 ? 44 : 16, b: 12 },
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, hovermode: "closest",
        font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif", size: 12, color: color("ink") },
        hoverlabel: { bgcolor: color("box"), bordercolor: color("faint"), font: { color: color("ink") }, align: "left" },
        showlegend: n_legend > 1,
        legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
        xaxis: axis, yaxis: axis,
      },
    };
  };

  const draw = (state) => {
    const chosen = state.panel.variants[state.place];
    state.words.textContent = chosen.words;
    for (const block of state.figure.querySelectorAll(".block")) {
      block.hidden = Number(block.dataset.variant) !== state.place;
    }
    if (!state.chart) return Promise.resolve();
    state.chart.setAttribute("aria-label", state.title + ". " + chosen.words);
    const narrow = state.chart.clientWidth < 520;
    const traces = (chosen.traces || []).map(({ role, ...trace }) => {
      const drawn = merged(look(role), trace);
      if (role === "map" && narrow) {
        drawn.marker.size = drawn.marker.size.map((size) => 0.6 * size);
        if (drawn.text.length > 12) drawn.mode = "markers";
      }
      return drawn;
    });
    const legend = traces.filter((trace) => trace.showlegend !== false && trace.type !== "heatmap").length;
    const { layout } = common_layout(legend);
    const width = printing ? { width: 640, autosize: false } : {};
    state.point = -1;
    if (state.values.open) fill(state);
    return Plotly.react(state.chart, traces, { ...merged(layout, chosen.layout), ...width }, config);
  };

  // The variant that agrees with the choices; the first of them where a later choice is not to be had.
  const settle = (state) => {
    let left = state.panel.variants.map((_, place) => place);
    state.panel.keys.forEach((key, at) => {
      const own = left.filter((place) => state.panel.variants[place].at[at] === state.choice[key]);
      if (own.length === 0) state.choice[key] = state.panel.variants[left[0]].at[at];
      const select = state.figure.querySelector('select[data-key="' + key + '"]');
      if (select) {
        const offered = [...new Set(left.map((place) => state.panel.variants[place].at[at]))];
        if (offered.join("\u0000") !== [...select.options].map((option) => option.value).join("\u0000")) {
          select.replaceChildren(...offered.map((value) => new Option(value, value)));
        }
        select.value = state.choice[key];
      }
      left = left.filter((place) => state.panel.variants[place].at[at] === state.choice[key]);
    });
    state.place = left[0];
  };

  // A choice holds for every figure that can show it.
  const choose = (key, value) => {
    for (const state of states) {
      const at = state.panel.keys.indexOf(key);
      if (at < 0 || !state.panel.variants.some((variant) => variant.at[at] === value)) continue;
      state.choice[key] = value;
      settle(state);
      draw(state);
    }
  };

  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return String(value).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
    return value === 0 ? "0" : Number(value.toPrecision(5)).toString();
  };

  // The table of values, from the numbers that are drawn.
  const fill = (state) => {
    const traces = state.panel.variants[state.place].traces;
    const get = (column) => column.of.split(".").reduce((value, key) => (value ? value[key] : null), traces[column.trace]);
    const columns = state.panel.columns.map((column) => ({ name: column.name, values: get(column) }))
      .filter((column) => Array.isArray(column.values));
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = column.name;
      if (column.values.some((value) => typeof value === "number")) cell.className = "n";
      head.append(cell);
    }
    const body = table.createTBody();
    for (let place = 0; place < Math.max(0, ...columns.map((column) => column.values.length)); place += 1) {
      const row = body.insertRow();
      for (const column of columns) {
        const cell = row.insertCell();
        const value = column.values[place];
        cell.textContent = shown(value);
        if (typeof value === "number" || value === null) cell.className = "n";
      }
    }
    const box = document.createElement("div");
    box.className = "scroll";
    box.append(table);
    state.values.querySelector(".scroll")?.remove();
    state.values.append(box);
  };

  // Arrow keys go from point to point of the first trace that can be pointed at, and its values are spoken.
  const step = (state, by) => {
    const trace = state.chart.data.findIndex((own) => own.hoverinfo !== "skip" && own.type !== "heatmap");
    if (trace < 0) return false;
    const n = (state.chart.data[trace].x || []).length;
    if (n === 0) return false;
    state.point = Math.min(n - 1, Math.max(0, state.point + by));
    Plotly.Fx.hover(state.chart, [{ curveNumber: trace, pointNumber: state.point }]);
    const text = [...state.chart.querySelectorAll(".hoverlayer .hovertext text")].map((own) => {
      const lines = [...own.querySelectorAll("tspan.line")].map((line) => line.textContent);
      return lines.length > 0 ? lines.join(", ") : own.textContent;
    });
    state.figure.querySelector(".spoken").textContent = text.join("; ");
    return true;
  };

  const states = panels.map((panel) => {
    const figure = document.getElementById(panel.id);
    const state = {
      panel, figure, place: 0, point: -1, choice: {},
      title: figure.querySelector("h3").textContent,
      chart: figure.querySelector(".chart"), words: figure.querySelector(".words"), values: figure.querySelector(".values"),
    };
    panel.keys.forEach((key, at) => { state.choice[key] = panel.variants[0].at[at]; });
    settle(state);
    for (const select of figure.querySelectorAll("select")) {
      select.addEventListener("change", () => choose(select.dataset.key, select.value));
    }
    state.values?.addEventListener("toggle", () => { if (state.values.open) fill(state); });
    state.chart?.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (by && step(state, by)) event.preventDefault();
    });
    state.chart?.addEventListener("blur", () => Plotly.Fx.unhover(state.chart));
    return state;
  });

  const draw_all = () => Promise.all(states.map(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
  // Paper is white and of one width, whatever the screen is.
  const on_paper = (now) => {
    printing = now;
    document.documentElement.toggleAttribute("data-printing", now);
    draw_all();
  };
  addEventListener("beforeprint", () => on_paper(true));
  addEventListener("afterprint", () => on_paper(false));
  draw_all().then(() => { document.documentElement.dataset.drawn = String(states.filter((state) => state.chart).length); });
})();
