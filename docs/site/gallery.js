// Filters the gallery: shows the rows that contain all words and match all pressed chips, and unfolds their groups.
const filter = document.querySelector(".filter");
const [box, said] = [filter.querySelector("input"), filter.querySelector("output")];
const chips = [...filter.querySelectorAll("button")];
const groups = [...document.querySelectorAll(".md-typeset details")].filter((group) => group.querySelector("[data-chips]:not([data-chips=''])"));
const plain = (text) => text.toLowerCase().replaceAll(/[-↵]/g, " ");
const rows = groups.flatMap((group) =>
  [...group.querySelectorAll(".entry")].map((row) => ({ row, group, text: plain(`${group.querySelector("summary").textContent} ${row.textContent}`), chips: row.dataset.chips.split(" ") })),
);

function apply() {
  const words = plain(box.value).trim();
  const pressed = chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.dataset.chip);
  const hits = new Map(groups.map((group) => [group, 0]));
  for (const { row, group, text, chips } of rows) {
    row.hidden = !(text.includes(words) && pressed.every((chip) => chips.includes(chip)));
    hits.set(group, hits.get(group) + !row.hidden);
  }
  const filtered = words !== "" || pressed.length > 0;
  for (const [group, count] of hits) {
    group.hidden = count === 0;
    group.open = filtered && count > 0;
    group.querySelector("small").textContent = count;
  }
  said.value = filtered ? `${rows.filter(({ row }) => !row.hidden).length} of ${rows.length}` : "";
}

// A link to a row unfolds the row's group.
function unfold() {
  const row = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const group = row && row.closest("details");
  if (!group) return;
  group.open = true;
  row.scrollIntoView();
}

box.addEventListener("input", apply);
for (const chip of chips)
  chip.addEventListener("click", () => {
    chip.ariaPressed = String(chip.ariaPressed !== "true");
    apply();
  });
document.addEventListener("click", async ({ target }) => {
  if (!target.dataset.copy) return;
  await navigator.clipboard.writeText(target.dataset.copy);
  target.textContent = "Copied";
  setTimeout(() => (target.textContent = "Copy id"), 1500);
});
addEventListener("hashchange", unfold);
unfold();
