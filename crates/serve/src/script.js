"use strict";
// Running trials. Without this script, pages have the same figures when they are reloaded.
(() => {
  const live = document.getElementById("live");
  const url = live && live.dataset.events;
  const at = (id) => document.getElementById(id);
  const set = (id, text) => { const place = at(id); if (place) place.textContent = text; };
  const number = (value, digits) => value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });
  const rates = [];
  const draw = () => {
    const line = document.querySelector("#rates polyline");
    if (!line || rates.length < 2) return;
    const most = Math.max(...rates) * 1.05;
    line.setAttribute("points", rates.map((rate, n) =>
      `${(n * 600 / (rates.length - 1)).toFixed(1)},${(120 - 115 * rate / most).toFixed(1)}`).join(" "));
  };
  const rate = (value) => {
    set("rate", number(value, 0));
    rates.push(value);
    if (rates.length > 300) rates.shift();
    draw();
  };
  const cell = (row, text, kind) => {
    const td = row.appendChild(document.createElement("td"));
    td.textContent = text;
    if (kind) td.className = kind;
    return td;
  };
  const trial = (one) => {
    if (one.rate != null) {
      rate(one.rate);
      set("p99", one.p99 ?? "–");
      set("cpus", `${number(one.client_cpu, 2)}, ${number(one.server_cpu, 2)}`);
    }
    const log = at("log");
    if (!log) return;
    const row = document.createElement("tr");
    cell(row, one.round, "num");
    cell(row, one.target ?? "–");
    cell(row, one.axes ?? "");
    cell(row, one.operation);
    if (one.failed != null) cell(row, one.failed, "wrap failed").colSpan = 5;
    else {
      cell(row, number(one.rate, 0), "num");
      cell(row, one.p50 ?? "–", "num");
      cell(row, one.p99 ?? "–", "num");
      cell(row, number(one.client_cpu, 2), "num");
      cell(row, number(one.server_cpu, 2), "num");
    }
    log.prepend(row);
    while (log.rows.length > 200) log.lastElementChild.remove();
  };
  const words = (axes) => Object.entries(axes ?? {}).map(([name, value]) => `${name} ${value}`).join(", ");
  const progress = (one) => {
    switch (one.event) {
      case "trial-begins":
        set("doing", `round ${one.round}: ${one.operation} on ${one.target}, ${words(one.axes)}`);
        set("done", `${one.ended} of ${one.planned}`);
        if (one.left_ms != null) set("left", `${Math.ceil(one.left_ms / 1000)} s`);
        break;
      case "rate": rate(one.ops_per_second); break;
      case "trial-ends": if (one.ops_per_second != null) rate(one.ops_per_second); break;
      case "loading": set("doing", `loading the data of ${one.target}, ${words(one.axes)}`); break;
      case "restarting": set("doing", "restarting the throwaway servers"); break;
      case "note": case "warning": case "error": set("doing", one.text); break;
      case "run-begins": location.replace(`/runs/${encodeURIComponent(one.run)}`); break;
    }
  };
  if (url) {
    const events = new EventSource(url);
    events.addEventListener("trial", (event) => trial(JSON.parse(event.data)));
    events.addEventListener("progress", (event) => progress(JSON.parse(event.data)));
    events.addEventListener("end", (event) => { events.close(); location.replace(JSON.parse(event.data).path); });
  }
  // The command line of the form, while it is filled in.
  const form = document.getElementById("new");
  if (form) {
    const show = async () => {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams([...new FormData(form), ["show", "1"]]) });
      if (answer.ok) set("command", await answer.text());
    };
    form.addEventListener("input", show);
    show();
  }
})();
