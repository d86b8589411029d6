// Plots with Chart.js, which the page loads before this module.

import {onTheme} from "dic/theme.js";

const MARK = "shown frame";

const theme = () => {
  const style = getComputedStyle(document.documentElement);
  return {text: style.getPropertyValue("--text").trim(), line: style.getPropertyValue("--line").trim()};
};

export class Plot {
  #shown = null;

  constructor(canvas, onclick = () => {}) {
    onTheme(() => this.#shown && this.show(...this.#shown));
    this.chart = new Chart(canvas, {
      type: "scatter",
      data: {datasets: []},
      options: {
        animation: false, responsive: true, maintainAspectRatio: false,
        interaction: {mode: "nearest", intersect: false},
        onClick: (event, points) => points[0] && onclick(points[0].index),
        plugins: {legend: {labels: {boxWidth: 14, boxHeight: 2, filter: (item) => item.text !== MARK}}},
      },
    });
  }

  /**
   * curves: [{label, colour, points: [{x, y}], axis: "y" | "y2", dashed}]; axes: {x, y, y2}: titles, {whole}: whether x is
   * counted; mark: an x where a line is drawn, or nothing.
   */
  show(curves, axes, mark = null) {
    this.#shown = [curves, axes, mark];
    const {text, line} = theme();
    const axis = (title, position, grid = true) => ({
      type: "linear", position, title: {display: true, text: title, color: text}, ticks: {color: text, maxTicksLimit: 8},
      grid: {color: line, drawOnChartArea: grid},
    });
    const scales = {x: {...axis(axes.x, "bottom"), bounds: "data"}};
    if (axes.whole) scales.x.ticks.precision = 0;
    if (curves.some((curve) => curve.axis !== "y2")) scales.y = axis(axes.y, "left");
    if (curves.some((curve) => curve.axis === "y2")) scales.y2 = axis(axes.y2, "right", !scales.y);
    this.chart.options.scales = scales;
    this.chart.options.plugins.legend.labels.color = text;
    this.chart.data.datasets = curves.map((curve) => ({
      label: curve.label, data: curve.points, showLine: true, yAxisID: curve.axis ?? "y", borderColor: curve.colour,
      backgroundColor: curve.colour, borderWidth: 1.8, pointRadius: curve.points.length > 60 ? 0 : 2.5, spanGaps: false,
      borderDash: curve.dashed ? [5, 4] : [], clip: 6,
    }));
    if (mark !== null && curves.length > 0) this.#addMark(curves, mark);
    this.chart.update();
  }

  #addMark(curves, mark) {
    const ys = curves.filter((c) => (c.axis ?? "y") === (curves[0].axis ?? "y")).flatMap((c) => c.points.map((p) => p.y))
      .filter(Number.isFinite);
    if (ys.length === 0) return;
    this.chart.data.datasets.push({
      label: MARK, data: [{x: mark, y: Math.min(...ys)}, {x: mark, y: Math.max(...ys)}], showLine: true,
      yAxisID: curves[0].axis ?? "y", borderColor: "#888", borderWidth: 1, borderDash: [3, 3], pointRadius: 0,
    });
  }
}
