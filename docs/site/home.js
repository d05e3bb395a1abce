// The film of the home page: parts of an answer appear one by one, and each event when its last part is there. The first frame is full;
// who prefers reduced motion, or runs no scripts, sees nothing but that.
const parts = [...document.querySelectorAll(".home-out > span")];
const events = [...document.querySelectorAll(".home-events > i")];
const total = parts.reduce((sum, part) => sum + part.textContent.length, 0);
const HOLD = 4; // steps on the last frame

function show(count) {
  parts.forEach((part, index) => (part.style.visibility = index < count ? "" : "hidden"));
  for (const event of events)
    event.style.visibility = event.nextElementSibling.style.visibility = Number(event.dataset.after) <= count ? "" : "hidden";
  const seen = parts.slice(0, count).reduce((sum, part) => sum + part.textContent.length, 0);
  document.querySelector(".home-count").textContent = `${seen} / ${total}`;
}

if (parts.length) {
  let step = parts.length;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  show(parts.length);
  setInterval(() => {
    if (still.matches) return show(parts.length);
    step = (step + 1) % (parts.length + HOLD);
    show(Math.min(step, parts.length));
  }, 8000 / (parts.length + HOLD));
}
