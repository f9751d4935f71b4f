"use strict";
// What a shape stands for, beside the pointer.
const tip = document.getElementById("tip");
document.addEventListener("pointermove", event => {
  const shape = event.target.closest("[data-tip]");
  tip.style.display = shape ? "block" : "none";
  if (!shape) return;
  tip.textContent = shape.dataset.tip;
  const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
  tip.style.left = Math.max(8, x) + "px";
  tip.style.top = (below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10) + "px";
});
document.addEventListener("pointerleave", () => { tip.style.display = "none"; });
// Paper has nothing to unfold.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
const save = document.getElementById("save");
save.addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([document.getElementById("figures").textContent], { type: "application/json" }));
  link.download = save.dataset.file;
  link.click();
  URL.revokeObjectURL(link.href);
});
