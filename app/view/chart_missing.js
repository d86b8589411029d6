// Takes the place of Chart.js if it was not found when dic was built: says so where curves would be.
class Chart {
  constructor(canvas, {data, options}) {
    Object.assign(this, {canvas, data, options});
  }

  update() {
    const context = this.canvas.getContext("2d");
    this.canvas.width = this.canvas.clientWidth;
    this.canvas.height = this.canvas.clientHeight;
    if (this.data.datasets.length === 0) return;
    context.fillStyle = this.options.plugins.legend.labels.color;
    context.font = "14px sans-serif";
    context.fillText("Curves need Chart.js, which was missing", 10, 30);
    context.fillText("when this dic was built.", 10, 50);
  }
}
