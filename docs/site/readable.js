// Fixes the theme's accessibility: code blocks aren't landmarks, and wide tables can be scrolled with the keyboard.
new MutationObserver(() => {
  for (const buttons of document.querySelectorAll(".md-code__nav:not([role])")) buttons.role = "none";
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
}).observe(document.body, { childList: true, subtree: true });

// A link to a folded member of a class unfolds the class.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target && target.closest("details.doc-members:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
document.addEventListener("DOMContentLoaded", unfold);
