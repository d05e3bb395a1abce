// The film on the home page: the parts of an answer appear one by one, and each event once its last part is shown. Before the first step,
// the whole answer is shown. It stays like this for readers who prefer reduced motion or run no scripts.
const film = document.querySelector(".home-film");
const HOLD = 4; // Steps that show the complete answer.
const DURATION = 8000; // Milliseconds of a whole answer. Each later run starts in the middle, so that the film is never empty.

function characters(parts) {
  return parts.reduce((sum, part) => sum + part.textContent.length, 0);
}

/** Show the first `count` parts of a take, and the events that are known by then. */
function show(take, count) {
  const parts = [...take.querySelectorAll(".home-out > span")];
  const hidden = (later) => (later ? "hidden" : "");
  parts.forEach((part, index) => (part.style.visibility = hidden(index >= count)));
  for (const event of take.querySelectorAll(".home-events > i")) {
    const later = Number(event.dataset.after) > count;
    event.style.visibility = event.nextElementSibling.style.visibility = hidden(later);
  }
  film.querySelector(".home-count").textContent = `${characters(parts.slice(0, count))} / ${characters(parts)}`;
}

if (film) {
  const [chooser, takes] = [film.querySelector("select"), [...film.querySelectorAll(".home-take")]];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let take, total, step;
  const choose = () => {
    takes.forEach((one, index) => one.classList.toggle("home-shown", index === chooser.selectedIndex));
    take = takes[chooser.selectedIndex];
    total = step = take.querySelectorAll(".home-out > span").length;
    show(take, total);
  };
  const advance = () => {
    if (!still.matches) {
      step = step + 1 < total + HOLD ? step + 1 : Math.floor(total / 2);
      show(take, Math.min(step, total));
    }
    setTimeout(advance, DURATION / (total + HOLD));
  };
  chooser.addEventListener("change", choose);
  choose();
  advance();
}
