"use strict";
// Running trials. Without this script, pages have the same figures when they are reloaded.
(() => {
  const live = document.getElementById("live");
  const url = live && live.dataset.events;
  const at = (id) => document.getElementById(id);
  const set = (id, text) => { const place = at(id); if (place) place.textContent = text; };
  const number = (value, digits) => value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });
  // Charts of the last minutes. A point is [second, value, …], with a value for each series.
  const SPAN = 300, GAP = 3, MOST = 4000, WIDE = 600, HIGH = 120;
  const charts = new Map([...document.querySelectorAll("#live svg[data-kind]")].map((svg) => [svg.id, { svg, points: [] }]));
  const now = () => performance.now() / 1000;
  const units = {
    us: (us) => us >= 1e6 ? `${number(us / 1e6, 1)} s` : us >= 1e3 ? `${number(us / 1e3, 1)} ms` : `${number(us, us < 10 ? 1 : 0)} µs`,
    bytes: (bytes) => bytes >= 1e6 ? `${number(bytes / 1e6, 1)} MB/s` : `${number(bytes / 1e3, 1)} kB/s`,
    share: (share) => `${number(share * 100, 0)} %`,
    "": (value) => number(value, value < 100 ? 1 : 0),
  };
  let frame = 0;
  const add = (id, at, values, name) => {
    const chart = charts.get(id);
    if (!chart || values.every((value) => value == null)) return;
    chart.points.push([at, ...values.map((value) => value ?? 0)]);
    if (name) chart.points[chart.points.length - 1].name = name;
    // A page that is not seen draws nothing.
    if (chart.points.length > MOST) chart.points.splice(0, MOST / 2);
    frame ||= requestAnimationFrame(draw);
  };
  const draw = () => {
    frame = 0;
    const ends = [...charts.values()].flatMap(({ points }) => points.map(([at]) => at));
    const end = ends.reduce((a, b) => Math.max(a, b), -Infinity);
    const start = Math.max(end - SPAN, ends.reduce((a, b) => Math.min(a, b), Infinity));
    for (const chart of charts.values()) {
      chart.points = chart.points.filter(([at]) => at >= start).sort((a, b) => a[0] - b[0]);
      const span = Math.max(end - start, 1);
      if (chart.points.length > 1) (chart.svg.dataset.kind === "lines" ? lines : strip)(chart.svg, whole(chart), start, span);
      times(chart.svg, span);
    }
  };
  /* When the points were measured: the axis of a chart. */
  const times = (svg, span) => {
    const text = (s) => s < 1 ? "now" : s < 100 ? `−${Math.round(s)} s` : `−${number(s / 60, 1)} min`;
    const marks = [0, .25, .5, .75, 1].map((share) => {
      const mark = document.createElement("span");
      mark.style.left = `${share * 100}%`;
      mark.textContent = text((1 - share) * span);
      return mark;
    });
    svg.parentNode.querySelector(".ticks").replaceChildren(...marks);
  };
  /* A line for each target and operation: from trial to trial, while others are measured too. */
  const lines = (svg, points, start, span) => {
    const names = [...new Set(points.map((point) => point.name))].sort();
    const values = points.map((point) => point[1]).filter((value) => value > 0);
    const high = Math.max(...values), low = Math.min(...values, high / 2);
    const place = ([at, value]) => [(at - start) / span * WIDE, HIGH - 4 - (HIGH - 10) * Math.log(Math.max(value, low) / low) / Math.log(high / low)];
    set(`${svg.id}-scale`, `${units[""](low)} to ${units[""](high)}`);
    const drawn = names.map((name, n) => {
      const line = document.createElementNS(svg.namespaceURI, "polyline");
      const places = points.filter((point) => point.name === name).map(place);
      /* A single point is seen too. */
      if (places.length === 1) places.push([places[0][0] + 3, places[0][1]]);
      line.setAttribute("class", `c${n % 8}`);
      line.setAttribute("points", places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
      return line;
    });
    svg.replaceChildren(...drawn);
    svg.parentNode.querySelector(".legend").replaceChildren(...names.map((name, n) => {
      const entry = document.createElement("li"), swatch = entry.appendChild(document.createElement("i"));
      swatch.className = `swatch c${n % 8}`;
      entry.append(name);
      return entry;
    }));
  };
  /* Nothing was seen in a gap: areas end before it. */
  const whole = ({ svg, points }) => svg.dataset.kind !== "area" ? points : points.flatMap((point, i) => {
    const before = points[i - 1], nothing = point.slice(1).map(() => 0);
    return before && point[0] - before[0] > GAP ? [[before[0], ...nothing], [point[0], ...nothing], point] : [point];
  });
  /* Areas lie on top of each other; lines do not. */
  const strip = (svg, points, start, span) => {
    const { kind, unit, least } = svg.dataset, area = kind === "area";
    const values = points.flatMap((point) => area ? point.slice(1).reduce((a, b) => a + b) : point.slice(1));
    const high = values.reduce((a, b) => Math.max(a, b), Number(least ?? 0)) || 1;
    const low = kind === "log" ? values.filter((value) => value > 0).reduce((a, b) => Math.min(a, b), high) : 0;
    const share = (value) => kind === "log" ? Math.log(Math.max(value, low) / low) / (Math.log(high / low) || 1) : value / high;
    const place = (at, value) => `${((at - start) / span * WIDE).toFixed(1)},${(HIGH - (HIGH - 5) * share(value)).toFixed(1)}`;
    set(`${svg.id}-scale`, kind === "log" ? `${units[unit](low)} to ${units[unit](high)}` : `0 to ${units[unit](high)}`);
    let base = points.map(() => 0);
    [...svg.children].forEach((shape, n) => {
      const top = points.map((point, i) => base[i] + point[n + 1]);
      const line = (heights) => points.map(([at], i) => place(at, heights[i]));
      shape.setAttribute("points", (area ? [...line(top), ...line(base).reverse()] : line(top)).join(" "));
      if (area) base = top;
    });
  };
  /* Whether the use of resources comes once a second, and not with each trial. */
  let resources = false;
  /* The target and the operation of the trial at work; null while several are interleaved, whose rate is of all of them. */
  let measured = null, ended = -1;
  const use = (at, cpus, disk, network) => {
    add("processors", at, cpus);
    add("disk", at, [disk]);
    add("network", at, [network]);
  };
  /* A trial that ended at this second. */
  const drawn = (one, end) => {
    if (one.failed != null) return;
    add("rates", end, [one.rate], `${one.target}, ${one.operation}`);
    add("times", end, one.times);
    const of = (all) => (all ?? []).map(([at, ...values]) => [end - all[all.length - 1][0] + at, ...values]);
    if (!resources) of(one.course).forEach(([at, cpus, disk, network]) => use(at, cpus, disk, network));
    of(one.sessions).forEach(([at, sessions]) => add("waits", at, sessions));
  };
  const cell = (row, text, kind) => {
    const td = row.appendChild(document.createElement("td"));
    td.textContent = text;
    if (kind) td.className = kind;
    return td;
  };
  const trial = (one) => {
    drawn(one, now());
    if (one.failed == null) {
      const [rate, , p99, client, servers, disk, network, sessions] = one.shown;
      set("rate", rate);
      set("p99", p99);
      if (!resources) {
        set("cpus", `${client}, ${servers}`);
        set("busy", disk);
        set("traffic", network);
      }
      set("sessions", sessions);
    }
    const log = at("log");
    if (!log) return;
    const row = document.createElement("tr");
    cell(row, one.round, "num");
    cell(row, one.target ?? "–");
    cell(row, one.axes ?? "");
    cell(row, one.operation);
    if (one.failed != null) cell(row, one.failed, "wrap failed").colSpan = 8;
    else one.shown.forEach((text) => cell(row, text, "num"));
    /* The newest one may be there already. */
    if (log.rows.length && log.rows[0].textContent === row.textContent) return;
    log.prepend(row);
    while (log.rows.length > 200) log.lastElementChild.remove();
  };
  const words = (axes) => Object.entries(axes ?? {}).map(([name, value]) => `${name} ${value}`).join(", ");
  const progress = (one) => {
    switch (one.event) {
      case "trial-begins":
        measured = one.ended === ended ? null : `${one.target}, ${one.operation}`;
        ended = one.ended;
        set("doing", `round ${one.round}: ${one.operation} on ${one.target}, ${words(one.axes)}`);
        set("done", `${one.ended} of ${one.planned}`);
        if (one.left_ms != null) set("left", `${Math.ceil(one.left_ms / 1000)} s`);
        break;
      case "trial-ends": if (one.ops_per_second == null) break; /* falls through */
      case "rate":
        set("rate", number(one.ops_per_second, 0));
        if (measured) add("rates", now(), [one.ops_per_second], measured);
        break;
      case "resources": {
        resources = true;
        const client = one.client_cpu, server = one.server_cpu ?? 0;
        use(now(), [client, server, Math.max(0, one.host_cpu - client - server)], one.disk_busy, one.network);
        set("cpus", `${number(client, 2)}, ${number(one.server_cpu, 2)}`);
        set("busy", one.disk_busy == null ? "–" : units.share(one.disk_busy));
        set("traffic", one.network == null ? "–" : units.bytes(one.network));
        break;
      }
      case "loading": set("doing", `loading the data of ${one.target}, ${words(one.axes)}`); break;
      case "restarting": set("doing", "restarting the throwaway servers"); break;
      case "note": case "warning": case "error": set("doing", one.text); break;
      case "run-begins": location.replace(`/runs/${encodeURIComponent(one.run)}`); break;
    }
  };
  if (url) {
    const events = new EventSource(url);
    events.addEventListener("past", (event) => {
      const all = JSON.parse(event.data).filter((one) => one.failed == null);
      const last = all.reduce((a, one) => Math.max(a, one.end), 0);
      all.forEach((one) => drawn(one, now() - last + one.end));
    });
    events.addEventListener("trial", (event) => trial(JSON.parse(event.data)));
    events.addEventListener("progress", (event) => progress(JSON.parse(event.data)));
    events.addEventListener("end", (event) => { events.close(); location.replace(JSON.parse(event.data).path); });
  }
  // The report of a finished run: as high as it is, and what is chosen in it is in the link to this page.
  const report = document.getElementById("report");
  if (report) report.addEventListener("load", () => {
    const inner = report.contentWindow, body = inner.document.body;
    const fit = () => { report.style.height = `${body.scrollHeight + 4}px`; };
    new ResizeObserver(fit).observe(body);
    fit();
    if (location.hash && !inner.location.hash) inner.location.hash = location.hash;
    /* The report replaces its own address without an event. */
    setInterval(() => {
      if (inner.location.hash !== location.hash) history.replaceState(null, "", location.pathname + location.search + inner.location.hash);
    }, 500);
  });
  // The command line of the form and its estimated time, while it is filled in. The link to this page has what is filled in.
  const form = document.getElementById("new");
  if (form) {
    let waiting = 0, asked = 0;
    const filled = () => [...new FormData(form)].filter(([name, value]) => value && name !== "form-token");
    const ask = async (what) => {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams([...new FormData(form), [what, "1"]]) });
      return [answer.ok, await answer.text()];
    };
    const show = async () => {
      const [ok, text] = await ask("show");
      if (!ok) return;
      set("command", text);
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const own = ++asked;
        set("estimate", "…");
        const [ok, text] = await ask("estimate");
        if (own === asked) set("estimate", ok ? text : "");
      }, 500);
    };
    form.addEventListener("input", () => {
      history.replaceState(null, "", `${location.pathname}?${new URLSearchParams(filled())}`);
      show();
    });
    show();
  }
})();
